#include "apiserver/admission/admission.h"

#include "apiserver/admission/certificates.h"
#include "apiserver/admission/limit_ranger.h"
#include "apiserver/admission/measured_step.h"
#include "apiserver/admission/mutating_admission_policy.h"
#include "apiserver/admission/node_declared_feature_validator.h"
#include "apiserver/admission/node_restriction.h"
#include "apiserver/admission/pod_defaults.h"
#include "apiserver/admission/pod_security/pod_security.h"
#include "apiserver/admission/rbac_escalation.h"
#include "apiserver/admission/resource_quota.h"
#include "apiserver/admission/service_account.h"
#include "apiserver/admission/validating_admission_policy.h"
#include "features/catalog/catalog.h"

namespace drakkar::apiserver {

std::vector<std::unique_ptr<AdmissionStep>> MakeAdmissionChain(AdmissionOptions options) {
  std::vector<std::unique_ptr<AdmissionStep>> steps;
  const auto add = [&](std::unique_ptr<AdmissionStep> step, std::string_view type) {
    if (options.metrics != nullptr) step = Measured(std::move(step), type, *options.metrics);
    steps.push_back(std::move(step));
  };
  add(std::make_unique<LimitRangerDefaults>(), "admit");
  add(std::make_unique<ServiceAccountAdmission>(), "admit");
  add(std::make_unique<PriorityAdmission>(), "admit");
  add(std::make_unique<DefaultTolerationSeconds>(), "admit");
  add(std::make_unique<RuntimeClassAdmission>(), "admit");
  add(std::make_unique<NodeRestriction>(), "admit");
  // Last of those that change objects.
  if (options.mutating_policies != nullptr) {
    add(std::make_unique<MutatingAdmissionPolicyStep>(*options.mutating_policies, options.rbac),
        "admit");
  }
  if (options.rbac != nullptr) add(std::make_unique<RbacEscalation>(*options.rbac), "validate");
  add(std::make_unique<CertificateApproval>(), "validate");
  add(std::make_unique<CertificateSigning>(), "validate");
  add(std::make_unique<ClusterTrustBundleAttest>(), "validate");
  add(std::make_unique<CertificateSubjectRestriction>(), "validate");
  add(std::make_unique<PodSecurity>(), "validate");
  add(std::make_unique<NodeDeclaredFeatureValidator>(
          options.framework != nullptr ? *options.framework : features::DefaultFramework()),
      "validate");
  add(std::make_unique<LimitRanger>(), "validate");
  if (options.policies != nullptr) {
    add(std::make_unique<ValidatingAdmissionPolicyStep>(*options.policies, options.rbac),
        "validate");
  }
  // Last, because it counts what it admits.
  add(std::make_unique<ResourceQuotaAdmission>(), "validate");
  return steps;
}

}  // namespace drakkar::apiserver
