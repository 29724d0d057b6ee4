#include "node/pods/pod_worker.h"

#include <algorithm>

#include "base/env/device_node.h"
#include "base/text/text.h"
#include "cdi/cache.h"
#include "client/event_recorder.h"
#include "node/checkpoint/blocking_work.h"
#include "node/cpus/cpu_pool.h"
#include "node/dra/dra_manager.h"
#include "node/pods/container_config.h"
#include "node/pods/environment.h"
#include "node/pods/environment_file.h"
#include "node/pods/service_variables.h"
#include "node/runtime/network/pod_network.h"
#include "telemetry/log/log.h"

namespace drakkar::node {
namespace {

using api::Value;

constexpr Logger kLog("node.pods");

}  // namespace

void PodWorker::StepRun(const PodPlan& plan) {
  RefreshVolumes();
  WatchSources();
  MeasureVolumes();
  const bool hook_runs = std::ranges::any_of(attempts_, [](const auto& attempt) {
    return attempt.second.post_start == PostStartHook::kRunning;
  });
  if (plan.start.empty() || hook_runs) return;
  if (retry_at_ > Tick()) return ArmTimer(retry_at_);
  if (!volumes_) return SetUpVolumes();
  // Claims are prepared before each new sandbox. A container that restarts in an existing sandbox
  // needs neither the claim nor its driver.
  const bool has_devices = facts_.ready_sandbox() != nullptr && context_.dra.KnowsDevices(root());
  if (!has_devices && !context_.dra.IsPrepared(root())) return PrepareClaims();
  if (facts_.ready_sandbox() == nullptr) return RunSandbox();
  if (facts_.restart_begins) {
    // The backoff of the container that requested the restart delays all containers.
    for (const auto* list : {&facts_.init, &facts_.regular}) {
      for (const ContainerFacts& each : *list) {
        if (!RestartsAll(each, Restart())) continue;
        if (const MonotonicTime when = StartTime(each); when > Tick()) return ArmTimer(when);
      }
    }
  }
  // Without the Services the environment would be incomplete. The agent calls Sync once they are
  // listed.
  if (context_.services != nullptr && !context_.services->has_synced()) return;
  std::optional<MonotonicTime> earliest;
  ShowPullBackOff();
  for (const ContainerFacts* container : plan.start) {
    if (IsPulling(container->name)) continue;
    const MonotonicTime when = StartTime(*container);
    if (when <= Tick()) {
      StartContainer(*container);
      // The images of several containers are pulled at once.
      if (IsPulling(container->name)) continue;
      return;
    }
    if (!earliest || when < *earliest) earliest = when;
  }
  if (earliest) ArmTimer(*earliest);
}

void PodWorker::SetUpVolumes() {
  if (!NeedsSources(root(), SourceUse::kVolumes)) return OnSources(PodSources{});
  Begin(PodOperation::kFetchingVolumeSources);
  FetchPodSources(context_.client, pod_, SourceUse::kVolumes, {tokens_, Now()},
                  lifetime_.Guard([this](Result<PodSources> sources) {
                    OnSources(std::move(sources));
                    End();
                  }));
}

void PodWorker::OnSources(Result<PodSources> sources) {
  Result<PreparedVolumes> volumes = PreparedVolumes{};
  if (!sources.ok()) {
    volumes = sources.error();
  } else {
    volumes = PrepareVolumes(Volumes(*sources));
  }
  if (!volumes.ok()) {
    context_.events.Warning(pod_, "FailedMount", volumes.error().message);
    BackOff();
  } else {
    volumes_ = std::move(*volumes);
    NoteSources(*sources);
    tokens_ = std::move(sources->tokens);
    refreshed_at_ = Tick();
    refresh_.due = Tick() + kRefreshEvery;
  }
  StepAgain();
}

void PodWorker::NoteSources(const PodSources& sources) {
  if (context_.sources == nullptr) return;
  ShownSources shown;
  for (const auto& [is_secret, objects] :
       {std::pair(false, &sources.config_maps), std::pair(true, &sources.secrets)}) {
    for (const auto& [name, object] : *objects) {
      if (object != nullptr && (*object)["immutable"].boolean()) continue;
      shown[{is_secret, std::string(pod_->namespace_()), name}] =
          object == nullptr ? 0 : object->resource_version();
    }
  }
  unwatched_sources_ = std::move(shown);
}

// Once a container runs: watches must not delay its start.
void PodWorker::WatchSources() {
  if (!unwatched_sources_ || !facts_.any_running()) return;
  context_.sources->Show(uid_, *std::exchange(unwatched_sources_, std::nullopt));
}

void PodWorker::VolumesChanged() {
  RefreshSoon();
  Sync();
}

void PodWorker::RefreshSoon() {
  if (refresh_.state == Chore::State::kInFlight) {
    refresh_again_ = true;
  } else {
    refresh_.due = std::min(refresh_.due, std::max(Tick(), refreshed_at_ + kRefreshPause));
  }
}

// Runs in parallel with everything else. If the refresh fails, the old content stays until the next
// one.
void PodWorker::RefreshVolumes() {
  if (!volumes_ || refresh_.state == Chore::State::kInFlight || !HasChangingVolumes(root())) return;
  if (refresh_.due > Tick()) return ArmTimer(refresh_.due);
  refresh_.state = Chore::State::kInFlight;
  auto finish = [this](Result<PodSources> sources) {
    refreshed_at_ = Tick();
    refresh_ = {Chore::State::kIdle, Tick() + kRefreshEvery};
    if (std::exchange(refresh_again_, false)) RefreshSoon();
    if (IsStopping()) return;
    auto volumes =
        sources.ok() ? PrepareVolumes(Volumes(*sources)) : Result<PreparedVolumes>(sources.error());
    if (volumes.ok()) {
      NoteSources(*sources);
      tokens_ = std::move(sources->tokens);
      WatchSources();
    } else {
      context_.events.Warning(pod_, "FailedMount", volumes.error().message);
    }
    ArmTimer(refresh_.due);
  };
  if (!NeedsSources(root(), SourceUse::kVolumes)) return finish(PodSources{});
  FetchPodSources(context_.client, pod_, SourceUse::kVolumes, {tokens_, Now()},
                  lifetime_.Guard(std::move(finish)));
}

// Runs in parallel with everything else. Writes that happen during a measurement count in the next
// one.
void PodWorker::MeasureVolumes() {
  if (!volumes_ || measure_.state == Chore::State::kInFlight || eviction_) return;
  struct Measured {
    std::string name, path;
    std::uint64_t limit_bytes;
  };
  std::vector<Measured> limited;
  for (const auto& [name, volume] : *volumes_) {
    if (volume.size_limit_bytes)
      limited.push_back({name, volume.host_path, *volume.size_limit_bytes});
  }
  if (limited.empty()) return;
  if (measure_.due > Tick()) return ArmTimer(measure_.due);
  measure_.state = Chore::State::kInFlight;
  auto full = std::make_shared<std::string>();
  context_.work.Run(
      [&host = context_.volume_host, limited = std::move(limited), full]() -> Result<void> {
        for (const Measured& each : limited) {
          ASSIGN_OR_RETURN(const std::uint64_t used, host.Usage(each.path));
          if (used > each.limit_bytes && full->empty()) *full = each.name;
        }
        return Ok();
      },
      lifetime_.Guard([this, full, begun = Tick()](Result<void> measured) {
        measure_ = {Chore::State::kIdle,
                    Tick() + std::max<Duration>(kMeasureEvery, 10 * (Tick() - begun))};
        if (!measured.ok()) {
          kLog.Warning("could not measure pod volumes",
                       {{"podUID", uid_}, {"err", measured.error().message}});
        }
        if (full->empty()) return ArmTimer(measure_.due);
        std::string_view limit;
        for (Value volume : root()["spec"]["volumes"].elements()) {
          if (volume["name"].str() == *full) limit = volume["emptyDir"]["sizeLimit"].str();
        }
        Evict({.reason = "Evicted",
               .message = StrCat("Usage of EmptyDir volume ", Quote(*full), " exceeds the limit ",
                                 Quote(limit), ". "),
               .is_disruption = true},
              kEvictionGrace);
      }));
}

void PodWorker::PrepareClaims() {
  if (IsInFlight(recovery_.state())) return;  // its end brings us here again
  Begin(PodOperation::kPreparingClaims);
  claims_call_.Apply(DriverEvent::kBegun);
  context_.dra.Prepare(pod_, lifetime_.Guard([this](Result<void> result) {
    const bool outdated = claims_call_.state() == DriverCall::kOutdated;
    claims_call_.Apply(result.ok() ? DriverEvent::kSucceeded : DriverEvent::kCallFailed);
    if (!result.ok()) {
      context_.events.Warning(
          pod_, "FailedPrepareDynamicResources",
          StrCat("Failed to prepare dynamic resources: ", result.error().message));
      if (outdated) retry_backoff_.Reset();
      BackOff();
    } else {
      retry_backoff_.Reset();
    }
    End();
  }));
}

// If the agent was killed right after the pod started, the checkpoint may hold the intent to
// prepare but not the drivers' answers. They are requested again in parallel with everything else:
// the pod keeps running whether or not this succeeds.
void PodWorker::RecoverDevices() {
  if (!recovery_.Accepts(DriverEvent::kBegun) || !facts_.any_running()) return;
  if (context_.dra.KnowsDevices(root())) {
    recovery_.Apply(DriverEvent::kNotNeeded);
    return;
  }
  if (recover_at_ > Tick()) return ArmTimer(recover_at_);
  recovery_.Apply(DriverEvent::kBegun);
  context_.dra.Prepare(pod_, lifetime_.Guard([this](Result<void> result) {
    const bool outdated = recovery_.state() == DriverCall::kOutdated;
    recovery_.Apply(result.ok() ? DriverEvent::kSucceeded : DriverEvent::kCallFailed);
    if (!result.ok()) {
      // On the first attempt after a start, drivers may not have registered yet.
      if (recover_backoff_.failures() > 0) {
        context_.events.Warning(
            pod_, "FailedPrepareDynamicResources",
            StrCat("Failed to prepare dynamic resources again: ", result.error().message));
      }
      if (outdated) recover_backoff_.Reset();
      recover_at_ = Tick() + recover_backoff_.Next();
    }
    Sync();
  }));
}

Result<PodSandboxConfig> PodWorker::SandboxConfig() {
  PodSandboxConfig config = MakeSandboxConfig(root(), facts_.next_sandbox_attempt(),
                                              PodLogDirectory(context_.log_root, root()));
  config.resources = PodLimits(context_.limits, root(), HasExclusiveCpus());
  if (context_.pod_cgroup) config.cgroup_parent = context_.pod_cgroup(root());
  if (!config.hostname.empty()) {
    ASSIGN_OR_RETURN(config.hostname, KernelHostname(root(), context_.dns.cluster_domain));
  }
  ASSIGN_OR_RETURN(const DnsConfig host, HostResolvConf(context_.files, context_.dns));
  PodDns dns = MakePodDns(root(), context_.dns, host);
  for (const std::string& remark : dns.remarks) {
    context_.events.Warning(pod_, "DNSConfigForming", remark);
  }
  config.dns = std::move(dns.config);
  config.runtime_handler = handler_.value_or("");
  return config;
}

bool PodWorker::HasExclusiveCpus() const {
  return context_.cpus != nullptr && context_.cpus->manager().HasExclusive(uid_);
}

CgroupResources PodWorker::LimitsOf(Value container) const {
  if (context_.cpus == nullptr) return ContainerLimits(context_.limits, root(), container);
  const CpuManager& cpus = context_.cpus->manager();
  const std::string name(container["name"].str());
  CgroupResources limits =
      ContainerLimits(context_.limits, root(), container, cpus.Exclusive(uid_, name) != nullptr);
  limits.cpuset_cpus = cpus.CpusOf(uid_, name).ToString();
  return limits;
}

void PodWorker::RunSandbox() {
  Begin(PodOperation::kCreatingSandbox);
  if (context_.network != nullptr && !root()["spec"]["hostNetwork"].boolean()) {
    if (const PodNetworkState state = context_.network->State();
        state.mode == PodNetworkMode::kNotReady) {
      // The agent calls Sync once it is ready.
      context_.events.Warning(pod_, "NetworkNotReady",
                              StrCat("network is not ready: ", DescribeNotReady(state)));
      BackOff();
      return End();
    }
  }
  if (handler_ || root()["spec"]["runtimeClassName"].str().empty()) return CreateSandbox();
  // The pod's first sandbox was made by an earlier agent.
  GetRuntimeClass([this](Result<api::ObjectPtr> found) {
    const std::string_view name = root()["spec"]["runtimeClassName"].str();
    if (!found.ok()) return FailSandbox(found.error().message);
    if (*found == nullptr) {
      return FailSandbox(StrCat("RuntimeClass ", Quote(name), " does not exist"));
    }
    handler_ = std::string((**found)["handler"].str());
    CreateSandbox();
  });
}

void PodWorker::FailSandbox(const std::string& message) {
  context_.events.Warning(pod_, "FailedCreatePodSandBox",
                          StrCat("Failed to create pod sandbox: ", message));
  BackOff();
  End();
}

void PodWorker::CreateSandbox() {
  auto config = SandboxConfig();
  if (!config.ok()) return FailSandbox(config.error().message);
  context_.runtime.RunPodSandbox(*std::move(config),
                                 lifetime_.Guard([this](Result<std::string> id) {
                                   if (!id.ok()) return FailSandbox(id.error().message);
                                   retry_backoff_.Reset();
                                   End();
                                 }));
}

// When the container may start: now, or after its crash or retry backoff.
MonotonicTime PodWorker::StartTime(const ContainerFacts& container) {
  if (auto retry = container_retry_.find(container.name); retry != container_retry_.end()) {
    if (retry->second.at > Tick()) return retry->second.at;
  }
  if (!container.ended()) return Tick();
  // It did not crash: it was stopped because it, or the whole pod, is to start again.
  if (container.restarts_for_change) return Tick();
  if (container.superseded && !RestartsAll(container, Restart())) return Tick();
  const ContainerStatus& last = *container.current;
  auto [entry, added] = crash_.try_emplace(container.name);
  CrashBackoff& backoff = entry->second;
  if (added && last.attempt > 0) {
    // Adopted from a previous agent: the attempt number says how often it was restarted.
    backoff.delay = std::min(kFirstCrashBackoff, context_.longest_crash_backoff);
    for (std::uint32_t i = 1; i < last.attempt && backoff.delay < context_.longest_crash_backoff;
         ++i)
      backoff.delay *= 2;
    backoff.delay = std::min(backoff.delay, context_.longest_crash_backoff);
  }
  if (backoff.for_id != last.id) {
    backoff.for_id = last.id;
    if (last.started_at != WallTime{} && last.finished_at - last.started_at >= kCrashBackoffReset) {
      backoff.delay = Duration::zero();
    }
    // Measured from the exit, but never longer than the backoff: the clock may have been set back.
    const Duration since =
        last.finished_at == WallTime{} ? Duration::zero() : Now() - last.finished_at;
    backoff.start_at = Tick() + backoff.delay - std::clamp(since, Duration::zero(), backoff.delay);
    if (backoff.start_at > Tick()) {
      const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(backoff.delay).count();
      const Value metadata = root()["metadata"];
      std::string shown =
          seconds >= 60 ? StrCat(seconds / 60, "m", seconds % 60, "s") : StrCat(seconds, "s");
      waiting_[container.name] = {
          "CrashLoopBackOff",
          StrCat("back-off ", shown, " restarting failed container=", container.name, " pod=",
                 metadata["name"].str(), "_", metadata["namespace"].str(), "(", uid_, ")")};
      context_.events.Warning(
          pod_, "BackOff",
          StrCat("Back-off restarting failed container ", container.name, " in pod ",
                 metadata["name"].str(), "_", metadata["namespace"].str(), "(", uid_, ")"));
    }
    backoff.delay = backoff.delay == Duration::zero()
                        ? std::min(kFirstCrashBackoff, context_.longest_crash_backoff)
                        : std::min(backoff.delay * 2, context_.longest_crash_backoff);
  }
  return backoff.start_at;
}

void PodWorker::FailContainer(const std::string& name, const char* reason,
                              const std::string& message) {
  waiting_[name] = {reason, message};
  context_.events.Warning(pod_, "Failed", StrCat("Error: ", message));
  ContainerRetry& retry = container_retry_[name];
  retry.at = Tick() + retry.backoff.Next();
  StepAgain();
}

void PodWorker::StartContainer(const ContainerFacts& container) {
  const std::string name = container.name;
  if (container.current && container.current->state == ContainerState::kCreated) {
    return StartCreated(name, container.current->id);
  }
  if (!HasImages(container)) return;
  const std::uint32_t attempt = container.current ? container.current->attempt + 1 : 0;
  if (!NeedsSources(root(), SourceUse::kEnvironment))
    return CreateContainer(name, attempt, PodSources{});
  Begin(PodOperation::kFetchingEnvironment);
  FetchPodSources(context_.client, pod_, SourceUse::kEnvironment, {tokens_, Now()},
                  lifetime_.Guard([this, name, attempt](Result<PodSources> sources) {
                    if (!sources.ok()) {
                      FailContainer(name, "CreateContainerConfigError", sources.error().message);
                      return End();
                    }
                    CreateContainer(name, attempt, *sources);
                  }));
}

Result<ContainerConfig> PodWorker::BuildConfig(Value spec, std::uint32_t attempt,
                                               const PodSources& sources) {
  const auto read_file = [this](const std::string& volume,
                                const std::string& path) -> Result<std::string> {
    const auto found = volumes_->find(volume);
    if (found == volumes_->end()) return NotFound("the pod has no such volume");
    return context_.volume_host.ReadInside(found->second.host_path, path, kMaxEnvironmentFileBytes);
  };
  ASSIGN_OR_RETURN(auto environment,
                   MakeEnvironment({Downward(), spec, sources,
                                    PodServiceVariables(
                                        root(),
                                        HasOwnNetwork() && !context_.pod_network_variables.empty()
                                            ? context_.pod_network_variables
                                            : context_.service_variables,
                                        context_.services),
                                    read_file}));
  std::map<std::string, std::string> variables;
  for (const EnvironmentVariable& each : environment) variables[each.name] = each.value;
  ASSIGN_OR_RETURN(auto mounts,
                   MakeMounts({context_.volume_host, PodDirectory(), *volumes_, spec, variables}));
  const std::string name(spec["name"].str());
  // The container's own mount takes precedence.
  if (std::none_of(mounts.begin(), mounts.end(),
                   [](const Mount& mount) { return mount.container_path == "/etc/hosts"; })) {
    const std::string file = JoinPath(PodDirectory(), "etc-hosts");
    RETURN_IF_ERROR(WriteHostsFile(
        context_.files,
        {.pod = root(), .pod_ips = PodIps(), .cluster_domain = context_.dns.cluster_domain}, file));
    mounts.push_back({.host_path = file, .container_path = "/etc/hosts"});
  }
  // What the container writes to this file becomes its termination message.
  const std::string message_path(spec["terminationMessagePath"].str());
  if (!message_path.empty()) {
    const std::string directory = StrCat(PodDirectory(), "/containers/", name);
    RETURN_IF_ERROR(context_.files.MakeDirectories(directory, 0755));
    const std::string file = StrCat(directory, "/", attempt);
    RETURN_IF_ERROR(context_.files.WriteFile(file, "", 0666));
    RETURN_IF_ERROR(context_.files.SetMode(file, 0666));
    mounts.push_back({.host_path = file, .container_path = message_path});
  }
  ASSIGN_OR_RETURN(const auto devices, context_.dra.CdiDevices(root(), spec));
  ASSIGN_OR_RETURN(
      ContainerConfig config,
      MakeContainerConfig({.pod = root(),
                           .container = spec,
                           .attempt = attempt,
                           .pod_run = facts_.run,
                           .limits = LimitsOf(spec),
                           .seccomp_directory = JoinPath(context_.root_directory, "seccomp"),
                           .seccomp_default = context_.seccomp_default,
                           .environment = std::move(environment),
                           .mounts = std::move(mounts)}));
  RETURN_IF_ERROR(ApplyCdi(context_.cdi, context_.device_probe, devices, config,
                           context_.runtime.CdiDirectories()));
  if (const std::string target(spec["targetContainerName"].str()); !target.empty()) {
    // An ephemeral container with a target shares the target's process namespace, so the target
    // must be running.
    for (const auto* list : {&facts_.init, &facts_.regular}) {
      for (const ContainerFacts& each : *list) {
        if (each.name == target && each.running()) config.process_namespace_of = each.current->pid;
      }
    }
    if (config.process_namespace_of == 0) {
      return FailedPrecondition(StrCat("target container ", target, " is not running"));
    }
  }
  return config;
}

void PodWorker::CreateContainer(const std::string& name, std::uint32_t attempt,
                                const PodSources& sources) {
  Begin(PodOperation::kCreatingContainer);
  // The pod may have changed while the sources were fetched.
  const PodSandbox* sandbox = facts_.ready_sandbox();
  if (IsDeleted() || sandbox == nullptr) return End();
  auto config = BuildConfig(FindSpec(name), attempt, sources);
  if (!config.ok()) {
    FailContainer(name, "CreateContainerConfigError", config.error().message);
    return End();
  }
  context_.runtime.CreateContainer(
      sandbox->id, std::move(*config), lifetime_.Guard([this, name](Result<std::string> id) {
        if (!id.ok()) {
          FailContainer(name, "CreateContainerError", id.error().message);
          return End();
        }
        context_.events.Normal(pod_, "Created", StrCat("Created container: ", name));
        StartCreated(name, *id);
      }));
}

void PodWorker::StartCreated(const std::string& name, const std::string& id) {
  Begin(PodOperation::kStartingContainer);
  context_.runtime.StartContainer(id, lifetime_.Guard([this, name, id](Result<void> result) {
    if (!result.ok()) {
      FailContainer(name, "RunContainerError", result.error().message);
    } else {
      waiting_.erase(name);
      container_retry_.erase(name);
      std::erase_if(pulls_, [&](const auto& pull) {
        return pull.first == name || pull.first.starts_with(name + "/");
      });
      context_.events.Normal(pod_, "Started", StrCat("Started container ", name));
      RemoveStale();
      RunPostStart(name, id);
    }
    End();
  }));
}

// Keeps the current attempt and the previous one.
void PodWorker::RemoveStale() {
  const PodFacts facts = LookAtRuntime();
  for (const auto* list : {&facts.init, &facts.regular}) {
    for (const ContainerFacts& each : *list) {
      for (const std::string& id : each.stale) {
        if (auto status = context_.runtime.GetContainerStatus(id);
            status.ok() && !status->log_path.empty()) {
          (void)context_.files.Remove(status->log_path);
        }
        termination_messages_.erase(id);
        attempts_.erase(id);
        context_.runtime.RemoveContainer(id, [](Result<void>) {});
      }
    }
  }
}

}  // namespace drakkar::node
