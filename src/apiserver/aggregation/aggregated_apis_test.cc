#include "apiserver/aggregation/aggregated_apis.h"

#include <gtest/gtest.h>

#include "api/json/reader.h"
#include "api/json/writer.h"
#include "apiserver/aggregation/local_services.h"
#include "apiserver/http/discovery.h"

namespace drakkar::apiserver {
namespace {

api::TreePtr Parse(std::string_view json) {
  return api::ParseJson(json).value();
}

constexpr char kMetrics[] = R"({"apiVersion":"apiregistration.k8s.io/v1","kind":"APIService",
  "metadata":{"name":"v1beta1.metrics.k8s.io"},
  "spec":{"group":"metrics.k8s.io","version":"v1beta1","groupPriorityMinimum":100,
          "versionPriority":90,"caBundle":"Q0E=",
          "service":{"namespace":"kube-system","name":"metrics-server"}},
  "status":{"conditions":[{"type":"Available","status":"True"}]}})";

constexpr char kList[] = R"({"kind":"APIResourceList","apiVersion":"v1",
  "groupVersion":"metrics.k8s.io/v1beta1","resources":[
    {"name":"nodes/status","singularName":"","namespaced":false,"kind":"NodeMetrics",
     "verbs":["get"]},
    {"name":"nodes","singularName":"","namespaced":false,"kind":"NodeMetrics",
     "verbs":["get","list"]},
    {"name":"pods","singularName":"pod","namespaced":true,"kind":"PodMetrics","shortNames":["pm"],
     "verbs":["get","list"]},
    {"name":"ghosts/status","kind":"Ghost","verbs":["get"]}]})";

TEST(AggregatedApisTest, ReadsWhatAnApiServiceSays) {
  const api::TreePtr object = Parse(kMetrics);
  const auto read = ReadApiService(object->root());
  ASSERT_NE(read, nullptr);
  EXPECT_EQ(read->ServerName(), "metrics-server.kube-system.svc");
  EXPECT_EQ(read->port, 443);
  EXPECT_EQ(read->ca_pem, "CA");
  EXPECT_TRUE(read->is_available);
  EXPECT_EQ(ReadApiService(Parse(R"({"spec":{"group":"a","version":"v1"}})")->root()), nullptr);
}

TEST(AggregatedApisTest, ABundleThatIsNoBase64IsAnError) {
  const auto read =
      ReadApiService(Parse(R"({"spec":{"caBundle":"!","service":{"name":"a"}}})")->root());
  ASSERT_NE(read, nullptr);
  EXPECT_NE(read->error, "");
}

TEST(AggregatedApisTest, FindsByPath) {
  AggregatedApis::Map map;
  map[{"metrics.k8s.io", "v1beta1"}] = ReadApiService(Parse(kMetrics)->root());
  const AggregatedApis apis(std::move(map));
  EXPECT_NE(apis.FindByPath("/apis/metrics.k8s.io/v1beta1"), nullptr);
  EXPECT_NE(apis.FindByPath("/apis/metrics.k8s.io/v1beta1/nodes/a"), nullptr);
  EXPECT_EQ(apis.FindByPath("/apis/metrics.k8s.io"), nullptr);
  EXPECT_EQ(apis.FindByPath("/apis/metrics.k8s.io/v1"), nullptr);
  EXPECT_EQ(apis.FindByPath("/apis/metrics.k8s.io/v1beta10/nodes"), nullptr);
  EXPECT_EQ(apis.FindByPath("/api/v1beta1"), nullptr);
}

TEST(AggregatedApisTest, AListOfResourcesBecomesAggregatedDiscovery) {
  const api::TreePtr made = ResourcesOfList(Parse(kList)->root(), "metrics.k8s.io", "v1beta1");
  ASSERT_NE(made, nullptr);
  EXPECT_EQ(
      api::WriteJson(made->root()),
      R"([{"resource":"nodes","responseKind":{"group":"metrics.k8s.io","version":"v1beta1",)"
      R"("kind":"NodeMetrics"},"scope":"Cluster","singularResource":"","verbs":["get","list"],)"
      R"("subresources":[{"subresource":"status","responseKind":{"group":"metrics.k8s.io",)"
      R"("version":"v1beta1","kind":"NodeMetrics"},"verbs":["get"]}]},)"
      R"({"resource":"pods","responseKind":{"group":"metrics.k8s.io","version":"v1beta1",)"
      R"("kind":"PodMetrics"},"scope":"Namespaced","singularResource":"pod",)"
      R"("shortNames":["pm"],"verbs":["get","list"]}])");
  EXPECT_EQ(ResourcesOfList(Parse(R"({"kind":"Status"})")->root(), "a", "v1"), nullptr);
}

TEST(AggregatedApisTest, DiscoveryHasTheGroupsOfOtherServersByTheirPriority) {
  auto metrics = ReadApiService(Parse(kMetrics)->root());
  metrics->resources = ResourcesOfList(Parse(kList)->root(), "metrics.k8s.io", "v1beta1");
  metrics->is_stale = false;
  auto first = std::make_shared<AggregatedApi>(*metrics);
  first->group = "first.example.com";
  first->group_priority = 20'000;
  first->resources = nullptr;
  first->is_stale = true;
  AggregatedApis::Map map;
  map[{"metrics.k8s.io", "v1beta1"}] = metrics;
  map[{"first.example.com", "v1beta1"}] = first;
  const AggregatedApis apis(std::move(map));
  const Discovery discovery({}, {}, &apis);
  const api::TreePtr groups = Parse(*discovery.Find("/apis", false));
  std::vector<std::string> names;
  for (const api::Value each : groups->root()["groups"].elements()) {
    names.emplace_back(each["name"].str());
  }
  ASSERT_GT(names.size(), 5u);
  EXPECT_EQ(names[0], kRegistrationGroup);
  EXPECT_EQ(names[1], "first.example.com");
  EXPECT_EQ(names[2], "apps");
  EXPECT_EQ(names.back(), "metrics.k8s.io");
  // The server behind it answers for its resources, and we for the group.
  EXPECT_EQ(discovery.Find("/apis/metrics.k8s.io/v1beta1", false), nullptr);
  EXPECT_NE(discovery.Find("/apis/metrics.k8s.io", false), nullptr);
  const api::TreePtr aggregated = Parse(*discovery.Find("/apis", true));
  const api::Value items = aggregated->root()["items"];
  const api::Value last = items.at(items.size() - 1);
  EXPECT_EQ(last["metadata"]["name"].str(), "metrics.k8s.io");
  EXPECT_EQ(last["versions"].at(0)["freshness"].str(), "Current");
  EXPECT_EQ(last["versions"].at(0)["resources"].size(), 2u);
  EXPECT_EQ(items.at(1)["versions"].at(0)["freshness"].str(), "Stale");
  EXPECT_TRUE(items.at(1)["versions"].at(0)["resources"].empty());
}

TEST(LocalServicesTest, EveryBuiltInVersionHasAPriority) {
  // Those without a row would be ordered like custom resources.
  for (const auto& [group, version] : BuiltInVersions()) {
    EXPECT_GT(PriorityOf(group, version).group, 1'000) << group << "/" << version;
  }
  EXPECT_EQ(PriorityOf("example.com", "v1").group, 1'000);
}

TEST(LocalServicesTest, TheCoreGroupHasNoNameAfterTheDot) {
  const api::TreePtr made = LocalApiService({"", "v1"}, kManagedOnStart);
  EXPECT_EQ(made->root()["metadata"]["name"].str(), "v1.");
  EXPECT_FALSE(made->root()["spec"]["group"].exists());
  EXPECT_TRUE(IsAutomanaged(made->root()));
  EXPECT_FALSE(IsAutomanaged(Parse(kMetrics)->root()));
}

}  // namespace
}  // namespace drakkar::apiserver
