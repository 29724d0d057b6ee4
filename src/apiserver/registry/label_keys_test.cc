#include "apiserver/registry/label_keys.h"

#include <gtest/gtest.h>

#include "api/json/reader.h"
#include "api/json/writer.h"
#include "base/text/text.h"

namespace drakkar::apiserver {
namespace {

// The spec after the merge, for a pod with the labels version=7 and app=web.
std::string Merged(std::string_view spec) {
  const auto tree = api::ParseJson(
      StrCat(R"({"metadata":{"labels":{"version":"7","app":"web"}},"spec":)", spec, "}"));
  EXPECT_TRUE(tree.ok());
  api::Draft pod(*tree);
  MergeLabelKeys(pod);
  return api::WriteJson(pod.Freeze()->root()["spec"]);
}

constexpr char kTerm[] = R"("topologyKey":"zone","labelSelector":{"matchLabels":{"app":"web"}})";
constexpr char kVersion[] = R"({"key":"version","operator":"In","values":["7"]})";

TEST(LabelKeys, ThePodsOwnValueJoinsTheSelectorOfEachAffinityTerm) {
  for (const char* group : {"podAffinity", "podAntiAffinity"}) {
    EXPECT_EQ(
        Merged(StrCat(R"({"affinity":{")", group,
                      R"(":{"requiredDuringSchedulingIgnoredDuringExecution":[{"matchLabelKeys":)",
                      R"(["version"],)", kTerm, "}]}}}")),
        StrCat(R"({"affinity":{")", group,
               R"(":{"requiredDuringSchedulingIgnoredDuringExecution":[{"matchLabelKeys":)",
               R"(["version"],"topologyKey":"zone","labelSelector":{"matchLabels":{"app":"web"},)",
               R"("matchExpressions":[)", kVersion, "]}}]}}}"));
    EXPECT_EQ(
        Merged(StrCat(R"({"affinity":{")", group,
                      R"(":{"preferredDuringSchedulingIgnoredDuringExecution":[{"weight":1,)",
                      R"("podAffinityTerm":{"mismatchLabelKeys":["version"],)", kTerm, "}}]}}}")),
        StrCat(R"({"affinity":{")", group,
               R"(":{"preferredDuringSchedulingIgnoredDuringExecution":[{"weight":1,)",
               R"("podAffinityTerm":{"mismatchLabelKeys":["version"],"topologyKey":"zone",)",
               R"("labelSelector":{"matchLabels":{"app":"web"},"matchExpressions":[{"key":)",
               R"("version","operator":"NotIn","values":["7"]}]}}}]}}})"));
  }
}

TEST(LabelKeys, SpreadConstraintsKeepTheRequirementsTheyHave) {
  EXPECT_EQ(
      Merged(R"({"topologySpreadConstraints":[{"matchLabelKeys":["version"],"labelSelector":)"
             R"({"matchExpressions":[{"key":"app","operator":"Exists"}]}}]})"),
      StrCat(R"({"topologySpreadConstraints":[{"matchLabelKeys":["version"],"labelSelector":)",
             R"({"matchExpressions":[{"key":"app","operator":"Exists"},)", kVersion, "]}}]}"));
}

TEST(LabelKeys, KeysWithoutALabelOrASelectorAddNothing) {
  for (const std::string_view spec :
       {R"({"topologySpreadConstraints":[{"matchLabelKeys":["absent"],"labelSelector":{}}]})",
        R"({"topologySpreadConstraints":[{"matchLabelKeys":["version"]}]})",
        R"({"topologySpreadConstraints":[{"matchLabelKeys":["version"],"labelSelector":null}]})",
        R"({"affinity":{"podAffinity":null,"podAntiAffinity":{}}})", R"({"affinity":null})"}) {
    EXPECT_EQ(Merged(spec), spec);
  }
}

}  // namespace
}  // namespace drakkar::apiserver
