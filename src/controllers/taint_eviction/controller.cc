#include "controllers/taint_eviction/controller.h"

#include "controllers/taint_eviction/planner.h"
#include "controllers/workload/pod_facts.h"
#include "telemetry/metrics/metrics.h"

namespace drakkar::controllers {

namespace {

bool HasNoExecute(const api::Object& node) {
  for (api::Value taint : node["spec"]["taints"].elements()) {
    if (taint["effect"].str() == "NoExecute") return true;
  }
  return false;
}

}  // namespace

TaintEvictionController::TaintEvictionController(Options options)
    : options_(options),
      evictor_({.loop = options.loop,
                .client = options.client,
                .events = options.events,
                .event_reason = "TaintManagerEviction",
                .condition_reason = "DeletionByTaintManager",
                .condition_message = "Taint manager: deleting due to NoExecute taint",
                .names_pod = true}),
      deletions_(options.metrics.GetCounter("taint_eviction_controller_pod_deletions_total",
                                            "Pods deleted because of a NoExecute taint of their "
                                            "node.")),
      delays_(options.metrics.GetHistogram(
          "taint_eviction_controller_pod_deletion_duration_seconds",
          "Time from when a pod had to be evicted to its deletion.", {},
          {0.005, 0.025, 0.1, 0.5, 1, 2.5, 10, 30, 60, 120, 180, 240})),
      queue_(options.loop, options.random, {"taint-eviction"},
             [this](const std::string& key, Done done) { Sync(key, std::move(done)); }) {
  options_.nodes.AddHandlers(
      {.on_add = [this](const api::ObjectPtr& node) { OnNode(nullptr, node); },
       .on_update = [this](const api::ObjectPtr& before,
                           const api::ObjectPtr& node) { OnNode(before, node); }});
  client::Informer& pods = options_.pods.informer();
  pods.AddHandlers(
      {.on_add = [this](const api::ObjectPtr& pod) { OnPod(nullptr, pod); },
       .on_update = [this](const api::ObjectPtr& before,
                           const api::ObjectPtr& pod) { OnPod(before, pod); },
       .on_delete = [this](const api::ObjectPtr& pod) { planned_.erase(pod->qualified_name()); }});
  const auto queue_all = [this] {
    for (const auto& [name, node] : options_.nodes.objects()) OnNode(nullptr, node);
  };
  pods.OnSynced(queue_all);
  options_.nodes.OnSynced(queue_all);
}

void TaintEvictionController::OnNode(const api::ObjectPtr& before, const api::ObjectPtr& node) {
  if (before == nullptr) {
    if (!HasNoExecute(*node)) return;
  } else if (api::Equal((*before)["spec"]["taints"], (*node)["spec"]["taints"]) ||
             (!HasNoExecute(*before) && !HasNoExecute(*node))) {
    return;
  }
  for (const auto& [key, pod] : options_.pods.On(node->name())) queue_.Add(key);
}

void TaintEvictionController::OnPod(const api::ObjectPtr& before, const api::ObjectPtr& pod) {
  const std::string_view name = (*pod)["spec"]["nodeName"].str();
  if (name.empty()) return;
  if (before != nullptr && (*before)["spec"]["nodeName"].str() == name &&
      before->is_being_deleted() == pod->is_being_deleted() &&
      api::Equal((*before)["spec"]["tolerations"], (*pod)["spec"]["tolerations"])) {
    return;
  }
  const api::ObjectPtr node = options_.nodes.Find(name);
  const std::string key = pod->qualified_name();
  if (planned_.contains(key) || (node != nullptr && HasNoExecute(*node))) queue_.Add(key);
}

void TaintEvictionController::Cancel(const api::ObjectPtr& pod) {
  const auto found = planned_.find(pod->qualified_name());
  if (found == planned_.end()) return;
  const bool same = found->second.uid == pod->uid();
  planned_.erase(found);
  if (same && !pod->is_being_deleted()) evictor_.Cancel(pod);
}

void TaintEvictionController::Sync(const std::string& key, Done done) {
  const api::ObjectPtr pod = options_.pods.informer().Find(key);
  if (pod == nullptr || !options_.nodes.has_synced()) return done(Ok());
  const api::ObjectPtr node = options_.nodes.Find((*pod)["spec"]["nodeName"].str());
  const bool concerned = node != nullptr && !pod->is_being_deleted() && HasNoExecute(*node);
  const std::optional<Duration> tolerance = concerned ? ToleranceOf(*pod, *node) : std::nullopt;
  if (!tolerance) {
    Cancel(pod);
    return done(Ok());
  }
  const MonotonicTime now = options_.loop.clock().Monotonic();
  Planned& planned = planned_[key];
  if (planned.uid != pod->uid()) planned = {std::string(pod->uid()), now, now};
  planned.at = planned.since + *tolerance;
  if (planned.at > now) {
    done(Ok());
    return queue_.AddAfter(key, planned.at - now);
  }
  evictor_.Evict(pod, lifetime_.Guard([this, key, at = planned.at,
                                       done = std::move(done)](Result<void> result) {
    if (result.ok()) {
      planned_.erase(key);
      deletions_.Add();
      const Duration late = options_.loop.clock().Monotonic() - at;
      delays_.Observe(std::chrono::duration<double>(late).count());
    }
    done(std::move(result));
  }));
}

}  // namespace drakkar::controllers
