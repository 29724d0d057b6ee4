#pragma once

#include <memory>
#include <vector>

#include "apiserver/rest/core.h"

namespace drakkar::apiserver {

class RbacAuthorizer;

// The admission steps in the order they run: the one place that lists them.
std::vector<std::unique_ptr<AdmissionStep>> MakeAdmissionChain(RbacAuthorizer& rbac);

}  // namespace drakkar::apiserver
