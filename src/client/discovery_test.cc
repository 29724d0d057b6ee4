#include "client/discovery.h"

#include <gtest/gtest.h>

#include "api/json/reader.h"
#include "api/scheme/scheme.h"

namespace drakkar::client {
namespace {

constexpr std::string_view kGroups = R"({"kind":"APIGroupDiscoveryList","items":[
  {"metadata":{"name":"resource.k8s.io"},"versions":[
    {"version":"v1","freshness":"Current","resources":[
      {"resource":"devicetaintrules","responseKind":{"kind":"DeviceTaintRule"},"scope":"Cluster",
       "verbs":["list","watch","delete"]}]},
    {"version":"v1beta2","freshness":"Current","resources":[
      {"resource":"devicetaintrules","responseKind":{"kind":"DeviceTaintRule"},"scope":"Cluster",
       "verbs":["list","watch","delete"]}]}]},
  {"metadata":{"name":"shipyard.example.com"},"versions":[
    {"version":"v1","freshness":"Current","resources":[
      {"resource":"hulls","responseKind":{"kind":"Hull"},"scope":"Namespaced","singularResource":"hull",
       "verbs":["list","watch","delete","deletecollection"]}]}]},
  {"metadata":{"name":"metrics.example.com"},"versions":[
    {"version":"v1beta1","freshness":"Stale","resources":[]}]}]})";

TEST(DiscoveryTest, EachResourceIsListedOnceInThePreferredVersion) {
  KindCatalog catalog;
  ServedKinds served;
  ASSERT_TRUE(catalog.Read((*api::ParseJson(kGroups))->root(), served).ok());
  ASSERT_EQ(served.kinds.size(), 2u);
  EXPECT_EQ(served.kinds[0], api::FindKind("resource.k8s.io", "v1", "DeviceTaintRule"));
  EXPECT_EQ(served.unreachable, "metrics.example.com/v1beta1");
}

TEST(DiscoveryTest, AKindOutsideTheSchemaIsDescribedOnlyOnce) {
  KindCatalog catalog;
  ServedKinds served;
  ASSERT_TRUE(catalog.Read((*api::ParseJson(kGroups))->root(), served).ok());
  const api::KindSchema& hull = *served.kinds[1];
  EXPECT_EQ(hull.group, "shipyard.example.com");
  EXPECT_EQ(hull.version, "v1");
  EXPECT_EQ(hull.kind, "Hull");
  EXPECT_EQ(hull.plural, "hulls");
  EXPECT_TRUE(hull.namespaced);
  ASSERT_EQ(hull.verbs.size(), 4u);
  EXPECT_EQ(hull.verbs[3], "deletecollection");
  ServedKinds again;
  ASSERT_TRUE(catalog.Read((*api::ParseJson(kGroups))->root(), again).ok());
  EXPECT_EQ(again.kinds[1], &hull);
}

TEST(DiscoveryTest, EveryVersionIsListedIfAskedFor) {
  KindCatalog catalog;
  ServedKinds served;
  ASSERT_TRUE(
      catalog.Read((*api::ParseJson(kGroups))->root(), served, KindCatalog::Versions::kAll).ok());
  ASSERT_EQ(served.kinds.size(), 3u);
  EXPECT_EQ(served.kinds[1]->version, "v1beta2");
}

TEST(DiscoveryTest, ResourcesWithoutANameOrVersionAreSkipped) {
  KindCatalog catalog;
  ServedKinds served;
  const auto list = *api::ParseJson(
      R"({"kind":"APIGroupDiscoveryList","items":[{"metadata":{"name":"g"},"versions":[)"
      R"({"version":"v1","resources":[{"responseKind":{"kind":"A"}},{"resource":"bs","responseKind":{"kind":"B"}}]},)"
      R"({"resources":[{"resource":"cs","responseKind":{"kind":"C"}}]}]}]})");
  ASSERT_TRUE(catalog.Read(list->root(), served).ok());
  ASSERT_EQ(served.kinds.size(), 1u);
  EXPECT_EQ(served.kinds[0]->plural, "bs");
}

TEST(DiscoveryTest, ADocumentThatIsNotAggregatedDiscoveryIsRejected) {
  KindCatalog catalog;
  ServedKinds served;
  const auto list = *api::ParseJson(R"({"kind":"APIGroupList","groups":[]})");
  EXPECT_FALSE(catalog.Read(list->root(), served).ok());
}

}  // namespace
}  // namespace drakkar::client
