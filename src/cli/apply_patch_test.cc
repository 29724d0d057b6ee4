#include "cli/apply_patch.h"
#include "api/meta/annotations.h"

#include <gtest/gtest.h>

#include "api/codec/yaml_reader.h"
#include "api/json/reader.h"
#include "api/json/writer.h"
#include "api/patch/strategic.h"
#include "api/scheme/scheme.h"
#include "api/tree/draft.h"

namespace drakkar::cli {
namespace {

using api::TreePtr;

TreePtr Yaml(std::string_view text) {
  return api::ParseYaml(text).value().at(0);
}

const api::StructSchema& PodSchema() {
  return *api::FindKind("", "v1", "Pod")->schema;
}

// The patch for `second` after `first` was applied and others made `changes` (a strategic patch).
std::string PatchFor(std::string_view first, std::string_view changes, std::string_view second) {
  const TreePtr applied = WithLastApplied(Yaml(first)->root());
  const TreePtr current =
      api::ApplyStrategicPatch(applied->root(), Yaml(changes)->root(), PodSchema()).value();
  const TreePtr modified = WithLastApplied(Yaml(second)->root());
  return CreateApplyPatch(current->root(), modified->root(), PodSchema()).value();
}

// Without the annotation, which every non-empty patch contains.
std::string Essence(std::string patch) {
  const std::size_t begin = patch.find("\"metadata\":{\"annotations\":{\"kubectl");
  if (begin == std::string::npos) return patch;
  const std::size_t end = patch.find("\\n\"}", begin);
  patch.erase(begin, end + 4 - begin);
  return patch;
}

constexpr std::string_view kPod = R"(
apiVersion: v1
kind: Pod
metadata: {name: a, labels: {x: '1'}}
spec:
  containers:
  - {name: c, image: "i:1"}
  - {name: d, image: "j:1"}
)";
constexpr std::string_view kDefaulted = R"(
metadata: {uid: u, resourceVersion: '5'}
spec:
  restartPolicy: Always
  containers: [{name: c, imagePullPolicy: Always}]
status: {phase: Running}
)";

TEST(ApplyPatch, AnnotationHoldsTheManifestAsOneLine) {
  const TreePtr tree = WithLastApplied(
      Yaml("kind: Pod\napiVersion: v1\nmetadata: {name: a, creationTimestamp: null}\nstatus: {}")
          ->root());
  EXPECT_EQ(tree->root()["metadata"]["annotations"].Entry(api::kLastAppliedAnnotation).str(),
            "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"annotations\":{},\"name\":"
            "\"a\"}}\n");
}

TEST(ApplyPatch, TheSameManifestChangesNothing) {
  EXPECT_EQ(PatchFor(kPod, "{}", kPod), "{}");
  EXPECT_EQ(PatchFor(kPod, kDefaulted, kPod), "{}");
}

TEST(ApplyPatch, EqualQuantitiesChangeNothing) {
  const std::string_view wanted =
      "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\n"
      "spec: {containers: [{name: c, image: i, resources: {requests: {cpu: 1000m}}}]}\n";
  EXPECT_EQ(PatchFor(wanted, "spec: {containers: [{name: c, resources: {requests: {cpu: '1'}}}]}",
                     wanted),
            "{}");
}

TEST(ApplyPatch, ChangedFieldsAreSetAndListsMergedByKey) {
  const std::string second = std::string(kPod).replace(kPod.find("i:1"), 3, "i:2");
  const std::string patch = Essence(PatchFor(kPod, kDefaulted, second));
  EXPECT_NE(patch.find(R"("image":"i:2")"), std::string::npos) << patch;
  EXPECT_EQ(patch.find("imagePullPolicy"), std::string::npos) << patch;
  EXPECT_EQ(patch.find("j:1"), std::string::npos) << patch;
}

TEST(ApplyPatch, FieldsNoLongerInTheManifestAreRemoved) {
  const std::string second = R"(
apiVersion: v1
kind: Pod
metadata: {name: a}
spec:
  containers:
  - {name: c, image: "i:1"}
)";
  const std::string patch = PatchFor(kPod, kDefaulted, second);
  EXPECT_NE(patch.find(R"("labels":null)"), std::string::npos) << patch;
  EXPECT_NE(patch.find(R"({"$patch":"delete","name":"d"})"), std::string::npos) << patch;
}

TEST(ApplyPatch, FieldsAddedByOthersStay) {
  const std::string second = std::string(kPod).replace(kPod.find("x: '1'"), 6, "x: '2'");
  const std::string patch = PatchFor(
      kPod, "metadata: {labels: {other: y}}\nspec: {containers: [{name: sidecar, image: s}]}",
      second);
  EXPECT_EQ(patch.find("other"), std::string::npos) << patch;
  EXPECT_EQ(patch.find(R"("$patch")"), std::string::npos) << patch;
  EXPECT_NE(patch.find(R"("x":"2")"), std::string::npos) << patch;
}

TEST(ApplyPatch, ChangesByOthersToTheManifestsFieldsAreReverted) {
  const std::string patch = PatchFor(kPod, "metadata: {labels: {x: changed}}", kPod);
  EXPECT_EQ(patch, R"({"metadata":{"labels":{"x":"1"}}})");
}

TEST(ApplyPatch, AnObjectNotCreatedByApplyKeepsFieldsThatAreNotInTheManifest) {
  const TreePtr current =
      Yaml("metadata: {name: a, labels: {old: o}}\nspec: {containers: [{name: c, image: i}]}");
  const TreePtr modified = WithLastApplied(Yaml(kPod)->root());
  const std::string patch =
      CreateApplyPatch(current->root(), modified->root(), PodSchema()).value();
  EXPECT_EQ(patch.find("old"), std::string::npos) << patch;
  EXPECT_NE(patch.find(R"("x":"1")"), std::string::npos) << patch;
}

// Kinds without a schema: three-way, and lists are replaced.
TEST(MergePatchTest, SetsRemovesAndLeavesAloneWhatOthersHaveSet) {
  const auto parse = [](std::string_view json) { return api::ParseJson(json).value(); };
  const api::TreePtr first = WithLastApplied(
      parse(
          R"({"metadata":{"name":"a"},"spec":{"masts":1,"crew":["x","y"],"flag":{"color":"red"}}})")
          ->root());
  api::Draft current(first);
  current["metadata"]["uid"] = "1";
  current["spec"].Entry("sails") = 3;
  const api::TreePtr now = current.Freeze();
  EXPECT_EQ(*CreateMergePatch(now->root(), first->root()), "{}");
  const api::TreePtr second = WithLastApplied(
      parse(R"({"metadata":{"name":"a"},"spec":{"crew":["x"],"flag":{"color":"red"}}})")->root());
  const api::TreePtr patch = api::ParseJson(*CreateMergePatch(now->root(), second->root())).value();
  const api::Value spec = patch->root()["spec"];
  EXPECT_EQ(api::WriteJson(spec), R"({"crew":["x"],"masts":null})");
  EXPECT_TRUE(
      patch->root()["metadata"]["annotations"].Entry(api::kLastAppliedAnnotation).is_string());
}

}  // namespace
}  // namespace drakkar::cli
