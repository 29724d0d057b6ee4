#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "base/env/clock.h"
#include "base/result/result.h"

namespace drakkar::rpc {

class Transport;

// The pod resources service v1 in plain types: which pod holds what on this node.

struct NumaTopology {
  std::vector<std::int64_t> node_ids;

  bool operator==(const NumaTopology&) const = default;
};

struct ContainerDevices {
  std::string resource_name;
  std::vector<std::string> device_ids;
  std::optional<NumaTopology> topology;

  bool operator==(const ContainerDevices&) const = default;
};

struct ContainerMemory {
  std::string memory_type;
  std::uint64_t size_bytes = 0;
  std::optional<NumaTopology> topology;

  bool operator==(const ContainerMemory&) const = default;
};

struct ClaimResource {
  std::vector<std::string> cdi_device_ids;
  std::string driver_name;
  std::string pool_name;
  std::string device_name;
  std::optional<std::string> share_id;

  bool operator==(const ClaimResource&) const = default;
};

struct DynamicResource {
  std::string claim_name;
  std::string claim_namespace;
  std::vector<ClaimResource> claim_resources;

  bool operator==(const DynamicResource&) const = default;
};

struct ContainerResources {
  std::string name;
  std::vector<ContainerDevices> devices;
  std::vector<std::int64_t> cpu_ids;
  std::vector<ContainerMemory> memory;
  std::vector<DynamicResource> dynamic_resources;

  bool operator==(const ContainerResources&) const = default;
};

struct PodResources {
  std::string name;
  std::string namespace_name;
  std::vector<ContainerResources> containers;
  std::vector<std::int64_t> cpu_ids;
  std::vector<ContainerMemory> memory;

  bool operator==(const PodResources&) const = default;
};

struct AllocatableResources {
  std::vector<ContainerDevices> devices;
  std::vector<std::int64_t> cpu_ids;
  std::vector<ContainerMemory> memory;

  bool operator==(const AllocatableResources&) const = default;
};

struct PodReference {
  std::string name;
  std::string namespace_name;

  bool operator==(const PodReference&) const = default;
};

// Implemented by the node. Runs on the server's loop.
class PodResourcesProvider {
 public:
  virtual ~PodResourcesProvider() = default;
  virtual Result<std::vector<PodResources>> ListPodResources() = 0;
  virtual Result<AllocatableResources> GetAllocatableResources() = 0;
  virtual Result<PodResources> GetPodResources(const PodReference& pod) = 0;
};

// For tools and tests. Callbacks run on the loop, once; none after the client is destroyed.
class PodResourcesClient {
 public:
  virtual ~PodResourcesClient() = default;
  virtual void List(Duration timeout,
                    absl::AnyInvocable<void(Result<std::vector<PodResources>>)> done) = 0;
  virtual void GetAllocatable(Duration timeout,
                              absl::AnyInvocable<void(Result<AllocatableResources>)> done) = 0;
  virtual void Get(const PodReference& pod, Duration timeout,
                   absl::AnyInvocable<void(Result<PodResources>)> done) = 0;
};

std::unique_ptr<PodResourcesClient> MakePodResourcesClient(Transport& transport,
                                                           const std::string& socket_path);

}  // namespace drakkar::rpc
