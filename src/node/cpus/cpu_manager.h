#pragma once

#include <map>
#include <optional>
#include <string>

#include "api/tree/value.h"
#include "node/admission/pod_verdict.h"
#include "node/cpus/cpu_topology.h"

namespace drakkar::node {

// Who has which CPUs, as the kubelet's checkpoint states it.
struct CpuState {
  CpuSet shared;
  std::map<std::string, std::map<std::string, CpuSet>> exclusive;  // by pod UID and container

  bool operator==(const CpuState&) const = default;
};

// The static CPU manager policy: containers of Guaranteed pods that ask for whole CPUs get CPUs of
// their own, all others share the rest, which always holds the reserved CPUs. A pod keeps its CPUs
// until it is released; the CPUs of its finished init containers are used again for its other
// containers. A state machine without I/O: whoever changes it writes the state before the CPUs are
// used.
class CpuManager {
 public:
  struct Options {
    CpuTopology topology;
    CpuSet reserved;  // for the system; empty: the first `reserved_count`
    int reserved_count = 0;
    bool full_cores_only = false;     // full-pcpus-only
    bool strict_reservation = false;  // strict-cpu-reservation: others do not share the reserved
  };
  // An error says which option is wrong.
  static Result<CpuManager> Make(Options options);

  // Continues from a checkpoint. An error means that the CPUs or the settings have changed since:
  // containers run on CPUs that this node would give to others.
  Result<void> Restore(CpuState state);

  // Gives every container of the pod its CPUs, or none of them anything: then it says why the pod
  // cannot run. A pod that has its CPUs keeps them.
  std::optional<PodVerdict> Admit(api::Value pod);
  // True if there was something to release.
  bool Release(const std::string& pod_uid);

  const CpuState& state() const { return state_; }
  // Null: the container shares the others' CPUs.
  const CpuSet* Exclusive(const std::string& pod_uid, const std::string& container) const;
  bool HasExclusive(const std::string& pod_uid) const { return state_.exclusive.contains(pod_uid); }
  const CpuSet& CpusOf(const std::string& pod_uid, const std::string& container) const;
  // What containers can have of their own.
  CpuSet Allocatable() const { return options_.topology.All().Without(options_.reserved); }

 private:
  explicit CpuManager(Options options) : options_(std::move(options)) {}
  CpuSet Everything() const;
  Result<CpuSet> Take(int count, const CpuSet& shared, const CpuSet& reusable) const;
  std::optional<PodVerdict> CheckCores(int count, const CpuSet& shared) const;

  Options options_;
  CpuState state_;
};

// How many CPUs the container gets for itself; 0: none.
int ExclusiveCpuCount(api::Value pod, api::Value container);

}  // namespace drakkar::node
