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
// <root>/pod-resources/kubelet.sock: devices of the requests each container names. Answers
// kQuestionsPerSecond, and kBurst at once; further ones are refused. Loop-bound.
class PodResourcesView final : public rpc::PodResourcesProvider {
 public:
  static constexpr int kQuestionsPerSecond = 100;
  static constexpr int kBurst = 10;

  // `pods` gives the pods that are active on this node.
  PodResourcesView(const Clock& clock, const ClaimCache& claims,
                   std::function<std::vector<api::ObjectPtr>()> pods)
      : clock_(clock), claims_(claims), pods_(std::move(pods)) {}

  Result<std::vector<rpc::PodResources>> ListPodResources() override;
  // Device plugins are not served here, so there is nothing of theirs to tell.
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
