#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "allocator/allocator.h"
#include "base/env/random.h"
#include "base/exec/event_loop.h"
#include "client/client.h"
#include "client/event_recorder.h"
#include "scheduler/binding/claim_writer.h"
#include "scheduler/binding/condition_waits.h"
#include "scheduler/cache/claim_cache.h"
#include "scheduler/cache/device_state.h"
#include "scheduler/cache/node_table.h"
#include "scheduler/framework/plugin.h"

namespace drakkar {
class FeatureGates;
}

namespace drakkar::scheduler {

struct SchedulerMetrics;

// Devices for pods: finds them with the structured allocator, keeps them from others while the pod
// is on its way, writes allocation and reservation, and waits for binding conditions (KEP-5007).
class DynamicResources final : public Plugin {
 public:
  // A pod remembers this many devices whose binding failed for it; of more, those of the last
  // failures. Up to it every device has its turn before one is tried again: room for a node that
  // sees 32 full slices.
  static constexpr std::size_t kMaxAvoidedDevices = 4'096;
  // And this many nodes.
  static constexpr std::size_t kMaxFailedNodes = 1'024;
  // A pod whose other claims tie it to a node leaves it after this many failures there, if another
  // is left to try; before that it tries other devices of the node.
  static constexpr int kFailuresToLeaveNode = 2;

  struct Options {
    EventLoop& loop;
    Random& random;
    client::Client& client;
    client::EventRecorder& events;
    const NodeTable& nodes;
    DeviceState& devices;
    ClaimCache& claims;
    const FeatureGates& gates;
    SchedulerMetrics& metrics;
    Duration filter_timeout;  // zero: none
    Duration binding_timeout;
    // Something happened that other pods may profit from.
    std::function<void(const ClusterEvent&)> notify;
    // The pod is expected on the node and waits: shown as status.nominatedNodeName.
    std::function<void(const PodInfo& pod, const std::string& node_name)> nominate;
    // A pod has nothing to write any more and waits: others may.
    std::function<void()> on_wait_began;
    // Whether the pod runs, or may for all we know.
    std::function<bool(std::string_view pod_uid)> is_bound;
  };
  explicit DynamicResources(Options options);

  std::string_view name() const override { return "DynamicResources"; }
  Points points() const override {
    return Point::kPreEnqueue | Point::kPreFilter | Point::kFilter | Point::kPostFilter |
           Point::kPrefer | Point::kScore | Point::kReserve | Point::kPreBind;
  }
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

  // For explanations, after Filter: the devices of a node rule by rule (absent if every claim is
  // allocated), and what would be waited for there before the pod is bound.
  std::optional<allocator::Explanation> ExplainDevices(Cycle& cycle, NodeIndex node) const;
  std::vector<std::string> DescribeWait(Cycle& cycle, NodeIndex node) const;

  // To be called for every change of a claim's latest version.
  void OnClaimChanged(const std::string& claim_key) { waits_.OnClaimChanged(claim_key); }
  // The pod is bound or gone: forgets what was remembered about it.
  void ForgetPod(const std::string& pod_uid) { avoided_.erase(pod_uid); }
  std::size_t waiting_pods() const { return waits_.size(); }
  std::size_t pods_with_failed_devices() const { return avoided_.size(); }

 private:
  struct PodDevices;  // a pod's claims during one cycle

  PodDevices& StateOf(Cycle& cycle) const;
  Status CheckClaims(const PodInfo& pod) const;
  // Takes out nodes on which an allocated claim cannot be used.
  void FilterAllocated(const CachedClaim& claim, bool usable, NodeSet& nodes) const;
  // Whether an allocated claim is still worth waiting for.
  bool IsUsable(const CachedClaim& claim) const;
  Status FilterUnallocated(Cycle& cycle, PodDevices& state, NodeSet& nodes);
  // Whether devices fit on one of the nodes; with `at_once`, devices that wait for nothing.
  bool AnyFits(const NodeSet& nodes, bool at_once = false) const;
  // Keeps the nodes with the best alternative of firstAvailable where some nodes wait and others
  // do not, and of those the ones that do not wait. True if those that are left wait.
  bool PreferReady(NodeSet& nodes) const;
  // Keeps the nodes on which the pod's binding has not failed, or the one that failed longest ago.
  void PreferUntried(const std::string& pod_uid, NodeSet& nodes) const;
  allocator::SearchBudget MakeBudget() const;

  // While it lives, nobody gets the devices that failed for the pod in this round.
  class Avoiding;

  void WriteClaim(std::size_t at, CyclePtr cycle, StatusCallback done);
  void StartWait(CyclePtr cycle, StatusCallback done);
  // What of the allocation written for an item the server did not store, as a sentence for the
  // event; empty if all is there. A server with other feature gates drops fields silently, and a
  // pod must not be bound without waiting because of that.
  std::string FindLost(const PodDevices& state, std::size_t at) const;
  // Clears the allocation just written and fails the attempt.
  void TakeBack(std::size_t at, std::string why, CyclePtr cycle, StatusCallback done);
  // All is written and ready: the pod may be bound, unless another scheduler had a device before.
  void Conclude(CyclePtr cycle, StatusCallback done);
  void OnWaitEnded(CyclePtr cycle, ConditionWaits::Outcome outcome, StatusCallback done);
  // After a wait that failed: clears the claims it spoiled, then decides when to try again.
  struct Failure;
  void ReleaseSpoiled(std::shared_ptr<Failure> failure, std::size_t at);
  void DecideRetry(std::shared_ptr<Failure> failure);
  void ReleaseOthers(std::shared_ptr<Failure> failure, std::size_t at);
  // True if the device had not failed for the pod before, in no round.
  bool Avoid(const std::string& pod_uid, const device::DeviceId& device);
  void NoteFailedNode(const std::string& pod_uid, const std::string& node_name);
  // Whether the pod should give up its other claims for the sake of a node it has not tried.
  bool ShouldLeaveNode(const std::string& pod_uid, const std::string& node_name,
                       const NodeSet& elsewhere) const;
  // Tells the pod's user what it waits for.
  void TellWait(const Cycle& cycle, const PodDevices& state) const;
  bool NeedsConditions(const PodDevices& state) const;
  // Whether a claim of the pod is.
  bool IsGone(const PodDevices& state) const;
  // Since when the conditions of the claim are waited for, in time that passes.
  MonotonicTime WaitBegan(const CachedClaim& claim) const;
  MonotonicTime DeadlineOf(const CachedClaim& claim) const {
    return WaitBegan(claim) + options_.binding_timeout;
  }
  bool IsPastDeadline(const CachedClaim& claim) const;

  const Options options_;
  ClaimWriter writer_;
  ConditionWaits waits_;
  // The devices and nodes that failed for a pod, with the number of the last failure of each.
  struct Avoided {
    struct NodeFailures {
      std::uint64_t last = 0;
      int count = 0;
    };
    std::map<device::DeviceId, std::uint64_t> failures;
    std::map<std::string, NodeFailures> nodes;
    std::uint64_t next = 0;
    std::uint64_t round_began = 0;  // device failures from this one on are avoided
    bool was_at_once = false;       // the last failure led to a retry at once
  };
  std::map<std::string, Avoided> avoided_;  // by pod uid
  // Of the cycle under way; kept to save their memory.
  allocator::Allocator::Verdicts verdicts_;
  std::vector<allocator::Allocator::Verdict::Kind> kinds_;  // of verdicts_.distinct
};

}  // namespace drakkar::scheduler
