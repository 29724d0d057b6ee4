#include "scheduler/scheduler.h"

#include <algorithm>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "api/scheme/scheme.h"
#include "base/exec/lifetime.h"
#include "base/result/check.h"
#include "base/text/text.h"
#include "claims/claim.h"
#include "claims/pod_group.h"
#include "client/event_recorder.h"
#include "client/informer.h"
#include "client/scoped_client.h"
#include "features/catalog/catalog.h"
#include "scheduler/binding/pod_status_writer.h"
#include "scheduler/binding/refusal_notices.h"
#include "scheduler/cache/claim_cache.h"
#include "scheduler/cache/device_state.h"
#include "scheduler/cache/namespace_labels.h"
#include "scheduler/cache/node_table.h"
#include "scheduler/cache/placements.h"
#include "scheduler/framework/framework.h"
#include "scheduler/framework/metrics.h"
#include "scheduler/plugins/registry.h"
#include "scheduler/preemption/preemptor.h"
#include "scheduler/queue/scheduling_queue.h"
#include "telemetry/log/log.h"

namespace drakkar::scheduler {

using api::ObjectPtr;
using api::Value;

namespace {

constexpr Logger kLog("scheduler");
// The default of spec.schedulerName.
constexpr std::string_view kDefaultSchedulerName = "default-scheduler";

// Pods scheduled before yielding to other work on the loop (responses, watch events).
constexpr int kCyclesPerTurn = 32;
// Limit of bindings being written; pods that wait for conditions do not count. At the limit no new
// attempt begins, because the API server is the bottleneck and more writes would only queue there.
constexpr std::size_t kMaxBindingWrites = 1'024;

}  // namespace

class Scheduler::Impl {
 public:
  explicit Impl(Options options);

  void Start();
  void Stop() { stopped_ = true; }
  bool IsReady() const { return ready_; }
  Counts counts() const;
  SchedulerState State(const std::string& pod_key) const;

 private:
  PodState StateOf(const ObjectPtr& pod) const;

  // Informers.
  std::unique_ptr<client::Informer> MakeInformer(std::string_view group, std::string_view version,
                                                 std::string_view kind,
                                                 client::InformerHandlers handlers,
                                                 bool may_be_missing = false);
  void OnInformerSynced();
  void OnNode(const ObjectPtr& before, const ObjectPtr& after);
  void OnPod(const ObjectPtr& before, const ObjectPtr& after);
  void OnPodGone(const ObjectPtr& pod);
  void OnNodeGone(const ObjectPtr& node);
  void OnNodeTainted(const ObjectPtr& node);
  // A copy, because ending a binding changes the map.
  std::vector<CyclePtr> BindingsOn(const std::string& node_name) const;
  // Resources that this pod used, or that were kept for it, were freed.
  void OnRoomFreed(const ObjectPtr& pod) {
    queue_->OnEvent({EventKind::kBoundPodRemove, pod, nullptr, {}});
  }
  void OnClaimChanged(const std::string& claim_key, const ObjectPtr& before,
                      const ObjectPtr& after);

  // Cycles.
  void Wake();
  void RunSome();
  void ScheduleOne(const QueuedPod& queued);
  void BindingCycle(const CyclePtr& cycle);
  void OnBound(const CyclePtr& cycle);
  void OnBindingFailed(const CyclePtr& cycle, Status status);
  // Evicts pods of lower priority if that makes the pod fit. Returns what it did, for the event.
  std::string Preempt(Cycle& cycle);
  void Refuse(const PodInfoPtr& pod, const Decision& decision);
  void Fail(const PodInfo& pod, const Status& status, Retry retry = {});
  void Tell(const PodInfo& pod, std::string_view reason, const std::string& message);
  bool IsBound(std::string_view uid) const;
  bool IsAnyBound(const api::Object& group) const;
  template <typename Visit>
  void ForEachPlugin(Visit visit) const {
    for (const auto& profile : profiles_) {
      for (const auto& plugin : profile->plugins) visit(*plugin);
    }
  }
  std::size_t waiting_pods() const {
    std::size_t count = 0;
    ForEachPlugin([&](const Plugin& plugin) { count += plugin.waiting_pods(); });
    return count;
  }
  std::size_t binding_writes() const { return bindings_.size() - waiting_pods(); }
  void ForgetPod(const std::string& uid) {
    ForEachPlugin([&](Plugin& plugin) { plugin.ForgetPod(uid); });
  }
  MonotonicTime Now() const { return options_.loop.clock().Monotonic(); }
  void ShowCacheSize() {
    profiles_.front()->metrics.SetCacheSize(nodes_.node_count(), placements_.size(),
                                            placements_.assumed_count());
  }

  Options options_;
  client::ScopedClient client_;
  PodStatusWriter pod_status_;
  RefusalNotices refusals_;

  NodeTable nodes_;
  Placements placements_{nodes_};
  NamespaceLabels namespaces_;
  PodGroups pod_groups_;
  DeviceState devices_;
  ClaimCache claims_;
  Preemptor preemptor_;

  // Per schedulerName; the caches and the queue are shared.
  struct Profile {
    Profile(Impl& owner, const ProfileConfig& config);
    const std::string name;
    SchedulerMetrics metrics;
    client::EventRecorder events;
    const PluginContext context;
    Plugins plugins;
    Framework framework;
  };
  // Null if no profile has the name.
  Profile* FindProfile(std::string_view scheduler_name) const;
  // The pod must be ours.
  Profile& ProfileOf(const PodInfo& pod) const;

  std::vector<std::unique_ptr<Profile>> profiles_;
  std::optional<SchedulingQueue> queue_;

  struct Binding {
    CyclePtr cycle;
    int attempts = 0;
    MonotonicTime first_attempt{};
    bool pod_gone = false;
    bool is_being_written = false;  // the pod may be bound at any moment
    std::string nominated_node;     // shown as such while the pod waits
  };
  std::map<std::string, Binding> bindings_;  // by pod uid

  std::vector<std::unique_ptr<client::Informer>> informers_;
  std::unique_ptr<client::Informer> pods_;
  std::unique_ptr<client::Informer> budgets_;
  std::size_t unsynced_ = 0;
  bool ready_ = false;
  bool stopped_ = false;
  bool scheduled_to_run_ = false;
  Lifetime lifetime_;
};

Scheduler::Scheduler(Options options) : impl_(std::make_unique<Impl>(std::move(options))) {}
Scheduler::~Scheduler() = default;
void Scheduler::Start() {
  impl_->Start();
}
void Scheduler::Stop() {
  impl_->Stop();
}
bool Scheduler::IsReady() const {
  return impl_->IsReady();
}
Scheduler::Counts Scheduler::counts() const {
  return impl_->counts();
}

SchedulerState Scheduler::State(const std::string& pod_key) const {
  return impl_->State(pod_key);
}

Scheduler::Impl::Profile::Profile(Impl& owner, const ProfileConfig& config)
    : name(config.name),
      metrics(owner.options_.metrics, config.name),
      events({.loop = owner.options_.loop,
              .client = owner.client_,
              .component = config.name,
              .instance = owner.options_.instance.empty() ? config.name : owner.options_.instance}),
      context{.loop = owner.options_.loop,
              .random = owner.options_.random,
              .client = owner.client_,
              .events = events,
              .nodes = owner.nodes_,
              .placements = owner.placements_,
              .namespaces = owner.namespaces_,
              .pod_groups = owner.pod_groups_,
              .claims = owner.claims_,
              .devices = owner.devices_,
              .gates = owner.options_.gates,
              .declared_features = owner.options_.declared_features != nullptr
                                       ? *owner.options_.declared_features
                                       : features::DefaultFramework(),
              .metrics = metrics,
              .notify = [&owner](const ClusterEvent& event) { owner.queue_->OnEvent(event); },
              .nominate =
                  [&owner](const PodInfo& pod, const std::string& node) {
                    owner.bindings_[pod.uid].nominated_node = node;
                    owner.pod_status_.Write(pod.pod, {.nominated_node = node});
                  },
              .on_wait_began = [&owner] { owner.Wake(); },
              .is_bound = [&owner](std::string_view uid) { return owner.IsBound(uid); },
              .preempt = [&owner](Cycle& cycle) { return owner.Preempt(cycle); }},
      plugins(MakePlugins(context, config)),
      framework(owner.options_.loop, owner.nodes_, plugins, &metrics,
                config.percentage_of_nodes_to_score) {}

Scheduler::Impl::Impl(Options options)
    : options_(std::move(options)),
      client_(options_.client),
      pod_status_(options_.loop, client_),
      refusals_(options_.loop,
                [this](const PodInfo& pod, const std::string& message) {
                  if (!stopped_) Tell(pod, "Unschedulable", message);
                }),
      devices_(options_.gates, options_.compiler, options_.random),
      claims_(devices_.allocated()),
      preemptor_({.loop = options_.loop,
                  .client = client_,
                  .nodes = nodes_,
                  .placements = placements_,
                  .on_failed = [this](const PodInfo& victim) { OnRoomFreed(victim.pod); }}) {
  CHECK(!options_.profiles.empty());
  for (const ProfileConfig& config : options_.profiles) {
    CHECK(FindProfile(config.name) == nullptr);
    profiles_.push_back(std::make_unique<Profile>(*this, config));
  }
  SchedulingQueue::Options queue{
      .loop = options_.loop,
      .plugins = profiles_.front()->plugins,
      .plugins_of = {},
      .pauses = {.first = options_.first_backoff, .longest = options_.longest_backoff},
      .metrics = &profiles_.front()->metrics,
      .metrics_of = {},
      .on_active = [this] { Wake(); }};
  if (profiles_.size() > 1) {
    queue.plugins_of = [this](const PodInfo& pod) {
      return std::span<const std::unique_ptr<Plugin>>(ProfileOf(pod).plugins);
    };
    queue.metrics_of = [this](const PodInfo& pod) { return &ProfileOf(pod).metrics; };
  }
  queue_.emplace(std::move(queue));
  claims_.SetChangeHandler(
      [this](const std::string& claim_key, const ObjectPtr& before, const ObjectPtr& after) {
        OnClaimChanged(claim_key, before, after);
      });
}

Scheduler::Impl::Profile* Scheduler::Impl::FindProfile(std::string_view scheduler_name) const {
  for (const auto& profile : profiles_) {
    if (profile->name == scheduler_name) return profile.get();
  }
  return nullptr;
}

Scheduler::Impl::Profile& Scheduler::Impl::ProfileOf(const PodInfo& pod) const {
  if (profiles_.size() == 1) return *profiles_.front();
  Profile* profile = FindProfile(pod.spec()["schedulerName"].str(kDefaultSchedulerName));
  CHECK(profile != nullptr);
  return *profile;
}

Scheduler::Counts Scheduler::Impl::counts() const {
  std::size_t remembered = 0;
  ForEachPlugin([&](const Plugin& plugin) { remembered += plugin.remembered_pods(); });
  return {queue_->active_count(),
          queue_->backoff_count(),
          queue_->unschedulable_count(),
          queue_->gated_count(),
          bindings_.size(),
          waiting_pods(),
          remembered};
}

// ---- Explanations.

SchedulerState Scheduler::Impl::State(const std::string& pod_key) const {
  options_.loop.AssertInLoop();
  CHECK(ready_);
  SchedulerState state;
  Simulation& cluster = state.cluster;
  for (const auto& informer : informers_) {
    const std::string_view kind = informer->kind().kind;
    std::vector<ObjectPtr>& into = kind == "Node"            ? cluster.nodes
                                   : kind == "ResourceSlice" ? cluster.slices
                                   : kind == "DeviceClass"   ? cluster.classes
                                   : kind == "ResourceClaim" ? cluster.claims
                                   : kind == "Namespace"     ? cluster.namespaces
                                   : kind == "PodGroup"      ? cluster.pod_groups
                                                             : cluster.taint_rules;
    into.reserve(informer->objects().size());
    for (const auto& [name, object] : informer->objects()) {
      const CachedClaim* claim = kind == "ResourceClaim" ? claims_.Find(name) : nullptr;
      if (claim == nullptr) {
        into.push_back(object);
        continue;
      }
      const auto binding = bindings_.find(claim->pending_pod);
      into.push_back(WithPending(*claim, binding == bindings_.end()
                                             ? std::string_view()
                                             : binding->second.cycle->pod->pod->name()));
    }
  }
  cluster.pods.reserve(pods_->objects().size());
  for (const auto& [name, object] : pods_->objects()) {
    if (name != pod_key) {
      cluster.pods.push_back(WithPlacement(object, placements_));
      continue;
    }
    cluster.pods.push_back(object);
    state.pod = StateOf(object);
  }
  return state;
}

PodState Scheduler::Impl::StateOf(const ObjectPtr& pod) const {
  using Place = PodState::Place;
  PodState state;
  const std::string uid(pod->uid());
  const QueuedPod* queued = queue_->Find(uid);
  if (queued == nullptr) return state;
  const SchedulingQueue::Standing standing = queue_->StandingOf(uid);
  const auto binding = bindings_.find(uid);
  state.place = binding != bindings_.end() ? Place::kBinding
                : standing.gated           ? Place::kGated
                : standing.in_backoff      ? Place::kBackoff
                : standing.ready           ? Place::kReady
                : standing.in_flight       ? Place::kReady
                                           : Place::kUnschedulable;
  state.attempts = queued->attempts;
  state.queued_for = Now() - queued->first_queued_at;
  if (standing.in_backoff) {
    state.retry_in = std::max(standing.backoff_ends - Now(), Duration::zero());
  }
  const Profile& profile = ProfileOf(*queued->info);
  for (const auto& plugin : profile.plugins) {
    if ((queued->rejected_by & OnlyPlugin(plugin->id())) != 0) {
      state.rejected_by.emplace_back(plugin->name());
    }
    plugin->Describe(uid, state);
  }
  if (binding != bindings_.end()) state.node = binding->second.cycle->node_name;
  state.nominated_node = placements_.NominatedNode(uid);
  return state;
}

// ---- Changes in the cluster.

std::unique_ptr<client::Informer> Scheduler::Impl::MakeInformer(std::string_view group,
                                                                std::string_view version,
                                                                std::string_view kind,
                                                                client::InformerHandlers handlers,
                                                                bool may_be_missing) {
  auto informer = std::make_unique<client::Informer>(
      options_.loop, options_.random, client_,
      client::Informer::Options{.collection = {api::FindKind(group, version, kind), "", "", ""},
                                .may_be_missing = may_be_missing});
  informer->AddHandlers(std::move(handlers));
  informer->OnSynced([this] { OnInformerSynced(); });
  ++unsynced_;
  return informer;
}

void Scheduler::Impl::Start() {
  options_.loop.AssertInLoop();
  informers_.push_back(
      MakeInformer("", "v1", "Node",
                   {.on_add = [this](const ObjectPtr& node) { OnNode(nullptr, node); },
                    .on_update = [this](const ObjectPtr& before,
                                        const ObjectPtr& after) { OnNode(before, after); },
                    .on_delete = [this](const ObjectPtr& node) { OnNode(node, nullptr); }}));
  const auto on_namespace = [this](const ObjectPtr& ns) {
    namespaces_.Set(ns);
    queue_->OnEvent({EventKind::kNamespaceLabel, nullptr, ns, {}});
  };
  informers_.push_back(
      MakeInformer("", "v1", "Namespace",
                   {.on_add = on_namespace,
                    .on_update =
                        [on_namespace](const ObjectPtr& before, const ObjectPtr& after) {
                          if (!api::Equal(before->root()["metadata"]["labels"],
                                          after->root()["metadata"]["labels"])) {
                            on_namespace(after);
                          }
                        },
                    .on_delete = [this](const ObjectPtr& ns) { namespaces_.Remove(ns); }}));
  const auto changed = [this](EventKind kind) { queue_->OnEvent({kind, nullptr, nullptr, {}}); };
  if (options_.gates.Enabled(Gate::kGenericWorkload)) {
    const auto on_group = [this, changed](const ObjectPtr& group) {
      pod_groups_.Set(group);
      changed(EventKind::kPodGroupChange);
    };
    informers_.push_back(MakeInformer(
        "scheduling.k8s.io", "v1beta1", "PodGroup",
        {.on_add = on_group,
         .on_update = [on_group](const ObjectPtr&, const ObjectPtr& group) { on_group(group); },
         .on_delete = [this](const ObjectPtr& group) { pod_groups_.Remove(group); }},
        /*may_be_missing=*/true));
  }
  const auto add_devices = [&](std::string_view version, std::string_view kind, EventKind event,
                               void (DeviceState::*set)(const ObjectPtr&),
                               void (DeviceState::*remove)(const ObjectPtr&),
                               bool may_be_missing = false) {
    informers_.push_back(
        MakeInformer("resource.k8s.io", version, kind,
                     {.on_add =
                          [this, set, event, changed](const ObjectPtr& object) {
                            (devices_.*set)(object);
                            changed(event);
                          },
                      .on_update =
                          [this, set, event, changed](const ObjectPtr&, const ObjectPtr& object) {
                            (devices_.*set)(object);
                            changed(event);
                          },
                      .on_delete =
                          [this, remove, event, changed](const ObjectPtr& object) {
                            (devices_.*remove)(object);
                            changed(event);
                          }},
                     may_be_missing));
  };
  add_devices("v1", "ResourceSlice", EventKind::kSliceChange, &DeviceState::SetSlice,
              &DeviceState::RemoveSlice);
  add_devices("v1", "DeviceClass", EventKind::kClassChange, &DeviceState::SetClass,
              &DeviceState::RemoveClass);
  if (options_.gates.Enabled(Gate::kDRADeviceTaintRules)) {
    for (const std::string_view version : {"v1", "v1beta2", "v1alpha3"}) {
      if (api::FindKind("resource.k8s.io", version, "DeviceTaintRule") == nullptr) continue;
      add_devices(version, "DeviceTaintRule", EventKind::kSliceChange, &DeviceState::SetTaintRule,
                  &DeviceState::RemoveTaintRule, /*may_be_missing=*/true);
      break;
    }
  }
  informers_.push_back(MakeInformer(
      "resource.k8s.io", "v1", "ResourceClaim",
      {.on_add = [this](const ObjectPtr& claim) { claims_.Observe(claim); },
       .on_update = [this](const ObjectPtr&, const ObjectPtr& claim) { claims_.Observe(claim); },
       .on_delete = [this](const ObjectPtr& claim) { claims_.Remove(claim); }}));
  const auto set_budget = [this](const ObjectPtr& budget) { preemptor_.SetBudget(budget); };
  budgets_ = MakeInformer(
      "policy", "v1", "PodDisruptionBudget",
      {.on_add = set_budget,
       .on_update = [set_budget](const ObjectPtr&, const ObjectPtr& after) { set_budget(after); },
       .on_delete = [this](const ObjectPtr& budget) { preemptor_.RemoveBudget(budget); }});
  budgets_->Start();
  for (auto& informer : informers_) informer->Start();
}

// Pods come last, so that the objects they refer to are known when they enter the queue.
void Scheduler::Impl::OnInformerSynced() {
  if (--unsynced_ > 0) return;
  if (pods_ == nullptr) {
    pods_ = MakeInformer("", "v1", "Pod",
                         {.on_add = [this](const ObjectPtr& pod) { OnPod(nullptr, pod); },
                          .on_update = [this](const ObjectPtr& before,
                                              const ObjectPtr& after) { OnPod(before, after); },
                          .on_delete = [this](const ObjectPtr& pod) { OnPodGone(pod); }});
    pods_->Start();
    return;
  }
  ready_ = true;
  Wake();
}

void Scheduler::Impl::OnNode(const ObjectPtr& before, const ObjectPtr& after) {
  if (after == nullptr) {
    OnNodeGone(before);
    return;
  }
  devices_.SetNode(placements_.SetNode(after), after);
  ShowCacheSize();
  if (before == nullptr) {
    queue_->OnEvent({EventKind::kNodeAdd, nullptr, after, {}});
    return;
  }
  const Value old_root = before->root();
  const Value new_root = after->root();
  const auto differs = [&](Value a, Value b) { return !api::Equal(a, b); };
  const auto tell = [&](EventKind kind) { queue_->OnEvent({kind, before, after, {}}); };
  if (differs(old_root["status"]["allocatable"], new_root["status"]["allocatable"])) {
    tell(EventKind::kNodeAllocatable);
  }
  if (differs(old_root["metadata"]["labels"], new_root["metadata"]["labels"])) {
    tell(EventKind::kNodeLabel);
  }
  if (differs(old_root["spec"]["taints"], new_root["spec"]["taints"]) ||
      old_root["spec"]["unschedulable"].boolean() != new_root["spec"]["unschedulable"].boolean()) {
    tell(EventKind::kNodeTaint);
    OnNodeTainted(after);
  }
  if (differs(old_root["status"]["declaredFeatures"], new_root["status"]["declaredFeatures"])) {
    tell(EventKind::kNodeDeclaredFeatures);
  }
}

void Scheduler::Impl::OnNodeGone(const ObjectPtr& node) {
  const std::string name(node->name());
  const NodeIndex index = nodes_.Find(name);
  placements_.RemoveNode(name);
  devices_.RemoveNode(index, name);
  ShowCacheSize();
  queue_->OnEvent({EventKind::kNodeRemove, node, nullptr, {}});
  for (const CyclePtr& cycle : BindingsOn(name)) {
    ProfileOf(*cycle->pod)
        .framework.OnNodeLost(
            *cycle, StrCat("node ", name, " was deleted while the pod waited for devices"));
  }
}

// A pod that waits for devices on a node that is cordoned or tainted would be bound to it minutes
// later, after the drain. So the wait ends and the pod goes elsewhere.
void Scheduler::Impl::OnNodeTainted(const ObjectPtr& node) {
  const std::string name(node->name());
  const NodeIndex index = nodes_.Find(name);
  for (const CyclePtr& cycle : BindingsOn(name)) {
    Framework& framework = ProfileOf(*cycle->pod).framework;
    const std::string refusal = framework.RefusalByTaints(*cycle, index);
    if (refusal.empty()) continue;
    framework.OnNodeLost(*cycle,
                         StrCat("node ", name, " stopped accepting the pod while it waited ",
                                "for devices: ", refusal));
  }
}

std::vector<CyclePtr> Scheduler::Impl::BindingsOn(const std::string& node_name) const {
  std::vector<CyclePtr> found;
  for (const auto& [uid, binding] : bindings_) {
    if (binding.cycle->node_name == node_name) found.push_back(binding.cycle);
  }
  return found;
}

void Scheduler::Impl::OnPod(const ObjectPtr& before, const ObjectPtr& after) {
  // Most changes of a bound pod are status reports of its node.
  if (before != nullptr && !before->root()["spec"]["nodeName"].str().empty() &&
      before->root()["status"]["phase"].str() == after->root()["status"]["phase"].str() &&
      api::Equal(before->root()["spec"], after->root()["spec"]) &&
      before->is_being_deleted() == after->is_being_deleted() &&
      api::Equal(before->root()["metadata"]["labels"], after->root()["metadata"]["labels"]) &&
      HaveSameResources(before->root()["status"], after->root()["status"])) {
    return;
  }
  PodInfoPtr pod = MakePodInfo(after);
  const std::string& uid = pod->uid;
  if (after->is_being_deleted()) preemptor_.Forget(uid);
  if (!pod->node_name.empty()) {
    const std::string nominated = placements_.NominatedNode(uid);
    const bool was_nominated = placements_.Denominate(uid);
    queue_->Remove(uid);
    refusals_.Drop(uid);
    ForgetPod(uid);
    if (was_nominated && nominated != pod->node_name) OnRoomFreed(after);
    if (!pod->HasEnded()) {
      const Placements::Change change = placements_.Confirm(std::move(pod));
      const auto tell = [&](EventKind kind) { queue_->OnEvent({kind, before, after, {}}); };
      if (change.is_new) tell(EventKind::kBoundPodAdd);
      if (change.relabelled) tell(EventKind::kBoundPodLabel);
      if (change.freed) tell(EventKind::kBoundPodShrink);
    } else if (placements_.FindNodeOf(uid) != nullptr) {
      placements_.Remove(uid);
      OnRoomFreed(after);
    }
    ShowCacheSize();
    return;
  }
  if (pod->HasEnded() || after->is_being_deleted() ||
      FindProfile(after->root()["spec"]["schedulerName"].str(kDefaultSchedulerName)) == nullptr) {
    OnPodGone(after);
    return;
  }
  bool freed = false;
  if (!pod->nominated_node.empty()) {
    if (!placements_.IsAssumed(uid)) freed = placements_.Nominate(pod, pod->nominated_node);
  } else if (before != nullptr && !before->root()["status"]["nominatedNodeName"].str().empty()) {
    // The nomination was removed. If it was never visible, it is our own and still being written.
    freed = placements_.Denominate(uid);
    if (const auto binding = bindings_.find(uid); binding != bindings_.end()) {
      binding->second.nominated_node.clear();
    }
  }
  queue_->Update(std::move(pod));
  if (freed) OnRoomFreed(after);
}

void Scheduler::Impl::OnPodGone(const ObjectPtr& pod) {
  const std::string uid(pod->uid());
  const bool was_nominated = placements_.Denominate(uid);
  queue_->Remove(uid);
  refusals_.Drop(uid);
  ForgetPod(uid);
  preemptor_.Forget(uid);
  if (const auto binding = bindings_.find(uid); binding != bindings_.end()) {
    // The binding ends on its own, at the latest with an error when it is written. The pod's
    // resources are released then.
    binding->second.pod_gone = true;
    const CyclePtr cycle = binding->second.cycle;
    ProfileOf(*cycle->pod).framework.Cancel(*cycle);
    return;
  }
  const bool was_placed = placements_.FindNodeOf(uid) != nullptr;
  if (was_placed) {
    placements_.Remove(uid);
    ShowCacheSize();
  }
  if (was_placed || was_nominated) OnRoomFreed(pod);
}

void Scheduler::Impl::OnClaimChanged(const std::string& claim_key, const ObjectPtr& before,
                                     const ObjectPtr& after) {
  const auto is_allocated = [](const ObjectPtr& claim) {
    return claim != nullptr && claims::IsAllocated(claim->root());
  };
  ClusterEvent event{EventKind::kClaimUpdate, before, after, {}};
  if (before == nullptr) event.kind = EventKind::kClaimAdd;
  if (after == nullptr) event.kind = EventKind::kClaimDelete;
  // Freed devices may help every pod; anything else only the users of the claim. The pod that a
  // claim for extended resources was made for does not name it.
  const bool is_extended = before != nullptr && claims::IsForExtendedResources(before->root());
  if (!(is_allocated(before) && !is_allocated(after)) && !(is_extended && after == nullptr)) {
    event.only_claim = claim_key;
  }
  queue_->OnEvent(event);
  ForEachPlugin([&](Plugin& plugin) { plugin.OnClaimChanged(claim_key); });
}

bool Scheduler::Impl::IsBound(std::string_view pod_or_group) const {
  if (const ObjectPtr group = pod_groups_.FindByUid(pod_or_group); group != nullptr) {
    return IsAnyBound(*group);
  }
  const std::string uid(pod_or_group);
  if (placements_.FindNodeOf(uid) != nullptr) {
    if (!placements_.IsAssumed(uid)) return true;
    // Assumed without a binding in flight: the pod is bound, but the watch has not delivered that
    // yet.
    const auto binding = bindings_.find(uid);
    return binding == bindings_.end() || binding->second.is_being_written;
  }
  // An unknown pod may be bound.
  return queue_->Find(uid) == nullptr;
}

bool Scheduler::Impl::IsAnyBound(const api::Object& group) const {
  const std::string prefix = StrCat(group.namespace_(), "/");
  const auto& pods = pods_->objects();
  for (auto each = pods.lower_bound(prefix);
       each != pods.end() && std::string_view(each->first).starts_with(prefix); ++each) {
    if (claims::PodGroupOf(each->second->root()) == group.name() && IsBound(each->second->uid())) {
      return true;
    }
  }
  return false;
}

// ---- Scheduling.

void Scheduler::Impl::Wake() {
  if (!ready_ || stopped_ || scheduled_to_run_ || !queue_->HasReady()) return;
  if (binding_writes() >= kMaxBindingWrites) return;  // runs again when a binding ends
  scheduled_to_run_ = true;
  options_.loop.Post(lifetime_.Guard([this] {
    scheduled_to_run_ = false;
    RunSome();
  }));
}

void Scheduler::Impl::RunSome() {
  for (int i = 0; i < kCyclesPerTurn && !stopped_ && binding_writes() < kMaxBindingWrites; ++i) {
    const QueuedPod* queued = queue_->Pop();
    if (queued == nullptr) {
      ShowCacheSize();
      return;
    }
    ScheduleOne(*queued);
  }
  ShowCacheSize();
  Wake();
}

void Scheduler::Impl::ScheduleOne(const QueuedPod& queued) {
  auto cycle = std::make_shared<Cycle>();
  cycle->pod = queued.info;
  cycle->started = Now();
  const PodInfo& pod = *cycle->pod;
  if (bindings_.contains(pod.uid)) {
    // Its last binding has not ended yet; when it does, the pod returns to the queue.
    queue_->ReturnFailed(pod.uid);
    return;
  }
  Profile& profile = ProfileOf(pod);
  const std::string nominated = placements_.NominatedNode(pod.uid);
  const Decision decision =
      profile.framework.Decide(*cycle, nominated.empty() ? kNoNode : nodes_.Find(nominated));
  if (decision.status.IsRejected()) {
    profile.metrics.ObserveAttempt(SchedulerMetrics::Result::kUnschedulable,
                                   Now() - cycle->started);
    Refuse(cycle->pod, decision);
    return;
  }
  if (!decision.status.ok()) {
    profile.metrics.ObserveAttempt(SchedulerMetrics::Result::kError, Now() - cycle->started);
    Fail(pod, decision.status);
    return;
  }
  profile.metrics.ObserveAlgorithm(Now() - cycle->started);
  cycle->node = decision.node;
  cycle->node_name = nodes_.name(decision.node);
  placements_.Assume(cycle->pod, cycle->node_name);
  if (Status status = profile.framework.Reserve(*cycle); !status.ok()) {
    placements_.Forget(pod.uid);
    profile.metrics.ObserveAttempt(SchedulerMetrics::Result::kError, Now() - cycle->started);
    Fail(pod, status);
    return;
  }
  const bool left_its_room = placements_.Denominate(pod.uid) && nominated != cycle->node_name;
  bindings_[pod.uid] = {cycle, queued.attempts, queued.first_attempt_at.value_or(cycle->started),
                        false, false,           {}};
  queue_->OnBindingBegins(pod.uid);
  refusals_.Drop(pod.uid);
  if (left_its_room) OnRoomFreed(pod.pod);
  BindingCycle(cycle);
}

void Scheduler::Impl::BindingCycle(const CyclePtr& cycle) {
  Framework& framework = ProfileOf(*cycle->pod).framework;
  framework.PreBind(cycle, [this, &framework, cycle](Status status) {
    if (stopped_) return;
    if (!status.ok()) {
      OnBindingFailed(cycle, std::move(status));
      return;
    }
    if (nodes_.Find(cycle->node_name) == kNoNode) {
      OnBindingFailed(cycle, Status::Error(StrCat("node ", cycle->node_name, " is gone")));
      return;
    }
    bindings_.find(cycle->pod->uid)->second.is_being_written = true;
    framework.Bind(cycle, [this, cycle](Status bound) {
      if (bound.ok()) {
        OnBound(cycle);
      } else {
        OnBindingFailed(cycle, std::move(bound));
      }
    });
  });
}

void Scheduler::Impl::OnBound(const CyclePtr& cycle) {
  const PodInfo& pod = *cycle->pod;
  Profile& profile = ProfileOf(pod);
  const auto binding = bindings_.find(pod.uid);
  profile.metrics.ObserveAttempt(SchedulerMetrics::Result::kScheduled, Now() - cycle->started);
  profile.metrics.ObserveScheduled(binding->second.attempts, Now() - binding->second.first_attempt);
  const bool pod_gone = binding->second.pod_gone;
  bindings_.erase(binding);
  queue_->Done(pod.uid);
  ForgetPod(pod.uid);
  if (pod_gone) {
    // Deleted before the response to the binding arrived.
    placements_.Remove(pod.uid);
    OnRoomFreed(pod.pod);
  }
  profile.events.Record(pod.pod, client::EventKind::kNormal, "Scheduled",
                        StrCat("Successfully assigned ", pod.key, " to ", cycle->node_name),
                        "Binding");
  Wake();
}

void Scheduler::Impl::OnBindingFailed(const CyclePtr& cycle, Status status) {
  const PodInfo& pod = *cycle->pod;
  Profile& profile = ProfileOf(pod);
  const auto binding = bindings_.find(pod.uid);
  const bool pod_gone = binding->second.pod_gone;
  const std::string nominated = binding->second.nominated_node;
  bindings_.erase(binding);
  profile.framework.Unreserve(*cycle);
  if (pod_gone) {
    placements_.Remove(pod.uid);
  } else {
    placements_.Forget(pod.uid);
  }
  profile.metrics.ObserveAttempt(SchedulerMetrics::Result::kError, Now() - cycle->started);
  const ObjectPtr current = pods_->Find(pod.key);
  const bool is_unbound = !pod_gone && current != nullptr && current->uid() == pod.uid &&
                          current->root()["spec"]["nodeName"].str().empty();
  if (is_unbound) {
    // The nominated node is tried first, and resources are kept there, until the pod is placed.
    if (!nominated.empty() && nodes_.Find(nominated) != kNoNode) {
      placements_.Nominate(cycle->pod, nominated);
    }
    Fail(pod, status, cycle->retry);
  } else {
    queue_->Done(pod.uid);
  }
  OnRoomFreed(pod.pod);
  Wake();
}

std::string Scheduler::Impl::Preempt(Cycle& cycle) {
  const PodInfo& pod = *cycle.pod;
  if (!preemptor_.MayPreempt(pod)) return {};
  Profile& profile = ProfileOf(pod);
  const std::optional<PreemptionPlan> plan =
      preemptor_.Plan(pod, cycle.resolvable,
                      [&](NodeIndex node) { return profile.framework.FitsOn(cycle.pod, node); });
  if (!plan || plan->victims.empty()) return {};
  const std::string& node = nodes_.name(plan->node);
  placements_.Nominate(cycle.pod, node);
  pod_status_.Write(pod.pod, {.reason = {}, .message = {}, .nominated_node = node});
  for (const PodInfoPtr& victim : plan->victims) {
    profile.events.Record(victim->pod, client::EventKind::kNormal, "Preempted",
                          StrCat("Preempted by pod ", pod.uid, " on node ", node), "Preempting");
  }
  preemptor_.CarryOut(*plan, profile.name);
  return StrCat("preemption: evicting ", plan->victims.size(),
                plan->victims.size() == 1 ? " pod" : " pods", " of lower priority from node ",
                node);
}

void Scheduler::Impl::Refuse(const PodInfoPtr& pod, const Decision& decision) {
  std::string message = decision.diagnosis.Message(nodes_.node_count());
  SchedulerMetrics& metrics = ProfileOf(*pod).metrics;
  for (const auto& [reason, nodes] : decision.diagnosis.reasons()) {
    metrics.CountRefused(reason, nodes);
  }
  kLog.Debug("pod did not fit", {{"pod", pod->key}, {"reason", message}});
  queue_->ReturnRefused(pod->uid, decision.diagnosis.rejected_by);
  if (decision.diagnosis.has_post_filter_message()) {
    // A claim is being released, possibly because its devices failed. KEP-5007 requires this to be
    // reported even if the next attempt gets other devices.
    Tell(*pod, "Unschedulable", message);
  } else {
    refusals_.Put(pod, std::move(message));
  }
}

void Scheduler::Impl::Fail(const PodInfo& pod, const Status& status, Retry retry) {
  kLog.Warning("scheduling attempt failed", {{"pod", pod.key}, {"reason", status.Message()}});
  queue_->ReturnFailed(pod.uid, retry);
  Tell(pod, "SchedulerError", status.Message());
}

void Scheduler::Impl::Tell(const PodInfo& pod, std::string_view reason,
                           const std::string& message) {
  refusals_.Drop(pod.uid);
  const ObjectPtr current = pods_->Find(pod.key);
  const ObjectPtr& about = current != nullptr && current->uid() == pod.uid ? current : pod.pod;
  ProfileOf(pod).events.Record(about, client::EventKind::kWarning, "FailedScheduling", message,
                               "Scheduling");
  pod_status_.Write(about, {.reason = std::string(reason), .message = message});
}

}  // namespace drakkar::scheduler
