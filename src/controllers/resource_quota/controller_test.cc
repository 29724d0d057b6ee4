#include "controllers/resource_quota/controller.h"

#include "controllers/testing/controllers_fixture.h"

namespace drakkar::controllers {
namespace {

class ResourceQuotaTest : public ControllersFixture {
 protected:
  void Quota(std::string_view hard) {
    Create(StrCat(R"({"apiVersion":"v1","kind":"ResourceQuota","metadata":{"name":"q"},
        "spec":{"hard":{)",
                  hard, "}}}"));
    Settle(std::chrono::seconds(2));
  }
  std::string Used(std::string_view name) {
    Settle(std::chrono::seconds(2));
    const api::ObjectPtr quota = server_.Get("ResourceQuota", "default/q");
    return std::string((*quota)["status"]["used"].Entry(name).str());
  }
};

TEST_F(ResourceQuotaTest, TheStatusShowsWhatIsUsed) {
  Create(R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"},"spec":{"containers":[
      {"name":"c","image":"i","resources":{"requests":{"cpu":"250m","memory":"1Gi"}}}]}})");
  Quota(R"("pods":"5","requests.cpu":"2","memory":"4Gi","count/configmaps":"9")");
  EXPECT_EQ(Used("pods"), "1");
  EXPECT_EQ(Used("requests.cpu"), "250m");
  EXPECT_EQ(Used("memory"), "1Gi");
  const std::string before = Used("count/configmaps");
  Create(R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"m"}})");
  EXPECT_EQ(Used("count/configmaps"), StrCat(*ParseInt64(before) + 1));
  const api::ObjectPtr quota = server_.Get("ResourceQuota", "default/q");
  EXPECT_EQ((*quota)["status"]["hard"].Entry("pods").str(), "5");
}

TEST_F(ResourceQuotaTest, APodThatEndsOrGoesIsNoLongerCounted) {
  for (const auto name : {"a", "b"}) {
    Create(StrCat(R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":")", name,
                  R"("},"spec":{"containers":[{"name":"c","image":"i"}]}})"));
  }
  Quota(R"("pods":"5","count/pods":"5")");
  EXPECT_EQ(Used("pods"), "2");
  SetPod(server_.Get("Pod", "default/a"), "Succeeded", false);
  EXPECT_EQ(Used("pods"), "1");
  EXPECT_EQ(Used("count/pods"), "2");
  server_.Delete("Pod", "default/b");
  EXPECT_EQ(Used("pods"), "0");
}

TEST_F(ResourceQuotaTest, DevicesAreCountedPerClass) {
  Quota(R"("gpu.deviceclass.resource.k8s.io/devices":"8")");
  EXPECT_EQ(Used("gpu.deviceclass.resource.k8s.io/devices"), "0");
  Create(R"({"apiVersion":"resource.k8s.io/v1","kind":"ResourceClaim","metadata":{"name":"c"},
      "spec":{"devices":{"requests":[{"name":"r","exactly":{"deviceClassName":"gpu","count":3}}]}}})");
  EXPECT_EQ(Used("gpu.deviceclass.resource.k8s.io/devices"), "3");
}

TEST_F(ResourceQuotaTest, CustomResourcesAreCounted) {
  Quota(R"("pods":"5","count/widgets.example.com":"5")");
  Create(R"({"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition",
      "metadata":{"name":"widgets.example.com"},"spec":{"group":"example.com","scope":"Namespaced",
      "names":{"plural":"widgets","kind":"Widget"},"versions":[{"name":"v1","served":true,
      "storage":true,"schema":{"openAPIV3Schema":{"type":"object"}}}]}})");
  const api::KindSchema* kind = server_.core().FindKind("example.com/v1", "Widget");
  ASSERT_NE(kind, nullptr);
  const auto widget = [&](std::string_view name) {
    const api::Draft made = {
        {"apiVersion", "example.com/v1"}, {"kind", "Widget"}, {"metadata", {{"name", name}}}};
    server_.client().Create({kind, "default", "", ""}, made.Freeze(), {},
                            [](const client::Reply& reply) { EXPECT_TRUE(reply.ok()); });
  };
  widget("a");
  Settle(ResourceQuotaController::kDiscovery);
  EXPECT_EQ(Used("count/widgets.example.com"), "1");
  widget("b");
  EXPECT_EQ(Used("count/widgets.example.com"), "2");
  server_.client().Delete({kind, "default", "a", ""}, {}, [](const client::Reply&) {});
  EXPECT_EQ(Used("count/widgets.example.com"), "1");
  EXPECT_EQ(Used("pods"), "0");
}

TEST_F(ResourceQuotaTest, PodsAndClaimsCountTowardsAnExtendedResource) {
  Quota(R"("requests.e.x/gpu":"8","requests.deviceclass.resource.kubernetes.io/gpu":"8")");
  Create(R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"},"spec":{"containers":[
      {"name":"c","image":"i","resources":{"limits":{"e.x/gpu":"2"}}}]}})");
  Create(R"({"apiVersion":"resource.k8s.io/v1","kind":"ResourceClaim","metadata":{"name":"c"},
      "spec":{"devices":{"requests":[{"name":"r","exactly":{"deviceClassName":"gpu"}}]}}})");
  EXPECT_EQ(Used("requests.e.x/gpu"), "2") << "there is no class yet";
  EXPECT_EQ(Used("requests.deviceclass.resource.kubernetes.io/gpu"), "0");
  Create(R"({"apiVersion":"resource.k8s.io/v1","kind":"DeviceClass","metadata":{"name":"gpu"},
      "spec":{"extendedResourceName":"e.x/gpu"}})");
  EXPECT_EQ(Used("requests.e.x/gpu"), "3");
  EXPECT_EQ(Used("requests.deviceclass.resource.kubernetes.io/gpu"), "1");
}

TEST_F(ResourceQuotaTest, AChangedQuotaIsCountedAgain) {
  Quota(R"("pods":"5")");
  Change("ResourceQuota", "default/q", "",
         [](api::Draft& quota) { quota["spec"]["hard"].Entry("secrets") = "3"; });
  EXPECT_EQ(Used("secrets"), "0");
}

}  // namespace
}  // namespace drakkar::controllers
