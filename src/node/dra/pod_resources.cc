#include "node/dra/pod_resources.h"

#include "api/meta/request_name.h"
#include "base/text/text.h"
#include "node/dra/pod_claims.h"
#include "node/dra/skip_operations.h"

namespace drakkar::node {
namespace {

using api::Value;

bool Serves(const rpc::PreparedDevice& device, const std::string& request) {
  if (request.empty() || device.request_names.empty()) return true;
  for (const std::string& each : device.request_names) {
    if (api::BaseRequest(each) == api::BaseRequest(request)) return true;
  }
  return false;
}

}  // namespace

Result<void> PodResourcesView::Admit() {
  if (questions_.Take(clock_.Monotonic())) return Ok();
  return Error{ErrorCode::kResourceExhausted, "rejected by rate limit"};
}

rpc::PodResources PodResourcesView::Describe(Value pod) const {
  const std::string home(pod["metadata"]["namespace"].str());
  const std::string uid(pod["metadata"]["uid"].str());
  rpc::PodResources described{.name = std::string(pod["metadata"]["name"].str()),
                              .namespace_name = home};
  auto add = [&](Value container) {
    rpc::ContainerResources resources{.name = std::string(container["name"].str())};
    if (cpus_ != nullptr) {
      const CpuSet* own = cpus_->Exclusive(uid, resources.name);
      if (own != nullptr) resources.cpu_ids.assign(own->begin(), own->end());
    }
    std::map<std::string, std::map<std::string, rpc::ClaimResource>> by_claim;
    for (const ContainerClaim& use : ListContainerClaims(pod, container)) {
      const ClaimInfo* info = claims_.Find(ClaimCache::Key(home, use.claim_name));
      if (info == nullptr) continue;
      auto& devices = by_claim[use.claim_name];
      for (const auto& [driver, state] : info->drivers) {
        // As in Kubernetes, unprepared claims are not listed.
        if (Skips(state.skip_node_operations, kSkipPrepare)) continue;
        for (const rpc::PreparedDevice& device : state.devices) {
          if (!Serves(device, use.request)) continue;
          devices[StrCat(driver, "/", device.pool_name, "/", device.device_name, "/",
                         device.share_id.value_or(""))] = {.cdi_device_ids = device.cdi_device_ids,
                                                           .driver_name = driver,
                                                           .pool_name = device.pool_name,
                                                           .device_name = device.device_name,
                                                           .share_id = device.share_id};
        }
      }
    }
    for (auto& [claim, devices] : by_claim) {
      rpc::DynamicResource resource{.claim_name = claim, .claim_namespace = home};
      for (auto& [key, device] : devices) resource.claim_resources.push_back(std::move(device));
      resources.dynamic_resources.push_back(std::move(resource));
    }
    described.containers.push_back(std::move(resources));
  };
  for (Value container : pod["spec"]["initContainers"].elements()) {
    if (container["restartPolicy"].str() == "Always") add(container);
  }
  for (Value container : pod["spec"]["containers"].elements()) add(container);
  return described;
}

Result<std::vector<rpc::PodResources>> PodResourcesView::ListPodResources() {
  RETURN_IF_ERROR(Admit());
  std::vector<rpc::PodResources> list;
  for (const api::ObjectPtr& pod : pods_()) list.push_back(Describe(pod->root()));
  return list;
}

Result<rpc::AllocatableResources> PodResourcesView::GetAllocatableResources() {
  RETURN_IF_ERROR(Admit());
  rpc::AllocatableResources allocatable;
  if (cpus_ != nullptr) {
    const CpuSet cpus = cpus_->Allocatable();
    allocatable.cpu_ids.assign(cpus.begin(), cpus.end());
  }
  return allocatable;
}

Result<rpc::PodResources> PodResourcesView::GetPodResources(const rpc::PodReference& wanted) {
  RETURN_IF_ERROR(Admit());
  for (const api::ObjectPtr& pod : pods_()) {
    if (pod->name() == wanted.name && pod->namespace_() == wanted.namespace_name) {
      return Describe(pod->root());
    }
  }
  return NotFound(
      StrCat("pod ", wanted.name, " in namespace ", wanted.namespace_name, " not found"));
}

}  // namespace drakkar::node
