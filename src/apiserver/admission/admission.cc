#include "apiserver/admission/admission.h"

namespace drakkar::apiserver {

std::vector<std::unique_ptr<AdmissionStep>> MakeAdmissionChain() {
  return {};
}

}  // namespace drakkar::apiserver
