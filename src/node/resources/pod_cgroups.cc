#include "node/resources/pod_cgroups.h"

#include "api/meta/saturated.h"
#include "base/text/text.h"
#include "node/resources/pod_limits.h"
#include "node/runtime/cri/systemd_slice.h"
#include "telemetry/log/log.h"

namespace drakkar::node {
namespace {

constexpr Logger kLog("node.resources");

CgroupResources ResourcesOf(const CgroupShare& share, bool cpu_only = false) {
  CgroupResources resources;
  if (share.cpu_milli > 0) resources.cpu_shares = SharesOf(share.cpu_milli);
  if (cpu_only) return resources;
  resources.memory_limit_bytes = share.memory_bytes;
  resources.pids_limit = share.pids;
  return resources;
}

}  // namespace

std::string CgroupLayout::Pods() const {
  return per_qos ? JoinPath(root, "kubepods") : root;
}

std::string CgroupLayout::OfClass(QosClass qos) const {
  if (!per_qos || qos == QosClass::kGuaranteed) return Pods();
  return JoinPath(Pods(), qos == QosClass::kBurstable ? "burstable" : "besteffort");
}

std::string CgroupLayout::OfPod(QosClass qos, std::string_view uid) const {
  return JoinPath(OfClass(qos), StrCat("pod", uid));
}

Result<void> PodCgroups::Start() {
  if (!options_.settings.cgroups) return Ok();
  const Cgroups& cgroups = *options_.settings.cgroups;
  for (const ReservedCgroup& each : options_.settings.reserved) {
    if (!cgroups.Exists(each.path)) {
      return FailedPrecondition(
          StrCat("enforceNodeAllocatable: the cgroup ", each.path, " does not exist"));
    }
    RETURN_IF_ERROR(Cgroups(cgroups).Change(
        each.path, {.memory_limit_bytes = each.cpu_only || each.share.memory_bytes <= 0
                                              ? CgroupChanges::Number()
                                              : each.share.memory_bytes,
                    .cpu_shares = each.share.cpu_milli <= 0 ? CgroupChanges::Number()
                                                            : SharesOf(each.share.cpu_milli),
                    .pids_limit = each.cpu_only || each.share.pids <= 0 ? CgroupChanges::Number()
                                                                        : each.share.pids}));
  }
  Tick();
  counts_swap_ = cgroups.CountsSwap(options_.settings.layout.Pods());
  return Ok();
}

void PodCgroups::Tick() {
  Write();
  timer_ = options_.loop.RunAfter(kEvery, [this] { Tick(); });
}

std::string PodCgroups::Prepare(api::Value pod) {
  const QosClass qos = QosOf(pod);
  if (qos == QosClass::kBurstable) Write();
  return options_.settings.layout.OfPod(qos, pod["metadata"]["uid"].str());
}

Result<void> PodCgroups::Apply(const std::string& path, const CgroupResources& resources) {
  Cgroups cgroups = *options_.settings.cgroups;
  if (options_.uses_systemd && options_.uses_systemd()) {
    return cgroups.Update(SystemdSlice(path), resources);
  }
  return cgroups.Create(path, resources);
}

void PodCgroups::Write() {
  if (!options_.settings.cgroups) return;
  Report(Apply(options_.settings.layout.Pods(), ResourcesOf(options_.settings.pods)));
  if (!options_.settings.layout.per_qos) return;
  std::int64_t milli = 0;
  for (const api::ObjectPtr& pod : options_.active_pods()) {
    if (QosOf(pod->root()) != QosClass::kBurstable) continue;
    milli = api::SaturatedAdd(milli, RequestOf(pod->root(), "cpu"));
  }
  for (const auto& [qos, shares] : {std::pair(QosClass::kBurstable, SharesOf(milli)),
                                    std::pair(QosClass::kBestEffort, SharesOf(0))}) {
    auto written = Apply(options_.settings.layout.OfClass(qos), {.cpu_shares = shares});
    if (!written.ok()) {
      kLog.Warning("could not set the cgroup limits of a QoS class",
                   {{"err", written.error().message}});
    }
  }
}

void PodCgroups::Report(const Result<void>& written) {
  const std::string problem = written.ok() ? "" : written.error().message;
  if (reported_ == problem) return;
  reported_ = problem;
  if (!problem.empty())
    kLog.Warning("could not set the cgroup limits of all pods", {{"err", problem}});
  if (!options_.on_enforced) return;
  options_.on_enforced(problem.empty(),
                       problem.empty()
                           ? "Updated Node Allocatable limit across pods"
                           : StrCat("Failed to update Node Allocatable Limits ",
                                    Quote(options_.settings.layout.Pods()), ": ", problem));
}

}  // namespace drakkar::node
