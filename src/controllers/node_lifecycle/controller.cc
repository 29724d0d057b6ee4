#include "controllers/node_lifecycle/controller.h"

#include "api/json/writer.h"
#include "api/meta/time.h"
#include "api/scheme/scheme.h"
#include "base/text/text.h"
#include "controllers/workload/pod_facts.h"
#include "telemetry/log/log.h"

namespace drakkar::controllers {

namespace {

constexpr Logger kLog("node-lifecycle");

Result<void> Accept(const client::Reply& reply) {
  if (reply.ok() || reply.error->code == ErrorCode::kNotFound) return Ok();
  return *reply.error;
}

}  // namespace

NodeLifecycleController::NodeLifecycleController(Options options)
    : options_(options),
      client_(options.client),
      queue_(options.loop, options.random, {"node-lifecycle"},
             [this](const std::string& name, Done done) { Sync(name, std::move(done)); }) {
  options_.nodes.AddHandlers(
      {.on_add = [this](const api::ObjectPtr& node) { OnNode(node); },
       .on_update = [this](const api::ObjectPtr&, const api::ObjectPtr& node) { OnNode(node); },
       .on_delete =
           [this](const api::ObjectPtr& node) { heartbeats_.erase(std::string(node->name())); }});
  options_.leases.AddHandlers(
      {.on_add = [this](const api::ObjectPtr& lease) { OnLease(*lease); },
       .on_update = [this](const api::ObjectPtr&,
                           const api::ObjectPtr& lease) { OnLease(*lease); }});
  options_.nodes.OnSynced(lifetime_.Guard([this] { Round(); }));
}

void NodeLifecycleController::OnNode(const api::ObjectPtr& node) {
  const MonotonicTime now = options_.loop.clock().Monotonic();
  const api::Value ready = FindCondition((*node)["status"], "Ready");
  const auto [found, is_new] = heartbeats_.try_emplace(std::string(node->name()));
  Heartbeats& known = found->second;
  if (is_new) {
    known.last = now;
    if (const api::ObjectPtr lease =
            options_.leases.Find(StrCat("kube-node-lease/", node->name()))) {
      known.lease_version = lease->resource_version();
    }
  }
  const std::string_view heartbeat = ready["lastHeartbeatTime"].str();
  const bool reports = ready.exists() && ready["reason"].str() != "NodeStatusNeverUpdated";
  if (reports && (!known.has_reported || known.heartbeat != heartbeat)) known.last = now;
  known.has_reported = reports;
  known.heartbeat = heartbeat;
  queue_.Add(std::string(node->name()));
}

void NodeLifecycleController::OnLease(const api::Object& lease) {
  const auto found = heartbeats_.find(lease.name());
  if (found == heartbeats_.end()) return;
  found->second.last = options_.loop.clock().Monotonic();
  found->second.lease_version = lease.resource_version();
}

// Checks all nodes periodically, because the passing of time is not an event.
void NodeLifecycleController::Round() {
  next_round_ = options_.loop.RunAfter(options_.timing.period, [this] { Round(); });
  zones_.Begin();
  for (const auto& [name, node] : options_.nodes.objects()) zones_.Count(*node);
  const Zones::Change change = zones_.End();
  const MonotonicTime now = options_.loop.clock().Monotonic();
  if (change.all_down && !change.were_all_down) {
    kLog.Warning("no node is ready; pods are not evicted until one is", {});
  } else if (!change.all_down && change.were_all_down) {
    // All heartbeats may have been late for the same reason.
    for (auto& [name, known] : heartbeats_) known.last = now;
  }
  for (const auto& [name, node] : options_.nodes.objects()) {
    const std::string_view ready = ReadinessOf(*node);
    if (ready != "True" || IsLate(*node)) queue_.Add(name);
  }
}

bool NodeLifecycleController::IsLate(const api::Object& node) const {
  const auto found = heartbeats_.find(node.name());
  if (found == heartbeats_.end()) return false;
  const Duration grace =
      ReadinessOf(node).empty() ? options_.timing.startup_grace : options_.timing.grace_period;
  return options_.loop.clock().Monotonic() - found->second.last > grace;
}

void NodeLifecycleController::Sync(const std::string& name, Done done) {
  const api::ObjectPtr node = options_.nodes.Find(name);
  if (node == nullptr || !options_.leases.has_synced() || !options_.nodes.has_synced() ||
      !options_.pods.informer().has_synced()) {
    return done(Ok());
  }
  if (IsLate(*node) && ReadinessOf(*node) != "Unknown") return ConfirmLate(node, std::move(done));
  SyncTaints(node, std::move(done));
}

// Our copy of the leases may be stale. A node must not lose its pods because of that.
void NodeLifecycleController::ConfirmLate(const api::ObjectPtr& node, Done done) {
  client_.Get({&options_.leases.kind(), "kube-node-lease", std::string(node->name()), ""},
              [this, node, done = std::move(done)](client::Reply reply) {
                if (!reply.ok() && reply.error->code != ErrorCode::kNotFound) {
                  return done(*reply.error);
                }
                const auto found = heartbeats_.find(node->name());
                if (found == heartbeats_.end()) return done(Ok());
                if (reply.ok() && reply.object->resource_version() != found->second.lease_version) {
                  OnLease(*reply.object);
                  return done(Ok());
                }
                MarkUnknown(node, done);
              });
}

void NodeLifecycleController::MarkUnknown(const api::ObjectPtr& node, Done done) {
  std::optional<api::Draft> status = PlanUnknownStatus(*node, options_.loop.clock().Now());
  if (!status) return done(Ok());
  api::Draft body(node->tree());
  body["status"] = std::move(*status);
  client_.Update({&options_.nodes.kind(), "", std::string(node->name()), "status"}, body.Freeze(),
                 {}, [this, node, done = std::move(done)](client::Reply reply) {
                   if (reply.ok() && ReadinessOf(*node) == "True") {
                     kLog.Warning("node stopped sending heartbeats", {{"node", node->name()}});
                     options_.events.Normal(
                         node, "NodeNotReady",
                         StrCat("Node ", node->name(), " status is now: NodeNotReady"));
                     MarkPodsNotReady(*node);
                   }
                   done(Accept(reply));
                 });
}

// Services must not send requests to them. Best effort: the eviction follows.
void NodeLifecycleController::MarkPodsNotReady(const api::Object& node) {
  for (const auto& [name, pod] : options_.pods.On(node.name())) {
    if (!IsReady(*pod)) continue;
    api::Draft patch;
    patch["metadata"]["uid"] = pod->uid();  // a precondition
    patch["status"]["conditions"] = api::Draft::Array();
    patch["status"]["conditions"].Append(
        {{"type", "Ready"},
         {"status", "False"},
         {"lastTransitionTime", api::FormatTime(options_.loop.clock().Now())}});
    client_.Patch({&options_.pods.informer().kind(), std::string(pod->namespace_()),
                   std::string(pod->name()), "status"},
                  client::PatchType::kStrategicMerge, api::WriteJson(patch.Freeze()->root()), {},
                  [this, pod = pod](client::Reply reply) {
                    if (reply.ok()) {
                      options_.events.Warning(pod, "NodeNotReady", "Node is not ready");
                    }
                  });
  }
}

void NodeLifecycleController::SyncTaints(const api::ObjectPtr& node, Done done) {
  const MonotonicTime now = options_.loop.clock().Monotonic();
  const Duration wait = zones_.UntilEviction(*node, now);
  const bool may_evict = wait == Duration::zero() && zones_.IsCountedDown(node->name());
  const Eviction eviction = zones_.all_down() ? Eviction::kForbidden
                            : may_evict       ? Eviction::kAllowed
                                              : Eviction::kNotYet;
  TaintPlan plan = PlanTaints(*node, eviction, options_.loop.clock().Now());
  // The next round handles nodes that have to wait.
  if (!plan.taints) return done(Ok());
  if (plan.wants_eviction && eviction == Eviction::kAllowed) zones_.Evicted(*node, now);
  api::Draft body(node->tree());
  if (plan.taints->size() == 0) {
    body["spec"].Remove("taints");
  } else {
    body["spec"]["taints"] = std::move(*plan.taints);
  }
  client_.Update({&options_.nodes.kind(), "", std::string(node->name()), ""}, body.Freeze(), {},
                 [done = std::move(done)](client::Reply reply) { done(Accept(reply)); });
}

}  // namespace drakkar::controllers
