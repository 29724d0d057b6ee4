#pragma once

#include <functional>
#include <vector>

#include "api/meta/object.h"
#include "base/env/clock.h"
#include "base/exec/token_bucket.h"
#include "node/dra/claim_cache.h"
#include "rpc/podresources/podresources.h"

namespace drakkar::node {

// Which pod holds which devices, for the podresources v1 service on
// <root>/pod-resources/kubelet.sock: the devices of the requests that each container names.
// Rate-limited to kQuestionsPerSecond with bursts of kBurst; excess calls are refused. Loop-bound.
class PodResourcesView final : public rpc::PodResourcesProvider {
 public:
  static constexpr int kQuestionsPerSecond = 100;
  static constexpr int kBurst = 10;

  // `pods` returns the active pods of this node.
  PodResourcesView(const Clock& clock, const ClaimCache& claims,
                   std::function<std::vector<api::ObjectPtr>()> pods)
      : clock_(clock), claims_(claims), pods_(std::move(pods)) {}

  Result<std::vector<rpc::PodResources>> ListPodResources() override;
  // Device plugins are not supported, so there are no devices to list.
  Result<rpc::AllocatableResources> GetAllocatableResources() override;
  Result<rpc::PodResources> GetPodResources(const rpc::PodReference& pod) override;

 private:
  Result<void> Admit();
  rpc::PodResources Describe(api::Value pod) const;

  const Clock& clock_;
  const ClaimCache& claims_;
  std::function<std::vector<api::ObjectPtr>()> pods_;
  TokenBucket questions_{kQuestionsPerSecond, kBurst};
};

}  // namespace drakkar::node
