#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "base/env/clock.h"
#include "scheduler/cache/node_set.h"
#include "scheduler/cache/pod_info.h"
#include "scheduler/framework/cluster_event.h"
#include "scheduler/framework/diagnosis.h"
#include "scheduler/framework/status.h"

namespace drakkar::scheduler {

struct PodState;

inline constexpr std::size_t kMaxPlugins = 24;

// A plugin's state for one pod and cycle.
struct PluginState {
  virtual ~PluginState() = default;
};

// When to retry a pod whose binding failed.
struct Retry {
  enum class When : std::uint8_t {
    kAtOnce,
    kSoon,   // after the shortest backoff, however often it failed before
    kLater,  // after a backoff that grows with each failure
  };
  When when = When::kLater;
  EventMask ended_by = 0;  // events that end the backoff early
};

// One attempt to place one pod, from PreFilter to Bind. Calls in flight keep it alive.
struct Cycle {
  PodInfoPtr pod;
  std::array<std::unique_ptr<PluginState>, kMaxPlugins> states;
  PluginSet skipped = 0;  // plugins that returned kSkip
  // If no node fits: those that removing other pods could help, as far as the first filter that
  // rejects them can tell.
  NodeSet resolvable;
  // The chosen node. The index may be reused by another node after the synchronous part of the
  // cycle; only the name is valid while binding.
  NodeIndex node = kNoNode;
  std::string node_name;
  MonotonicTime started{};
  // Set by a failed PreBind.
  Retry retry;
};
using CyclePtr = std::shared_ptr<Cycle>;
using StatusCallback = std::function<void(Status)>;

// Extension points.
enum class Point : std::uint16_t {
  kPreEnqueue = 1,
  kPreFilter = 2,
  kFilter = 4,
  kPostFilter = 8,
  kScore = 16,
  kReserve = 32,
  kPreBind = 64,
  kBind = 128,
  kPrefer = 256,  // Kubernetes has no such point: a score that outweighs all others
};
using Points = std::uint16_t;
constexpr Points operator|(Point a, Point b) {
  return static_cast<Points>(static_cast<Points>(a) | static_cast<Points>(b));
}
constexpr Points operator|(Point a, Points b) {
  return static_cast<Points>(static_cast<Points>(a) | b);
}
constexpr Points operator|(Points a, Point b) {
  return static_cast<Points>(a | static_cast<Points>(b));
}

// A scheduling rule. Filters work on all nodes at once. Everything up to Reserve is synchronous and
// does no I/O; PreBind and Bind write to the API and complete asynchronously.
//
// A plugin takes part in the points whose functions it overrides (PointsOf). It is made with a
// PluginContext and, if it has a type `Args`, with those; plugins/registry.cc lists it.
class Plugin {
 public:
  // The configuration of a plugin, from the registry and the profile.
  struct Registration {
    std::string_view name = {};
    PluginId id = 0;
    std::int64_t weight = 1;            // weight of its score
    Points points = 0;                  // extension points it takes part in
    std::map<Points, int> places = {};  // by point: position set by the profile; empty: our order
  };

  virtual ~Plugin() = default;
  void Register(Registration registration) { registration_ = std::move(registration); }
  std::string_view name() const { return registration_.name; }
  PluginId id() const { return registration_.id; }
  std::int64_t weight() const { return registration_.weight; }
  bool Has(Point point) const { return (registration_.points & static_cast<Points>(point)) != 0; }
  // The plugin's position at a point. Plugins that configuration files cannot name come first.
  int PlaceAt(Point point) const {
    const auto found = registration_.places.find(static_cast<Points>(point));
    return found == registration_.places.end() ? -1 : found->second;
  }

  // Whether removing other pods could make a rejected node fit: yes (kUnschedulable) or no
  // (kUnresolvable).
  virtual Code refusal() const { return Code::kUnschedulable; }

  // The events that may help a pod that this plugin rejected, and whether one helps a given pod.
  virtual EventMask events() const { return 0; }
  virtual bool MayHelp(const PodInfo& pod, const ClusterEvent& event);

  // On failure the pod stays out of the queue until an event of this plugin arrives.
  virtual Status PreEnqueue(const PodInfo& pod);

  // kSkip: the other functions of this plugin are not called for this pod.
  virtual Status PreFilter(Cycle& cycle);
  // Removes nodes that do not fit from `nodes`. A kError ends the attempt.
  virtual Status Filter(Cycle& cycle, NodeSet& nodes);
  // Explains why Filter removed `rejected`. Called only if no node is left.
  virtual void Explain(Cycle& cycle, const NodeSet& rejected, Diagnosis& diagnosis);
  // Called if no node is left. May change something so that a later attempt succeeds.
  virtual Status PostFilter(Cycle& cycle);
  // Narrows the feasible nodes to those that are better regardless of scores; never to none.
  virtual void Prefer(Cycle& cycle, NodeSet& nodes);
  // Sets the score of each of `nodes`, 0 to 100, before weighting. Returns false if all are equal.
  virtual bool Score(Cycle& cycle, std::span<const NodeIndex> nodes,
                     std::span<std::int64_t> scores);
  // The pod was assumed on cycle.node.
  virtual Status Reserve(Cycle& cycle);
  // Undoes Reserve. Also called for a plugin whose Reserve failed.
  virtual void Unreserve(Cycle& cycle);
  virtual void PreBind(CyclePtr cycle, StatusCallback done);
  virtual void Bind(CyclePtr cycle, StatusCallback done);
  // The pod was deleted, so a waiting PreBind should end.
  virtual void Cancel(Cycle& cycle);
  // The chosen node was deleted or no longer accepts the pod; `why` is for the event.
  virtual void OnNodeLost(Cycle& cycle, const std::string& why);

  // A claim (namespace/name) changed or was deleted.
  virtual void OnClaimChanged(const std::string& claim_key);
  // The pod was bound or deleted. The plugin should drop any state that it keeps for the pod
  // between cycles.
  virtual void ForgetPod(const std::string& pod_uid);
  // Number of pods whose PreBind is waiting with nothing left to write.
  virtual std::size_t waiting_pods() const { return 0; }
  // Number of pods for which the plugin keeps state between cycles.
  virtual std::size_t remembered_pods() const { return 0; }
  // Adds what the plugin remembers about the pod, for explanations.
  virtual void Describe(const std::string& /*pod_uid*/, PodState& /*state*/) const {}

 private:
  Registration registration_;
};

// The points whose functions the plugin overrides.
template <typename T>
constexpr Points PointsOf() {
  Points points = 0;
  const auto add = [&points](bool is_overridden, Point point) {
    if (is_overridden) points = points | point;
  };
  add(!std::is_same_v<decltype(&T::PreEnqueue), decltype(&Plugin::PreEnqueue)>, Point::kPreEnqueue);
  add(!std::is_same_v<decltype(&T::PreFilter), decltype(&Plugin::PreFilter)>, Point::kPreFilter);
  add(!std::is_same_v<decltype(&T::Filter), decltype(&Plugin::Filter)>, Point::kFilter);
  add(!std::is_same_v<decltype(&T::PostFilter), decltype(&Plugin::PostFilter)>, Point::kPostFilter);
  add(!std::is_same_v<decltype(&T::Prefer), decltype(&Plugin::Prefer)>, Point::kPrefer);
  add(!std::is_same_v<decltype(&T::Score), decltype(&Plugin::Score)>, Point::kScore);
  add(!std::is_same_v<decltype(&T::Reserve), decltype(&Plugin::Reserve)>, Point::kReserve);
  add(!std::is_same_v<decltype(&T::PreBind), decltype(&Plugin::PreBind)>, Point::kPreBind);
  add(!std::is_same_v<decltype(&T::Bind), decltype(&Plugin::Bind)>, Point::kBind);
  return points;
}

}  // namespace drakkar::scheduler
