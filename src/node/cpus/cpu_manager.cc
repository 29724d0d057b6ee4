#include "node/cpus/cpu_manager.h"

#include "base/text/text.h"
#include "node/resources/pod_amounts.h"

namespace drakkar::node {
namespace {

using api::Value;

constexpr std::string_view kAlignmentReason = "SMTAlignmentError";
constexpr std::string_view kAdmissionReason = "UnexpectedAdmissionError";

}  // namespace

int ExclusiveCpuCount(Value pod, Value container) {
  if (QosOf(pod) != QosClass::kGuaranteed) return 0;
  // Resources of the pod as a whole are not divided among its containers.
  const Value own = pod["spec"]["resources"];
  if (own["requests"].size() > 0 || own["limits"].size() > 0) return 0;
  const std::int64_t milli = CpuMilli(container["resources"]["requests"]);
  if (milli % 1000 != 0 || milli / 1000 > CpuSet::kMaxCpu) return 0;
  return static_cast<int>(milli / 1000);
}

Result<CpuManager> CpuManager::Make(Options options) {
  const CpuSet all = options.topology.All();
  if (all.empty()) return FailedPrecondition("could not determine the CPUs of this machine");
  if (options.reserved.empty()) {
    if (options.reserved_count <= 0) {
      return InvalidArgument(
          "the static CPU manager policy needs reservedSystemCPUs, or CPUs in systemReserved or "
          "kubeReserved");
    }
    auto reserved = TakeCpus(options.topology, all, options.reserved_count);
    if (!reserved.ok()) return std::move(reserved).error().Prefixed("reserve CPUs");
    options.reserved = *std::move(reserved);
  }
  if (!all.Contains(options.reserved)) {
    return InvalidArgument(StrCat("reservedSystemCPUs ", options.reserved.ToString(),
                                  " are not all among this machine's CPUs ", all.ToString()));
  }
  CpuManager manager(std::move(options));
  manager.state_.shared = manager.Everything();
  return manager;
}

CpuSet CpuManager::Everything() const {
  return options_.strict_reservation ? Allocatable() : options_.topology.All();
}

Result<void> CpuManager::Restore(CpuState state) {
  if (state.shared.empty()) {
    if (!state.exclusive.empty()) return FailedPrecondition("no CPUs are left for others");
    return Ok();
  }
  if (options_.strict_reservation ? !state.shared.And(options_.reserved).empty()
                                  : !state.shared.Contains(options_.reserved)) {
    return FailedPrecondition(StrCat("the reserved CPUs are ", options_.reserved.ToString(),
                                     " now, and ", state.shared.ToString(), " are shared"));
  }
  CpuSet known = state.shared;
  for (const auto& [uid, containers] : state.exclusive) {
    for (const auto& [name, cpus] : containers) {
      if (!cpus.And(state.shared).empty()) {
        return FailedPrecondition(StrCat("container ", name, " of pod ", uid, " owns the CPUs ",
                                         cpus.ToString(), ", which are also shared"));
      }
      known.Add(cpus);
    }
  }
  if (known != Everything()) {
    return FailedPrecondition(StrCat("this machine has the CPUs ", Everything().ToString(),
                                     ", and had ", known.ToString()));
  }
  state_ = std::move(state);
  return Ok();
}

Result<CpuSet> CpuManager::Take(int count, const CpuSet& shared, const CpuSet& reusable) const {
  CpuSet available = shared.Without(options_.reserved);
  available.Add(reusable);
  return TakeCpus(options_.topology, available, count);
}

std::optional<PodVerdict> CpuManager::CheckCores(int count, const CpuSet& shared) const {
  if (!options_.full_cores_only) return std::nullopt;
  const int per_core = options_.topology.CpusPerCore();
  if (count % per_core != 0) {
    return PodVerdict{.reason = std::string(kAlignmentReason),
                      .message = StrCat("SMT Alignment Error: requested ", count,
                                        " cpus not multiple cpus per core = ", per_core)};
  }
  const int available = shared.Without(options_.topology.WholeCores(options_.reserved)).size();
  if (count <= available) return std::nullopt;
  return PodVerdict{
      .reason = std::string(kAlignmentReason),
      .message = StrCat("SMT Alignment Error: not enough free physical CPUs: available physical "
                        "CPUs = ",
                        available, ", requested CPUs = ", count, ", CPUs per core = ", per_core)};
}

std::optional<PodVerdict> CpuManager::Admit(Value pod) {
  const std::string uid(pod["metadata"]["uid"].str());
  if (state_.exclusive.contains(uid)) return std::nullopt;
  CpuSet shared = state_.shared;
  CpuSet reusable;  // of init containers, which have ended when later ones start
  std::map<std::string, CpuSet> given;
  for (const api::FieldName list : api::FieldNames{"initContainers", "containers"}) {
    const bool is_init = std::string_view(list) == "initContainers";
    for (Value container : pod["spec"][list].elements()) {
      const int count = ExclusiveCpuCount(pod, container);
      if (count == 0) continue;
      if (auto refused = CheckCores(count, shared)) return refused;
      auto taken = Take(count, shared, reusable);
      if (!taken.ok()) {
        return PodVerdict{.reason = std::string(kAdmissionReason),
                          .message = StrCat("Allocate failed due to ", taken.error().message,
                                            ", which is unexpected")};
      }
      shared = shared.Without(*taken);
      if (is_init && !IsSidecar(container)) {
        reusable.Add(*taken);
      } else {
        reusable = reusable.Without(*taken);
      }
      given[std::string(container["name"].str())] = *std::move(taken);
    }
  }
  if (given.empty()) return std::nullopt;
  state_.shared = std::move(shared);
  state_.exclusive[uid] = std::move(given);
  return std::nullopt;
}

bool CpuManager::Release(const std::string& pod_uid) {
  const auto found = state_.exclusive.find(pod_uid);
  if (found == state_.exclusive.end()) return false;
  for (const auto& [name, cpus] : found->second) state_.shared.Add(cpus);
  state_.exclusive.erase(found);
  return true;
}

const CpuSet* CpuManager::Exclusive(const std::string& pod_uid,
                                    const std::string& container) const {
  const auto pod = state_.exclusive.find(pod_uid);
  if (pod == state_.exclusive.end()) return nullptr;
  const auto found = pod->second.find(container);
  return found == pod->second.end() ? nullptr : &found->second;
}

const CpuSet& CpuManager::CpusOf(const std::string& pod_uid, const std::string& container) const {
  const CpuSet* own = Exclusive(pod_uid, container);
  return own != nullptr ? *own : state_.shared;
}

}  // namespace drakkar::node
