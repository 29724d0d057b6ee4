#include "apiserver/admission/admission.h"

#include "apiserver/admission/measured_step.h"
#include "apiserver/admission/node_declared_feature_validator.h"
#include "apiserver/admission/node_restriction.h"
#include "features/catalog/catalog.h"

namespace drakkar::apiserver {

std::vector<std::unique_ptr<AdmissionStep>> MakeAdmissionChain(AdmissionOptions options) {
  std::vector<std::unique_ptr<AdmissionStep>> steps;
  const auto add = [&](std::unique_ptr<AdmissionStep> step, std::string_view type) {
    if (options.metrics != nullptr) step = Measured(std::move(step), type, *options.metrics);
    steps.push_back(std::move(step));
  };
  add(std::make_unique<NodeRestriction>(), "admit");
  add(std::make_unique<NodeDeclaredFeatureValidator>(
          options.framework != nullptr ? *options.framework : features::DefaultFramework()),
      "validate");
  return steps;
}

}  // namespace drakkar::apiserver
