#pragma once

#include "base/env/clock.h"
#include "scheduler/framework/profile.h"

namespace drakkar {
class FeatureGates;
}

namespace drakkar::scheduler {

class Fields;

struct DynamicResourcesArgs final : PluginArgs {
  Duration filter_timeout = std::chrono::seconds(10);  // per pod; zero: no timeout
  Duration binding_timeout = std::chrono::minutes(10);

  static PluginArgsPtr Read(Fields& fields, const FeatureGates& gates);
  void Write(api::Draft& args) const override;
};

}  // namespace drakkar::scheduler
