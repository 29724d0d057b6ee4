#include "apiserver/webhook/webhook_admission.h"

#include <gmock/gmock.h>

#include <deque>

#include "api/json/writer.h"
#include "api/tree/draft.h"
#include "apiserver/admission/admission.h"
#include "apiserver/testing/core_fixture.h"
#include "base/hash/base64.h"
#include "base/text/text.h"
#include "telemetry/metrics/metrics.h"

namespace drakkar::apiserver {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Webhooks by the path of their URL. Each is a function from the request of a review to a response
// in JSON, without its uid.
class FakeTransport final : public WebhookTransport {
 public:
  using Hook = std::function<std::string(api::Value request)>;

  explicit FakeTransport(SeededLoop& loop) : loop_(loop) {}

  void Post(Call call, std::function<void(Answer)> done) override {
    const std::size_t path = call.target.url.find('/', 8);
    const std::string name = call.target.url.substr(path + 1, call.target.url.find('?') - path - 1);
    calls.push_back(name);
    last = call;
    if (hangs.contains(name)) {
      held.push_back([this, call, name, done] { Answer_(call, name, done); });
      return;
    }
    loop_.Post([this, call, name, done] { Answer_(call, name, done); });
  }

  void Release() {
    for (auto& each : std::exchange(held, {})) each();
  }

  std::map<std::string, Hook> hooks;
  std::set<std::string> hangs;
  std::deque<std::function<void()>> held;
  std::vector<std::string> calls;
  std::vector<std::string> reviews;  // what was sent
  Call last;
  std::string wrong_uid;

 private:
  void Answer_(const Call& call, const std::string& name, const std::function<void(Answer)>& done) {
    const auto found = hooks.find(name);
    if (found == hooks.end()) {
      return done({.document = nullptr,
                   .failed = {.code = 503,
                              .reason = StrCat("Post ", Quote(call.target.shown_url),
                                               ": connection refused")}});
    }
    reviews.push_back(call.body);
    const api::TreePtr review = *api::ParseJson(call.body);
    const api::Value request = review->root()["request"];
    const std::string response = found->second(request);
    const std::string_view uid = wrong_uid.empty() ? request["uid"].str() : wrong_uid;
    const std::string answer =
        StrCat(R"({"kind":"AdmissionReview","apiVersion":")", review->root()["apiVersion"].str(),
               R"(","response":{"uid":")", uid, R"(",)", response, "}}");
    done({.document = *api::ParseJson(answer), .failed = {}});
  }

  SeededLoop& loop_;
};

std::string Allowed() {
  return R"("allowed":true)";
}
std::string Patch(std::string_view operations) {
  return StrCat(R"("allowed":true,"patchType":"JSONPatch","patch":")", Base64Encode(operations),
                "\"");
}
std::string AddLabel(std::string_view name, std::string_view value = "yes") {
  return Patch(
      StrCat(R"([{"op":"add","path":"/metadata/labels/)", name, R"(","value":")", value, R"("}])"));
}

class WebhookAdmissionTest : public CoreFixture {
 protected:
  WebhookAdmissionTest() {
    StartCore(nullptr, MakeAdmissionChain(), &webhooks_);
    webhooks_.Attach(*core_);
  }
  ~WebhookAdmissionTest() override { webhooks_.Detach(); }

  static std::string Hook(std::string_view name, std::string_view more,
                          std::string_view resources = R"("configmaps")",
                          std::string_view operations = R"("*")") {
    return StrCat(R"({"name":")", name, R"(.example.com","sideEffects":"None",)",
                  R"("admissionReviewVersions":["v1"],"clientConfig":{"url":"https://hook/)", name,
                  R"("},"rules":[{"apiGroups":["*"],"apiVersions":["*"],"operations":[)",
                  operations, R"(],"resources":[)", resources, "]}]", more, "}");
  }
  void Configure(std::string_view kind, std::string_view name,
                 const std::vector<std::string>& hooks) {
    Create(StrCat(R"({"apiVersion":"admissionregistration.k8s.io/v1","kind":")", kind,
                  R"(WebhookConfiguration","metadata":{"name":")", name, R"("},"webhooks":[)",
                  Join(hooks, ","), "]}"));
  }
  static std::string ConfigMap(std::string_view name, std::string_view more = "") {
    return StrCat(R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":")", name,
                  R"(","labels":{"a":"b"}})", more, "}");
  }
  static std::string Message(const Response& response) {
    return response.failure ? response.failure->message : "accepted";
  }

  FakeTransport transport_{loop_};
  Metrics metrics_;
  WebhookAdmission webhooks_{
      {.random = loop_.random(), .transport = transport_, .metrics = &metrics_}};
};

TEST_F(WebhookAdmissionTest, AValidatingWebhookRejects) {
  transport_.hooks["v"] = [](api::Value request) {
    return request["object"]["data"].Entry("k").str() == "bad"
               ? R"("allowed":false,"warnings":["careful"],"status":{"message":"no","code":403,)"
                 R"("reason":"Forbidden"})"
               : Allowed();
  };
  Configure("Validating", "c", {Hook("v", "")});
  EXPECT_EQ(Message(TryCreate(ConfigMap("good"))), "accepted");
  const Response refused = TryCreate(ConfigMap("bad", R"(,"data":{"k":"bad"})"));
  ASSERT_TRUE(refused.failure);
  EXPECT_EQ(refused.failure->message, "admission webhook \"v.example.com\" denied the request: no");
  EXPECT_EQ(refused.failure->code, 403);
  EXPECT_EQ(refused.failure->reason, "Forbidden");
  EXPECT_THAT(refused.warnings, ElementsAre("careful"));
  EXPECT_EQ(core_->Find("", "configmaps", "default/bad"), nullptr);
  EXPECT_THAT(metrics_.Text(), HasSubstr("apiserver_admission_webhook_rejection_count{"));
}

TEST_F(WebhookAdmissionTest, ADenialWithoutReasonIsABadRequest) {
  transport_.hooks["v"] = [](api::Value) { return std::string(R"("allowed":false)"); };
  Configure("Validating", "c", {Hook("v", "")});
  const Response refused = TryCreate(ConfigMap("a"));
  ASSERT_TRUE(refused.failure);
  EXPECT_EQ(refused.failure->message,
            "admission webhook \"v.example.com\" denied the request without explanation");
  EXPECT_EQ(refused.failure->code, 400);
  transport_.hooks["v"] = [](api::Value) {
    return std::string(R"("allowed":false,"status":{"message":"no"})");
  };
  const Response explained = TryCreate(ConfigMap("a"));
  ASSERT_TRUE(explained.failure);
  EXPECT_EQ(explained.failure->code, 400);
}

TEST_F(WebhookAdmissionTest, ADenialIsCutToASizeThatAClientCanRead) {
  transport_.hooks["v"] = [](api::Value) {
    const std::string huge(10'000, 'x');
    std::string causes;
    for (int i = 0; i < 200; ++i)
      causes += StrCat(i > 0 ? "," : "", R"({"field":")", huge, R"("})");
    return StrCat(R"("allowed":false,"status":{"reason":")", huge, R"(","details":{"name":")", huge,
                  R"(","causes":[)", causes, "]}}");
  };
  Configure("Validating", "c", {Hook("v", "")});
  const Response refused = TryCreate(ConfigMap("a"));
  ASSERT_TRUE(refused.failure);
  EXPECT_LT(refused.failure->message.size(), 2 * kMaxWebhookWarningBytes);
  EXPECT_LE(refused.failure->reason.size(), kMaxWebhookWarningBytes);
  EXPECT_LE(refused.failure->name.size(), kMaxWebhookWarningBytes);
  ASSERT_EQ(refused.failure->causes.size(), kMaxWebhookCauses);
  EXPECT_LE(refused.failure->causes[0].field.size(), kMaxWebhookWarningBytes);
}

TEST_F(WebhookAdmissionTest, MutatingWebhooksRunFirstSortedByConfiguration) {
  transport_.hooks["one"] = [](api::Value) { return AddLabel("one"); };
  transport_.hooks["two"] = [](api::Value request) {
    return AddLabel("two", request["object"]["metadata"]["labels"].Entry("one").str("missing"));
  };
  std::string seen;
  transport_.hooks["v"] = [&](api::Value request) {
    seen = api::WriteJson(request["object"]["metadata"]["labels"]);
    return Allowed();
  };
  Configure("Validating", "a", {Hook("v", "")});
  Configure("Mutating", "c", {Hook("two", "")});
  Configure("Mutating", "b", {Hook("one", "")});
  const api::ObjectPtr made = Create(ConfigMap("a"));
  EXPECT_THAT(transport_.calls, ElementsAre("one", "two", "v"));
  EXPECT_EQ(seen, R"({"a":"b","one":"yes","two":"yes"})");
  EXPECT_EQ(made->root()["metadata"]["labels"].Entry("two").str(), "yes");
  EXPECT_FALSE(made->uid().empty());
}

TEST_F(WebhookAdmissionTest, APatchedObjectIsDecodedAndDefaulted) {
  transport_.hooks["m"] = [](api::Value) {
    return Patch(R"([{"op":"replace","path":"/spec/containers/0","value":)"
                 R"({"name":"c","image":"busybox:1","unknownField":1}},)"
                 R"({"op":"add","path":"/status","value":{"phase":"Failed"}}])");
  };
  Configure("Mutating", "c", {Hook("m", "", R"("pods")", R"("CREATE")")});
  Create(R"({"apiVersion":"v1","kind":"ServiceAccount","metadata":{"name":"default"}})");
  const api::ObjectPtr pod = Create(R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"},)"
                                    R"("spec":{"containers":[{"name":"x","image":"y"}]}})");
  ASSERT_NE(pod, nullptr);
  const api::Value container = pod->root()["spec"]["containers"].at(0);
  EXPECT_EQ(container["name"].str(), "c");
  EXPECT_EQ(container["imagePullPolicy"].str(), "IfNotPresent");
  EXPECT_FALSE(container.Entry("unknownField").exists());
  EXPECT_EQ(pod->root()["status"]["phase"].str(), "Pending") << "clients cannot set it either";
  EXPECT_TRUE(container["volumeMounts"].size() > 0) << "the admission steps ran again";
}

TEST_F(WebhookAdmissionTest, WhatAWebhookMakesInvalidIsRejected) {
  transport_.hooks["m"] = [](api::Value) {
    return Patch(R"([{"op":"add","path":"/data","value":{"not a key!":""}}])");
  };
  Configure("Mutating", "c", {Hook("m", "")});
  EXPECT_THAT(Message(TryCreate(ConfigMap("a"))), HasSubstr("a valid config key must consist of"));
}

TEST_F(WebhookAdmissionTest, FailurePolicyDecidesWhenACallFails) {
  Configure("Validating", "c",
            {Hook("gone", R"(,"failurePolicy":"Ignore")", R"("configmaps")"),
             Hook("lost", "", R"("secrets")")});
  EXPECT_EQ(Message(TryCreate(ConfigMap("a"))), "accepted");
  const Response refused =
      TryCreate(R"({"apiVersion":"v1","kind":"Secret","metadata":{"name":"s"}})");
  ASSERT_TRUE(refused.failure);
  EXPECT_EQ(refused.failure->code, 500);
  EXPECT_EQ(refused.failure->message,
            "Internal error occurred: failed calling webhook \"lost.example.com\": failed to call "
            "webhook: Post \"https://hook/lost?timeout=10s\": connection refused");
  EXPECT_THAT(metrics_.Text(), HasSubstr("apiserver_admission_webhook_fail_open_count{"));
}

TEST_F(WebhookAdmissionTest, AnAnswerToAnotherReviewIsInvalid) {
  transport_.hooks["v"] = [](api::Value) { return Allowed(); };
  transport_.wrong_uid = "other";
  Configure("Validating", "c", {Hook("v", "")});
  EXPECT_THAT(Message(TryCreate(ConfigMap("a"))),
              HasSubstr("received invalid webhook response: expected response.uid="));
}

TEST_F(WebhookAdmissionTest, AValidatingWebhookMayNotPatch) {
  transport_.hooks["v"] = [](api::Value) { return AddLabel("x"); };
  Configure("Validating", "c", {Hook("v", "")});
  EXPECT_THAT(Message(TryCreate(ConfigMap("a"))),
              HasSubstr("validating webhook may not return response.patch"));
}

TEST_F(WebhookAdmissionTest, RequestsThatDoNotMatchAreNotHeldUp) {
  transport_.hooks["v"] = [](api::Value) { return std::string(R"("allowed":false)"); };
  Configure("Validating", "c",
            {Hook("v", R"(,"objectSelector":{"matchLabels":{"watched":"yes"}})"),
             Hook("w", R"(,"namespaceSelector":{"matchLabels":{"none":"such"}})"),
             Hook("x", R"(,"matchConditions":[{"name":"n","expression":"object.metadata.name == )"
                       R"('watched'"}])"),
             Hook("y", "", R"("configmaps/status")"), Hook("z", "", R"("secrets")"),
             Hook("d", "", R"("configmaps")", R"("DELETE")")});
  EXPECT_EQ(Message(TryCreate(ConfigMap("a"))), "accepted");
  EXPECT_THAT(transport_.calls, ElementsAre());
  EXPECT_NE(Message(TryCreate(ConfigMap("watched"))), "accepted");
  EXPECT_FALSE(
      webhooks_.Concerns(RemoteAdmission::Phase::kValidate, *api::FindKind("", "v1", "Pod")));
  EXPECT_FALSE(
      webhooks_.Concerns(RemoteAdmission::Phase::kMutate, *api::FindKind("", "v1", "ConfigMap")));
}

TEST_F(WebhookAdmissionTest, AConditionThatFailsFollowsTheFailurePolicy) {
  transport_.hooks["v"] = [](api::Value) { return Allowed(); };
  const std::string broken =
      R"(,"matchConditions":[{"name":"n","expression":"object.data.none == 'x'"}])";
  Configure("Validating", "c", {Hook("v", broken)});
  const Response refused = TryCreate(ConfigMap("a"));
  ASSERT_TRUE(refused.failure);
  EXPECT_EQ(refused.failure->code, 403);
  EXPECT_THAT(refused.failure->message, HasSubstr("resulted in error: no such key"));
  EXPECT_THAT(transport_.calls, ElementsAre());
}

TEST_F(WebhookAdmissionTest, AWebhookIsCalledAgainIfALaterOneChangesTheObject) {
  transport_.hooks["first"] = [](api::Value request) {
    return request["object"]["metadata"]["labels"].Entry("late").str().empty() ? Allowed()
                                                                               : AddLabel("again");
  };
  transport_.hooks["never"] = [](api::Value) { return Allowed(); };
  transport_.hooks["late"] = [](api::Value) { return AddLabel("late"); };
  Configure(
      "Mutating", "c",
      {Hook("first", R"(,"reinvocationPolicy":"IfNeeded")"), Hook("never", ""), Hook("late", "")});
  const api::ObjectPtr made = Create(ConfigMap("a"));
  EXPECT_THAT(transport_.calls, ElementsAre("first", "never", "late", "first"));
  EXPECT_EQ(made->root()["metadata"]["labels"].Entry("again").str(), "yes");
}

TEST_F(WebhookAdmissionTest, WebhooksNeverSeeTheirOwnConfigurations) {
  Configure("Validating", "c", {Hook("gone", "", R"("*/*")")});
  Configure("Validating", "d", {});
  EXPECT_FALSE(
      Delete("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", "", "c").failure);
  EXPECT_EQ(Message(TryCreate(ConfigMap("a"))), "accepted");
}

TEST_F(WebhookAdmissionTest, ADeletionShowsTheOldObject) {
  Create(ConfigMap("a"));
  std::string seen;
  bool patches = false;
  transport_.hooks["m"] = [&](api::Value request) {
    seen = StrCat(request["operation"].str(), " ", request["oldObject"]["metadata"]["name"].str(),
                  request["object"].has_value() ? " object" : "");
    return patches ? AddLabel("x") : Allowed();
  };
  Configure("Mutating", "c", {Hook("m", "", R"("configmaps")", R"("DELETE")")});
  patches = true;
  EXPECT_THAT(Message(Delete("v1", "ConfigMap", "default", "a")),
              HasSubstr("attempted to modify the object, which is not supported"));
  patches = false;
  EXPECT_FALSE(Delete("v1", "ConfigMap", "default", "a").failure);
  EXPECT_EQ(seen, "DELETE a");
}

TEST_F(WebhookAdmissionTest, ARuleForAnotherVersionGetsTheObjectInThatVersion) {
  std::string seen;
  transport_.hooks["m"] = [&](api::Value request) {
    seen = StrCat(request["kind"]["version"].str(), " ", request["requestKind"]["version"].str(),
                  " ", request["object"]["apiVersion"].str());
    return Patch(R"([{"op":"add","path":"/metadata/labels","value":{"x":"y"}}])");
  };
  Create(StrCat(
      R"({"apiVersion":"admissionregistration.k8s.io/v1",)",
      R"("kind":"MutatingWebhookConfiguration","metadata":{"name":"c"},"webhooks":[{)",
      R"("name":"m.example.com","sideEffects":"None","admissionReviewVersions":["v1"],)",
      R"("clientConfig":{"url":"https://hook/m"},"rules":[{"apiGroups":["resource.k8s.io"],)",
      R"("apiVersions":["v1beta1"],"operations":["*"],"resources":["deviceclasses"]}]}]})"));
  const api::ObjectPtr made =
      Create(R"({"apiVersion":"resource.k8s.io/v1","kind":"DeviceClass","metadata":{"name":"d"},)"
             R"("spec":{}})");
  EXPECT_EQ(seen, "v1beta1 v1 resource.k8s.io/v1beta1");
  EXPECT_EQ(made->root()["metadata"]["labels"].Entry("x").str(), "y");
  EXPECT_EQ(made->root()["apiVersion"].str(), "resource.k8s.io/v1");
}

TEST_F(WebhookAdmissionTest, AGeneratedNameIsNotShownButKept) {
  std::string seen;
  transport_.hooks["m"] = [&](api::Value request) {
    seen = StrCat("[", request["name"].str(), request["object"]["metadata"]["name"].str(),
                  request["object"]["metadata"]["uid"].str(), "]");
    return AddLabel("x");
  };
  Configure("Mutating", "c", {Hook("m", "")});
  const api::ObjectPtr made =
      Create(R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"generateName":"gen-",)"
             R"("labels":{"a":"b"}}})");
  EXPECT_EQ(seen, "[]");
  EXPECT_THAT(std::string(made->name()), ::testing::StartsWith("gen-"));
  EXPECT_FALSE(made->uid().empty());
  EXPECT_EQ(made->root()["metadata"]["labels"].Entry("x").str(), "yes");
}

TEST_F(WebhookAdmissionTest, OthersContinueWhileAWebhookHangs) {
  transport_.hooks["v"] = [](api::Value) { return Allowed(); };
  transport_.hangs.insert("v");
  Configure("Validating", "c", {Hook("v", "")});
  std::optional<Response> waiting;
  core_->Handle(RequestFor(Verb::kCreate, ConfigMap("slow"), AdminUser()),
                [&](Response response) { waiting = std::move(response); });
  loop_.RunUntilIdle();
  EXPECT_FALSE(waiting);
  EXPECT_EQ(core_->suspended_count(), 1u);
  EXPECT_EQ(Message(TryCreate(R"({"apiVersion":"v1","kind":"Secret","metadata":{"name":"s"}})")),
            "accepted");
  transport_.Release();
  loop_.RunUntilIdle();
  ASSERT_TRUE(waiting);
  EXPECT_EQ(Message(*waiting), "accepted");
  EXPECT_EQ(core_->suspended_count(), 0u);
}

TEST_F(WebhookAdmissionTest, OnlySoManyRequestsWait) {
  transport_.hooks["v"] = [](api::Value) { return Allowed(); };
  transport_.hangs.insert("v");
  Configure("Validating", "c", {Hook("v", R"(,"failurePolicy":"Ignore")")});
  std::size_t answered = 0;
  for (std::size_t i = 0; i <= WebhookAdmission::kMaxCallsPerWebhook; ++i) {
    core_->Handle(RequestFor(Verb::kCreate, ConfigMap(StrCat("n", i)), AdminUser()),
                  [&](Response response) { answered += response.failure ? 0 : 1; });
  }
  loop_.RunUntilIdle();
  EXPECT_EQ(answered, 1u) << "one more than may wait for it is not held up";
  transport_.Release();
  loop_.RunUntilIdle();
  EXPECT_EQ(answered, WebhookAdmission::kMaxCallsPerWebhook + 1);
}

TEST_F(WebhookAdmissionTest, AnUpdateThatLostARaceIsReviewedAgain) {
  Create(ConfigMap("a"));
  transport_.hooks["v"] = [](api::Value) { return Allowed(); };
  transport_.hangs.insert("v");
  Configure("Validating", "c",
            {Hook("v", R"(,"matchConditions":[{"name":"n","expression":)"
                       R"("request.userInfo.username == 'slow'"}])")});
  Request slow;
  slow.user = PlainUser("slow");
  slow.verb = Verb::kPatch;
  slow.kind = api::FindKind("", "v1", "ConfigMap");
  slow.namespace_ = "default";
  slow.name = "a";
  slow.text = R"({"data":{"mine":"1"}})";
  Request quick = slow;
  quick.user = AdminUser();
  quick.text = R"({"data":{"theirs":"1"}})";
  std::optional<Response> waiting;
  core_->Handle(std::move(slow), [&](Response response) { waiting = std::move(response); });
  loop_.RunUntilIdle();
  EXPECT_FALSE(Handle(std::move(quick)).failure);
  transport_.hangs.clear();
  transport_.Release();
  loop_.RunUntilIdle();
  ASSERT_TRUE(waiting);
  EXPECT_EQ(Message(*waiting), "accepted");
  EXPECT_EQ(api::WriteJson(core_->Find("", "configmaps", "default/a")->root()["data"]),
            R"({"mine":"1","theirs":"1"})");
  EXPECT_THAT(transport_.calls, ElementsAre("v", "v"));
}

TEST_F(WebhookAdmissionTest, BindingsEvictionsAndScalesAreReviewedAsSuch) {
  std::vector<std::string> seen;
  transport_.hooks["v"] = [&](api::Value request) {
    seen.push_back(StrCat(request["operation"].str(), " ", request["resource"]["resource"].str(),
                          "/", request["subResource"].str(), " ", request["kind"]["kind"].str(),
                          " ", request["object"]["kind"].str()));
    return Allowed();
  };
  Create(R"({"apiVersion":"v1","kind":"ServiceAccount","metadata":{"name":"default"}})");
  Create(R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"},)"
         R"("spec":{"containers":[{"name":"x","image":"y"}]}})");
  Create(
      R"({"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"d"},"spec":{"replicas":1,)"
      R"("selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"b"}},)"
      R"("spec":{"containers":[{"name":"x","image":"y"}]}}}})");
  Configure("Validating", "c", {Hook("v", "", R"("*/*")")});
  const auto post = [&](std::string subresource, std::string_view body) {
    Request request;
    request.user = AdminUser();
    request.verb = Verb::kCreate;
    request.kind = api::FindKind("", "v1", "Pod");
    request.namespace_ = "default";
    request.name = "p";
    request.subresource = std::move(subresource);
    request.text = body;
    return Handle(std::move(request));
  };
  EXPECT_EQ(
      Message(post("binding", R"({"apiVersion":"v1","kind":"Binding","metadata":{"name":"p"},)"
                              R"("target":{"kind":"Node","name":"n"}})")),
      "accepted");
  EXPECT_EQ(Message(post("eviction", R"({"apiVersion":"policy/v1","kind":"Eviction",)"
                                     R"("metadata":{"name":"p"}})")),
            "accepted");
  Request scale;
  scale.user = AdminUser();
  scale.verb = Verb::kPatch;
  scale.kind = api::FindKind("apps", "v1", "Deployment");
  scale.namespace_ = "default";
  scale.name = "d";
  scale.subresource = "scale";
  scale.text = R"({"spec":{"replicas":3}})";
  EXPECT_EQ(Message(Handle(std::move(scale))), "accepted");
  EXPECT_THAT(seen, ElementsAre("CREATE pods/binding Binding Binding",
                                "CREATE pods/eviction Eviction Eviction",
                                "UPDATE deployments/scale Scale Scale"));
}

TEST_F(WebhookAdmissionTest, AConnectionIsReviewed) {
  std::string seen;
  transport_.hooks["v"] = [&](api::Value request) {
    seen = StrCat(request["operation"].str(), " ", request["kind"]["kind"].str(), " ",
                  request["object"]["command"].at(0).str());
    return std::string(R"("allowed":false,"status":{"message":"no shells"})");
  };
  Configure("Validating", "c", {Hook("v", "", R"("pods/exec")", R"("CONNECT")")});
  Request request;
  request.user = AdminUser();
  request.kind = api::FindKind("", "v1", "Pod");
  request.namespace_ = "default";
  request.name = "p";
  request.subresource = "exec";
  std::optional<Failure> refused;
  core_->AdmitConnection(request, *api::FindKind("", "v1", "PodExecOptions"),
                         *api::ParseJson(R"({"kind":"PodExecOptions","apiVersion":"v1",)"
                                         R"("command":["sh"]})"),
                         [&](std::optional<Failure> failure) { refused = std::move(failure); });
  loop_.RunUntilIdle();
  ASSERT_TRUE(refused);
  EXPECT_THAT(refused->message, HasSubstr("denied the request: no shells"));
  EXPECT_EQ(seen, "CONNECT PodExecOptions sh");
}

TEST_F(WebhookAdmissionTest, AServiceIsResolvedToAnEndpoint) {
  transport_.hooks["check"] = [](api::Value) { return Allowed(); };
  Create(StrCat(R"({"apiVersion":"admissionregistration.k8s.io/v1",)",
                R"("kind":"ValidatingWebhookConfiguration","metadata":{"name":"c"},"webhooks":[{)",
                R"("name":"v.example.com","sideEffects":"None","admissionReviewVersions":["v1"],)",
                R"("clientConfig":{"service":{"namespace":"other","name":"hook","path":"/check",)",
                R"("port":8443},"caBundle":")", Base64Encode("PEM"),
                R"("},"rules":[{"apiGroups":["*"],"apiVersions":["*"],"operations":["*"],)",
                R"("resources":["configmaps"]}]}]})"));
  EXPECT_THAT(Message(TryCreate(ConfigMap("a"))),
              HasSubstr("failed to call webhook: Post \"https://hook.other.svc:8443/check"
                        "?timeout=10s\": service \"hook\" not found"));
  Create(
      R"({"apiVersion":"v1","kind":"Service","metadata":{"name":"hook","namespace":"other"},)"
      R"("spec":{"clusterIP":"None","ports":[{"name":"https","port":8443,"targetPort":9443}]}})");
  EXPECT_THAT(Message(TryCreate(ConfigMap("a"))),
              HasSubstr("no endpoints available for service \"hook\""));
  Create(
      R"({"apiVersion":"discovery.k8s.io/v1","kind":"EndpointSlice","addressType":"IPv4",)"
      R"("metadata":{"name":"hook-1","namespace":"other",)"
      R"("labels":{"kubernetes.io/service-name":"hook"}},"ports":[{"name":"https","port":9443}],)"
      R"("endpoints":[{"addresses":["10.0.0.1"],"conditions":{"ready":false}},)"
      R"({"addresses":["10.0.0.2"],"conditions":{"ready":true}}]})");
  EXPECT_EQ(Message(TryCreate(ConfigMap("a"))), "accepted");
  EXPECT_EQ(transport_.last.target.url, "https://10.0.0.2:9443/check?timeout=10s");
  EXPECT_EQ(transport_.last.target.server_name, "hook.other.svc");
  EXPECT_EQ(transport_.last.target.ca_pem, "PEM");
}

TEST_F(WebhookAdmissionTest, ADryRunSaysSo) {
  bool is_dry = false;
  transport_.hooks["v"] = [&](api::Value request) {
    is_dry = request["dryRun"].boolean();
    return Allowed();
  };
  Configure("Validating", "c", {Hook("v", "")});
  Request request = RequestFor(Verb::kCreate, ConfigMap("a"), AdminUser());
  request.dry_run = true;
  EXPECT_FALSE(Handle(std::move(request)).failure);
  EXPECT_TRUE(is_dry);
}

TEST_F(WebhookAdmissionTest, LargeObjectsForAWebhookThatHangsFailAtOnce) {
  transport_.hooks["v"] = [](api::Value) { return Allowed(); };
  transport_.hangs = {"v"};
  Configure("Validating", "c", {Hook("v", "")});
  const std::string data = StrCat(R"(,"data":{"k":")", std::string(1'000'000, 'x'), R"("})");
  std::vector<Response> answers;
  constexpr int kCount = 40;
  for (int i = 0; i < kCount; ++i) {
    Request request = RequestFor(Verb::kCreate, ConfigMap(StrCat("m", i), data), AdminUser());
    core_->Handle(std::move(request), [&](Response response) { answers.push_back(response); });
  }
  loop_.RunUntilIdle();
  EXPECT_LE(webhooks_.bytes_in_flight(), WebhookAdmission::kMaxBytesPerWebhook);
  ASSERT_GT(answers.size(), 5u);
  for (const Response& each : answers) {
    EXPECT_THAT(Message(each), HasSubstr("too many large objects wait for webhooks"));
  }
  transport_.hangs.clear();
  transport_.Release();
  loop_.RunUntilIdle();
  EXPECT_EQ(answers.size(), static_cast<std::size_t>(kCount));
  EXPECT_EQ(webhooks_.bytes_in_flight(), 0u);
  EXPECT_EQ(Message(TryCreate(ConfigMap("later", data))), "accepted");
}

}  // namespace
}  // namespace drakkar::apiserver
