#pragma once

#include <map>
#include <string>

#include "base/result/result.h"
#include "node/runtime/runtime.h"
#include "rpc/nri/nri.h"

namespace drakkar::node {

// What NRI plugins are told of a container, and what becomes of their changes. No I/O, no state.

// As it is to be created, with the id it will have.
rpc::NriContainer DescribeContainer(const std::string& sandbox_id, const ContainerConfig& config);
// How it is now. Arguments, environment and mounts are not known from the status.
rpc::NriContainer DescribeContainer(const ContainerStatus& status);
// Brings what the status tells into a description that was made before.
void UpdateDescription(const ContainerStatus& status, rpc::NriContainer& container);

// Changes of several plugins, one after the other: each sees the container as those before it left
// it, and what one plugin has set the next may not set again.
class AdjustmentCollector {
 public:
  explicit AdjustmentCollector(rpc::NriContainer container) : container_(std::move(container)) {}

  // Takes the plugin's changes, or refuses them with one sentence and changes nothing.
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
