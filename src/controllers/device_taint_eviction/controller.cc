#include "controllers/device_taint_eviction/controller.h"

#include <set>

#include "api/scheme/scheme.h"
#include "base/text/text.h"
#include "claims/claim.h"
#include "claims/pod_claims.h"
#include "controllers/workload/pod_facts.h"
#include "device/from_api.h"
#include "telemetry/metrics/metrics.h"

namespace drakkar::controllers {

namespace {

constexpr std::string_view kName = "device-taint-eviction-controller";

std::string Key(std::string_view name_space, std::string_view name) {
  return StrCat(name_space, "/", name);
}

bool CanBeEvicted(const api::Object& pod) {
  return !pod["spec"]["nodeName"].str().empty() && IsActive(pod);
}

}  // namespace

DeviceTaintEvictionController::DeviceTaintEvictionController(Options options)
    : options_(options),
      client_(options.client),
      evictor_({.loop = options.loop,
                .client = options.client,
                .events = options.events,
                .event_reason = "DeviceTaintManagerEviction",
                .condition_reason = "DeletionByDeviceTaintManager",
                .condition_message = "Device Taint manager: deleting due to NoExecute taint"}),
      pod_queue_(options.loop, options.random, {"device-taint-eviction"},
                 [this](const std::string& key, Done done) { SyncPod(key, std::move(done)); }),
      rule_queue_(options.loop, options.random, {"device-taint-rule-status"},
                  [this](const std::string& name, Done done) { SyncRule(name, std::move(done)); }),
      deletions_(
          options.metrics.GetCounter("device_taint_eviction_controller_pod_deletions_total",
                                     "Pods deleted because of a NoExecute taint of a device.")),
      delays_(options.metrics.GetHistogram(
          "device_taint_eviction_controller_pod_deletion_duration_seconds",
          "Time from when a pod had to be evicted to its deletion.", {},
          {0.005, 0.025, 0.1, 0.5, 1, 2.5, 10, 30, 60, 120, 180, 240})) {
  AddHandlers();
}

void DeviceTaintEvictionController::AddHandlers() {
  const auto on_slice = [this](const api::ObjectPtr& slice) {
    if (taints_.SetSlice(*slice)) ScanLater();
  };
  options_.slices.AddHandlers(
      {.on_add = on_slice,
       .on_update = [on_slice](const api::ObjectPtr&,
                               const api::ObjectPtr& slice) { on_slice(slice); },
       .on_delete =
           [this](const api::ObjectPtr& slice) {
             if (taints_.RemoveSlice(slice->name())) ScanLater();
           }});
  const auto on_rule = [this](const api::ObjectPtr& rule) {
    if (taints_.SetRule(*rule)) ScanLater();
    rule_queue_.Add(std::string(rule->name()));
  };
  options_.rules.AddHandlers(
      {.on_add = on_rule,
       .on_update = [on_rule](const api::ObjectPtr&, const api::ObjectPtr& rule) { on_rule(rule); },
       .on_delete =
           [this](const api::ObjectPtr& rule) {
             const std::string name(rule->name());
             evicted_.erase(name);
             status_written_.erase(name);
             if (taints_.RemoveRule(name)) ScanLater();
           }});
  const auto on_claim = [this](const api::ObjectPtr& claim) {
    if (taints_.any()) AddPodsOf(*claim);
  };
  options_.claims.AddHandlers(
      {.on_add = on_claim,
       .on_update =
           [on_claim](const api::ObjectPtr& before, const api::ObjectPtr& after) {
             on_claim(before);
             on_claim(after);
           },
       .on_delete = on_claim});
  const auto on_pod = [this](const api::ObjectPtr& pod) {
    const std::string key = pod->qualified_name();
    if (planned_.contains(key) || (taints_.any() && CanBeEvicted(*pod))) pod_queue_.Add(key);
  };
  options_.pods.AddHandlers(
      {.on_add = on_pod,
       .on_update = [on_pod](const api::ObjectPtr&, const api::ObjectPtr& pod) { on_pod(pod); },
       .on_delete =
           [this](const api::ObjectPtr& pod) { Plan(pod->qualified_name(), std::nullopt); }});
  for (client::Informer* informer :
       {&options_.pods, &options_.claims, &options_.slices, &options_.rules}) {
    informer->OnSynced(lifetime_.Guard([this] {
      if (!Synced()) return;
      ScanLater();
      for (const auto& [name, rule] : options_.rules.objects()) rule_queue_.Add(name);
    }));
  }
}

bool DeviceTaintEvictionController::Synced() const {
  return options_.pods.has_synced() && options_.claims.has_synced() &&
         options_.slices.has_synced() && options_.rules.has_synced();
}

void DeviceTaintEvictionController::ScanLater() {
  if (scan_posted_) return;
  scan_posted_ = true;
  options_.loop.Post(lifetime_.Guard([this] { Scan(); }));
}

void DeviceTaintEvictionController::Scan() {
  scan_posted_ = false;
  if (!Synced()) return;
  for (const auto& [key, eviction] : planned_) pod_queue_.Add(key);
  if (!taints_.any()) return;
  for (const auto& [key, claim] : options_.claims.objects()) {
    if (taints_.EvictionOf(claim->root())) AddPodsOf(*claim);
  }
}

void DeviceTaintEvictionController::AddPodsOf(const api::Object& claim) {
  for (api::Value consumer : claim["status"]["reservedFor"].elements()) {
    if (claims::IsPod(consumer)) pod_queue_.Add(Key(claim.namespace_(), consumer["name"].str()));
  }
}

std::optional<DeviceEviction> DeviceTaintEvictionController::EvictionOf(
    const api::Object& pod) const {
  std::optional<DeviceEviction> earliest;
  const auto add = [&](std::string_view claim_name, bool own) {
    const api::ObjectPtr claim = options_.claims.Find(Key(pod.namespace_(), claim_name));
    if (claim == nullptr || !claims::IsReservedFor(claim->root(), pod.uid())) return;
    if (own && !claims::IsMadeFor(claim->root(), pod.uid())) return;
    const std::optional<DeviceEviction> eviction = taints_.EvictionOf(claim->root());
    if (!eviction) return;
    if (!earliest) earliest = DeviceEviction{.at = eviction->at, .rules = {}};
    earliest->at = std::min(earliest->at, eviction->at);
    earliest->rules.insert(eviction->rules.begin(), eviction->rules.end());
  };
  for (const claims::PodClaim& entry : claims::ListPodClaims(pod.root())) {
    if (entry.state == claims::PodClaim::State::kResolved) {
      add(entry.claim_name, entry.from_template);
    }
  }
  if (const std::string_view name = claims::ExtendedResourceClaim(pod.root()); !name.empty()) {
    add(name, true);
  }
  return earliest;
}

void DeviceTaintEvictionController::SyncPod(const std::string& key, Done done) {
  if (!Synced()) return done(Ok());  // scanned once it is
  const api::ObjectPtr pod = options_.pods.Find(key);
  if (pod == nullptr || !CanBeEvicted(*pod)) {
    Plan(key, std::nullopt);
    return done(Ok());
  }
  const std::optional<DeviceEviction> eviction = EvictionOf(*pod);
  if (!eviction && planned_.contains(key)) evictor_.Cancel(pod);
  Plan(key, eviction);
  if (!eviction) return done(Ok());
  const Duration left = eviction->at - options_.loop.clock().Now();
  if (left > Duration::zero()) {
    done(Ok());
    return pod_queue_.AddAfter(key, left);
  }
  Evict(pod, *eviction, std::move(done));
}

void DeviceTaintEvictionController::Evict(const api::ObjectPtr& pod, const DeviceEviction& eviction,
                                          Done done) {
  evictor_.Evict(pod,
                 lifetime_.Guard([this, eviction, done = std::move(done)](Result<void> result) {
                   if (result.ok()) {
                     deletions_.Add();
                     const Duration late = options_.loop.clock().Now() - eviction.at;
                     delays_.Observe(std::chrono::duration<double>(late).count());
                     for (const std::string& rule : eviction.rules) {
                       if (options_.rules.Find(rule) == nullptr) continue;
                       ++evicted_[rule];
                       rule_queue_.Add(rule);
                     }
                   }
                   done(std::move(result));
                 }));
}

void DeviceTaintEvictionController::Plan(const std::string& key,
                                         std::optional<DeviceEviction> eviction) {
  const auto found = planned_.find(key);
  std::set<std::string> rules;
  if (found != planned_.end()) {
    if (found->second == eviction) return;
    rules = found->second.rules;
    planned_.erase(found);
  }
  if (eviction) {
    rules.insert(eviction->rules.begin(), eviction->rules.end());
    planned_.emplace(key, std::move(*eviction));
  }
  for (const std::string& rule : rules) rule_queue_.Add(rule);
}

void DeviceTaintEvictionController::SyncRule(const std::string& name, Done done) {
  const api::ObjectPtr rule = options_.rules.Find(name);
  if (rule == nullptr || !Synced()) return done(Ok());
  if (IsRehearsal(*rule) && IsReported(*rule)) return done(Ok());
  const MonotonicTime now = options_.loop.clock().Monotonic();
  if (const auto written = status_written_.find(name); written != status_written_.end()) {
    const Duration left = written->second + kStatusInterval - now;
    if (left > Duration::zero()) {
      done(Ok());
      return rule_queue_.AddAfter(name, left);
    }
  }
  std::optional<std::string> patch =
      RuleStatusPatch(*rule, ProgressOf(*rule), options_.loop.clock().Now());
  if (!patch) return done(Ok());
  status_written_[name] = now;
  client_.Patch({&options_.rules.kind(), "", name, "status"}, client::PatchType::kApply,
                std::move(*patch), {.field_manager = std::string(kName), .force = true},
                [done = std::move(done)](client::Reply reply) {
                  const bool over = reply.ok() || reply.error->code == ErrorCode::kNotFound ||
                                    reply.error->code == ErrorCode::kConflict;
                  done(over ? Ok() : Result<void>(*reply.error));
                });
}

RuleProgress DeviceTaintEvictionController::ProgressOf(const api::Object& object) const {
  RuleProgress progress;
  std::set<std::string, std::less<>> namespaces;
  const std::string name(object.name());
  if (const auto evicted = evicted_.find(name); evicted != evicted_.end()) {
    progress.evicted_pods = evicted->second;
  }
  for (const auto& [key, eviction] : planned_) {
    if (!eviction.rules.contains(name)) continue;
    ++progress.pending_pods;
    namespaces.emplace(key.substr(0, key.find('/')));
  }
  const Result<device::TaintRule> rule = device::TaintRuleFromApi(object.root());
  if (IsRehearsal(object) && rule.ok()) {
    for (const auto& [slice_name, slice] : options_.slices.objects()) {
      const api::Value spec = (*slice)["spec"];
      const device::PoolId pool{std::string(spec["driver"].str()),
                                std::string(spec["pool"]["name"].str())};
      if (!rule->MatchesPool(pool)) continue;
      for (api::Value device : spec["devices"].elements()) {
        if (rule->MatchesDevice(std::string(device["name"].str()))) ++progress.published_devices;
      }
    }
    std::set<std::string> pods;
    for (const auto& [key, claim] : options_.claims.objects()) {
      const std::size_t selected = TaintedDevices::CountSelected(*rule, claim->root());
      progress.allocated_devices += selected;
      if (selected == 0) continue;
      for (api::Value consumer : (*claim)["status"]["reservedFor"].elements()) {
        const std::string pod_key = Key(claim->namespace_(), consumer["name"].str());
        const api::ObjectPtr pod = options_.pods.Find(pod_key);
        if (claims::IsPod(consumer) && pod != nullptr && CanBeEvicted(*pod)) {
          pods.insert(pod_key);
          namespaces.emplace(claim->namespace_());
        }
      }
    }
    progress.pending_pods = pods.size();
  }
  progress.pending_namespaces = namespaces.size();
  return progress;
}

}  // namespace drakkar::controllers
