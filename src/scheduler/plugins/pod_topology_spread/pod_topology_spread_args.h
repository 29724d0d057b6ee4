#pragma once

#include "scheduler/framework/profile.h"

namespace drakkar {
class FeatureGates;
}

namespace drakkar::scheduler {

class Fields;

// Constraints for pods that have none are accepted and have no effect: their selectors come from
// Services and ReplicaSets, which the scheduler does not read.
struct PodTopologySpreadArgs final : PluginArgs {
  static PluginArgsPtr Read(Fields& fields, const FeatureGates& gates);
  void Write(api::Draft& args) const override;
};

}  // namespace drakkar::scheduler
