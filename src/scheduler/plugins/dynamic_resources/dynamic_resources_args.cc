#include "scheduler/plugins/dynamic_resources/dynamic_resources_args.h"

#include "api/meta/time.h"
#include "features/gates/feature_gates.h"
#include "scheduler/args/fields.h"

namespace drakkar::scheduler {

PluginArgsPtr DynamicResourcesArgs::Read(Fields& fields, const FeatureGates& gates) {
  auto args = std::make_shared<DynamicResourcesArgs>();
  if (fields.Get("filterTimeout").has_value() && !gates.Enabled(Gate::kDRASchedulerFilterTimeout)) {
    fields.Refuse("filterTimeout",
                  "cannot be set: DRASchedulerFilterTimeout feature gate is disabled");
  }
  if (fields.Get("bindingTimeout").has_value() && !gates.BindingConditions()) {
    fields.Refuse("bindingTimeout",
                  "cannot be set: DRADeviceBindingConditions or DRAResourceClaimDeviceStatus "
                  "feature gate is disabled");
  }
  fields.Time("filterTimeout", args->filter_timeout);
  fields.Time("bindingTimeout", args->binding_timeout);
  if (args->filter_timeout < Duration::zero()) {
    fields.Refuse("filterTimeout", "must be zero or positive");
  }
  if (args->binding_timeout < std::chrono::seconds(1)) {
    fields.Refuse("bindingTimeout", "must be at least 1 second");
  }
  return args;
}

void DynamicResourcesArgs::Write(api::Draft& args) const {
  args["filterTimeout"] = api::FormatDuration(filter_timeout);
  args["bindingTimeout"] = api::FormatDuration(binding_timeout);
}

}  // namespace drakkar::scheduler
