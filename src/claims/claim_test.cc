#include "claims/claim.h"

#include <gtest/gtest.h>

#include "api/json/reader.h"
#include "api/json/writer.h"

namespace drakkar::claims {
namespace {

api::TreePtr Json(std::string_view text) {
  auto tree = api::ParseJson(text);
  EXPECT_TRUE(tree.ok()) << text;
  return *tree;
}

std::string Text(const api::Draft& draft) {
  const api::TreePtr tree = draft.Freeze();
  return api::WriteJson(tree->root(), {.sort_members = true});
}

TEST(Claim, IsReservedForThePodsInItsStatus) {
  const api::TreePtr claim =
      Json(R"({"status":{"reservedFor":[{"resource":"pods","name":"a","uid":"1"},
                                        {"resource":"pods","name":"b","uid":"2"}]}})");
  EXPECT_TRUE(IsReservedFor(claim->root(), "1"));
  EXPECT_TRUE(IsReservedFor(claim->root(), "2"));
  EXPECT_FALSE(IsReservedFor(claim->root(), "3"));
  EXPECT_FALSE(IsReservedForNoneBut(claim->root(), "1"));
  const api::TreePtr free = Json("{}");
  EXPECT_FALSE(IsReservedFor(free->root(), "1"));
  EXPECT_TRUE(IsReservedForNoneBut(free->root(), "1"));
  const api::TreePtr alone = Json(R"({"status":{"reservedFor":[{"resource":"pods","uid":"1"}]}})");
  EXPECT_TRUE(IsReservedForNoneBut(alone->root(), "1"));
  EXPECT_FALSE(IsReservedForNoneBut(alone->root(), "2"));
}

TEST(Claim, OnlyPodsOfTheCoreGroupCountAsPods) {
  EXPECT_TRUE(IsPod(Json(R"({"resource":"pods","uid":"1"})")->root()));
  EXPECT_TRUE(IsPod(Json(R"({"resource":"pods","apiGroup":"","uid":"1"})")->root()));
  EXPECT_FALSE(IsPod(Json(R"({"resource":"pods","apiGroup":"example.com"})")->root()));
  EXPECT_FALSE(IsPod(Json(R"({"resource":"podgroups"})")->root()));
}

TEST(Claim, ReservationsAreAddedAndRemovedByUid) {
  api::Draft claim = api::Draft::Object();
  AddReservation(claim, {"a", "1"});
  AddReservation(claim, {"b", "2"});
  EXPECT_EQ(Text(claim), R"({"status":{"reservedFor":[{"name":"a","resource":"pods","uid":"1"},)"
                         R"({"name":"b","resource":"pods","uid":"2"}]}})");
  RemoveReservations(claim, [](std::string_view uid) { return uid == "1"; });
  EXPECT_EQ(Text(claim),
            R"({"status":{"reservedFor":[{"name":"b","resource":"pods","uid":"2"}]}})");
  RemoveReservations(claim, [](std::string_view uid) { return uid == "2"; });
  EXPECT_EQ(Text(claim), R"({"status":{}})");
  RemoveReservations(claim, [](std::string_view) { return true; });
  EXPECT_EQ(Text(claim), R"({"status":{}})");
}

TEST(Claim, ClearingTheAllocationTakesTheDeviceStatusWithIt) {
  api::Draft claim(
      Json(R"({"status":{"allocation":{},"devices":[{}],"reservedFor":[{"uid":"1"}]}})"));
  ClearAllocation(claim);
  EXPECT_EQ(Text(claim), R"({"status":{"reservedFor":[{"uid":"1"}]}})");
}

TEST(Claim, IsMadeForThePodThatControlsIt) {
  const auto claim = [](std::string_view owners) {
    return api::Object(Json(std::string(R"({"metadata":{"namespace":"ns","ownerReferences":[)")
                                .append(owners)
                                .append("]}}")));
  };
  const api::Object made = claim(
      R"({"apiVersion":"v1","kind":"Pod","name":"q","uid":"2"},
         {"apiVersion":"v1","kind":"Pod","name":"p","uid":"1","controller":true})");
  EXPECT_TRUE(IsMadeFor(made.root(), "1"));
  EXPECT_FALSE(IsMadeFor(made.root(), "2"));
  ASSERT_TRUE(FindOwnerPod(made.root()));
  EXPECT_EQ(FindOwnerPod(made.root())->key, "ns/p");
  EXPECT_EQ(FindOwnerPod(made.root())->uid, "1");
  EXPECT_FALSE(IsMadeFor(claim("").root(), "1"));
  EXPECT_FALSE(FindOwnerPod(claim("").root()));
  for (const char* other :
       {R"({"apiVersion":"v1","kind":"Node","name":"p","uid":"1","controller":true})",
        R"({"apiVersion":"example.com/v1","kind":"Pod","name":"p","uid":"1","controller":true})",
        R"({"apiVersion":"v1","kind":"Pod","name":"p","uid":"1"})"}) {
    EXPECT_FALSE(FindOwnerPod(claim(other).root())) << other;
  }
}

TEST(Claim, IsMadeForExtendedResourcesIfTheAnnotationSaysSo) {
  const auto claim = [](std::string_view annotations) {
    return IsForExtendedResources(
        Json(std::string(R"({"metadata":{"annotations":{)").append(annotations).append("}}}"))
            ->root());
  };
  EXPECT_TRUE(claim(R"("resource.kubernetes.io/extended-resource-claim":"true")"));
  EXPECT_FALSE(claim(R"("resource.kubernetes.io/extended-resource-claim":"false")"));
  EXPECT_FALSE(claim(""));
  EXPECT_FALSE(IsForExtendedResources(Json("{}")->root()));
  api::Draft owned = api::Draft::Object();
  owned["metadata"]["ownerReferences"].Append(OwnerReference("p", "1"));
  EXPECT_TRUE(IsMadeFor(owned.Freeze()->root(), "1"));
}

TEST(Claim, ADeviceStatusIsFoundByDriverPoolDeviceAndShare) {
  const api::TreePtr claim = Json(R"({"status":{"devices":[
      {"driver":"d","pool":"p","device":"x","data":1},
      {"driver":"d","pool":"p","device":"x","shareID":"s","data":2}]}})");
  const auto find = [&](std::string_view result) {
    return FindDeviceStatus(claim->root(), Json(result)->root())["data"].integer(-1);
  };
  EXPECT_EQ(find(R"({"driver":"d","pool":"p","device":"x"})"), 1);
  EXPECT_EQ(find(R"({"driver":"d","pool":"p","device":"x","shareID":"s"})"), 2);
  EXPECT_EQ(find(R"({"driver":"e","pool":"p","device":"x"})"), -1);
  EXPECT_EQ(find(R"({"driver":"d","pool":"q","device":"x"})"), -1);
  EXPECT_EQ(find(R"({"driver":"d","pool":"p","device":"y"})"), -1);
  EXPECT_EQ(find(R"({"driver":"d","pool":"p","device":"x","shareID":"t"})"), -1);
}

TEST(Claim, TheStateIsKubectls) {
  const std::pair<const char*, const char*> cases[] = {
      {R"({})", "pending"},
      {R"({"status":{"allocation":null}})", "pending"},
      {R"({"status":{"allocation":{}}})", "allocated"},
      {R"({"status":{"allocation":{},"reservedFor":[{}]}})", "allocated,reserved"},
      {R"({"status":{"reservedFor":[{}]}})", "pending"},
      {R"({"metadata":{"deletionTimestamp":"2025-01-01T00:00:00Z"}})", "deleted"},
      {R"({"metadata":{"deletionTimestamp":"2025-01-01T00:00:00Z"},"status":{"allocation":{}}})",
       "deleted,allocated"},
  };
  for (const auto& [claim, state] : cases) {
    EXPECT_EQ(StateText(Json(claim)->root()), state) << claim;
  }
}

}  // namespace
}  // namespace drakkar::claims
