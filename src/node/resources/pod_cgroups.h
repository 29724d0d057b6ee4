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

// The place of pods in the cgroup hierarchy, as kubelets lay it out: guaranteed pods below
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

// An existing cgroup that is limited to what is reserved for it.
struct ReservedCgroup {
  std::string path;
  CgroupShare share;
  bool cpu_only = false;  // "...-compressible"
};

// The resource settings of a node.
struct NodeResources {
  LimitRules limits;
  CgroupLayout layout;
  std::optional<Cgroups> cgroups;  // none: nothing is limited, as on hollow nodes
  CgroupShare pods;                // of all pods together
  std::vector<ReservedCgroup> reserved;
};

// The cgroups above those of the pods. All pods together get what is not reserved; the class
// burstable gets CPU in proportion to the requests of its pods, and besteffort the minimum. The
// limits are written when the pods change and every kEvery: somebody may have changed them, and the
// kernel rejects a limit below current usage until pods have ended. Loop-bound; writes a few files.
class PodCgroups {
 public:
  struct Options {
    EventLoop& loop;
    NodeResources settings;
    // Whether systemd creates the cgroups, under its own names. Called after Start. Null: it does
    // not.
    std::function<bool()> uses_systemd;
    std::function<std::vector<api::ObjectPtr>()> active_pods;
    std::function<void(bool enforced, const std::string& message)> on_enforced;
  };
  static constexpr Duration kEvery = std::chrono::minutes(1);

  explicit PodCgroups(Options options) : options_(std::move(options)) {}

  // Fails if a reserved cgroup does not exist, so that missing limits do not go unnoticed.
  Result<void> Start();
  // The cgroup for a pod that is about to start. Creates the cgroups above it.
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
