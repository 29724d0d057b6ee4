#include "controllers/node_lifecycle/planner.h"

#include <array>
#include <vector>

#include "api/meta/time.h"
#include "base/text/text.h"
#include "controllers/workload/pod_facts.h"

namespace drakkar::controllers {

namespace {

using api::Value;

constexpr std::string_view kNotReady = "node.kubernetes.io/not-ready";
constexpr std::string_view kUnreachable = "node.kubernetes.io/unreachable";
constexpr std::string_view kUnschedulable = "node.kubernetes.io/unschedulable";

struct ConditionTaint {
  std::string_view condition;
  std::string_view status;
  std::string_view taint;
};
constexpr std::array kConditionTaints = {
    ConditionTaint{"Ready", "False", kNotReady},
    ConditionTaint{"Ready", "Unknown", kUnreachable},
    ConditionTaint{"MemoryPressure", "True", "node.kubernetes.io/memory-pressure"},
    ConditionTaint{"DiskPressure", "True", "node.kubernetes.io/disk-pressure"},
    ConditionTaint{"NetworkUnavailable", "True", "node.kubernetes.io/network-unavailable"},
    ConditionTaint{"PIDPressure", "True", "node.kubernetes.io/pid-pressure"},
};

struct Wanted {
  std::string_view key;
  std::string_view effect;
  bool found = false;
};

bool IsOurs(std::string_view key, std::string_view effect) {
  if (effect == "NoExecute") return key == kNotReady || key == kUnreachable;
  if (effect != "NoSchedule") return false;
  if (key == kUnschedulable) return true;
  for (const ConditionTaint& each : kConditionTaints) {
    if (each.taint == key) return true;
  }
  return false;
}

}  // namespace

std::string_view ReadinessOf(const api::Object& node) {
  return FindCondition(node["status"], "Ready")["status"].str();
}

std::optional<api::Draft> PlanUnknownStatus(const api::Object& node, WallTime now) {
  if (ReadinessOf(node) == "Unknown") return std::nullopt;
  api::Draft status(node["status"]);
  status.KeepAlive(node.tree());
  api::Draft conditions = api::Draft::Array();
  const std::string time = api::FormatTime(now);
  // NetworkUnavailable is set by the control plane, not by the node.
  constexpr std::array kReported = {"Ready", "MemoryPressure", "DiskPressure", "PIDPressure"};
  const auto is_reported = [&](std::string_view type) {
    return std::ranges::find(kReported, type) != kReported.end();
  };
  for (Value condition : node["status"]["conditions"].elements()) {
    api::Draft& copy = conditions.Append(api::Draft(condition));
    if (!is_reported(condition["type"].str()) || condition["status"].str() == "Unknown") continue;
    copy["status"] = "Unknown";
    copy["reason"] = "NodeStatusUnknown";
    copy["message"] = "Kubelet stopped posting node status.";
    copy["lastTransitionTime"] = time;
  }
  for (const std::string_view type : kReported) {
    if (FindCondition(node["status"], type).exists()) continue;
    conditions.Append({{"type", type},
                       {"status", "Unknown"},
                       {"reason", "NodeStatusNeverUpdated"},
                       {"message", "Kubelet never posted node status."},
                       {"lastHeartbeatTime", node["metadata"]["creationTimestamp"].str()},
                       {"lastTransitionTime", time}});
  }
  status["conditions"] = std::move(conditions);
  return status;
}

TaintPlan PlanTaints(const api::Object& node, Eviction eviction, WallTime now) {
  std::vector<Wanted> wanted;
  for (const ConditionTaint& each : kConditionTaints) {
    if (FindCondition(node["status"], each.condition)["status"].str() == each.status) {
      wanted.push_back({each.taint, "NoSchedule"});
    }
  }
  if (node["spec"]["unschedulable"].boolean()) wanted.push_back({kUnschedulable, "NoSchedule"});
  const std::string_view ready = ReadinessOf(node);
  const std::string_view evicts = ready == "False"     ? kNotReady
                                  : ready == "Unknown" ? kUnreachable
                                                       : std::string_view();
  bool has_evicting = false;
  for (Value taint : node["spec"]["taints"].elements()) {
    has_evicting = has_evicting || (taint["effect"].str() == "NoExecute" &&
                                    IsOurs(taint["key"].str(), "NoExecute"));
  }
  TaintPlan plan;
  if (!evicts.empty() && eviction != Eviction::kForbidden) {
    // A node that changes between the two states stays tainted.
    const bool may_add = eviction == Eviction::kAllowed || has_evicting;
    if (may_add) wanted.push_back({evicts, "NoExecute"});
    plan.wants_eviction = !has_evicting;
  }
  bool changed = false;
  api::Draft taints = api::Draft::Array();
  for (Value taint : node["spec"]["taints"].elements()) {
    const std::string_view key = taint["key"].str();
    const std::string_view effect = taint["effect"].str();
    if (!IsOurs(key, effect)) {
      taints.Append(api::Draft(taint));
      continue;
    }
    bool keep = false;
    for (Wanted& each : wanted) {
      if (each.key != key || each.effect != effect || each.found) continue;
      each.found = keep = true;
    }
    if (keep) taints.Append(api::Draft(taint));
    changed = changed || !keep;
  }
  for (const Wanted& each : wanted) {
    if (each.found) continue;
    changed = true;
    taints.Append(
        {{"key", each.key}, {"effect", each.effect}, {"timeAdded", api::FormatTime(now)}});
  }
  taints.KeepAlive(node.tree());
  if (changed) plan.taints = std::move(taints);
  return plan;
}

}  // namespace drakkar::controllers
