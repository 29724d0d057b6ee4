#include "apiserver/admission/certificates.h"

#include <algorithm>

#include "api/scheme/scheme.h"
#include "base/hash/base64.h"
#include "base/text/text.h"
#include "net/tls/certificates.h"

namespace drakkar::apiserver {
namespace {

constexpr std::string_view kGroup = "certificates.k8s.io";
constexpr std::string_view kClientSigner = "kubernetes.io/kube-apiserver-client";

bool IsAbout(const Request& request, std::string_view subresource) {
  return request.kind->group == kGroup && request.kind->kind == "CertificateSigningRequest" &&
         request.subresource == subresource;
}

// By the signer's name, or for all signers of its domain.
bool MayActFor(std::string_view verb, std::string_view signer, const StrategyContext& context) {
  const std::string domain = StrCat(signer.substr(0, signer.find('/')), "/*");
  return context.authorize(verb, kGroup, "signers", "", "", signer).allowed ||
         context.authorize(verb, kGroup, "signers", "", "", domain).allowed;
}

}  // namespace

bool CertificateApproval::Concerns(const Request& request) const {
  return IsAbout(request, "approval");
}

std::optional<Failure> CertificateApproval::Admit(const Request& request, api::Draft*,
                                                  api::Value before,
                                                  const StrategyContext& context) {
  if (!Concerns(request)) return std::nullopt;
  const std::string_view signer = before["spec"]["signerName"].str();
  if (MayActFor("approve", signer, context)) return std::nullopt;
  return ForbiddenFailure(
      *request.kind, request.name,
      StrCat("user not permitted to approve requests with signerName ", Quote(signer)));
}

bool CertificateSigning::Concerns(const Request& request) const {
  return IsAbout(request, "status");
}

std::optional<Failure> CertificateSigning::Admit(const Request& request, api::Draft* object,
                                                 api::Value before,
                                                 const StrategyContext& context) {
  if (!Concerns(request) || object == nullptr) return std::nullopt;
  const api::TreePtr after = object->Freeze();
  const api::Value status = after->root()["status"];
  if (status["certificate"].str() == before["status"]["certificate"].str() &&
      api::Equal(status["conditions"], before["status"]["conditions"])) {
    return std::nullopt;
  }
  const std::string_view signer = before["spec"]["signerName"].str();
  if (MayActFor("sign", signer, context)) return std::nullopt;
  return ForbiddenFailure(
      *request.kind, request.name,
      StrCat("user not permitted to sign requests with signerName ", Quote(signer)));
}

bool ClusterTrustBundleAttest::Concerns(const Request& request) const {
  return request.kind->group == kGroup && request.kind->kind == "ClusterTrustBundle" &&
         request.verb != Verb::kDelete && request.verb != Verb::kDeleteCollection;
}

std::optional<Failure> ClusterTrustBundleAttest::Admit(const Request& request, api::Draft* object,
                                                       api::Value before,
                                                       const StrategyContext& context) {
  if (!Concerns(request) || object == nullptr) return std::nullopt;
  const api::TreePtr after = object->Freeze();
  const std::string_view signer = after->root()["spec"]["signerName"].str();
  if (signer.empty()) return std::nullopt;
  // Other users may remove finalizers and owners.
  if (before.exists() && api::Equal(after->root()["spec"], before["spec"])) return std::nullopt;
  if (MayActFor("attest", signer, context)) return std::nullopt;
  return ForbiddenFailure(*request.kind, after->root()["metadata"]["name"].str(),
                          StrCat("user not permitted to attest for signerName ", Quote(signer)));
}

bool CertificateSubjectRestriction::Concerns(const Request& request) const {
  return IsAbout(request, "") && request.verb != Verb::kDelete;
}

std::optional<Failure> CertificateSubjectRestriction::Admit(const Request& request,
                                                            api::Draft* object, api::Value before,
                                                            const StrategyContext&) {
  if (!Concerns(request) || object == nullptr || before.exists()) return std::nullopt;
  api::Draft& spec = (*object)["spec"];
  if (spec["signerName"].str() != kClientSigner) return std::nullopt;
  const Result<std::string> pem = Base64Decode(spec["request"].str());
  const Result<net::CertificateSubject> subject =
      pem.ok() ? net::ParseSigningRequest(*pem) : pem.error();
  // Validation rejects it.
  if (!subject.ok()) return std::nullopt;
  if (std::ranges::find(subject->organizations, "system:masters") == subject->organizations.end()) {
    return std::nullopt;
  }
  const std::string name((*object)["metadata"]["name"].str());
  return ForbiddenFailure(
      *request.kind, name,
      StrCat("use of ", kClientSigner, " signer with system:masters group is not allowed"));
}

}  // namespace drakkar::apiserver
