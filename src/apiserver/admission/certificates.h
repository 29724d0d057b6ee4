#pragma once

#include "apiserver/rest/core.h"

// Who may decide about CertificateSigningRequests. The steps are named after Kubernetes' admission
// plugins.
namespace drakkar::apiserver {

// Writing `approval` needs the permission to approve for the request's signer: the verb approve on
// signers in certificates.k8s.io, by the signer's name or by "DOMAIN/*".
class CertificateApproval final : public AdmissionStep {
 public:
  std::string_view name() const override { return "CertificateApproval"; }
  bool Concerns(const Request& request) const override;
  std::optional<Failure> Admit(const Request& request, api::Draft* object, api::Value before,
                               const StrategyContext& context) override;
};

// Writing `status` needs the permission to sign for the request's signer (the verb sign).
class CertificateSigning final : public AdmissionStep {
 public:
  std::string_view name() const override { return "CertificateSigning"; }
  bool Concerns(const Request& request) const override;
  std::optional<Failure> Admit(const Request& request, api::Draft* object, api::Value before,
                               const StrategyContext& context) override;
};

// Writing a ClusterTrustBundle of a signer needs the permission to attest for it (the verb attest).
class ClusterTrustBundleAttest final : public AdmissionStep {
 public:
  std::string_view name() const override { return "ClusterTrustBundleAttest"; }
  bool Concerns(const Request& request) const override;
  std::optional<Failure> Admit(const Request& request, api::Draft* object, api::Value before,
                               const StrategyContext& context) override;
};

// Rejects requests to kubernetes.io/kube-apiserver-client for a certificate in the group
// system:masters.
class CertificateSubjectRestriction final : public AdmissionStep {
 public:
  std::string_view name() const override { return "CertificateSubjectRestriction"; }
  bool Concerns(const Request& request) const override;
  std::optional<Failure> Admit(const Request& request, api::Draft* object, api::Value before,
                               const StrategyContext& context) override;
};

}  // namespace drakkar::apiserver
