#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "allocator/allocator.h"
#include "scheduler/binding/claim_writer.h"
#include "scheduler/binding/condition_waits.h"
#include "scheduler/binding/extended_claims.h"
#include "scheduler/framework/plugin.h"
#include "scheduler/framework/plugin_context.h"
#include "scheduler/plugins/dynamic_resources/dynamic_resources_args.h"
#include "scheduler/plugins/dynamic_resources/node_verdicts.h"
#include "scheduler/plugins/dynamic_resources/pod_devices.h"
#include "scheduler/plugins/dynamic_resources/retry_policy.h"
#include "scheduler/plugins/dynamic_resources/wait_policy.h"

namespace drakkar::scheduler {

// Assigns devices to pods: finds them with the structured allocator, reserves them while the pod is
// being scheduled, writes allocation and reservation, and waits for binding conditions (KEP-5007).
// Extended resources that device classes provide become one more claim, which it creates
// (KEP-5004).
//
// WaitPolicy decides what to wait for. RetryPolicy decides when to retry after a failure, and what
// to avoid then.
class DynamicResources final : public Plugin {
 public:
  using Args = DynamicResourcesArgs;

  DynamicResources(const PluginContext& context, const Args& args);

  EventMask events() const override;
  bool MayHelp(const PodInfo& pod, const ClusterEvent& event) override;

  Status PreEnqueue(const PodInfo& pod) override;
  Status PreFilter(Cycle& cycle) override;
  Status Filter(Cycle& cycle, NodeSet& nodes) override;
  void Explain(Cycle& cycle, const NodeSet& rejected, Diagnosis& diagnosis) override;
  Status PostFilter(Cycle& cycle) override;
  void Prefer(Cycle& cycle, NodeSet& nodes) override;
  bool Score(Cycle& cycle, std::span<const NodeIndex> nodes,
             std::span<std::int64_t> scores) override;
  Status Reserve(Cycle& cycle) override;
  void Unreserve(Cycle& cycle) override;
  void PreBind(CyclePtr cycle, StatusCallback done) override;
  void Cancel(Cycle& cycle) override;
  void OnNodeLost(Cycle& cycle, const std::string& why) override;

  // For explanations, after Filter: the node's devices rule by rule (nullopt if every claim is
  // allocated), and the conditions the pod would wait for there before it is bound.
  std::optional<allocator::Explanation> ExplainDevices(Cycle& cycle, NodeIndex node) const;
  std::vector<std::string> DescribeWait(Cycle& cycle, NodeIndex node) const;

  void OnClaimChanged(const std::string& claim_key) override {
    waits_.OnClaimChanged(claim_key);
    extended_.OnClaimChanged(claim_key);
  }
  void ForgetPod(const std::string& pod_uid) override { retries_.Forget(pod_uid); }
  std::size_t waiting_pods() const override { return waits_.size(); }
  // Pods with failed devices.
  std::size_t remembered_pods() const override { return retries_.size(); }
  void Describe(const std::string& pod_uid, PodState& state) const override;

 private:
  PodDevices& StateOf(Cycle& cycle) const { return static_cast<PodDevices&>(*cycle.states[id()]); }
  // Whether there are claims to allocate. Also false if a profile enables only the score.
  bool HasProblem(Cycle& cycle) const {
    return cycle.states[id()] != nullptr && StateOf(cycle).has_problem;
  }
  Status CheckClaims(const PodInfo& pod) const;
  // Whom the claim of the entry is reserved for.
  claims::Consumer ConsumerOf(const PodInfo& pod, const PodClaim& entry) const;
  // What the pod needs on the node.
  PodDevices::Variant& VariantOn(NodeIndex node, const PodInfo& pod, PodDevices& state) const;
  // Removes nodes on which an allocated claim cannot be used.
  void FilterAllocated(const CachedClaim& claim, NodeSet& nodes) const;
  void FilterUnallocated(const PodInfo& pod, PodDevices& state, const NodeSet& nodes);
  allocator::Problem Prepare(std::span<const std::shared_ptr<const device::Claim>> specs) const;
  allocator::SearchBudget MakeBudget() const;

  // The steps of PreBind, in pre_bind.cc.
  void WriteClaim(std::size_t at, CyclePtr cycle, StatusCallback done);
  void CreateExtended(std::size_t at, CyclePtr cycle, StatusCallback done);
  void RecordExtended(std::size_t at, CyclePtr cycle, StatusCallback done);
  // Clears the allocation that was just written and fails the attempt.
  void TakeBack(std::size_t at, std::string why, CyclePtr cycle, StatusCallback done);
  void StartWait(CyclePtr cycle, StatusCallback done);
  void OnWaitEnded(CyclePtr cycle, ConditionWaits::Outcome outcome, StatusCallback done);
  // Everything is written and ready: the pod can be bound unless another scheduler allocated one of
  // the devices first.
  void Conclude(CyclePtr cycle, StatusCallback done);
  // Runs after a failed wait: releases the claims that became unusable, then decides when to retry.
  struct Failure;
  void ReleaseUnusable(std::shared_ptr<Failure> failure, std::size_t at);
  void DecideRetry(std::shared_ptr<Failure> failure);
  void ReleaseOthers(std::shared_ptr<Failure> failure, std::size_t at);

  const PluginContext& context_;
  const Duration filter_timeout_;  // zero: no timeout
  const WaitPolicy wait_policy_;
  RetryPolicy retries_;
  NodeVerdicts verdicts_;  // of the current cycle
  ClaimWriter writer_;
  ExtendedClaims extended_;
  ConditionWaits waits_;
};

}  // namespace drakkar::scheduler
