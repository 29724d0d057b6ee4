#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "api/meta/object.h"
#include "base/exec/event_loop.h"
#include "node/resources/pod_amounts.h"
#include "node/resources/pod_limits.h"
#include "node/runtime/oci/cgroups.h"

namespace drakkar::node {

// Where pods are in the cgroup hierarchy, as kubelets lay it out: guaranteed pods below
// <root>/kubepods, the others below its burstable and besteffort.
struct CgroupLayout {
  std::string root = kPodsCgroup;
  bool per_qos = true;  // false: all pods below <root>

  std::string Pods() const;
  std::string OfClass(QosClass qos) const;
  std::string OfPod(QosClass qos, std::string_view uid) const;
};

// A part of the machine. Not set: unlimited.
struct CgroupShare {
  std::int64_t cpu_milli = 0;
  std::int64_t memory_bytes = 0;
  std::int64_t pids = 0;

  bool operator==(const CgroupShare&) const = default;
};

// A cgroup that exists already and is limited to what is reserved for it.
struct ReservedCgroup {
  std::string path;
  CgroupShare share;
  bool cpu_only = false;  // "...-compressible"
};

// What a node's settings say about resources.
struct NodeResources {
  LimitRules limits;
  CgroupLayout layout;
  std::optional<Cgroups> cgroups;  // none: nothing is limited, as on hollow nodes
  CgroupShare pods;                // of all pods together
  std::vector<ReservedCgroup> reserved;
};

// The cgroups above those of the pods. All pods together get what is not reserved; the class
// burstable gets CPU in proportion to what its pods request, and besteffort the least. The limits
// are written when the pods change and every kEvery, for somebody may have changed them, and a
// limit below what is in use is refused until pods have ended. Loop-bound; writes a few files.
class PodCgroups {
 public:
  struct Options {
    EventLoop& loop;
    NodeResources settings;
    // Whether systemd creates the cgroups, under its own names. Called after Start. Null: no.
    std::function<bool()> uses_systemd;
    std::function<std::vector<api::ObjectPtr>()> active_pods;
    std::function<void(bool enforced, const std::string& message)> on_enforced;
  };
  static constexpr Duration kEvery = std::chrono::minutes(1);

  explicit PodCgroups(Options options) : options_(std::move(options)) {}

  // An error if a reserved cgroup does not exist: its limits must not be missing without notice.
  Result<void> Start();
  // The cgroup for a pod that is about to start. The cgroups above it exist afterwards.
  std::string Prepare(api::Value pod);
  // Whether the kernel can limit swap here; valid after Start.
  bool counts_swap() const { return counts_swap_; }

 private:
  void Tick();
  void Write();
  Result<void> Apply(const std::string& path, const CgroupResources& resources);
  void Report(const Result<void>& written);

  const Options options_;
  bool counts_swap_ = false;
  std::optional<std::string> reported_;
  TimerHandle timer_;
};

}  // namespace drakkar::node
