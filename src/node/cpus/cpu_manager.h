#pragma once

#include <map>
#include <optional>
#include <string>

#include "api/tree/value.h"
#include "node/admission/pod_verdict.h"
#include "node/cpus/cpu_topology.h"

namespace drakkar::node {

// The assignment of CPUs, as recorded in the kubelet's checkpoint.
struct CpuState {
  CpuSet shared;
  std::map<std::string, std::map<std::string, CpuSet>> exclusive;  // by pod UID and container

  bool operator==(const CpuState&) const = default;
};

// The static CPU manager policy: containers of Guaranteed pods that request whole CPUs get their
// own CPUs; all others share the rest, which always includes the reserved CPUs. A pod keeps its
// CPUs until it is released; the CPUs of its finished init containers are reused for its other
// containers. A state machine without I/O: the caller that changes it writes the state before the
// CPUs are used.
class CpuManager {
 public:
  struct Options {
    CpuTopology topology;
    CpuSet reserved;  // for the system; empty: the first `reserved_count`
    int reserved_count = 0;
    bool full_cores_only = false;     // full-pcpus-only
    bool strict_reservation = false;  // strict-cpu-reservation: others do not share the reserved
  };
  // An error names the wrong option.
  static Result<CpuManager> Make(Options options);

  // Continues from a checkpoint. It is an error if the CPUs or the settings have changed since:
  // containers may be running on CPUs that this node would give to others.
  Result<void> Restore(CpuState state);

  // Assigns CPUs to every container of the pod, or to none of them; the error says why the pod
  // cannot run. A pod that already has its CPUs keeps them.
  std::optional<PodVerdict> Admit(api::Value pod);
  // True if there was something to release.
  bool Release(const std::string& pod_uid);

  const CpuState& state() const { return state_; }
  // Null: the container uses the shared CPUs.
  const CpuSet* Exclusive(const std::string& pod_uid, const std::string& container) const;
  bool HasExclusive(const std::string& pod_uid) const { return state_.exclusive.contains(pod_uid); }
  const CpuSet& CpusOf(const std::string& pod_uid, const std::string& container) const;
  // The CPUs that containers can own.
  CpuSet Allocatable() const { return options_.topology.All().Without(options_.reserved); }

 private:
  explicit CpuManager(Options options) : options_(std::move(options)) {}
  CpuSet Everything() const;
  Result<CpuSet> Take(int count, const CpuSet& shared, const CpuSet& reusable) const;
  std::optional<PodVerdict> CheckCores(int count, const CpuSet& shared) const;

  Options options_;
  CpuState state_;
};

// Number of CPUs that the container owns; 0: none.
int ExclusiveCpuCount(api::Value pod, api::Value container);

}  // namespace drakkar::node
