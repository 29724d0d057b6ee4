#pragma once

#include <functional>
#include <vector>

#include "api/meta/object.h"
#include "node/dra/claim_cache.h"
#include "rpc/podresources/podresources.h"

namespace drakkar::node {

// Which pod holds which devices, for the podresources v1 service on
// <root>/pod-resources/kubelet.sock: devices of the requests each container names. Loop-bound.
class PodResourcesView final : public rpc::PodResourcesProvider {
 public:
  // `pods` gives the pods that are active on this node.
  PodResourcesView(const ClaimCache& claims, std::function<std::vector<api::ObjectPtr>()> pods)
      : claims_(claims), pods_(std::move(pods)) {}

  Result<std::vector<rpc::PodResources>> ListPodResources() override;
  // Device plugins are not served here, so there is nothing of theirs to tell.
  Result<rpc::AllocatableResources> GetAllocatableResources() override { return rpc::AllocatableResources{}; }
  Result<rpc::PodResources> GetPodResources(const rpc::PodReference& pod) override;

 private:
  rpc::PodResources Describe(api::Value pod) const;

  const ClaimCache& claims_;
  std::function<std::vector<api::ObjectPtr>()> pods_;
};

}  // namespace drakkar::node
