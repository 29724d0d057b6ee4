#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "answers/cluster/snapshot.h"
#include "base/result/result.h"
#include "scheduler/explain.h"
#include "scheduler/framework/pod_state.h"
#include "scheduler/settings.h"

namespace drakkar::device {
class ExpressionCompiler;
}

namespace drakkar::answers {

// Why a pod or a claim has its devices, waits for them, or cannot get them.

struct WhySubject {
  enum class Kind : std::uint8_t { kPod, kClaim };
  Kind kind = Kind::kPod;
  std::string namespace_;
  std::string name;

  std::string ToString() const;  // "pod team/train-0"
};

// A claim that holds missing devices, and its user.
struct Holder {
  std::string namespace_;
  std::string pod;  // empty: the claim is not reserved
  std::string claim;
  std::string owner;  // the pod's controller; empty: none
  std::string since;  // RFC 3339
  std::size_t devices = 0;
  bool hidden = false;  // the viewer may not see it, so all names are empty

  std::string ToString() const;  // "team-b/tune-9", "claim team-b/c", "another namespace"
};

// Nodes that reject the pod for the same reason.
struct NodeGroup {
  std::string reason;  // "full", "short by 4 devices", "wrong class", "cordoned"
  std::size_t count = 0;
  std::vector<std::string> nodes;    // sorted; empty: the viewer may not see them
  std::vector<std::string> details;  // the scheduler's reasons for the first of them
};

// The node on which the fewest devices are missing.
struct Closest {
  std::string node;  // empty: the viewer may not see it
  std::size_t missing = 0;
  std::vector<Holder> holders;  // the fewest claims that hold enough of the missing devices
};

// A binding condition that is not True yet (KEP-5007).
struct ConditionWait {
  std::string claim;   // "namespace/name"
  std::string device;  // "driver/pool/device"
  std::string condition;
  std::string message;   // the driver's message
  std::string since;     // RFC 3339
  std::string deadline;  // RFC 3339; empty if unknown
  bool failed = false;   // a failure condition is True
};

// An object that is being deleted.
struct DeletionWait {
  std::string object;     // "pod team/train-0"
  std::string since;      // RFC 3339
  std::string finalizer;  // empty if none is left
  std::string owner;      // who removes it, or what ends the deletion
};

// A claim of a bound pod whose devices are not prepared.
struct PreparationWait {
  std::string claim;  // "namespace/name"
  std::string node;
  std::vector<std::string> drivers;
  std::string since;  // RFC 3339
  std::string error;  // the last error; empty if none was reported
  std::string error_at;
};

// A change that would make the pod fit, verified with the scheduler's own code.
struct Help {
  enum class Kind : std::uint8_t {
    kFree,      // release the devices that `holders` hold on `node`
    kCount,     // request `count` devices in `what`
    kUncordon,  // uncordon `node`
    kGate,      // turn on `gates` in `component`
    kChange,    // change `what`, a field or setting
  };
  enum class Component : std::uint8_t { kScheduler, kApiServer, kNode };
  Kind kind = Kind::kChange;
  std::string node;
  std::string what;
  std::size_t count = 0;
  std::vector<Holder> holders;
  Component component = Component::kScheduler;
  std::vector<std::string> gates;
  std::vector<std::string> settings;  // that a feature of a node needs beside its gate
  std::string release;                // the first with all gates, if the node's does not have them
};

struct WhyAnswer {
  std::string subject;
  bool fits = false;  // the pod has a node or would get one
  // One sentence without a period, written by Summarize (summary.h).
  std::string sentence;
  std::string blocked;               // why no node was considered; empty if nodes were
  std::string rejected;              // why the API server or a node refused it; may be empty
  std::string node;                  // where the pod is or is expected; empty if nowhere
  std::vector<std::string> devices;  // allocated devices: "driver/pool/device"
  std::string since;                 // when they were allocated; RFC 3339

  std::size_t node_count = 0;
  std::size_t fitting_count = 0;
  std::vector<std::string> fitting;  // nodes that fit, sorted by name
  // What the pod would wait for before it is bound, on the node that the scheduler would choose.
  std::vector<std::string> then_waits_for;
  std::vector<NodeGroup> groups;  // largest group first
  std::optional<Closest> closest;
  std::vector<ConditionWait> conditions;
  std::vector<DeletionWait> deletions;
  std::vector<PreparationWait> preparations;
  std::vector<Help> help;  // smallest first, at most kMaxHelp
  // Details of each node, worded by the scheduler. Only on request.
  std::vector<scheduler::NodeExplanation> nodes;
  std::vector<std::string> notes;
  // What the scheduler does with the pod at the moment, if the scheduler itself answers: "tried 3
  // times; next attempt in 4s".
  std::string queue;

  static constexpr std::size_t kMaxHelp = 3;
};

struct WhyOptions {
  EventLoop& loop;  // only its clock is used
  Random& random;
  device::ExpressionCompiler& compiler;
  const scheduler::Settings& settings;
  bool with_nodes = false;                     // fill WhyAnswer::nodes
  std::string node;                            // consider only this node; empty: all
  const scheduler::PodState* state = nullptr;  // of the pod, if the scheduler itself answers
};

// Fails if the subject or the node does not exist. A pod that does not fit is not an error.
Result<WhyAnswer> ExplainWhy(const Snapshot& snapshot, const WhySubject& subject,
                             const WhyOptions& options);

// What the viewer may see. Counts are not redacted.
struct Viewer {
  bool nodes = true;
  std::function<bool(std::string_view ns)> sees_namespace;  // if empty, all
};
void Redact(WhyAnswer& answer, const Viewer& viewer);
// The namespaces of the pods and claims that the answer names, besides the subject's own.
std::set<std::string> NamespacesIn(const WhyAnswer& answer);

}  // namespace drakkar::answers
