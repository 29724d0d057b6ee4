#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/env/clock.h"
#include "scheduler/cache/node_set.h"
#include "scheduler/cache/pod_info.h"
#include "scheduler/framework/cluster_event.h"
#include "scheduler/framework/diagnosis.h"
#include "scheduler/framework/status.h"

namespace drakkar::scheduler {

inline constexpr std::size_t kMaxPlugins = 24;

// What a plugin remembers of a pod between the steps of one cycle.
struct PluginState {
  virtual ~PluginState() = default;
};

// When a pod whose binding failed is to be tried again.
struct Retry {
  enum class When : std::uint8_t {
    kAtOnce,
    kSoon,   // after the first pause, however often it failed before
    kLater,  // after a pause that grows with each failure
  };
  When when = When::kLater;
  EventMask ended_by = 0;  // events that end the pause early
};

// One attempt to place one pod, from PreFilter to Bind. Shared with the calls that are under way
// for it.
struct Cycle {
  PodInfoPtr pod;
  std::array<std::unique_ptr<PluginState>, kMaxPlugins> states;
  PluginSet skipped = 0;  // plugins that had nothing to do
  // Where it goes, once that is decided. The index may be another node's after the cycle: only the
  // name holds while binding.
  NodeIndex node = kNoNode;
  std::string node_name;
  MonotonicTime started{};
  // Set by a PreBind that failed.
  Retry retry;
};
using CyclePtr = std::shared_ptr<Cycle>;
using StatusCallback = std::function<void(Status)>;

// The steps a plugin takes part in.
enum class Point : std::uint16_t {
  kPreEnqueue = 1,
  kPreFilter = 2,
  kFilter = 4,
  kPostFilter = 8,
  kScore = 16,
  kReserve = 32,
  kPreBind = 64,
  kBind = 128,
  kPrefer = 256,
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

// A rule of scheduling. Filters work on all nodes at once; everything up to Reserve is synchronous
// and free of I/O, PreBind and Bind write to the API and answer later.
class Plugin {
 public:
  virtual ~Plugin() = default;
  virtual std::string_view name() const = 0;
  virtual Points points() const = 0;
  // Set by the registry.
  PluginId id = 0;
  std::int64_t weight = 1;
  Points enabled = 0xffff;       // of points(), those that the profile wants
  std::map<Points, int> places;  // by point: where the profile wants it; empty: in our order

  // Whether what Filter refuses could change if other pods went away (kUnschedulable) or not
  // (kUnresolvable).
  virtual Code refusal() const { return Code::kUnschedulable; }

  // The events after which a pod that this plugin refused may fit, and which of the pods.
  virtual EventMask events() const { return 0; }
  virtual bool MayHelp(const PodInfo& pod, const ClusterEvent& event);

  // Not a success: the pod is kept out of the queue until an event of this plugin.
  virtual Status PreEnqueue(const PodInfo& pod);

  // kSkip: this plugin's Filter and Score are not asked for this pod.
  virtual Status PreFilter(Cycle& cycle);
  // Takes nodes that do not fit out of `nodes`. A kError ends the attempt.
  virtual Status Filter(Cycle& cycle, NodeSet& nodes);
  // Says why Filter took out `rejected`; asked only when no node is left.
  virtual void Explain(Cycle& cycle, const NodeSet& rejected, Diagnosis& diagnosis);
  // No node is left: may change something so that a later attempt succeeds.
  virtual Status PostFilter(Cycle& cycle);
  // Narrows the nodes that fit to those that are better in any case; never to none. Stronger than
  // any score.
  virtual void Prefer(Cycle& cycle, NodeSet& nodes);
  // Points for each of `nodes`, 0 to 100, weight not applied. False: all are equal.
  virtual bool Score(Cycle& cycle, std::span<const NodeIndex> nodes,
                     std::span<std::int64_t> scores);
  // The pod goes to cycle.node, in memory.
  virtual Status Reserve(Cycle& cycle);
  // Takes back Reserve and what PreBind has written. Also called for a plugin whose Reserve failed.
  virtual void Unreserve(Cycle& cycle);
  virtual void PreBind(CyclePtr cycle, StatusCallback done);
  virtual void Bind(CyclePtr cycle, StatusCallback done);
  // The pod is gone: a PreBind that waits for something should give up.
  virtual void Cancel(Cycle& cycle);
  // The node that the pod is meant for is gone or takes the pod no more; `why` is for the event.
  virtual void OnNodeLost(Cycle& cycle, const std::string& why);

  // Its place among the others at a point; what no file can name comes first.
  int PlaceAt(Point point) const {
    const auto found = places.find(static_cast<Points>(point));
    return found == places.end() ? -1 : found->second;
  }
  bool Has(Point point) const { return (points() & enabled & static_cast<Points>(point)) != 0; }
};

}  // namespace drakkar::scheduler
