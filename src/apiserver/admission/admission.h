#pragma once

#include <memory>
#include <vector>

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
  Metrics* metrics = nullptr;                      // null: the steps are not measured
  const features::Framework* framework = nullptr;  // null: the catalog
};

// The admission steps in the order they run: the one place that lists them.
std::vector<std::unique_ptr<AdmissionStep>> MakeAdmissionChain(AdmissionOptions options = {});

}  // namespace drakkar::apiserver
