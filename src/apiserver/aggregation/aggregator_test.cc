#include "apiserver/aggregation/aggregator.h"

#include <deque>

#include "apiserver/testing/core_fixture.h"
#include "base/text/text.h"
#include "telemetry/metrics/metrics.h"

namespace drakkar::apiserver {
namespace {

constexpr char kResources[] = R"({"kind":"APIResourceList","apiVersion":"v1",
  "groupVersion":"metrics.k8s.io/v1beta1","resources":[
    {"name":"nodes","singularName":"","namespaced":false,"kind":"NodeMetrics",
     "verbs":["get","list"]}]})";

// Servers whose answers the test gives.
class FakeBackends final : public BackendClient {
 public:
  struct Open {
    Call call;
    std::function<void(Result<net::Response>)> done;
  };
  void Get(Call call, std::function<void(Result<net::Response>)> done) override {
    open.push_back({std::move(call), std::move(done)});
  }
  std::deque<Open> open;
};

class AggregatorTest : public CoreFixture {
 protected:
  AggregatorTest() {
    StartCore(nullptr);
    aggregator_ = std::make_unique<Aggregator>(Aggregator::Options{
        .core = *core_,
        .backends = backends_,
        .random = loop_.random(),
        .metrics = &metrics_,
        .built_in = {{"", "v1"}, {"apps", "v1"}, {"apiregistration.k8s.io", "v1"}}});
    aggregator_->Start();
    Settle();
  }
  ~AggregatorTest() override {
    aggregator_->Stop();
    aggregator_.reset();
  }

  // Long enough for what is due at once and for registrations.
  void Settle() { loop_.Advance(std::chrono::milliseconds(300)); }

  void CreateApiService(std::string_view more = R"("insecureSkipTLSVerify":true,)") {
    Create(StrCat(R"({"apiVersion":"apiregistration.k8s.io/v1","kind":"APIService",
      "metadata":{"name":"v1beta1.metrics.k8s.io"},"spec":{"group":"metrics.k8s.io",
      "version":"v1beta1",)",
                  more, R"("groupPriorityMinimum":100,"versionPriority":100,
      "service":{"namespace":"default","name":"metrics"}}})"));
  }
  void CreateService() {
    Create(R"({"apiVersion":"v1","kind":"Service","metadata":{"name":"metrics",
      "namespace":"default"},"spec":{"ports":[{"name":"https","port":443}]}})");
  }
  void CreateSlice(std::string_view ready, std::string_view name = "metrics-1") {
    Create(StrCat(R"({"apiVersion":"discovery.k8s.io/v1","kind":"EndpointSlice","metadata":{
      "name":")",
                  name,
                  R"(","namespace":"default","labels":{"kubernetes.io/service-name":"metrics"}},
      "addressType":"IPv4","ports":[{"name":"https","port":4443,"protocol":"TCP"}],
      "endpoints":[{"addresses":["10.0.0.7"],"conditions":{"ready":)",
                  ready, R"(}}]})"));
  }
  // All of them, and what follows from the answers.
  void Answer(Result<net::Response> response) {
    ASSERT_FALSE(backends_.open.empty());
    FakeBackends::Open next = std::move(backends_.open.front());
    backends_.open.pop_front();
    next.done(std::move(response));
    Settle();
  }
  std::string Condition(std::string_view name = "v1beta1.metrics.k8s.io") {
    const api::ObjectPtr object = core_->Find(kRegistrationGroup, kApiServices, std::string(name));
    if (object == nullptr) return "gone";
    const api::Value condition = object->root()["status"]["conditions"].at(0);
    return StrCat(condition["status"].str(), " ", condition["reason"].str(), " ",
                  condition["message"].str());
  }
  AggregatedApiPtr Published() {
    return aggregator_->board().current()->Find("metrics.k8s.io", "v1beta1");
  }

  FakeBackends backends_;
  Metrics metrics_;
  std::unique_ptr<Aggregator> aggregator_;
};

TEST_F(AggregatorTest, RegistersWhatTheServerServesItself) {
  EXPECT_EQ(Condition("v1."), "True Local Local APIServices are always available");
  EXPECT_EQ(Condition("v1.apps"), "True Local Local APIServices are always available");
  EXPECT_EQ(Condition("v1.apiregistration.k8s.io"), "gone");
  // And again if somebody removes one.
  Delete("apiregistration.k8s.io/v1", "APIService", "", "v1.apps");
  Settle();
  EXPECT_EQ(Condition("v1.apps"), "True Local Local APIServices are always available");
}

TEST_F(AggregatorTest, RegistersTheVersionsOfDefinitionsAndForgetsThem) {
  Create(R"({"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition",
    "metadata":{"name":"boats.example.com"},"spec":{"group":"example.com","scope":"Cluster",
    "names":{"plural":"boats","kind":"Boat"},"versions":[{"name":"v1","served":true,"storage":true,
    "schema":{"openAPIV3Schema":{"type":"object"}}}]}})");
  Settle();
  EXPECT_EQ(Condition("v1.example.com"), "True Local Local APIServices are always available");
  const api::ObjectPtr made = core_->Find(kRegistrationGroup, kApiServices, "v1.example.com");
  EXPECT_EQ(made->root()["spec"]["groupPriorityMinimum"].integer(), 1000);
  Delete("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", "boats.example.com");
  loop_.Advance(std::chrono::seconds(1));
  EXPECT_EQ(Condition("v1.example.com"), "gone");
}

TEST_F(AggregatorTest, SaysStepByStepWhatIsMissing) {
  CreateApiService();
  Settle();
  EXPECT_EQ(Condition(), R"(False ServiceNotFound service/metrics in "default" is not present)");
  CreateService();
  Settle();
  EXPECT_EQ(Condition(),
            "False EndpointsNotFound cannot find endpointslices for service/metrics "
            "in \"default\"");
  CreateSlice("false");
  Settle();
  EXPECT_EQ(Condition(),
            "False MissingEndpoints endpointslices for service/metrics in \"default\" "
            "have no addresses with port name \"https\"");
  EXPECT_TRUE(backends_.open.empty());
  ASSERT_NE(Published(), nullptr);
  EXPECT_FALSE(Published()->is_available);
}

TEST_F(AggregatorTest, AServiceWithoutThePortIsNotAvailable) {
  Create(R"({"apiVersion":"v1","kind":"Service","metadata":{"name":"metrics",
    "namespace":"default"},"spec":{"ports":[{"name":"http","port":80}]}})");
  CreateApiService();
  Settle();
  EXPECT_EQ(Condition(),
            R"(False ServicePortError service/metrics in "default" is not listening on port 443)");
}

TEST_F(AggregatorTest, AsksTheServerAndPublishesWhatItServes) {
  CreateService();
  CreateSlice("true");
  CreateApiService();
  Settle();
  ASSERT_EQ(backends_.open.size(), 1u);
  const BackendClient::Call& call = backends_.open.front().call;
  EXPECT_EQ(call.url, "https://10.0.0.7:4443/apis/metrics.k8s.io/v1beta1");
  EXPECT_EQ(call.server_name, "metrics.default.svc");
  EXPECT_TRUE(call.insecure);
  EXPECT_EQ(call.headers.Get("X-Remote-User"), "system:kube-aggregator");
  Answer(net::Response{.status = 200, .headers = {}, .body = kResources});
  EXPECT_EQ(Condition(), "True Passed all checks passed");
  ASSERT_NE(Published(), nullptr);
  EXPECT_TRUE(Published()->is_available);
  EXPECT_FALSE(Published()->is_stale);
  EXPECT_EQ(Published()->resources->root().at(0)["resource"].str(), "nodes");
  EXPECT_EQ(*aggregator_->Resolve(*Published()), "10.0.0.7:4443");
}

TEST_F(AggregatorTest, KeepsTheOpenApiDocumentOfTheServer) {
  CreateService();
  CreateSlice("true");
  CreateApiService();
  Settle();
  Answer(net::Response{.status = 200, .headers = {}, .body = kResources});
  ASSERT_EQ(backends_.open.size(), 1u);
  EXPECT_TRUE(backends_.open.front().call.url.ends_with("/openapi/v3"));
  Answer(net::Response{.status = 200,
                       .headers = {},
                       .body = R"({"paths":{"apis/metrics.k8s.io/v1beta1":{"serverRelativeURL":
                  "/openapi/v3/apis/metrics.k8s.io/v1beta1?hash=A"}}})"});
  ASSERT_EQ(backends_.open.size(), 1u);
  Answer(net::Response{.status = 200, .headers = {}, .body = "{}"});
  ASSERT_NE(Published()->open_api, nullptr);
  EXPECT_EQ(*Published()->open_api, "{}");
}

TEST_F(AggregatorTest, AServerThatFailsIsAskedAgainAndThenIsNotAvailable) {
  CreateService();
  CreateSlice("true");
  CreateApiService();
  Settle();
  for (int i = 0; i < Aggregator::kAttempts; ++i) {
    EXPECT_EQ(Condition(), "  ");
    Answer(net::Response{.status = 503, .headers = {}, .body = ""});
  }
  EXPECT_EQ(Condition(),
            "False FailedDiscoveryCheck failing or missing response from "
            "https://10.0.0.7:4443/apis/metrics.k8s.io/v1beta1: bad status from "
            "https://10.0.0.7:4443/apis/metrics.k8s.io/v1beta1: 503");
  EXPECT_TRUE(backends_.open.empty());
  // Later it recovers.
  loop_.Advance(std::chrono::seconds(2));
  ASSERT_EQ(backends_.open.size(), 1u);
  Answer(net::Response{.status = 200, .headers = {}, .body = kResources});
  EXPECT_EQ(Condition(), "True Passed all checks passed");
}

TEST_F(AggregatorTest, WhatAServerServedStaysInDiscoveryWhileItIsAway) {
  CreateService();
  CreateSlice("true");
  CreateApiService();
  Settle();
  Answer(net::Response{.status = 200, .headers = {}, .body = kResources});
  backends_.open.clear();
  Delete("v1", "Service", "default", "metrics");
  Settle();
  ASSERT_NE(Published(), nullptr);
  EXPECT_FALSE(Published()->is_available);
  EXPECT_TRUE(Published()->is_stale);
  EXPECT_NE(Published()->resources, nullptr);
}

TEST_F(AggregatorTest, AnAnswerForAnEarlierSpecDoesNotCount) {
  CreateService();
  CreateSlice("true");
  CreateApiService();
  Settle();
  ASSERT_EQ(backends_.open.size(), 1u);
  Delete("apiregistration.k8s.io/v1", "APIService", "", "v1beta1.metrics.k8s.io");
  EXPECT_EQ(Published(), nullptr);
  CreateApiService();
  Settle();
  EXPECT_EQ(backends_.open.size(), 2u);
  FakeBackends::Open old = std::move(backends_.open.front());
  backends_.open.pop_front();
  old.done(net::Response{.status = 500, .headers = {}, .body = ""});
  Settle();
  Answer(net::Response{.status = 200, .headers = {}, .body = kResources});
  EXPECT_EQ(Condition(), "True Passed all checks passed");
}

TEST_F(AggregatorTest, BuiltInGroupsStayOurs) {
  Create(R"({"apiVersion":"apiregistration.k8s.io/v1","kind":"APIService",
    "metadata":{"name":"v2.apps"},"spec":{"group":"apps","version":"v2",
    "groupPriorityMinimum":100,"versionPriority":100,
    "service":{"namespace":"default","name":"metrics"}}})");
  Settle();
  EXPECT_EQ(aggregator_->board().current()->Find("apps", "v2"), nullptr);
}

TEST_F(AggregatorTest, OnlyTheNameOfTheVersionAndGroupIsAccepted) {
  const Response refused = TryCreate(R"({"apiVersion":"apiregistration.k8s.io/v1",
    "kind":"APIService","metadata":{"name":"metrics"},"spec":{"group":"metrics.k8s.io",
    "version":"v1beta1","groupPriorityMinimum":0,"versionPriority":1001,
    "insecureSkipTLSVerify":true,"caBundle":"Q0E=","service":{}}})");
  ASSERT_TRUE(refused.failure.has_value());
  for (const char* part :
       {R"(metadata.name: Invalid value: "metrics": must be `spec.version+"."+spec.group`)",
        "spec.groupPriorityMinimum: Invalid value: 0: must be positive and less than 20000",
        "spec.versionPriority: Invalid value: 1001: must be positive and less than 1000",
        "spec.service.namespace: Required value", "spec.service.name: Required value",
        "spec.insecureSkipTLSVerify: Invalid value: true: may not be true if caBundle is"}) {
    EXPECT_NE(refused.failure->message.find(part), std::string::npos) << refused.failure->message;
  }
}

TEST_F(AggregatorTest, EndpointsThatChangeAllTheTimeAreAskedOnceASecond) {
  CreateService();
  CreateSlice("true");
  CreateApiService();
  Settle();
  std::size_t asked = 0;
  const auto answer_all = [&] {
    for (; !backends_.open.empty(); ++asked) {
      Answer(net::Response{.status = 200, .headers = {}, .body = "[]"});
    }
  };
  answer_all();
  const std::size_t first = asked;
  for (int i = 0; i < 40; ++i) {
    CreateSlice("true", StrCat("more-", i));
    loop_.Advance(std::chrono::milliseconds(100));
    answer_all();
  }
  // Each time for the resources and for the index of its documents.
  EXPECT_LE(asked - first, 2u * 20);
  EXPECT_GT(asked, first);
}

TEST_F(AggregatorTest, LimitsWhatServersAnswer) {
  CreateService();
  CreateSlice("true");
  CreateApiService();
  Settle();
  EXPECT_EQ(backends_.open.front().call.max_bytes, Aggregator::kMaxDiscoveryBytes);
  Answer(net::Response{.status = 200, .headers = {}, .body = kResources});
  EXPECT_EQ(backends_.open.front().call.max_bytes, Aggregator::kMaxDiscoveryBytes);
  Answer(net::Response{.status = 200,
                       .headers = {},
                       .body = R"({"paths":{"apis/metrics.k8s.io/v1beta1":{"serverRelativeURL":
                  "/openapi/v3/apis/metrics.k8s.io/v1beta1?hash=A"}}})"});
  EXPECT_EQ(backends_.open.front().call.max_bytes, Aggregator::kMaxOpenApiBytes);
  // As if it were many.
  Answer(net::Response{.status = 200,
                       .headers = {},
                       .body = std::string(Aggregator::kMaxOpenApiTotalBytes + 1, ' ')});
  EXPECT_EQ(Published()->open_api, nullptr);
  EXPECT_EQ(aggregator_->open_api_bytes(), 0u);
}

}  // namespace
}  // namespace drakkar::apiserver
