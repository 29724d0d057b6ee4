#include "apiserver/registry/certificate_strategy.h"

#include <gmock/gmock.h>

#include "api/tree/draft.h"
#include "apiserver/testing/core_fixture.h"
#include "tests/support/signing_requests.h"

namespace drakkar::apiserver {
namespace {

using ::drakkar::testing::SigningRequestJson;

using ::testing::HasSubstr;

constexpr std::string_view kSigner = "kubernetes.io/kube-apiserver-client";
constexpr std::string_view kClientAuth = R"(["client auth"])";

class CertificateStrategyTest : public CoreFixture {
 protected:
  void SetUp() override { StartCore(nullptr); }

  std::string Made(std::string_view signer, std::string_view usages, std::string_view more = "") {
    const Response made = TryCreate(
        SigningRequestJson(StrCat("r", count_++), signer, {"jane", {}, {}, {}}, usages, more));
    return made.failure ? made.failure->message : "ok";
  }

  // Changes the object "x" or a subresource of it.
  Response Change(std::string subresource, const std::function<void(api::Draft&)>& change) {
    const api::ObjectPtr now =
        core_->Find("certificates.k8s.io", "certificatesigningrequests", "x");
    api::Draft draft(now->tree());
    change(draft);
    Request request;
    request.user = AdminUser();
    request.verb = Verb::kUpdate;
    request.kind = core_->FindKind("certificates.k8s.io/v1", "CertificateSigningRequest");
    request.name = "x";
    request.subresource = std::move(subresource);
    request.object = draft.Freeze();
    return Handle(std::move(request));
  }
  static void AddCondition(api::Draft& object, std::string_view type,
                           std::string_view status = "True") {
    object["status"]["conditions"].Append({{"type", type}, {"status", status}, {"reason", "Test"}});
  }
  void MakeOne() { Create(SigningRequestJson("x", kSigner, {"jane", {}, {}, {}}, kClientAuth)); }
  static std::string Message(const Response& response) {
    return response.failure ? response.failure->message : "ok";
  }

  int count_ = 0;
};

TEST_F(CertificateStrategyTest, TheServerRecordsWhoAsks) {
  UserInfo user = PlainUser("jane", {"dev"});
  user.uid = "u1";
  user.extra["example.com/team"] = {"blue"};
  const Response made =
      TryCreate(SigningRequestJson("x", kSigner, {"jane", {}, {}, {}}, kClientAuth,
                                   R"(,"username":"root","uid":"0","groups":["system:masters"],)"
                                   R"("extra":{"a":["b"]})"),
                user);
  ASSERT_FALSE(made.failure) << made.failure->message;
  const api::Value spec = (*made.object)["spec"];
  EXPECT_EQ(spec["username"].str(), "jane");
  EXPECT_EQ(spec["uid"].str(), "u1");
  ASSERT_EQ(spec["groups"].size(), 2u);
  EXPECT_EQ(spec["groups"].at(0).str(), "dev");
  EXPECT_EQ(spec["extra"].size(), 1u);
  EXPECT_EQ(spec["extra"].Entry("example.com/team").at(0).str(), "blue");
}

TEST_F(CertificateStrategyTest, InvalidRequestsAreRefusedInKubernetesWords) {
  EXPECT_EQ(Made(kSigner, kClientAuth), "ok");
  EXPECT_THAT(Made(kSigner, "[]"), HasSubstr("spec.usages: Required value"));
  EXPECT_THAT(Made(kSigner, R"(["any","fly"])"), HasSubstr(R"(Unsupported value: "fly")"));
  EXPECT_THAT(Made(kSigner, R"(["any","any"])"),
              HasSubstr(R"(spec.usages[1]: Duplicate value: "any")"));
  EXPECT_THAT(Made("kubernetes.io/legacy-unknown", kClientAuth),
              HasSubstr("the legacy signerName is not allowed via this API version"));
  EXPECT_THAT(Made("nodomain", kClientAuth), HasSubstr("must be a fully qualified domain"));
  EXPECT_THAT(Made("nodots/x", kClientAuth), HasSubstr("at least two segments separated by dots"));
  EXPECT_THAT(Made("exa_mple.com/x", kClientAuth), HasSubstr(R"(validating label "exa_mple")"));
  EXPECT_THAT(Made("example.com/X", kClientAuth), HasSubstr(R"(validating label "X")"));
  EXPECT_THAT(Made(kSigner, kClientAuth, R"(,"expirationSeconds":599)"),
              HasSubstr("may not specify a duration less than 600 seconds (10 minutes)"));
  EXPECT_EQ(Made(kSigner, kClientAuth, R"(,"expirationSeconds":600)"), "ok");
  const Response nonsense = TryCreate(
      R"({"apiVersion":"certificates.k8s.io/v1","kind":"CertificateSigningRequest",
      "metadata":{"name":"y"},"spec":{"signerName":"example.com/a","request":"bm9uc2Vuc2U=",
      "usages":["any"]}})");
  EXPECT_THAT(Message(nonsense), HasSubstr("PEM block type must be CERTIFICATE REQUEST"));
  // A kubelet's name for its request.
  EXPECT_FALSE(
      TryCreate(SigningRequestJson("node-csr-Ab_9", kSigner, {"jane", {}, {}, {}}, kClientAuth))
          .failure);
}

TEST_F(CertificateStrategyTest, TheSpecCannotChange) {
  MakeOne();
  const Response changed = Change("", [](api::Draft& object) {
    object["spec"]["username"] = "root";
    object["spec"]["usages"] = api::Draft::Array({"any"});
    object["metadata"]["labels"].Entry("a") = "b";
    AddCondition(object, "Approved");
  });
  ASSERT_FALSE(changed.failure) << changed.failure->message;
  EXPECT_EQ((*changed.object)["spec"]["username"].str(), "admin");
  EXPECT_EQ((*changed.object)["spec"]["usages"].at(0).str(), "client auth");
  EXPECT_EQ((*changed.object)["metadata"]["labels"].Entry("a").str(), "b");
  EXPECT_TRUE((*changed.object)["status"]["conditions"].empty());
}

TEST_F(CertificateStrategyTest, OnlyApprovalDecidesAndOnlyOnce) {
  MakeOne();
  EXPECT_THAT(Message(Change("status", [](api::Draft& o) { AddCondition(o, "Approved"); })),
              HasSubstr(R"(updates may not add a condition of type "Approved")"));
  EXPECT_THAT(
      Message(Change("approval", [](api::Draft& o) { AddCondition(o, "Approved", "False"); })),
      HasSubstr(R"(Unsupported value: "False": supported values: "True")"));
  const Response approved = Change("approval", [](api::Draft& o) { AddCondition(o, "Approved"); });
  ASSERT_FALSE(approved.failure) << approved.failure->message;
  const api::Value condition = (*approved.object)["status"]["conditions"].at(0);
  EXPECT_FALSE(condition["lastUpdateTime"].str().empty());
  EXPECT_FALSE(condition["lastTransitionTime"].str().empty());
  EXPECT_THAT(Message(Change("approval", [](api::Draft& o) { AddCondition(o, "Denied"); })),
              HasSubstr("Approved and Denied conditions are mutually exclusive"));
  for (const char* subresource : {"approval", "status"}) {
    EXPECT_THAT(
        Message(Change(subresource,
                       [](api::Draft& o) { o["status"]["conditions"] = api::Draft::Array(); })),
        HasSubstr(R"(updates may not remove a condition of type "Approved")"));
  }
}

TEST_F(CertificateStrategyTest, TheCertificateIsSetOnceByTheStatusAndMustParse) {
  MakeOne();
  const net::Validity validity{loop_.clock().Now(), loop_.clock().Now() + std::chrono::hours(1)};
  const std::string pem = net::CreateCa("ca", validity).value().certificate_pem;
  const auto set = [&](std::string subresource, std::string_view text) {
    return Message(Change(std::move(subresource), [&](api::Draft& object) {
      object["status"]["certificate"] = Base64Encode(text);
    }));
  };
  EXPECT_THAT(set("status", "nonsense"), HasSubstr("must contain at least one CERTIFICATE"));
  // Approval keeps it as it was.
  EXPECT_EQ(set("approval", pem), "ok");
  EXPECT_EQ((*core_->Find("certificates.k8s.io", "certificatesigningrequests",
                          "x"))["status"]["certificate"]
                .str(),
            "");
  EXPECT_EQ(set("status", pem), "ok");
  EXPECT_THAT(set("status", net::CreateCa("other", validity).value().certificate_pem),
              HasSubstr("updates may not modify existing certificate content"));
  // A decision that the signer sends back without its details stays as it was.
  ASSERT_EQ(Message(Change("approval", [](api::Draft& o) { AddCondition(o, "Approved"); })), "ok");
  const Response failed = Change("status", [](api::Draft& object) {
    object["status"]["conditions"] = api::Draft::Array();
    object["status"]["conditions"].Append({{"type", "Approved"}, {"status", "True"}});
    AddCondition(object, "Failed");
  });
  ASSERT_FALSE(failed.failure) << failed.failure->message;
  EXPECT_EQ((*failed.object)["status"]["conditions"].at(0)["reason"].str(), "Test");
}

TEST_F(CertificateStrategyTest, AContradictionIsSaidOnce) {
  MakeOne();
  const std::string message = Message(Change("approval", [](api::Draft& o) {
    for (const char* type : {"Approved", "Denied", "Noted"}) AddCondition(o, type);
  }));
  const std::size_t first = message.find("mutually exclusive");
  ASSERT_NE(first, message.npos) << message;
  EXPECT_EQ(message.find("mutually exclusive", first + 1), message.npos) << message;
  EXPECT_THAT(message, HasSubstr("status.conditions: Invalid value: \"Denied\""));
}

TEST_F(CertificateStrategyTest, ConditionsHaveTypesAndStatuses) {
  MakeOne();
  const auto with = [&](std::string_view type, std::string_view status) {
    return Message(Change("approval", [&](api::Draft& o) { AddCondition(o, type, status); }));
  };
  EXPECT_THAT(with("", "True"), HasSubstr("status.conditions[0].type: Required value"));
  EXPECT_THAT(with("Noted", ""), HasSubstr("status.conditions[0].status: Required value"));
  EXPECT_THAT(with("Noted", "Maybe"),
              HasSubstr("Unsupported value: \"Maybe\": supported values: \"False\", \"True\", "
                        "\"Unknown\""));
  EXPECT_THAT(with("Failed", "Unknown"),
              HasSubstr("Unsupported value: \"Unknown\": supported values: \"True\""));
  EXPECT_EQ(with("Noted", "Unknown"), "ok");
  EXPECT_THAT(with("Noted", "False"),
              HasSubstr("status.conditions[1].type: Duplicate value: \"Noted\""));
}

TEST_F(CertificateStrategyTest, AConditionKeepsTheTimeOfItsTransition) {
  MakeOne();
  ASSERT_FALSE(
      Change("approval", [](api::Draft& o) { AddCondition(o, "Noted", "False"); }).failure);
  const auto times = [](const Response& response) {
    const api::Value condition = (*response.object)["status"]["conditions"].at(0);
    return std::pair(std::string(condition["lastUpdateTime"].str()),
                     std::string(condition["lastTransitionTime"].str()));
  };
  const auto again = [&](std::string_view status) {
    loop_.Advance(std::chrono::seconds(10));
    return times(Change("approval", [&](api::Draft& o) {
      o["status"]["conditions"] = api::Draft::Array();
      AddCondition(o, "Noted", status);
    }));
  };
  const auto first = again("False");
  const auto second = again("False");
  EXPECT_NE(first.first, second.first) << "updated";
  EXPECT_EQ(first.second, second.second) << "but not changed";
  EXPECT_NE(again("True").second, second.second);
}

}  // namespace
}  // namespace drakkar::apiserver
