#include "node/node_agent.h"

#include <algorithm>

#include "api/json/json_writer.h"
#include "api/scheme/scheme.h"
#include "base/exec/lifetime.h"
#include "base/text/text.h"
#include "cdi/cache.h"
#include "client/event_recorder.h"
#include "client/informer.h"
#include "node/admission/node_features.h"
#include "node/checkpoint/blocking_work.h"
#include "node/checkpoint/checkpoint_file.h"
#include "node/cpus/cpu_pool.h"
#include "node/dra/dra_manager.h"
#include "node/dra/pod_resources.h"
#include "node/eviction/eviction_manager.h"
#include "node/health/health_monitor.h"
#include "node/health/update_channel.h"
#include "node/plugins/plugin_registrar.h"
#include "node/plugins/plugin_store.h"
#include "node/plugins/slice_wiper.h"
#include "node/pods/pod_manager.h"
#include "node/pods/source_watch.h"
#include "node/pods/volume_host.h"
#include "node/runtime/network/pod_network.h"
#include "node/status/forgotten_drivers.h"
#include "rpc/server/service_set.h"
#include "telemetry/log/log.h"
#include "telemetry/metrics/metrics.h"

namespace drakkar::node {
namespace {

constexpr Logger kLog("node");

cdi::Cache::Options CdiOptions(const NodeAgent::Options& options) {
  cdi::Cache::Options cdi;
  if (!options.cdi_directories.empty()) cdi.directories = options.cdi_directories;
  return cdi;
}

LimitRules LimitsOf(const NodeAgent::Options& options) {
  LimitRules limits = options.resources.limits;
  limits.machine_memory_bytes = options.facts.memory_bytes;
  for (const auto& [size, bytes] : options.facts.huge_pages) limits.page_sizes.push_back(size);
  limits.is_unified = options.resources.cgroups && options.resources.cgroups->is_unified();
  return limits;
}

NodeAmounts AllocatableOf(const NodeAgent::Options& options) {
  const auto rest = [](std::int64_t all, std::int64_t reserved) {
    return std::max<std::int64_t>(all - reserved, 0);
  };
  const NodeFacts& facts = options.facts;
  const NodeReservation& reserved = options.reserved;
  std::int64_t in_huge_pages = 0;
  for (const auto& [size, bytes] : facts.huge_pages) in_huge_pages += bytes;
  return {.cpu_milli = rest(facts.cpu_count * 1000, reserved.cpu_milli),
          .memory_bytes = rest(facts.memory_bytes, reserved.memory_bytes + in_huge_pages),
          .huge_pages = facts.huge_pages,
          .ephemeral_storage_bytes =
              rest(facts.ephemeral_storage_bytes, reserved.ephemeral_storage_bytes),
          .pods = facts.max_pods};
}

}  // namespace

// Destroyed in reverse order: the plugin store after everything that calls drivers. Stop destroys
// the pods first.
struct NodeAgent::Parts {
  explicit Parts(const Options& options)
      : loop(options.loop),
        network(options.network),
        runtime(options.runtime),
        wiper(options.loop, options.random, options.client, options.node_name),
        store(
            options.transport,
            {.on_added = [this](const PluginInstancePtr& plugin) { health.Add(plugin); },
             .on_removed = [this](const PluginInstancePtr& plugin) { health.Remove(plugin); },
             .on_connected = [this](const PluginInstancePtr& plugin) { health.Connected(plugin); },
             .on_usable =
                 [this](const std::string& driver, bool usable) {
                   wiper.SetUsable(driver, usable);
                   if (usable) {
                     DriverUsable(driver);
                   } else if (dra.IsForgotten(driver)) {
                     RetryWaiting();  // claims are then unprepared without it
                   }
                 }}),
        checkpoint(options.loop, options.files, options.blocking, options.root_directory,
                   options.checkpoint_side_file),
        dra({.loop = options.loop,
             .client = options.client,
             .plugins = store,
             .checkpoint = checkpoint,
             .gates = options.gates,
             .metrics = options.metrics,
             .wakefulness = options.wakefulness,
             .on_given_up = [this](const std::string& driver,
                                   const std::string& uid) { GivenUp(driver, uid); }}),
        health({.loop = options.loop,
                .files = options.files,
                .work = options.blocking,
                .gates = options.gates,
                .claims = dra.cache(),
                .metrics = options.metrics,
                .directory = options.root_directory,
                .on_changed = [this](const auto& changes) { HealthChanged(changes); }}),
        updates(options.loop, options.metrics,
                [this](const std::string& uid) {
                  if (pods) pods->HealthChanged(uid);
                }),
        cpus(MakeCpuPool(options)),
        resources(
            options.loop.clock(), dra.cache(), [this] { return ActivePods(); },
            cpus == nullptr ? nullptr : &cpus->manager()),
        events({.loop = options.loop,
                .client = options.client,
                .component = "kubelet",
                .instance = options.node_name,
                .host = options.node_name}),
        cdi(options.files, CdiOptions(options)),
        services(options.loop, options.random, options.client,
                 {.collection = {api::FindKind("", "v1", "Service"), "", "", ""},
                  .may_be_missing = true}),
        plain_volumes(MakePlainVolumeHost(options.files)),
        sources(options.loop, options.random, options.client,
                [this](const std::string& uid) {
                  if (pods) pods->VolumesChanged(uid);
                }),
        pulls(options.loop, options.runtime, options.pulls),
        context{
            .loop = options.loop,
            .files = options.files,
            .work = options.removing,
            .client = options.client,
            .runtime = options.runtime,
            .dra = dra,
            .cdi = cdi,
            .device_probe = options.device_probe,
            .volume_host = options.volume_host != nullptr ? *options.volume_host : *plain_volumes,
            .events = events,
            .node_name = options.node_name,
            .root_directory = options.root_directory,
            .log_root = options.log_directory,
            .host_ip = options.facts.addresses.empty() ? "" : options.facts.addresses.front(),
            .service_variables = options.service_variables,
            .pod_network_variables = options.pod_network_variables,
            .dns = options.dns,
            .network = options.network,
            .services = &services,
            .machine_memory_bytes = options.facts.memory_bytes,
            .machine_cpu_milli = options.facts.cpu_count * 1000,
            .allocatable = AllocatableOf(options),
            .sysctls = options.sysctls,
            .limits = LimitsOf(options),
            .cpus = cpus.get(),
            .pod_cgroup = [this](api::Value pod) { return cgroups.Prepare(pod); },
            .seccomp_default = options.seccomp_default,
            .metrics = options.metrics,
            .pulls = &pulls,
            .longest_crash_backoff = options.longest_crash_backoff,
            .prober = options.prober,
            .container_rules = options.gates.Enabled(Gate::kContainerRestartRules),
            .restart_all_containers =
                options.gates.Enabled(Gate::kRestartAllContainersOnContainerExits),
            .sources = options.watch_sources ? &sources : nullptr,
            .resource_health = ResourceHealth(options.gates)},
        registrar({.loop = options.loop,
                   .files = options.files,
                   .watcher = options.watcher,
                   .transport = options.transport,
                   .metrics = options.metrics,
                   .directory = options.registry_directory.empty()
                                    ? JoinPath(options.root_directory, "plugins_registry")
                                    : options.registry_directory,
                   .on_settled = [this](bool all_answered) { wiper.WipeLeftovers(all_answered); }},
                  store),
        node({.loop = options.loop,
              .client = options.client,
              .node_name = options.node_name,
              .facts = options.facts,
              .labels = options.labels,
              .agent_port = options.port,
              .not_ready_reason = [this] { return NotReadyReason(); },
              .runtime_version = [this] { return runtime.RuntimeVersion(); },
              .shared_network_reason = [this] { return SharedNetworkReason(); },
              .runtime_handlers =
                  [this] { return runtime.Handlers().value_or(std::vector<RuntimeHandler>()); },
              .images = [this] { return runtime.ListImages(); },
              .has_groups_policy = [this] { return runtime.HasGroupsPolicy(); },
              .reserved = options.reserved,
              .registration = options.registration,
              .has_pressure =
                  [this](std::string_view condition) { return eviction.HasCondition(condition); }}),
        forgotten(options.loop, options.random, options.client, options.node_name,
                  [this](const ForgottenDrivers::Change& change) { Forget(change); }),
        usage({.loop = options.loop,
               .files = options.files,
               .work = options.removing,
               .runtime = options.runtime,
               .disk = options.disk,
               .root_directory = options.root_directory,
               .memory_capacity_bytes = static_cast<std::uint64_t>(options.facts.memory_bytes),
               .cpu_count = options.facts.cpu_count,
               .pods_cgroup = options.resources.layout.Pods(),
               .measure = [&host = context.volume_host](
                              const std::string& path) { return host.Usage(path); }}),
        eviction({.loop = options.loop,
                  .thresholds = options.eviction_thresholds,
                  .transition_period = options.eviction_transition_period,
                  .max_pod_grace_seconds = options.eviction_max_pod_grace_seconds,
                  .read_machine =
                      [this](UsageCollector::Done done) { usage.GetMachine(std::move(done)); },
                  .read_all = [this](UsageCollector::Done done) { usage.Get(std::move(done)); },
                  .active_pods = [this] { return ActivePods(); },
                  .evict =
                      [this](const std::string& uid, PodVerdict verdict, Duration grace) {
                        if (pods) pods->Evict(uid, std::move(verdict), grace);
                      },
                  .is_gone =
                      [this](const std::string& uid) {
                        const auto active = ActivePods();
                        return std::none_of(active.begin(), active.end(),
                                            [&](const auto& pod) { return pod->uid() == uid; });
                      },
                  .free_images = options.free_images,
                  .on_reclaim =
                      [this](std::string_view resource) {
                        if (node.node() == nullptr) return;
                        events.Warning(node.node(), "EvictionThresholdMet",
                                       StrCat("Attempting to reclaim ", resource));
                      },
                  .on_conditions = [this] { node.Refresh(); }}),
        cgroups(
            {.loop = options.loop,
             .settings = options.resources,
             .uses_systemd = [this] { return runtime.UsesSystemdCgroups(); },
             .active_pods = [this] { return ActivePods(); },
             .on_enforced = [this](bool enforced,
                                   const std::string& message) { Enforced(enforced, message); }}),
        shutdown(
            {.loop = options.loop,
             .periods = options.shutdown_periods,
             .active_pods = [this] { return ActivePods(); },
             .evict =
                 [this](const std::string& uid, PodVerdict verdict, Duration grace) {
                   if (pods) pods->Evict(uid, std::move(verdict), grace);
                 },
             .is_gone = [this](const std::string& uid) { return HasTerminated(uid); },
             .on_changed =
                 [this](const std::string& message) {
                   if (node.node() != nullptr) {
                     events.Normal(node.node(), "NodeShutdown", message);
                   }
                   node.Refresh();
                 },
             .on_done = options.on_shutdown_done != nullptr ? options.on_shutdown_done : [] {}}) {
    context.refuse_new = [this](api::Value pod) {
      auto refusal = shutdown.Admit();
      return refusal ? refusal : eviction.Admit(pod);
    };
  }

  std::unique_ptr<CpuPool> MakeCpuPool(const Options& options) {
    if (!options.cpu_manager) return nullptr;
    return std::make_unique<CpuPool>(
        *options.cpu_manager,
        CpuPool::Options{.loop = options.loop,
                         .files = options.files,
                         .runtime = options.runtime,
                         .directory = options.root_directory,
                         .reconcile_every = options.cpu_reconcile_every,
                         .pods = [this]() -> std::optional<std::set<std::string>> {
                           return pods == nullptr ? std::nullopt : pods->ActivePods();
                         }});
  }

  std::function<api::Draft(api::Value, api::Value)> ResourceHealth(const FeatureGates& gates) {
    if (!gates.Enabled(Gate::kResourceHealthStatus)) return nullptr;
    return [this](api::Value pod, api::Value container) {
      return health.ResourceStatus(pod, container);
    };
  }

  // Retries everything that waits for a driver.
  void DriverUsable(const std::string& driver) {
    forgotten.Remove(driver);
    health.DriverUsable(driver);
    RetryWaiting();
  }

  void RetryWaiting() {
    if (pods) pods->DriverUsable();
    dra.ReconcileNow();
  }

  void Forget(const ForgottenDrivers::Change& change) {
    dra.SetForgottenDrivers(change.drivers);
    for (const std::string& driver : change.untold) {
      const bool connected = store.IsUsable(driver);
      const std::string message = StrCat(
          "DRA driver ", driver, " was declared gone: ",
          connected ? "it is still connected and in use; claims will be unprepared without it once "
                      "it disconnects"
                    : "claims will be unprepared without it");
      kLog.Warning("driver was declared gone", {{"driver", driver}, {"connected", connected}});
      events.Warning(change.node, "DriverForgotten", message);
    }
    RetryWaiting();
  }

  void GivenUp(const std::string& driver, const std::string& uid) {
    const api::ObjectPtr pod = FindPod(uid);
    if (pod == nullptr) return;
    events.Warning(
        pod, "DriverForgotten",
        StrCat("DRA driver ", driver, " was declared gone: claims were unprepared without it"));
  }

  api::ObjectPtr FindPod(const std::string& uid) const {
    if (pods == nullptr) return nullptr;
    auto worker = pods->workers().find(uid);
    return worker == pods->workers().end() ? nullptr : worker->second->pod();
  }

  void HealthChanged(const std::vector<HealthMonitor::Change>& changes) {
    // Write the status before the events: a client that waits for the status should not also have
    // to wait for the events.
    std::set<std::string> uids;
    for (const HealthMonitor::Change& change : changes) {
      uids.insert(change.pod_uids.begin(), change.pod_uids.end());
    }
    updates.Send("dra", uids);
    loop.Post(lifetime.Guard([this, changes] { TellOfUnhealthy(changes); }));
  }

  void TellOfUnhealthy(const std::vector<HealthMonitor::Change>& changes) {
    for (const HealthMonitor::Change& change : changes) {
      if (change.now.health != rpc::DeviceHealthState::kUnhealthy) continue;
      for (const std::string& uid : change.pod_uids) {
        const api::ObjectPtr pod = FindPod(uid);
        if (pod == nullptr || (*pod)["status"]["phase"].str() != "Running") continue;
        events.Warning(pod, "DeviceUnhealthy",
                       StrCat("device ", change.device.device, " of pool ", change.device.pool,
                              " of driver ", change.device.driver, " is unhealthy",
                              change.now.message.empty() ? "" : ": ", change.now.message));
      }
    }
  }

  std::vector<api::ObjectPtr> ActivePods() const {
    std::vector<api::ObjectPtr> active;
    if (pods == nullptr) return active;
    for (const auto& [uid, worker] : pods->workers()) {
      if (worker->pod() == nullptr) continue;
      const std::string_view phase = (*worker->pod())["status"]["phase"].str();
      if (phase != "Succeeded" && phase != "Failed") active.push_back(worker->pod());
    }
    return active;
  }

  std::optional<std::string> NotReadyReason() const {
    if (not_ready) return not_ready;
    if (auto why = shutdown.WhyNotReady()) return why;
    if (std::string why = runtime.WhyNotReady(); !why.empty()) return why;
    if (network == nullptr) return std::nullopt;
    const PodNetworkState state = network->State();
    if (state.mode != PodNetworkMode::kNotReady) return std::nullopt;
    return DescribeNotReady(state);
  }

  // Why pods share the host's network; nothing if they have their own.
  std::optional<std::string> SharedNetworkReason() const {
    if (network == nullptr) return std::nullopt;
    const PodNetworkState state = network->State();
    if (state.mode != PodNetworkMode::kHost) return std::nullopt;
    return StrCat("pods share the host's network: ", state.message);
  }

  void TellOfSharedNetwork() {
    const std::optional<std::string> why = SharedNetworkReason();
    if (why && node.node() != nullptr) events.Warning(node.node(), "PodsShareHostNetwork", *why);
  }

  bool HasTerminated(const std::string& uid) const {
    if (pods == nullptr) return true;
    const auto worker = pods->workers().find(uid);
    return worker == pods->workers().end() || IsTerminated(worker->second->stage());
  }

  void Enforced(bool enforced, const std::string& message) {
    if (node.node() == nullptr) return;
    if (enforced) {
      events.Normal(node.node(), "NodeAllocatableEnforced", message);
    } else {
      events.Warning(node.node(), "FailedNodeAllocatableEnforcement", message);
    }
  }

  void NetworkChanged() {
    node.Refresh();
    TellOfSharedNetwork();
    if (pods) pods->SyncAll();
  }

  EventLoop& loop;
  PodNetwork* const network;
  const Runtime& runtime;
  std::optional<std::string> not_ready = "container runtime is not open yet";
  std::optional<NodeFeatures> features;  // once the runtime is open
  std::unique_ptr<PodManager> pods;
  SliceWiper wiper;
  PluginStore store;
  CheckpointFile checkpoint;
  DraManager dra;
  HealthMonitor health;
  UpdateChannel updates;
  std::unique_ptr<CpuPool> cpus;  // null: containers share all CPUs
  PodResourcesView resources;
  std::unique_ptr<rpc::Server> resources_server;
  client::EventRecorder events;
  cdi::Cache cdi;
  client::Informer services;
  std::unique_ptr<VolumeHost> plain_volumes;
  SourceWatch sources;
  ImagePullQueue pulls;
  PodContext context;
  PluginRegistrar registrar;
  NodeRegistrar node;
  ForgottenDrivers forgotten;
  UsageCollector usage;
  EvictionManager eviction;
  PodCgroups cgroups;
  ShutdownManager shutdown;
  std::unique_ptr<LogRotation> rotation;  // once the runtime is open
  Lifetime lifetime;
};

NodeAgent::NodeAgent(Options options) : options_(std::move(options)) {}

NodeAgent::~NodeAgent() {
  Drop();
}

void NodeAgent::Start(std::function<void(Result<void>)> done) {
  options_.loop.AssertInLoop();
  parts_ = std::make_unique<Parts>(options_);
  Parts& parts = *parts_;
  auto fail = [&](Error error) {
    options_.loop.Post(parts.lifetime.Guard([done, error = std::move(error)] { done(error); }));
  };
  if (auto loaded = parts.dra.Load(); !loaded.ok()) return fail(loaded.error());
  if (parts.cpus != nullptr) {
    if (auto loaded = parts.cpus->Load(); !loaded.ok()) return fail(loaded.error());
  }
  parts.health.Load();
  options_.runtime.Open(parts.lifetime.Guard([this, done](Result<void> opened) {
    if (!opened.ok()) return done(opened.error().Prefixed("open the container runtime"));
    Parts& ready = *parts_;
    ready.not_ready.reset();
    if (auto started = ready.registrar.Start(); !started.ok()) {
      return done(started.error().Prefixed("watch the plugin registry"));
    }
    // Monitoring tools use this service; the node works without it.
    const std::string directory = JoinPath(options_.root_directory, "pod-resources");
    auto serving = options_.files.MakeDirectories(directory, 0750);
    if (serving.ok()) {
      ready.resources_server =
          rpc::CreateServer(options_.transport, JoinPath(directory, "kubelet.sock"),
                            {.pod_resources = &ready.resources});
      serving = ready.resources_server->Start();
    }
    if (!serving.ok()) {
      kLog.Error("could not serve the pod resources API", {{"err", serving.error().message}});
    }
    if (auto limited = ready.cgroups.Start(); !limited.ok()) {
      return done(limited.error().Prefixed("limit the pods of this node"));
    }
    if (ready.cpus != nullptr) ready.cpus->Start();
    ready.context.limits.counts_swap = ready.cgroups.counts_swap();
    ready.features.emplace(options_.features, options_.gates, options_.runtime.Features());
    ready.context.features = &*ready.features;
    ready.node.SetDeclaredFeatures(ready.features->declared_names());
    ready.pods = std::make_unique<PodManager>(ready.context, options_.random);
    ready.services.OnSynced([&ready] { ready.pods->SyncAll(); });
    ready.services.Start();
    ready.node.OnRegistered([&ready] { ready.TellOfSharedNetwork(); });
    ready.node.Start();
    if (ready.network != nullptr) {
      ready.network->OnStateChanged(ready.lifetime.Guard([&ready] { ready.NetworkChanged(); }));
    }
    ready.forgotten.Start();
    // Claims of deleted pods are unprepared as soon as the pods are listed, not in the next
    // reconcile.
    ready.pods->Start([&ready] { ready.dra.ReconcileNow(); });
    ready.rotation = std::make_unique<LogRotation>(options_.loop, options_.files, options_.runtime,
                                                   options_.logs);
    ready.rotation->Start();
    ready.eviction.Start();
    ready.dra.StartReconcile(
        [&ready] { return ready.pods != nullptr ? ready.pods->ActivePods() : std::nullopt; });
    kLog.Info("node agent started", {{"node", options_.node_name}});
    done(Ok());
  }));
}

void NodeAgent::SetPort(int port) {
  if (parts_ == nullptr) return;
  parts_->node.SetAgentPort(port);
  parts_->node.Refresh();
}

void NodeAgent::SetServiceVariables(std::map<std::string, std::string> variables) {
  if (parts_ != nullptr) parts_->context.service_variables = std::move(variables);
}

void NodeAgent::Stop() {
  if (parts_ != nullptr) parts_->checkpoint.Flush();
  Drop();
}

void NodeAgent::Drop() {
  if (parts_ == nullptr) return;
  parts_->pods.reset();
  parts_.reset();
}

void NodeAgent::BeginShutdown() {
  if (parts_ != nullptr) parts_->shutdown.Begin();
}
void NodeAgent::CancelShutdown() {
  if (parts_ != nullptr) parts_->shutdown.Cancel();
}

void NodeAgent::UpdateGauges() const {
  if (parts_ != nullptr) parts_->health.CountDevices();
}

const PodManager& NodeAgent::pods() const {
  return *parts_->pods;
}
const DraManager& NodeAgent::dra() const {
  return parts_->dra;
}
const PluginStore& NodeAgent::plugins() const {
  return parts_->store;
}
const HealthMonitor& NodeAgent::health() const {
  return parts_->health;
}

UsageCollector& NodeAgent::usage() const {
  return parts_->usage;
}
MachineIdentity NodeAgent::identity() const {
  return {.machine_id = options_.facts.machine_id,
          .system_uuid = options_.facts.system_uuid,
          .boot_id = options_.facts.boot_id};
}

std::string NodeAgent::DescribeDrivers() const {
  api::JsonWriter json({.indent = 0, .escape_html = false, .final_newline = false});
  json.BeginObject().Key("drivers").BeginArray();
  for (const std::string& driver : parts_->store.Drivers()) {
    json.BeginObject().Key("name").String(driver);
    json.Key("connected").Bool(parts_->store.IsUsable(driver)).EndObject();
  }
  json.EndArray().Key("cdiErrors").BeginArray();
  cdi::Cache specs(options_.files, CdiOptions(options_));
  specs.Refresh();
  for (const auto& [file, reasons] : specs.errors()) {
    for (const std::string& reason : reasons) {
      json.BeginObject().Key("file").String(file).Key("error").String(reason).EndObject();
    }
  }
  json.EndArray().EndObject();
  return json.Take();
}

}  // namespace drakkar::node
