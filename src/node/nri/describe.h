#pragma once

#include <string>
#include <string_view>

#include "node/runtime/runtime.h"
#include "rpc/nri/nri.h"

namespace drakkar::node {

// Describes sandboxes and containers to NRI plugins. No I/O, no state.

rpc::NriPodSandbox DescribeSandbox(const PodSandbox& sandbox);
// The container as it will be created, with its future id.
rpc::NriContainer DescribeContainer(const PodSandbox& sandbox, const ContainerConfig& config);
// A container that was created earlier, from its status and, if there is one, its OCI
// configuration.
rpc::NriContainer DescribeContainer(const ContainerStatus& status, std::string_view spec);
// Updates an existing description from the status.
void UpdateDescription(const ContainerStatus& status, rpc::NriContainer& container);

rpc::NriResources DescribeResources(const CgroupResources& resources);
// Adds what `changes` sets to `resources`.
void MergeResources(const rpc::NriResources& changes, rpc::NriResources& resources);
rpc::NriMount DescribeMount(const Mount& mount);

}  // namespace drakkar::node
