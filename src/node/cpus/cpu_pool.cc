#include "node/cpus/cpu_pool.h"

#include "base/text/text.h"
#include "node/cpus/cpu_checkpoint.h"
#include "node/runtime/pod_labels.h"
#include "node/runtime/runtime.h"
#include "telemetry/log/log.h"

namespace drakkar::node {
namespace {

constexpr Logger kLog("node.cpus");

std::string LabelOf(const ContainerStatus& status, const char* label) {
  const auto found = status.labels.find(label);
  return found == status.labels.end() ? "" : found->second;
}

}  // namespace

Result<void> CpuPool::Load() {
  const std::string path = JoinPath(options_.directory, kCpuStateFile);
  const auto fail = [&](Error error) {
    return std::move(error).Prefixed(StrCat("the CPU manager cannot continue from ", path,
                                            ": drain the node, remove the file and start again"));
  };
  auto text = options_.files.ReadFile(path);
  if (text.ok()) {
    auto state = ReadCpuCheckpoint(*text);
    if (!state.ok()) return fail(std::move(state).error());
    auto restored = manager_.Restore(*std::move(state));
    if (!restored.ok()) return fail(std::move(restored).error());
  } else if (text.error().code != ErrorCode::kNotFound) {
    return std::move(text).error();
  }
  return Store();
}

Result<void> CpuPool::Store() const {
  return options_.files.WriteFileAtomically(JoinPath(options_.directory, kCpuStateFile),
                                            WriteCpuCheckpoint(manager_.state()), 0600);
}

std::optional<PodVerdict> CpuPool::Admit(api::Value pod) {
  const std::string uid(pod["metadata"]["uid"].str());
  const bool had = manager_.HasExclusive(uid);
  if (auto refused = manager_.Admit(pod)) return refused;
  if (had || !manager_.HasExclusive(uid)) return std::nullopt;
  if (auto stored = Store(); !stored.ok()) {
    manager_.Release(uid);
    return PodVerdict{.reason = "UnexpectedAdmissionError",
                      .message = StrCat("Allocate failed due to ", stored.error().message,
                                        ", which is unexpected")};
  }
  kLog.Info("pod has CPUs of its own",
            {{"podUID", uid}, {"shared", manager_.state().shared.ToString()}});
  Move();
  return std::nullopt;
}

void CpuPool::Release(const std::string& pod_uid) {
  if (!manager_.Release(pod_uid)) return;
  if (auto stored = Store(); !stored.ok()) {
    // The next start releases CPUs of pods that no longer exist.
    kLog.Error("could not write the CPU manager's checkpoint", {{"err", stored.error().message}});
  }
  Move();
}

void CpuPool::Reconcile() {
  if (const auto pods = options_.pods()) {
    std::set<std::string> gone;
    for (const auto& [uid, containers] : manager_.state().exclusive) {
      if (!pods->contains(uid)) gone.insert(uid);
    }
    for (const std::string& uid : gone) Release(uid);
  }
  Move();
  timer_ = options_.loop.RunAfter(options_.reconcile_every, [this] { Reconcile(); });
}

void CpuPool::Move() {
  std::map<std::string, std::string> wanted;
  for (const ContainerStatus& status : options_.runtime.ListContainers()) {
    if (status.state != ContainerState::kRunning) continue;
    wanted[status.id] =
        manager_.CpusOf(LabelOf(status, kPodUidLabel), LabelOf(status, kContainerNameLabel))
            .ToString();
  }
  std::erase_if(applied_, [&](const auto& each) { return !wanted.contains(each.first); });
  for (const auto& [id, cpus] : wanted) {
    std::string& applied = applied_[id];
    if (applied == cpus) continue;
    applied = cpus;
    options_.runtime.ChangeCgroup(
        id, {.cpuset_cpus = cpus},
        lifetime_.Guard([this, id = id, cpus = cpus](Result<void> changed) {
          if (changed.ok()) return;
          const auto found = applied_.find(id);
          if (found == applied_.end() || found->second != cpus) return;
          applied_.erase(found);  // the next reconciliation tries again
          kLog.Warning("could not set the CPUs of a container",
                       {{"container", id}, {"cpus", cpus}, {"err", changed.error().message}});
        }));
  }
}

}  // namespace drakkar::node
