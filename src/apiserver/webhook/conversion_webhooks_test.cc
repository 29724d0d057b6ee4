#include "apiserver/webhook/conversion_webhooks.h"

#include <gmock/gmock.h>

#include "api/json/writer.h"
#include "apiserver/admission/admission.h"
#include "apiserver/conversion/versions.h"
#include "apiserver/testing/core_fixture.h"
#include "apiserver/webhook/webhook_admission.h"
#include "base/text/text.h"

namespace drakkar::apiserver {
namespace {

using ::testing::HasSubstr;

// Converts between v1, where a thing has spec.hostPort, and v2, where it has spec.host and
// spec.port. The admission webhook allows everything.
class FakeWebhooks final : public WebhookTransport {
 public:
  explicit FakeWebhooks(SeededLoop& loop) : loop_(loop) {}

  void Post(Call call, std::function<void(Answer)> done) override {
    loop_.Post([this, call, done] { done(Convert(call)); });
  }

  int calls = 0;
  int converted = 0;
  bool is_down = false;
  std::string rename;             // objects to this name
  std::vector<std::string> seen;  // versions that admission webhooks were shown

 private:
  Answer Convert(const Call& call) {
    if (is_down) return {.document = nullptr, .failed = {.code = 503, .reason = "refused"}};
    const api::TreePtr review = *api::ParseJson(call.body);
    const api::Value request = review->root()["request"];
    if (review->root()["kind"].str() == "AdmissionReview") {
      seen.emplace_back(request["object"]["apiVersion"].str());
      if (request["oldObject"].has_value()) {
        seen.emplace_back(request["oldObject"]["apiVersion"].str());
      }
      return {.document = *api::ParseJson(StrCat(
                  R"({"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","response":{)",
                  R"("uid":")", request["uid"].str(), R"(","allowed":true}})")),
              .failed = {}};
    }
    ++calls;
    api::Draft objects = api::Draft::Array();
    for (api::Value each : request["objects"].elements()) {
      ++converted;
      api::Draft object{each};
      const std::string_view to = request["desiredAPIVersion"].str();
      if (to.ends_with("v2")) {
        const std::string text(each["spec"].Entry("hostPort").str());
        const std::size_t colon = text.find(':');
        object["spec"] =
            api::Draft::Map({{"host", text.substr(0, colon)}, {"port", text.substr(colon + 1)}});
      } else {
        object["spec"] = api::Draft::Map({{"hostPort", StrCat(each["spec"].Entry("host").str(), ":",
                                                              each["spec"].Entry("port").str())}});
      }
      object["apiVersion"] = to;
      object["metadata"]["labels"].Entry("converted") = "yes";
      object["metadata"]["generation"] = 77;
      if (!rename.empty()) object["metadata"]["name"] = rename;
      objects.Append(std::move(object));
    }
    api::Draft answer{{"kind", "ConversionReview"},
                      {"apiVersion", "apiextensions.k8s.io/v1"},
                      {"response",
                       {{"uid", request["uid"].str()},
                        {"result", {{"status", "Success"}}},
                        {"convertedObjects", std::move(objects)}}}};
    return {.document = answer.Freeze(), .failed = {}};
  }

  SeededLoop& loop_;
};

class ConversionWebhooksTest : public CoreFixture {
 protected:
  ConversionWebhooksTest() {
    StartCore(nullptr, MakeAdmissionChain(), &webhooks_, &conversion_);
    webhooks_.Attach(*core_);
    conversion_.Attach(*core_);
    Create(Definition());
  }
  ~ConversionWebhooksTest() override {
    webhooks_.Detach();
    conversion_.Detach();
  }

  static std::string Version(std::string_view name, bool stores, std::string_view properties) {
    return StrCat(R"({"name":")", name, R"(","served":true,"storage":)", stores ? "true" : "false",
                  R"(,"subresources":{"status":{}},"schema":{"openAPIV3Schema":{"type":"object",)",
                  R"("properties":{"spec":{"type":"object","properties":{)", properties,
                  R"(}},"status":{"type":"object","properties":{"phase":{"type":"string"}}}}}}})");
  }
  static std::string Definition(std::string_view client = R"({"url":"https://hook/convert"})") {
    return StrCat(
        R"({"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition",)",
        R"("metadata":{"name":"things.example.com"},"spec":{"group":"example.com",)",
        R"("scope":"Namespaced","names":{"plural":"things","kind":"Thing"},"versions":[)",
        Version("v1", true, R"("hostPort":{"type":"string"})"), ",",
        Version("v2", false, R"("host":{"type":"string"},"port":{"type":"string"})"),
        R"(],"conversion":{"strategy":"Webhook","webhook":{"conversionReviewVersions":["v1"],)",
        R"("clientConfig":)", client, "}}}}");
  }
  const api::KindSchema& Kind(std::string_view version) {
    return *core_->FindKind(StrCat("example.com/", version), "Thing");
  }
  Request About(Verb verb, std::string_view version, std::string name = "") {
    Request request;
    request.user = AdminUser();
    request.verb = verb;
    request.kind = &Kind(version);
    request.namespace_ = "default";
    request.name = std::move(name);
    return request;
  }
  static std::string Spec(const api::ObjectPtr& object) {
    return object == nullptr
               ? "none"
               : StrCat(object->api_version(), " ", api::WriteJson(object->root()["spec"]));
  }
  static std::string Message(const Response& response) {
    return response.failure ? response.failure->message : "accepted";
  }
  api::ObjectPtr Stored(const std::string& name) {
    return core_->Find("example.com", "things", "default/" + name);
  }

  FakeWebhooks transport_{loop_};
  WebhookAdmission webhooks_{{.random = loop_.random(), .transport = transport_}};
  ConversionWebhooks conversion_{{.random = loop_.random(), .transport = transport_}};
};

constexpr char kNew[] = R"({"apiVersion":"example.com/v2","kind":"Thing","metadata":{"name":"a"},)"
                        R"("spec":{"host":"h","port":"1"}})";

TEST_F(ConversionWebhooksTest, AWriteIsStoredInTheStorageVersion) {
  const api::ObjectPtr made = Create(kNew);
  EXPECT_EQ(Spec(made), R"(example.com/v2 {"host":"h","port":"1"})");
  EXPECT_EQ(Spec(Stored("a")), R"(example.com/v1 {"hostPort":"h:1"})");
  EXPECT_EQ(Stored("a")->root()["metadata"]["generation"].integer(), 1)
      << "only labels and annotations may change";
  EXPECT_EQ(Stored("a")->root()["metadata"]["labels"].Entry("converted").str(), "yes");
}

TEST_F(ConversionWebhooksTest, ReadsAreConvertedOncePerObject) {
  Create(R"({"apiVersion":"example.com/v1","kind":"Thing","metadata":{"name":"a"},)"
         R"("spec":{"hostPort":"h:1"}})");
  EXPECT_EQ(transport_.calls, 0) << "the storage version needs no webhook";
  EXPECT_EQ(Spec(Handle(About(Verb::kGet, "v2", "a")).object),
            R"(example.com/v2 {"host":"h","port":"1"})");
  const Response list = Handle(About(Verb::kList, "v2"));
  ASSERT_EQ(list.items.size(), 1u);
  EXPECT_EQ(Spec(list.items[0]), R"(example.com/v2 {"host":"h","port":"1"})");
  EXPECT_EQ(transport_.calls, 1);
}

TEST_F(ConversionWebhooksTest, AListIsConvertedInOneCall) {
  for (int i = 0; i < 5; ++i) {
    Create(StrCat(R"({"apiVersion":"example.com/v1","kind":"Thing","metadata":{"name":"t)", i,
                  R"("},"spec":{"hostPort":"h:1"}})"));
  }
  EXPECT_EQ(Handle(About(Verb::kList, "v2")).items.size(), 5u);
  EXPECT_EQ(transport_.calls, 1);
  EXPECT_EQ(transport_.converted, 5);
}

TEST_F(ConversionWebhooksTest, APatchAppliesToTheClientsVersion) {
  Create(kNew);
  Request patch = About(Verb::kPatch, "v2", "a");
  patch.text = R"({"spec":{"port":"2"}})";
  const Response patched = Handle(std::move(patch));
  ASSERT_FALSE(patched.failure) << patched.failure->message;
  EXPECT_EQ(Spec(patched.object), R"(example.com/v2 {"host":"h","port":"2"})");
  EXPECT_EQ(Spec(Stored("a")), R"(example.com/v1 {"hostPort":"h:2"})");
  EXPECT_EQ(Stored("a")->root()["metadata"]["generation"].integer(), 2);
  Request status = About(Verb::kPatch, "v2", "a");
  status.subresource = "status";
  status.text = R"({"status":{"phase":"Ready"}})";
  EXPECT_EQ(Message(Handle(std::move(status))), "accepted");
  EXPECT_EQ(Stored("a")->root()["status"].Entry("phase").str(), "Ready");
  EXPECT_EQ(Stored("a")->root()["metadata"]["generation"].integer(), 2);
}

TEST_F(ConversionWebhooksTest, AnAppliedConfigurationIsMergedInTheClientsVersion) {
  Create(kNew);
  const Response applied = Apply(Kind("v2"), "a", "", "me",
                                 R"({"apiVersion":"example.com/v2","kind":"Thing",)"
                                 R"("metadata":{"name":"a"},"spec":{"port":"9"}})",
                                 /*force=*/true);
  ASSERT_FALSE(applied.failure) << applied.failure->message;
  EXPECT_EQ(Spec(Stored("a")), R"(example.com/v1 {"hostPort":"h:9"})");
}

TEST_F(ConversionWebhooksTest, AFailureSaysWhichWebhook) {
  Create(kNew);
  transport_.is_down = true;
  const Response refused = Handle(About(Verb::kList, "v2"));
  EXPECT_FALSE(refused.failure) << "converted before";
  Create(R"({"apiVersion":"example.com/v1","kind":"Thing","metadata":{"name":"b"},)"
         R"("spec":{"hostPort":"h:1"}})");
  const Response failed = Handle(About(Verb::kGet, "v2", "b"));
  ASSERT_TRUE(failed.failure);
  EXPECT_EQ(failed.failure->code, 500);
  EXPECT_EQ(failed.failure->message,
            "conversion webhook for example.com/v1, Kind=Thing failed: refused");
  EXPECT_THAT(Message(TryCreate(StrCat(R"({"apiVersion":"example.com/v2","kind":"Thing",)",
                                       R"("metadata":{"name":"c"},"spec":{"host":"x"}})"))),
              HasSubstr("conversion webhook for example.com/v2, Kind=Thing failed: refused"));
  EXPECT_EQ(Stored("c"), nullptr);
}

TEST_F(ConversionWebhooksTest, AWebhookCannotRenameAnObject) {
  Create(R"({"apiVersion":"example.com/v1","kind":"Thing","metadata":{"name":"a"},)"
         R"("spec":{"hostPort":"h:1"}})");
  transport_.rename = "other";
  EXPECT_THAT(Message(Handle(About(Verb::kGet, "v2", "a"))),
              HasSubstr("returned invalid converted object at index 0: must have the same name: a "
                        "!= other"));
}

TEST_F(ConversionWebhooksTest, DeletionsAndAdmissionUseTheClientsVersion) {
  Create(
      R"({"apiVersion":"admissionregistration.k8s.io/v1","kind":"ValidatingWebhookConfiguration",)"
      R"("metadata":{"name":"c"},"webhooks":[{"name":"v.example.com","sideEffects":"None",)"
      R"("admissionReviewVersions":["v1"],"clientConfig":{"url":"https://hook/v"},"rules":[{)"
      R"("apiGroups":["example.com"],"apiVersions":["*"],"operations":["*"],)"
      R"("resources":["things"]}]}]})");
  Create(kNew);
  Request gone = About(Verb::kDelete, "v2", "a");
  EXPECT_EQ(Message(Handle(std::move(gone))), "accepted");
  EXPECT_EQ(Stored("a"), nullptr);
  EXPECT_THAT(transport_.seen, ::testing::ElementsAre("example.com/v2", "", "example.com/v2"));
}

TEST_F(ConversionWebhooksTest, TheClientConfigurationIsChecked) {
  const auto reason = [&](std::string_view client) {
    std::string text = Definition(client);
    const std::size_t at = text.find("things.example.com");
    text.replace(at, 6, "others");
    text.replace(text.find(R"("plural":"things","kind":"Thing")"),
                 std::string_view(R"("plural":"things","kind":"Thing")").size(),
                 R"("plural":"others","kind":"Other")");
    return Message(TryCreate(text));
  };
  EXPECT_THAT(reason("{}"), HasSubstr("exactly one of url or service is required"));
  EXPECT_THAT(reason(R"({"url":"http://x"})"), HasSubstr("'https' is the only allowed URL scheme"));
  EXPECT_EQ(reason(R"({"service":{"namespace":"default","name":"x"}})"), "accepted");
}

}  // namespace
}  // namespace drakkar::apiserver
