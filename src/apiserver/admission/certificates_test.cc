#include "apiserver/admission/certificates.h"

#include "apiserver/auth/rbac.h"
#include "apiserver/testing/core_fixture.h"
#include "tests/support/signing_requests.h"

namespace drakkar::apiserver {
namespace {

using ::drakkar::testing::SigningRequestJson;

constexpr std::string_view kSigner = "kubernetes.io/kube-apiserver-client";

class CertificateAdmissionTest : public CoreFixture {
 protected:
  CertificateAdmissionTest() {
    std::vector<std::unique_ptr<AdmissionStep>> steps;
    steps.push_back(std::make_unique<CertificateApproval>());
    steps.push_back(std::make_unique<CertificateSigning>());
    steps.push_back(std::make_unique<CertificateSubjectRestriction>());
    StartCore(&rbac_, std::move(steps));
    rbac_.Attach(*core_);
    Grant("writer", R"("resources":["certificatesigningrequests",
        "certificatesigningrequests/approval","certificatesigningrequests/status"],
        "verbs":["create","update"])",
          {"all", "approver", "signer", "domain", "nothing"});
    Grant("approve", R"("resources":["signers"],"verbs":["approve"],
        "resourceNames":["kubernetes.io/kube-apiserver-client"])",
          {"approver"});
    Grant("sign", R"("resources":["signers"],"verbs":["sign"],
        "resourceNames":["kubernetes.io/kube-apiserver-client"])",
          {"signer"});
    Grant("domain", R"("resources":["signers"],"verbs":["approve","sign"],
        "resourceNames":["kubernetes.io/*"])",
          {"domain"});
    Create(SigningRequestJson("x", kSigner, {"jane", {}, {}, {}}, R"(["client auth"])"));
  }
  ~CertificateAdmissionTest() override { rbac_.Detach(); }

  void Grant(std::string_view name, std::string_view rule, std::vector<std::string> users) {
    Create(StrCat(R"({"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRole",)",
                  R"("metadata":{"name":")", name,
                  R"("},"rules":[{"apiGroups":["certificates.k8s.io"],)", rule, "}]}"));
    for (const std::string& user : users) {
      Create(StrCat(R"({"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRoleBinding",)",
                    R"("metadata":{"name":")", name, "-", user,
                    R"("},"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole",)",
                    R"("name":")", name, R"("},"subjects":[{"kind":"User","name":")", user,
                    R"("}]})"));
    }
  }

  std::string Set(std::string subresource, std::string_view type, std::string user) {
    const api::ObjectPtr now =
        core_->Find("certificates.k8s.io", "certificatesigningrequests", "x");
    api::Draft draft(now->tree());
    draft["status"]["conditions"].Append({{"type", type}, {"status", "True"}});
    Request request;
    request.user = PlainUser(std::move(user));
    request.verb = Verb::kUpdate;
    request.dry_run = true;
    request.kind = core_->FindKind("certificates.k8s.io/v1", "CertificateSigningRequest");
    request.name = "x";
    request.subresource = std::move(subresource);
    request.object = draft.Freeze();
    const Response response = Handle(std::move(request));
    return response.failure ? response.failure->message : "ok";
  }

  RbacAuthorizer rbac_;
  int count_ = 0;
};

TEST_F(CertificateAdmissionTest, ApprovingNeedsThePermissionForTheSigner) {
  EXPECT_EQ(Set("approval", "Approved", "approver"), "ok");
  EXPECT_EQ(Set("approval", "Denied", "domain"), "ok");
  EXPECT_EQ(Set("approval", "Approved", "signer"),
            "certificatesigningrequests.certificates.k8s.io \"x\" is forbidden: user not permitted "
            "to approve requests with signerName \"kubernetes.io/kube-apiserver-client\"");
}

TEST_F(CertificateAdmissionTest, SigningNeedsThePermissionForTheSigner) {
  EXPECT_EQ(Set("status", "Failed", "signer"), "ok");
  EXPECT_EQ(Set("status", "Failed", "domain"), "ok");
  EXPECT_EQ(Set("status", "Failed", "approver"),
            "certificatesigningrequests.certificates.k8s.io \"x\" is forbidden: user not permitted "
            "to sign requests with signerName \"kubernetes.io/kube-apiserver-client\"");
}

TEST_F(CertificateAdmissionTest, NobodyAsksForTheGroupOfAdministrators) {
  const auto ask = [&](std::string_view signer) {
    const Response made = TryCreate(SigningRequestJson(
        StrCat("m", count_++), signer, {"eve", {"system:masters"}, {}, {}}, R"(["client auth"])"));
    return made.failure ? made.failure->message : "ok";
  };
  EXPECT_EQ(ask(kSigner),
            "certificatesigningrequests.certificates.k8s.io \"m0\" is forbidden: use of "
            "kubernetes.io/kube-apiserver-client signer with system:masters group is not allowed");
  EXPECT_EQ(ask("example.com/other"), "ok");
}

}  // namespace
}  // namespace drakkar::apiserver
