#include "controllers/endpoints/controller.h"

#include <map>

#include "controllers/endpoints/planner.h"
#include "controllers/testing/controllers_fixture.h"

namespace drakkar::controllers {
namespace {

class EndpointsTest : public ControllersFixture {
 protected:
  EndpointsTest() {
    Start(WithoutNodeLifecycle());
    Create(R"({"apiVersion":"v1","kind":"Node","metadata":{"name":"n1",
        "labels":{"topology.kubernetes.io/zone":"a"}}})");
  }
  void Service(std::string_view name, std::string_view spec) {
    Create(StrCat(R"({"apiVersion":"v1","kind":"Service","metadata":{"name":")", name,
                  R"("},"spec":{)", spec, "}}"));
    Settle(std::chrono::seconds(2));
  }
  void Pod(std::string_view name, std::string_view address, bool ready = true) {
    const api::ObjectPtr pod =
        Create(StrCat(R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":")", name,
                      R"(","labels":{"app":"web"}},"spec":{"containers":[{"name":"c","image":"i",
                          "ports":[{"name":"http","containerPort":8080}]}]}})"));
    Bind(pod, "n1");
    Change("Pod", pod->qualified_name(), "status", [&](api::Draft& draft) {
      draft["status"]["phase"] = "Running";
      draft["status"]["podIP"] = address;
      draft["status"]["podIPs"] = api::Draft::Array();
      draft["status"]["podIPs"].Append({{"ip", address}});
      draft["status"]["conditions"] = api::Draft::Array();
      draft["status"]["conditions"].Append(
          {{"type", "Ready"}, {"status", ready ? "True" : "False"}});
    });
    Settle(std::chrono::seconds(1));
  }
  static constexpr std::string_view kWeb =
      R"("selector":{"app":"web"},"ports":[{"port":80,"targetPort":"http"}])";

  // "10.0.0.1:8080 (10.0.0.2:8080)": addresses that are not ready are in parentheses.
  std::string Endpoints(const std::string& name) {
    const api::ObjectPtr object = server_.Get("Endpoints", StrCat("default/", name));
    if (object == nullptr) return "none";
    std::string text;
    for (api::Value subset : (*object)["subsets"].elements()) {
      const std::int64_t port = subset["ports"].at(0)["port"].integer();
      for (api::Value each : subset["addresses"].elements()) {
        text += StrCat(text.empty() ? "" : " ", each["ip"].str(), ":", port);
      }
      for (api::Value each : subset["notReadyAddresses"].elements()) {
        text += StrCat(text.empty() ? "(" : " (", each["ip"].str(), ":", port, ")");
      }
    }
    return text;
  }
  std::vector<api::ObjectPtr> Slices() { return All("discovery.k8s.io", "endpointslices"); }
};

TEST_F(EndpointsTest, AServiceLeadsToTheReadyPodsThatItSelects) {
  Service("web", kWeb);
  EXPECT_EQ(Endpoints("web"), "");
  Pod("a", "10.0.0.1");
  Pod("b", "10.0.0.2", false);
  EXPECT_EQ(Endpoints("web"), "10.0.0.1:8080 (10.0.0.2:8080)");
  ASSERT_EQ(Slices().size(), 1u);
  const api::Value slice = Slices()[0]->root();
  EXPECT_EQ(slice["metadata"]["labels"].Entry("kubernetes.io/service-name").str(), "web");
  EXPECT_EQ(slice["metadata"]["ownerReferences"].at(0)["kind"].str(), "Service");
  EXPECT_EQ(slice["addressType"].str(), "IPv4");
  EXPECT_EQ(slice["ports"].at(0)["port"].integer(), 8080);
  ASSERT_EQ(slice["endpoints"].size(), 2u);
  const api::Value first = slice["endpoints"].at(0);
  EXPECT_EQ(first["addresses"].at(0).str(), "10.0.0.1");
  EXPECT_TRUE(first["conditions"]["ready"].boolean());
  EXPECT_EQ(first["nodeName"].str(), "n1");
  EXPECT_EQ(first["zone"].str(), "a");
  EXPECT_EQ(first["targetRef"]["name"].str(), "a");
  EXPECT_FALSE(slice["endpoints"].at(1)["conditions"]["ready"].boolean());
}

TEST_F(EndpointsTest, APodThatGoesIsRemovedAndOneThatIsBeingDeletedIsNotReady) {
  Service("web", kWeb);
  Pod("a", "10.0.0.1");
  Pod("b", "10.0.0.2");
  server_.Delete("Pod", "default/a");
  Settle(std::chrono::seconds(2));
  EXPECT_EQ(Endpoints("web"), "10.0.0.2:8080");
  const api::Value endpoint = Slices()[0]->root()["endpoints"].at(0);
  EXPECT_TRUE(endpoint["conditions"]["terminating"].boolean());
  EXPECT_FALSE(endpoint["conditions"]["ready"].boolean());
  EXPECT_TRUE(endpoint["conditions"]["serving"].boolean());
  server_.Delete("Pod", "default/a", {.grace_period_seconds = 0});
  Settle(std::chrono::seconds(2));
  EXPECT_EQ(Slices()[0]->root()["endpoints"].size(), 1u);
}

TEST_F(EndpointsTest, PublishNotReadyAddressesMakesEveryPodReady) {
  Service("web", StrCat(kWeb, R"(,"publishNotReadyAddresses":true,"clusterIP":"None")"));
  Pod("a", "10.0.0.1", false);
  EXPECT_EQ(Endpoints("web"), "10.0.0.1:8080");
  EXPECT_TRUE(
      Slices()[0]->root()["metadata"]["labels"].Entry("service.kubernetes.io/headless").exists());
}

TEST_F(EndpointsTest, AServiceWithoutASelectorKeepsTheEndpointsThatSomebodyGaveIt) {
  Create(R"({"apiVersion":"v1","kind":"Endpoints","metadata":{"name":"db"},
      "subsets":[{"addresses":[{"ip":"192.0.2.1"}],"ports":[{"port":5432}]}]})");
  Service("db", R"("ports":[{"port":5432}])");
  EXPECT_EQ(Endpoints("db"), "192.0.2.1:5432");
  EXPECT_TRUE(Slices().empty());
}

TEST_F(EndpointsTest, DeletingTheServiceDeletesItsEndpoints) {
  Service("web", kWeb);
  Pod("a", "10.0.0.1");
  server_.Delete("Service", "default/web");
  Settle(std::chrono::seconds(3));
  EXPECT_EQ(Endpoints("web"), "none");
  EXPECT_TRUE(Slices().empty());
}

TEST_F(EndpointsTest, AChangeBySomebodyElseIsUndone) {
  Service("web", kWeb);
  Pod("a", "10.0.0.1");
  Change("Endpoints", "default/web", "", [](api::Draft& object) { object.Remove("subsets"); });
  server_.Delete("EndpointSlice", Slices()[0]->qualified_name());
  Settle(std::chrono::seconds(3));
  EXPECT_EQ(Endpoints("web"), "10.0.0.1:8080");
  ASSERT_EQ(Slices().size(), 1u);
  EXPECT_EQ(Slices()[0]->root()["endpoints"].size(), 1u);
}

TEST_F(EndpointsTest, OnlySoManyPortsOfAServiceGetEndpoints) {
  std::string ports;
  for (std::size_t i = 0; i < kMaxServicePorts + 10; ++i) {
    ports += StrCat(i == 0 ? "" : ",", R"({"name":"p)", i, R"(","port":)", i + 1, "}");
  }
  Service("many", StrCat(R"("selector":{"app":"web"},"ports":[)", ports, "]"));
  Pod("a", "10.0.0.1");
  Pod("b", "10.0.0.2");
  Settle(std::chrono::seconds(2));
  ASSERT_EQ(Slices().size(), 1u);
  EXPECT_EQ((*Slices()[0])["ports"].size(), kMaxServicePorts);
  EXPECT_EQ((*Slices()[0])["endpoints"].size(), 2u);
}

TEST_F(EndpointsTest, PodsWithDifferentPortsOfOneNameAreInSlicesOfTheirOwn) {
  Service("web", kWeb);
  Pod("a", "10.0.0.1");
  Pod("b", "10.0.0.2");
  const api::ObjectPtr other =
      Create(R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"c","labels":{"app":"web"}},
          "spec":{"containers":[{"name":"c","image":"i","ports":[
              {"name":"http","containerPort":9090}]},{"name":"d","image":"i","ports":[
              {"name":"http","containerPort":1,"protocol":"UDP"}]}]}})");
  Bind(other, "n1");
  Change("Pod", other->qualified_name(), "status", [](api::Draft& draft) {
    draft["status"]["podIPs"] = api::Draft::Array();
    draft["status"]["podIPs"].Append({{"ip", "10.0.0.3"}});
  });
  Settle(std::chrono::seconds(2));
  std::map<std::int64_t, std::size_t> sizes;  // of the slices, by port
  for (const api::ObjectPtr& slice : Slices()) {
    sizes[(*slice)["ports"].at(0)["port"].integer()] = (*slice)["endpoints"].size();
  }
  EXPECT_EQ(sizes, (std::map<std::int64_t, std::size_t>{{8080, 2}, {9090, 1}}));
}

TEST_F(EndpointsTest, ManyPodsAreSpreadOverSlicesOfAHundred) {
  for (int i = 0; i < 120; ++i) Pod(StrCat("p", i), StrCat("10.0.1.", i));
  Service("web", kWeb);
  std::vector<std::size_t> sizes;
  for (const api::ObjectPtr& slice : Slices()) sizes.push_back((*slice)["endpoints"].size());
  std::ranges::sort(sizes);
  EXPECT_EQ(sizes, (std::vector<std::size_t>{20, 100}));
}

}  // namespace
}  // namespace drakkar::controllers
