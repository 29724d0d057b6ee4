#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "answers/cluster/snapshot.h"
#include "base/result/result.h"
#include "scheduler/explain.h"
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

// Who holds devices that are missing.
struct Holder {
  std::string namespace_;
  std::string pod;  // empty: the claim is reserved for nobody
  std::string claim;
  std::string owner;  // what controls the pod; empty: nothing
  std::string since;  // RFC 3339
  std::size_t devices = 0;
  bool hidden = false;  // the asker may not see it: all names are empty

  std::string ToString() const;  // "team-b/tune-9", "claim team-b/c", "another namespace"
};

// Nodes that refuse for the same reason.
struct NodeGroup {
  std::string reason;  // "full", "short by 4 devices", "wrong class", "cordoned"
  std::size_t count = 0;
  std::vector<std::string> nodes;    // by name; empty: the asker may not see them
  std::vector<std::string> details;  // what the scheduler says about the first of them
};

// The node on which the fewest devices are missing.
struct Closest {
  std::string node;  // empty: the asker may not see it
  std::size_t missing = 0;
  std::vector<Holder> holders;  // the fewest that hold enough of what is missing
};

// A binding condition that is not True yet (KEP-5007).
struct ConditionWait {
  std::string claim;   // "namespace/name"
  std::string device;  // "driver/pool/device"
  std::string condition;
  std::string message;   // what the driver says about it
  std::string since;     // RFC 3339
  std::string deadline;  // RFC 3339; empty: not known
  bool failed = false;   // a failure condition is True
};

// An object that is being deleted.
struct DeletionWait {
  std::string object;     // "pod team/train-0"
  std::string since;      // RFC 3339
  std::string finalizer;  // empty: none is left
  std::string owner;      // who removes it, or what ends the deletion
};

// A claim of a bound pod whose devices are not prepared.
struct PreparationWait {
  std::string claim;  // "namespace/name"
  std::string node;
  std::vector<std::string> drivers;
  std::string since;  // RFC 3339
  std::string error;  // the last one; empty: none reported
  std::string error_at;
};

// A change that would let the pod in, checked against the scheduler's own code.
struct Help {
  enum class Kind : std::uint8_t {
    kFree,      // release what `holders` hold on `node`
    kCount,     // ask for `count` devices in `what`
    kUncordon,  // `node`
    kChange,    // `what`, a field or setting
  };
  Kind kind = Kind::kChange;
  std::string node;
  std::string what;
  std::size_t count = 0;
  std::vector<Holder> holders;
};

struct WhyAnswer {
  std::string subject;
  bool fits = false;  // it has a node, or would get one
  // One sentence without a period, written by Summarize (summary.h).
  std::string sentence;
  std::string blocked;               // why no node was looked at; empty: nodes were
  std::string node;                  // where the pod is, or is expected; empty: nowhere
  std::vector<std::string> devices;  // it has: "driver/pool/device"
  std::string since;                 // it has them: RFC 3339

  std::size_t node_count = 0;
  std::size_t fitting_count = 0;
  std::vector<std::string> fitting;  // nodes, by name
  // What the pod would wait for before it is bound: on the first of them, if it does on all.
  std::vector<std::string> then_waits_for;
  std::vector<NodeGroup> groups;  // most nodes first
  std::optional<Closest> closest;
  std::vector<ConditionWait> conditions;
  std::vector<DeletionWait> deletions;
  std::vector<PreparationWait> preparations;
  std::vector<Help> help;  // smallest first, at most kMaxHelp
  // Node by node, in the scheduler's words; only if asked for.
  std::vector<scheduler::NodeExplanation> nodes;
  std::vector<std::string> notes;
  // What the scheduler itself knows about the pod, if it is the one who answers: "in the queue
  // after 3 attempts".
  std::string queue;

  static constexpr std::size_t kMaxHelp = 3;
};

struct WhyOptions {
  EventLoop& loop;  // only its clock is used
  Random& random;
  device::ExpressionCompiler& compiler;
  const scheduler::Settings& settings;
  bool with_nodes = false;  // fill WhyAnswer::nodes
  std::string node;         // only this node; empty: all
};

// An error if the subject does not exist, or the node; not if it does not fit.
Result<WhyAnswer> ExplainWhy(const Snapshot& snapshot, const WhySubject& subject,
                             const WhyOptions& options);

// What the asker may see. Counts stay.
struct Viewer {
  bool nodes = true;
  std::function<bool(std::string_view ns)> sees_namespace;  // empty: all
};
void Redact(WhyAnswer& answer, const Viewer& viewer);

}  // namespace drakkar::answers
