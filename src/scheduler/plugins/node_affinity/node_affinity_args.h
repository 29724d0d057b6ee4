#pragma once

#include "api/tree/value.h"
#include "scheduler/framework/profile.h"

namespace drakkar {
class FeatureGates;
}

namespace drakkar::scheduler {

class Fields;

struct NodeAffinityArgs final : PluginArgs {
  // A NodeAffinity that is added to every pod of the profile; null: none.
  api::TreePtr added_affinity;

  // Rejects an affinity that cannot be evaluated, because the API server has not validated it.
  static PluginArgsPtr Read(Fields& fields, const FeatureGates& gates);
  void Write(api::Draft& args) const override;
};

}  // namespace drakkar::scheduler
