#pragma once

#include <memory>
#include <vector>

#include "apiserver/admission/policy_set.h"
#include "apiserver/rest/core.h"

namespace drakkar {
class Metrics;
}
namespace drakkar::features {
class Framework;
}

namespace drakkar::apiserver {

class RbacAuthorizer;

struct AdmissionOptions {
  RbacAuthorizer* rbac = nullptr;                  // null: roles may grant anything
  PolicySet* policies = nullptr;                   // null: validating policies have no effect
  MutatingPolicySet* mutating_policies = nullptr;  // null: mutating policies have no effect
  Metrics* metrics = nullptr;                      // null: steps are not measured
  const features::Framework* framework = nullptr;  // null: the default catalog
};

// All admission steps, in the order they run.
std::vector<std::unique_ptr<AdmissionStep>> MakeAdmissionChain(AdmissionOptions options = {});

}  // namespace drakkar::apiserver
