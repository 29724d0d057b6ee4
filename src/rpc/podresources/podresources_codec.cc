#include "rpc/podresources/podresources_codec.h"

#include <rpc_proto/podresources.pb.h>

#include "rpc/internal/codec.h"

namespace drakkar::rpc::podresources {
namespace {

namespace wire = podresources_wire;

// Encode* fill a message, Decode* read one; both in the order of the schema.

template <typename Message>
void EncodeTopology(const std::optional<NumaTopology>& topology, Message* message) {
  if (!topology.has_value()) return;
  wire::TopologyInfo* info = message->mutable_topology();
  for (const std::int64_t id : topology->node_ids) info->add_nodes()->set_id(id);
}

template <typename Message>
std::optional<NumaTopology> DecodeTopology(const Message& message) {
  if (!message.has_topology()) return std::nullopt;
  NumaTopology topology;
  for (const wire::NUMANode& node : message.topology().nodes()) {
    topology.node_ids.push_back(node.id());
  }
  return topology;
}

// Containers and the allocatable resources share the field names of devices, CPUs and memory.
template <typename Plain, typename Message>
void EncodeDevices(const Plain& plain, Message* message) {
  for (const ContainerDevices& devices : plain.devices) {
    wire::ContainerDevices* added = message->add_devices();
    added->set_resource_name(devices.resource_name);
    internal::AddStrings(devices.device_ids, added->mutable_device_ids());
    EncodeTopology(devices.topology, added);
  }
}

template <typename Message, typename Plain>
void DecodeDevices(const Message& message, Plain* plain) {
  for (const wire::ContainerDevices& devices : message.devices()) {
    plain->devices.push_back({.resource_name = devices.resource_name(),
                              .device_ids = internal::Strings(devices.device_ids()),
                              .topology = DecodeTopology(devices)});
  }
}

template <typename Plain, typename Message>
void EncodeCpusAndMemory(const Plain& plain, Message* message) {
  message->mutable_cpu_ids()->Add(plain.cpu_ids.begin(), plain.cpu_ids.end());
  for (const ContainerMemory& memory : plain.memory) {
    wire::ContainerMemory* added = message->add_memory();
    added->set_memory_type(memory.memory_type);
    added->set_size(memory.size_bytes);
    EncodeTopology(memory.topology, added);
  }
}

template <typename Message, typename Plain>
void DecodeCpusAndMemory(const Message& message, Plain* plain) {
  plain->cpu_ids.assign(message.cpu_ids().begin(), message.cpu_ids().end());
  for (const wire::ContainerMemory& memory : message.memory()) {
    plain->memory.push_back({.memory_type = memory.memory_type(),
                             .size_bytes = memory.size(),
                             .topology = DecodeTopology(memory)});
  }
}

void EncodeDynamicResource(const DynamicResource& resource, wire::DynamicResource* message) {
  message->set_claim_name(resource.claim_name);
  message->set_claim_namespace(resource.claim_namespace);
  for (const ClaimResource& claim : resource.claim_resources) {
    wire::ClaimResource* added = message->add_claim_resources();
    for (const std::string& id : claim.cdi_device_ids) {
      added->add_cdi_devices()->set_name(internal::ValidUtf8(id));
    }
    added->set_driver_name(claim.driver_name);
    added->set_pool_name(claim.pool_name);
    added->set_device_name(claim.device_name);
    if (claim.share_id.has_value()) added->set_share_id(*claim.share_id);
  }
}

DynamicResource DecodeDynamicResource(const wire::DynamicResource& message) {
  DynamicResource resource;
  resource.claim_name = message.claim_name();
  resource.claim_namespace = message.claim_namespace();
  for (const wire::ClaimResource& claim : message.claim_resources()) {
    ClaimResource& added = resource.claim_resources.emplace_back();
    for (const wire::CDIDevice& device : claim.cdi_devices()) {
      added.cdi_device_ids.push_back(device.name());
    }
    added.driver_name = claim.driver_name();
    added.pool_name = claim.pool_name();
    added.device_name = claim.device_name();
    if (claim.has_share_id()) added.share_id = claim.share_id();
  }
  return resource;
}

void EncodePod(const PodResources& pod, wire::PodResources* message) {
  message->set_name(pod.name);
  message->set_namespace_(pod.namespace_name);
  for (const ContainerResources& container : pod.containers) {
    wire::ContainerResources* added = message->add_containers();
    added->set_name(container.name);
    EncodeDevices(container, added);
    EncodeCpusAndMemory(container, added);
    for (const DynamicResource& resource : container.dynamic_resources) {
      EncodeDynamicResource(resource, added->add_dynamic_resources());
    }
  }
  EncodeCpusAndMemory(pod, message);
}

PodResources DecodePod(const wire::PodResources& message) {
  PodResources pod;
  pod.name = message.name();
  pod.namespace_name = message.namespace_();
  for (const wire::ContainerResources& container : message.containers()) {
    ContainerResources& added = pod.containers.emplace_back();
    added.name = container.name();
    DecodeDevices(container, &added);
    DecodeCpusAndMemory(container, &added);
    for (const wire::DynamicResource& resource : container.dynamic_resources()) {
      added.dynamic_resources.push_back(DecodeDynamicResource(resource));
    }
  }
  DecodeCpusAndMemory(message, &pod);
  return pod;
}

}  // namespace

std::string EncodeList(const std::vector<PodResources>& pods) {
  wire::ListPodResourcesResponse message;
  for (const PodResources& pod : pods) EncodePod(pod, message.add_pod_resources());
  return message.SerializeAsString();
}

Result<std::vector<PodResources>> DecodeList(const std::string& bytes) {
  ASSIGN_OR_RETURN(const auto message, internal::Parse<wire::ListPodResourcesResponse>(
                                           bytes, "ListPodResourcesResponse"));
  std::vector<PodResources> pods;
  for (const wire::PodResources& pod : message.pod_resources()) pods.push_back(DecodePod(pod));
  return pods;
}

std::string EncodeAllocatable(const AllocatableResources& resources) {
  wire::AllocatableResourcesResponse message;
  EncodeDevices(resources, &message);
  EncodeCpusAndMemory(resources, &message);
  return message.SerializeAsString();
}

Result<AllocatableResources> DecodeAllocatable(const std::string& bytes) {
  ASSIGN_OR_RETURN(const auto message, internal::Parse<wire::AllocatableResourcesResponse>(
                                           bytes, "AllocatableResourcesResponse"));
  AllocatableResources resources;
  DecodeDevices(message, &resources);
  DecodeCpusAndMemory(message, &resources);
  return resources;
}

std::string EncodeGetRequest(const PodReference& pod) {
  wire::GetPodResourcesRequest message;
  message.set_pod_name(pod.name);
  message.set_pod_namespace(pod.namespace_name);
  return message.SerializeAsString();
}

Result<PodReference> DecodeGetRequest(const std::string& bytes) {
  ASSIGN_OR_RETURN(const auto message,
                   internal::Parse<wire::GetPodResourcesRequest>(bytes, "GetPodResourcesRequest"));
  return PodReference{.name = message.pod_name(), .namespace_name = message.pod_namespace()};
}

std::string EncodeGetResponse(const PodResources& pod) {
  wire::GetPodResourcesResponse message;
  EncodePod(pod, message.mutable_pod_resources());
  return message.SerializeAsString();
}

Result<PodResources> DecodeGetResponse(const std::string& bytes) {
  ASSIGN_OR_RETURN(const auto message, internal::Parse<wire::GetPodResourcesResponse>(
                                           bytes, "GetPodResourcesResponse"));
  return DecodePod(message.pod_resources());
}

}  // namespace drakkar::rpc::podresources
