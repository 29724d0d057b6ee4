#pragma once

#include <map>
#include <string>

#include "base/result/result.h"
#include "node/runtime/runtime.h"
#include "rpc/nri/nri.h"

namespace drakkar::node {

// Describes containers to NRI plugins and applies their adjustments. No I/O, no state.

// The container as it will be created, with its future id.
rpc::NriContainer DescribeContainer(const std::string& sandbox_id, const ContainerConfig& config);
// The container's current state. The status does not include arguments, environment and mounts.
rpc::NriContainer DescribeContainer(const ContainerStatus& status);
// Updates an existing description from the status.
void UpdateDescription(const ContainerStatus& status, rpc::NriContainer& container);

// The adjustments of several plugins, applied in order: each plugin sees the result of the previous
// ones and may not change what another has set.
class AdjustmentCollector {
 public:
  explicit AdjustmentCollector(rpc::NriContainer container) : container_(std::move(container)) {}

  // Applies the plugin's adjustments, or refuses them with an error and changes nothing.
  Result<void> Add(const std::string& plugin, const rpc::NriContainerAdjustment& adjustment);
  const rpc::NriContainer& container() const { return container_; }
  // All changes, in order.
  const rpc::NriContainerAdjustment& adjustment() const { return adjustment_; }

 private:
  rpc::NriContainer container_;
  rpc::NriContainerAdjustment adjustment_;
  std::map<std::string, std::string> owners_;  // "env NAME" -> plugin
};

void ApplyAdjustment(const rpc::NriContainerAdjustment& adjustment, ContainerConfig& config);

}  // namespace drakkar::node
