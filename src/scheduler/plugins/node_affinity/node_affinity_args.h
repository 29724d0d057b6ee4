#pragma once

#include "api/tree/value.h"
#include "scheduler/framework/profile.h"

namespace drakkar {
class FeatureGates;
}

namespace drakkar::scheduler {

class Fields;

struct NodeAffinityArgs final : PluginArgs {
  // A NodeAffinity that every pod of the profile has besides its own; null: none.
  api::TreePtr added_affinity;

  // Refuses an affinity that cannot be evaluated: the API server never saw it.
  static PluginArgsPtr Read(Fields& fields, const FeatureGates& gates);
  void Write(api::Draft& args) const override;
};

}  // namespace drakkar::scheduler
