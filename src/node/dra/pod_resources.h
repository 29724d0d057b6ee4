#pragma once

#include <functional>
#include <vector>

#include "api/meta/object.h"
#include "base/env/clock.h"
#include "base/exec/token_bucket.h"
#include "node/cpus/cpu_manager.h"
#include "node/dra/claim_cache.h"
#include "rpc/podresources/podresources.h"

namespace drakkar::node {

// Which pod holds which devices and CPUs, for the podresources v1 service on
// <root>/pod-resources/kubelet.sock: the devices of the requests that each container names, and the
// CPUs that it has for itself.
// Rate-limited to kQuestionsPerSecond with bursts of kBurst; excess calls are refused. Loop-bound.
class PodResourcesView final : public rpc::PodResourcesProvider {
 public:
  static constexpr int kQuestionsPerSecond = 100;
  static constexpr int kBurst = 10;

  // `pods` returns the active pods of this node. `cpus`: null without a CPU manager.
  PodResourcesView(const Clock& clock, const ClaimCache& claims,
                   std::function<std::vector<api::ObjectPtr>()> pods, const CpuManager* cpus)
      : clock_(clock), claims_(claims), pods_(std::move(pods)), cpus_(cpus) {}

  Result<std::vector<rpc::PodResources>> ListPodResources() override;
  // Device plugins and the memory manager are not supported, so there are only CPUs to list.
  Result<rpc::AllocatableResources> GetAllocatableResources() override;
  Result<rpc::PodResources> GetPodResources(const rpc::PodReference& pod) override;

 private:
  Result<void> Admit();
  rpc::PodResources Describe(api::Value pod) const;

  const Clock& clock_;
  const ClaimCache& claims_;
  std::function<std::vector<api::ObjectPtr>()> pods_;
  const CpuManager* cpus_;
  TokenBucket questions_{kQuestionsPerSecond, kBurst};
};

}  // namespace drakkar::node
