#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/result/result.h"
#include "node/runtime/runtime_config.h"
#include "rpc/nri/nri.h"

namespace drakkar::node {

// Adds the edits of CDI devices to a container.
using CdiInjector =
    std::function<Result<void>(const std::vector<std::string>& names, ContainerConfig& config)>;

// Applies the collected adjustments of NRI plugins to a container that is about to be created.
// Rejects what the runtime would ignore: the error names the field. `injector` may be empty if the
// node has no CDI. Does no I/O itself.
Result<void> ApplyAdjustment(const rpc::NriContainerAdjustment& adjustment,
                             const CdiInjector& injector, ContainerConfig& config);

// The cgroup settings that a plugin requests; an error for those that this node does not support.
Result<CgroupChanges> ChangesFrom(const rpc::NriResources& resources);

}  // namespace drakkar::node
