#pragma once

#include "scheduler/framework/plugin.h"
#include "scheduler/framework/plugin_context.h"
#include "scheduler/plugins/node_resources/node_resources_args.h"

namespace drakkar::scheduler {

// Prefers nodes on which cpu and memory would be used in the same proportion.
class NodeResourcesBalanced final : public Plugin {
 public:
  using Args = NodeResourcesBalancedArgs;

  explicit NodeResourcesBalanced(const PluginContext& context, const Args& = {})
      : nodes_(context.nodes) {}
  bool Score(Cycle& cycle, std::span<const NodeIndex> nodes,
             std::span<std::int64_t> scores) override;

 private:
  const NodeTable& nodes_;
};

}  // namespace drakkar::scheduler
