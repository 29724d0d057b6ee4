#include "claims/pod_group.h"

#include <gtest/gtest.h>

#include "api/json/reader.h"

namespace drakkar::claims {
namespace {

api::TreePtr Json(std::string_view text) {
  auto tree = api::ParseJson(text);
  EXPECT_TRUE(tree.ok()) << text;
  return *tree;
}

TEST(PodGroup, APodNamesItsGroup) {
  EXPECT_EQ(PodGroupOf(Json(R"({"spec":{"schedulingGroup":{"podGroupName":"g"}}})")->root()), "g");
  EXPECT_EQ(PodGroupOf(Json(R"({"spec":{}})")->root()), "");
}

TEST(PodGroup, AnEntryIsOfTheGroupIfNameClaimAndTemplateAreTheSame) {
  const api::TreePtr group = Json(R"({"spec":{"resourceClaims":[
      {"name":"a","resourceClaimName":"x"},{"name":"b","resourceClaimTemplateName":"t"}]}})");
  const auto is_of_group = [&](std::string_view entry) {
    return IsEntryOfGroup(group->root(), Json(entry)->root());
  };
  EXPECT_TRUE(is_of_group(R"({"name":"a","resourceClaimName":"x"})"));
  EXPECT_TRUE(is_of_group(R"({"name":"b","resourceClaimTemplateName":"t"})"));
  EXPECT_FALSE(is_of_group(R"({"name":"a","resourceClaimName":"y"})"));
  EXPECT_FALSE(is_of_group(R"({"name":"c","resourceClaimName":"x"})"));
  EXPECT_FALSE(is_of_group(R"({"name":"b","resourceClaimName":"t"})"));
  EXPECT_FALSE(IsEntryOfGroup(Json("{}")->root(), Json(R"({"name":"a"})")->root()));
}

TEST(PodGroup, AClaimIsReservedForAGroupByName) {
  const api::TreePtr claim = Json(R"({"status":{"reservedFor":[
      {"resource":"pods","name":"p","uid":"1"},
      {"apiGroup":"scheduling.k8s.io","resource":"podgroups","name":"g","uid":"2"}]}})");
  EXPECT_TRUE(IsReservedForGroup(claim->root(), "g"));
  EXPECT_FALSE(IsReservedForGroup(claim->root(), "p"));
  EXPECT_FALSE(IsReservedForGroup(claim->root(), ""));
  EXPECT_FALSE(IsPodGroup(Json(R"({"apiGroup":"example.com","resource":"podgroups"})")->root()));
}

TEST(PodGroup, AClaimIsMadeForTheGroupThatControlsIt) {
  const api::TreePtr claim = Json(R"({"metadata":{"namespace":"ns","ownerReferences":[
      {"apiVersion":"scheduling.k8s.io/v1beta1","kind":"PodGroup","name":"g","uid":"2",
       "controller":true}]}})");
  EXPECT_TRUE(IsMadeForGroup(claim->root(), "g"));
  EXPECT_FALSE(IsMadeForGroup(claim->root(), "h"));
  EXPECT_FALSE(IsMadeForGroup(claim->root(), ""));
  ASSERT_TRUE(FindOwnerGroup(claim->root()));
  EXPECT_EQ(FindOwnerGroup(claim->root())->key, "ns/g");
  EXPECT_EQ(FindOwnerGroup(claim->root())->uid, "2");
  EXPECT_FALSE(FindOwnerPod(claim->root()));
  const api::TreePtr other = Json(R"({"metadata":{"ownerReferences":[
      {"apiVersion":"example.com/v1","kind":"PodGroup","name":"g","uid":"2","controller":true},
      {"apiVersion":"scheduling.k8s.io/v1","kind":"PodGroup","name":"g","uid":"2"}]}})");
  EXPECT_FALSE(IsMadeForGroup(other->root(), "g"));
  EXPECT_FALSE(FindOwnerGroup(other->root()));
}

}  // namespace
}  // namespace drakkar::claims
