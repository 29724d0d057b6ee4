#include "apiserver/admission/admission.h"

#include "apiserver/admission/node_restriction.h"
#include "apiserver/admission/pod_defaults.h"
#include "apiserver/admission/rbac_escalation.h"

namespace drakkar::apiserver {

std::vector<std::unique_ptr<AdmissionStep>> MakeAdmissionChain(RbacAuthorizer& rbac) {
  std::vector<std::unique_ptr<AdmissionStep>> steps;
  steps.push_back(std::make_unique<ServiceAccountAdmission>());
  steps.push_back(std::make_unique<PriorityAdmission>());
  steps.push_back(std::make_unique<NodeRestriction>());
  steps.push_back(std::make_unique<RbacEscalation>(rbac));
  return steps;
}

}  // namespace drakkar::apiserver
