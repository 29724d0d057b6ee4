#include "apiserver/admission/admission.h"

#include "apiserver/admission/node_restriction.h"

namespace drakkar::apiserver {

std::vector<std::unique_ptr<AdmissionStep>> MakeAdmissionChain() {
  std::vector<std::unique_ptr<AdmissionStep>> steps;
  steps.push_back(std::make_unique<NodeRestriction>());
  return steps;
}

}  // namespace drakkar::apiserver
