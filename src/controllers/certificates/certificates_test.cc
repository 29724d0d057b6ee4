// Approver, signer and cleaner together, against an API server.
#include "api/json/reader.h"
#include "controllers/testing/controllers_fixture.h"
#include "tests/support/signing_requests.h"

namespace drakkar::controllers {
namespace {

constexpr std::string_view kClientSigner = "kubernetes.io/kube-apiserver-client-kubelet";
constexpr std::string_view kServingSigner = "kubernetes.io/kubelet-serving";
constexpr std::string_view kClientUsages = R"(["digital signature","client auth"])";
constexpr std::string_view kServingUsages = R"(["digital signature","server auth"])";

class CertificatesTest : public ControllersFixture {
 protected:
  CertificatesTest() {
    const WallTime now = loop_.clock().Now();
    signing_ =
        SigningAuthority{net::CreateCa("ca", {now, now + std::chrono::hours(24 * 3650)}).value()};
    faulty_.answers = [this](const client::ResourceRef& ref, const api::TreePtr& body) {
      if (ref.kind->kind != "SubjectAccessReview") return api::TreePtr();
      const api::Value asked = body->root()["spec"];
      const std::string question =
          StrCat(asked["user"].str(), " ", asked["resourceAttributes"]["subresource"].str());
      asked_.push_back(question);
      api::Draft review(body);
      review["status"]["allowed"] = allowed_.contains(question);
      return review.Freeze();
    };
    Start(WithoutNodeLifecycle());
  }

  void Ask(std::string_view name, std::string_view signer, net::CertificateSubject subject,
           std::string_view usages, std::string user, std::vector<std::string> groups) {
    const auto client = apiserver::MakeDirectClient(
        loop_, server_.core(), {.name = std::move(user), .groups = std::move(groups)},
        storage::Mark::kApplied);
    std::optional<client::Reply> reply;
    client->Create(
        {testing::KindNamed("CertificateSigningRequest"), "", "", ""},
        api::ParseJson(testing::SigningRequestJson(name, signer, subject, usages)).value(), {},
        [&](client::Reply answer) { reply = std::move(answer); });
    Settle();
    ASSERT_TRUE(reply && reply->ok()) << (reply ? reply->error->message : "no answer");
  }
  api::Value Status(const std::string& name) {
    kept_ = server_.Get("CertificateSigningRequest", name);
    return kept_ == nullptr ? api::Value() : (*kept_)["status"];
  }
  std::string Certificate(const std::string& name) {
    return Base64Decode(Status(name)["certificate"].str()).value();
  }
  void AddNode(std::string_view name, std::string_view address) {
    Create(StrCat(R"({"apiVersion":"v1","kind":"Node","metadata":{"name":")", name,
                  R"("},"status":{"addresses":[{"type":"InternalIP","address":")", address,
                  R"("}]}})"));
  }

  std::set<std::string> allowed_;
  std::vector<std::string> asked_;
  api::ObjectPtr kept_;
};

const net::CertificateSubject kNode{"system:node:n1", {"system:nodes"}, {}, {}};

TEST_F(CertificatesTest, AMachineWithATokenGetsItsFirstCertificate) {
  allowed_ = {"system:bootstrap:abcdef nodeclient"};
  Ask("a", kClientSigner, kNode, kClientUsages, "system:bootstrap:abcdef",
      {"system:bootstrappers"});
  Settle(std::chrono::seconds(1));
  EXPECT_EQ(Status("a")["conditions"].at(0)["reason"].str(), "AutoApproved");
  const net::CertificateInfo info = net::ParseCertificate(Certificate("a")).value();
  EXPECT_EQ(info.subject.common_name, "system:node:n1");
  EXPECT_EQ(info.subject.organizations, std::vector<std::string>{"system:nodes"});
  EXPECT_EQ(info.issuer_common_name, "ca");
  EXPECT_FALSE(info.is_ca);
}

TEST_F(CertificatesTest, WithoutThePermissionItWaitsUntilSomebodyDecides) {
  Ask("a", kClientSigner, kNode, kClientUsages, "jane", {});
  EXPECT_EQ(asked_, std::vector<std::string>{"jane nodeclient"});
  EXPECT_TRUE(Status("a")["conditions"].empty());
  // A role that is granted later counts.
  allowed_ = {"jane nodeclient"};
  Settle(std::chrono::minutes(2));
  EXPECT_FALSE(Certificate("a").empty());
}

TEST_F(CertificatesTest, ANodeCannotRenewAsAnotherNode) {
  allowed_ = {"system:node:n2 selfnodeclient"};
  Ask("a", kClientSigner, kNode, kClientUsages, "system:node:n2", {"system:nodes"});
  Settle(std::chrono::minutes(2));
  EXPECT_TRUE(Status("a")["conditions"].empty());
  Ask("b", kClientSigner, {"system:node:n2", {"system:nodes"}, {}, {}}, kClientUsages,
      "system:node:n2", {"system:nodes"});
  EXPECT_FALSE(Certificate("b").empty());
}

TEST_F(CertificatesTest, AServingCertificateWaitsForTheNodesAddress) {
  const net::CertificateSubject subject{"system:node:n1", {"system:nodes"}, {"n1"}, {"10.0.0.1"}};
  Ask("a", kServingSigner, subject, kServingUsages, "system:node:n1", {"system:nodes"});
  EXPECT_TRUE(Status("a")["conditions"].empty());
  EXPECT_EQ(Events("CertificateNotApproved"),
            std::vector<std::string>{"node \"n1\" is not registered yet"});
  AddNode("n1", "10.0.0.1");
  Settle(std::chrono::seconds(1));
  EXPECT_EQ(net::ParseCertificate(Certificate("a")).value().subject.ip_addresses,
            std::vector<std::string>{"10.0.0.1"});
}

TEST_F(CertificatesTest, AnInvalidRequestThatWasApprovedFails) {
  Ask("a", kServingSigner, kNode, kServingUsages, "admin", {"system:masters"});
  Change("CertificateSigningRequest", "a", "approval", [](api::Draft& object) {
    object["status"]["conditions"].Append({{"type", "Approved"}, {"status", "True"}});
  });
  const api::Value failed = Status("a")["conditions"].at(1);
  EXPECT_EQ(failed["type"].str(), "Failed");
  EXPECT_EQ(failed["reason"].str(), "SignerValidationFailure");
  EXPECT_EQ(failed["message"].str(), "DNS or IP subjectAltName is required");
}

TEST_F(CertificatesTest, OldRequestsAreDeleted) {
  Ask("pending", "example.com/other", kNode, kClientUsages, "jane", {});
  allowed_ = {"system:bootstrap:abcdef nodeclient"};
  Ask("issued", kClientSigner, kNode, kClientUsages, "system:bootstrap:abcdef", {});
  Settle(std::chrono::minutes(59));
  EXPECT_NE(server_.Get("CertificateSigningRequest", "issued"), nullptr);
  Settle(std::chrono::minutes(2));
  EXPECT_EQ(server_.Get("CertificateSigningRequest", "issued"), nullptr);
  EXPECT_NE(server_.Get("CertificateSigningRequest", "pending"), nullptr);
  Settle(std::chrono::hours(24));
  EXPECT_EQ(server_.Get("CertificateSigningRequest", "pending"), nullptr);
}

}  // namespace
}  // namespace drakkar::controllers
