#include "claims/pod_claims.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/json/reader.h"

namespace drakkar::claims {
namespace {

using State = PodClaim::State;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

api::TreePtr Json(std::string_view text) {
  auto tree = api::ParseJson(text);
  EXPECT_TRUE(tree.ok()) << text;
  return *tree;
}

// One entry of each state, and statuses that do not belong to any.
const char kPod[] = R"({"spec":{"resourceClaims":[
    {"name":"direct","resourceClaimName":"shared"},
    {"name":"made","resourceClaimTemplateName":"t"},
    {"name":"pending","resourceClaimTemplateName":"t"},
    {"name":"skipped","resourceClaimTemplateName":"t"},
    {"name":"future"}]},
  "status":{"resourceClaimStatuses":[
    {"name":"direct","resourceClaimName":"ignored"},
    {"name":"skipped"},
    {"name":"made","resourceClaimName":"p-made-1"},
    {"name":"stranger","resourceClaimName":"elsewhere"}]}})";

TEST(PodClaims, EveryEntryResolvesByItsSourceAndTheStatus) {
  const api::TreePtr pod = Json(kPod);
  EXPECT_THAT(ListPodClaims(pod->root()),
              ElementsAre(PodClaim{"direct", "shared", State::kResolved, false},
                          PodClaim{"made", "p-made-1", State::kResolved, true},
                          PodClaim{"pending", "", State::kNotCreated, true},
                          PodClaim{"skipped", "", State::kNotNeeded, true},
                          PodClaim{"future", "", State::kUnsupported, false}));
}

TEST(PodClaims, ANameIsFoundOnlyForEntriesOfTheSpecThatHaveAClaim) {
  const api::TreePtr pod = Json(kPod);
  EXPECT_EQ(FindClaimName(pod->root(), "direct"), "shared");
  EXPECT_EQ(FindClaimName(pod->root(), "made"), "p-made-1");
  for (const char* entry : {"pending", "skipped", "future", "stranger", "absent"}) {
    EXPECT_EQ(FindClaimName(pod->root(), entry), std::nullopt) << entry;
  }
}

TEST(PodClaims, NamesIncludeTheClaimBehindExtendedResources) {
  EXPECT_THAT(ListClaimNames(Json(kPod)->root()), ElementsAre("shared", "p-made-1"));
  const api::TreePtr pod =
      Json(R"({"status":{"extendedResourceClaimStatus":{"resourceClaimName":"p-extended"}}})");
  EXPECT_EQ(ExtendedResourceClaim(pod->root()), "p-extended");
  EXPECT_THAT(ListClaimNames(pod->root()), ElementsAre("p-extended"));
  EXPECT_THAT(ListPodClaims(pod->root()), IsEmpty());
}

TEST(PodClaims, APodWithoutClaimsHasNone) {
  EXPECT_THAT(ListClaimNames(Json(R"({"spec":{}})")->root()), IsEmpty());
  EXPECT_EQ(ExtendedResourceClaim(Json("{}")->root()), "");
}

}  // namespace
}  // namespace drakkar::claims
