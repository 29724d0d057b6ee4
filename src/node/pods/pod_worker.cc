#include "node/pods/pod_worker.h"

#include <algorithm>

#include "api/meta/time.h"
#include "api/scheme/scheme.h"
#include "base/env/device_node.h"
#include "base/text/text.h"
#include "cdi/cache.h"
#include "node/dra/dra_manager.h"
#include "node/dra/pod_claims.h"
#include "node/pods/container_config.h"
#include "node/pods/environment.h"
#include "node/status/event_recorder.h"
#include "node/status/node_features.h"
#include "telemetry/log/log.h"
#include "telemetry/metrics/metrics.h"

namespace drakkar::node {
namespace {

using api::Value;

constexpr Logger kLog("node.pods");
constexpr std::size_t kMaxTerminationMessage = 4'096;
constexpr std::size_t kMaxFallbackMessage = 2'048;

}  // namespace

PodWorker::PodWorker(PodContext& context, std::string uid, std::function<void()> on_finished)
    : context_(context), uid_(std::move(uid)), on_finished_(std::move(on_finished)) {}

PodWorker::~PodWorker() = default;

// --- what happens outside

void PodWorker::Update(const api::ObjectPtr& pod) {
  context_.loop.AssertInLoop();
  if (gone_ || pod->uid() != uid_) return;
  if (pod_ != nullptr && pod->resource_version() < pod_->resource_version()) return;
  if (pod_ != nullptr && admitted_ && context_.features != nullptr) {
    if (const auto problem = context_.features->CheckUpdate(root(), pod->root())) {
      context_.events.Warning(pod->root(), "FailedNodeDeclaredFeaturesCheck", *problem);
    }
  }
  pod_ = pod;
  Sync();
}

void PodWorker::ObjectGone() {
  gone_ = true;
  Sync();
}

void PodWorker::DriverUsable() {
  driver_came_ = true;
  if (!waits_for_driver_) return;
  retry_at_ = WallTime{};
  retry_delay_ = kFirstRetry;
  Sync();
}

void PodWorker::Sync() {
  context_.loop.AssertInLoop();
  if (finished_) return;
  again_ = true;
  if (stepping_) return;
  stepping_ = true;
  while (again_ && !busy_ && !finished_) {
    again_ = false;
    Step();
  }
  stepping_ = false;
  if (finished_) return;
  WriteStatus();
}

void PodWorker::End() {
  busy_ = false;
  Sync();
}

void PodWorker::ArmTimer(WallTime when) {
  if (timer_ && timer_at_ <= when) return;
  timer_at_ = when;
  timer_ = context_.loop.RunAfter(std::max<Duration>(when - Now(), Duration::zero()), [this] {
    timer_.reset();
    Sync();
  });
}

// --- deciding

bool PodWorker::IsOverInApi() const {
  const std::string_view phase = root()["status"]["phase"].str();
  return phase == "Succeeded" || phase == "Failed";
}

void PodWorker::Step() {
  facts_ = LookAtRuntime();
  ReadTerminationMessages();
  const PodPlan plan = PlanPod(facts_, Restart());
  // A pod that starts over does not become uninitialized by it.
  initialized_ = plan.initialized || facts_.run > 0;
  if (AdmissionWantsClaims()) return FetchAdmissionClaims();
  DecideStop(plan);
  SyncProbes();
  if (stopping_) {
    StepStop();
  } else if (StopSupersededContainers()) {
    StepRun(plan);
  }
}

PodFacts PodWorker::LookAtRuntime() const {
  PodFacts facts = CollectFacts(root(), uid_, context_.runtime);
  MarkRuns(facts, Restart());
  facts.pod = pod_;
  return facts;
}

RestartSettings PodWorker::Restart() const {
  return ReadRestartSettings(root(), context_.container_rules, context_.restart_all_containers);
}

// Without grace and hooks: what follows is a fresh start of the same pod, in the same sandbox, with
// the same volumes and devices (KEP-5532).
bool PodWorker::StopSupersededContainers() {
  if (!facts_.any_superseded_running()) return true;
  for (const auto* list : {&facts_.regular, &facts_.init}) {
    for (const ContainerFacts& each : *list) {
      if (!each.superseded || !each.running()) continue;
      if (!stops_.try_emplace(each.current->id, Now()).second) continue;
      context_.events.Normal(root(), "Killing",
                             StrCat("Stopping container ", each.name,
                                    ", all containers of the pod will be restarted"));
      StopOne(each.current->id, each.name, Duration::zero());
    }
  }
  return false;
}

// Every running container has its probes, and none that belong to an earlier run.
void PodWorker::SyncProbes() {
  if (stopping_) return probes_.clear();
  for (const auto* list : {&facts_.init, &facts_.regular}) {
    for (const ContainerFacts& each : *list) {
      if ((each.init && !each.sidecar) || !ContainerProbes::HasProbes(each.spec)) continue;
      auto found = probes_.find(each.name);
      if (!each.running()) {
        if (found != probes_.end()) probes_.erase(found);
        continue;
      }
      const std::string& id = each.current->id;
      if (found != probes_.end() && found->second->container_id() == id) continue;
      const std::string name = each.name;
      auto later = [this](std::function<void()> task) {
        // Not from inside the probes: what follows may replace them.
        context_.loop.Post([task = std::move(task), alive = Alive()] {
          if (alive.lock()) task();
        });
      };
      probes_[name] = std::make_unique<ContainerProbes>(
          ContainerProbes::Options{.loop = context_.loop,
                                   .runtime = context_.runtime,
                                   .network = context_.prober,
                                   .pod = pod_,
                                   .container = each.spec,
                                   .container_id = id,
                                   .pod_ip = context_.host_ip,
                                   .started_at = each.current->started_at},
          ContainerProbes::Callbacks{
              .on_change = [this, later] { later([this] { Sync(); }); },
              .on_dead =
                  [this, later, name, id](const std::string& why) {
                    later([this, name, id, why] {
                      context_.events.Normal(root(), "Killing",
                                             StrCat("Container ", name, " ", why, ", will be restarted"));
                      const std::int64_t grace = root()["spec"]["terminationGracePeriodSeconds"].integer(30);
                      StopOne(id, name, std::chrono::seconds(grace));
                    });
                  },
              .on_failure =
                  [this, later](const std::string& message) {
                    later([this, message] { context_.events.Warning(root(), "Unhealthy", message); });
                  }});
    }
  }
}

bool PodWorker::AdmissionWantsClaims() const {
  if (stopping_ || admitted_ || claims_fetched_ || IsDeleted() || IsOverInApi()) return false;
  if (context_.features == nullptr || !context_.features->AsksClaims()) return false;
  const auto claims = ListPodClaims(root());
  return claims.ok() && !claims->empty();
}

// What claims ask of the node is in their allocation. A claim that cannot be read asks for nothing:
// preparing it fails and says why.
void PodWorker::FetchAdmissionClaims() {
  Begin();
  const auto claims = ListPodClaims(root());
  const auto* kind = api::FindResource("resource.k8s.io", "v1", "resourceclaims");
  auto missing = std::make_shared<std::size_t>(claims->size());
  for (const PodClaim& claim : *claims) {
    context_.client.Get({kind, std::string(pod_->namespace_()), claim.claim_name, ""},
                        [this, missing, alive = Alive()](client::Reply reply) {
                          if (!alive.lock()) return;
                          if (reply.ok()) admission_claims_.push_back(reply.object);
                          if (--*missing > 0) return;
                          claims_fetched_ = true;
                          End();
                        });
  }
}

void PodWorker::DecideStop(const PodPlan& plan) {
  if (stopping_) return;
  if (IsDeleted() || IsOverInApi()) {
    stopping_ = true;
  } else if (!admitted_) {
    admitted_ = true;
    if (context_.features != nullptr) {
      verdict_ = context_.features->Check(root(), admission_claims_);
    }
    admission_claims_.clear();
    if (!verdict_ && context_.dra.FindDisallowedSkip(uid_)) {
      // Known from before the restart, whether or not the claim could be read now.
      verdict_ = PodVerdict{std::string(features::kPodFeatureUnsupported),
                            features::PodRejectedMessage({"DraOptionalNodePreparation"})};
    }
    if (verdict_) {
      if (context_.metrics != nullptr) {
        context_.metrics->GetCounter("kubelet_admission_rejections_total",
                                     "Cumulative number pod admission rejections by the Kubelet.",
                                     {{"reason", verdict_->reason}}).Add();
      }
      context_.events.Warning(root(), verdict_->reason, verdict_->message);
      kLog.Warning("a pod is rejected", {{"podUID", uid_}, {"reason", verdict_->reason}, {"err", verdict_->message}});
      verdict_->message = StrCat("Pod was rejected: ", verdict_->message);
      stopping_ = true;
    } else if (const auto ignored = ListIgnoredFields(root(), context_.prober != nullptr); !ignored.empty()) {
      context_.events.Warning(root(), "UnsupportedFields",
                              StrCat("this node does not act on: ", Join(ignored, ", ")));
    }
  }
  if (!stopping_ && plan.finished) stopping_ = true;
  if (const auto deadline = root()["spec"]["activeDeadlineSeconds"].optional_integer();
      !stopping_ && deadline) {
    auto started = api::ParseTime(root()["status"]["startTime"].str());
    const WallTime end = (started.ok() ? *started : Now()) + std::chrono::seconds(*deadline);
    if (end > Now()) {
      ArmTimer(end);
    } else {
      verdict_ = PodVerdict{"DeadlineExceeded",
                            "Pod was active on the node longer than the specified deadline"};
      context_.events.Normal(root(), verdict_->reason, verdict_->message);
      stopping_ = true;
    }
  }
  if (stopping_) {
    stop_started_ = Now();
    retry_at_ = WallTime{};
    retry_delay_ = kFirstRetry;
    waits_for_driver_ = false;
  }
}

// --- running

void PodWorker::StepRun(const PodPlan& plan) {
  if (plan.start.empty()) return;
  if (retry_at_ > Now()) return ArmTimer(retry_at_);
  if (!volumes_) return SetUpVolumes();
  if (!context_.dra.IsPrepared(root())) return PrepareClaims();
  if (facts_.ready_sandbox() == nullptr) return RunSandbox();
  if (facts_.restart_begins) {
    // The container that asked for it sets the pace: one that does so again and again is held back,
    // and all others with it.
    for (const auto* list : {&facts_.init, &facts_.regular}) {
      for (const ContainerFacts& each : *list) {
        if (!RestartsAll(each, Restart())) continue;
        if (const WallTime when = StartTime(each); when > Now()) return ArmTimer(when);
      }
    }
  }
  std::optional<WallTime> earliest;
  for (const ContainerFacts* container : plan.start) {
    const WallTime when = StartTime(*container);
    if (when <= Now()) return StartContainer(*container);
    if (!earliest || when < *earliest) earliest = when;
  }
  if (earliest) ArmTimer(*earliest);
}

void PodWorker::RetryPod() {
  retry_at_ = Now() + retry_delay_;
  retry_delay_ = std::min(retry_delay_ * 2, kLongestRetry);
}

DownwardInput PodWorker::Downward() const {
  return {.pod = root(),
          .node_name = context_.node_name,
          .host_ip = context_.host_ip,
          .pod_ip = context_.host_ip,
          .allocatable_cpu_milli = context_.machine_cpu_milli,
          .allocatable_memory_bytes = context_.machine_memory_bytes};
}

std::string PodWorker::PodDirectory() const {
  return StrCat(context_.root_directory, "/pods/", uid_);
}

client::ResourceRef PodWorker::Ref(std::string subresource) const {
  return {api::FindResource("", "v1", "pods"), std::string(pod_->namespace_()),
          std::string(pod_->name()), std::move(subresource)};
}

void PodWorker::SetUpVolumes() {
  if (!NeedsSources(root())) return OnSources(PodSources{});
  Begin();
  FetchPodSources(context_.client, pod_, Alive(), [this](Result<PodSources> sources) {
    OnSources(std::move(sources));
    End();
  });
}

void PodWorker::OnSources(Result<PodSources> sources) {
  Result<PreparedVolumes> volumes = PreparedVolumes{};
  if (!sources.ok()) {
    volumes = sources.error();
  } else {
    volumes = PrepareVolumes({context_.files, PodDirectory(), Downward(), *sources});
  }
  if (!volumes.ok()) {
    context_.events.Warning(root(), "FailedMount", volumes.error().message);
    RetryPod();
  } else {
    volumes_ = std::move(*volumes);
  }
  again_ = true;
}

void PodWorker::PrepareClaims() {
  Begin();
  driver_came_ = false;
  context_.dra.Prepare(pod_, [this, alive = Alive()](Result<void> result) {
    if (!alive.lock()) return;
    waits_for_driver_ = !result.ok();
    if (!result.ok()) {
      context_.events.Warning(root(), "FailedPrepareDynamicResources",
                              StrCat("Failed to prepare dynamic resources: ", result.error().message));
      if (driver_came_) retry_delay_ = kFirstRetry;  // the call may have gone to its predecessor
      RetryPod();
    } else {
      retry_delay_ = kFirstRetry;
    }
    End();
  });
}

void PodWorker::RunSandbox() {
  Begin();
  const std::string logs = PodLogDirectory(context_.log_root, root());
  context_.runtime.RunPodSandbox(
      MakeSandboxConfig(root(), facts_.next_sandbox_attempt(), logs),
      [this, alive = Alive()](Result<std::string> id) {
        if (!alive.lock()) return;
        if (!id.ok()) {
          context_.events.Warning(root(), "FailedCreatePodSandBox",
                                  StrCat("Failed to create pod sandbox: ", id.error().message));
          RetryPod();
        } else {
          retry_delay_ = kFirstRetry;
        }
        End();
      });
}

// When the container may start: at once, or after the backoff of a crash or of a failed attempt.
WallTime PodWorker::StartTime(const ContainerFacts& container) {
  if (auto retry = container_retry_.find(container.name); retry != container_retry_.end()) {
    if (retry->second.first > Now()) return retry->second.first;
  }
  if (!container.ended()) return Now();
  // It did not crash, it was ended with all others.
  if (container.superseded && !RestartsAll(container, Restart())) return Now();
  const ContainerStatus& last = *container.current;
  auto [entry, added] = crash_.try_emplace(container.name);
  CrashBackoff& backoff = entry->second;
  if (added && last.attempt > 0) {
    // Adopted: as many restarts behind it as the attempt says.
    backoff.delay = kFirstCrashBackoff;
    for (std::uint32_t i = 1; i < last.attempt && backoff.delay < kLongestCrashBackoff; ++i) backoff.delay *= 2;
    backoff.delay = std::min(backoff.delay, kLongestCrashBackoff);
  }
  if (backoff.for_id != last.id) {
    backoff.for_id = last.id;
    if (last.started_at != WallTime{} && last.finished_at - last.started_at >= kCrashBackoffReset) {
      backoff.delay = Duration::zero();
    }
    const WallTime ended = last.finished_at == WallTime{} ? Now() : last.finished_at;
    backoff.start_at = backoff.delay == Duration::zero() ? Now() : ended + backoff.delay;
    if (backoff.start_at > Now()) {
      const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(backoff.delay).count();
      const Value metadata = root()["metadata"];
      std::string shown = seconds >= 60 ? StrCat(seconds / 60, "m", seconds % 60, "s") : StrCat(seconds, "s");
      waiting_[container.name] = {
          "CrashLoopBackOff",
          StrCat("back-off ", shown, " restarting failed container=", container.name, " pod=",
                 metadata["name"].str(), "_", metadata["namespace"].str(), "(", uid_, ")")};
      context_.events.Warning(root(), "BackOff",
                              StrCat("Back-off restarting failed container ", container.name,
                                     " in pod ", metadata["name"].str(), "_",
                                     metadata["namespace"].str(), "(", uid_, ")"));
    }
    backoff.delay = backoff.delay == Duration::zero() ? kFirstCrashBackoff
                                                      : std::min(backoff.delay * 2, kLongestCrashBackoff);
  }
  return backoff.start_at;
}

void PodWorker::FailContainer(const std::string& name, const char* reason,
                              const std::string& message) {
  waiting_[name] = {reason, message};
  context_.events.Warning(root(), "Failed", StrCat("Error: ", message));
  auto [entry, added] = container_retry_.try_emplace(name, WallTime{}, kFirstRetry);
  entry->second.first = Now() + entry->second.second;
  entry->second.second = std::min(entry->second.second * 2, kLongestRetry);
  again_ = true;
}

void PodWorker::StartContainer(const ContainerFacts& container) {
  const std::string name = container.name;
  if (container.current && container.current->state == ContainerState::kCreated) {
    Begin();
    return StartCreated(name, container.current->id);
  }
  if (auto image = context_.runtime.ImageStatus(std::string(container.spec["image"].str())); !image.ok()) {
    const bool never = container.spec["imagePullPolicy"].str() == "Never";
    const bool known = waiting_.contains(name);
    return FailContainer(name,
                         image.error().code != ErrorCode::kNotFound ? "ImageInspectError"
                         : never ? "ErrImageNeverPull"
                         : known ? "ImagePullBackOff" : "ErrImagePull",
                         image.error().message);
  }
  const std::uint32_t attempt = container.current ? container.current->attempt + 1 : 0;
  Begin();
  if (!NeedsSources(root())) return CreateContainer(name, attempt, PodSources{});
  FetchPodSources(context_.client, pod_, Alive(), [this, name, attempt](Result<PodSources> sources) {
    if (!sources.ok()) {
      FailContainer(name, "CreateContainerConfigError", sources.error().message);
      return End();
    }
    CreateContainer(name, attempt, *sources);
  });
}

Value PodWorker::FindSpec(const std::string& name) const {
  for (const char* list : {"initContainers", "containers"}) {
    for (Value each : root()["spec"][list].elements()) {
      if (each["name"].str() == name) return each;
    }
  }
  return Value();
}

Result<ContainerConfig> PodWorker::BuildConfig(Value spec, std::uint32_t attempt,
                                               const PodSources& sources) {
  ASSIGN_OR_RETURN(auto environment, MakeEnvironment({Downward(), spec, sources, context_.service_variables}));
  std::map<std::string, std::string> variables;
  for (const EnvironmentVariable& each : environment) variables[each.name] = each.value;
  ASSIGN_OR_RETURN(auto mounts, MakeMounts(context_.files, *volumes_, spec, variables));
  const std::string name(spec["name"].str());
  // What the container writes here before it ends becomes its message.
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
  ASSIGN_OR_RETURN(ContainerConfig config,
                   MakeContainerConfig({.pod = root(),
                                        .container = spec,
                                        .attempt = attempt,
                                        .pod_run = facts_.run,
                                        .machine_memory_bytes = context_.machine_memory_bytes,
                                        .environment = std::move(environment),
                                        .mounts = std::move(mounts)}));
  RETURN_IF_ERROR(ApplyCdi(context_.cdi, context_.device_probe, devices, config));
  return config;
}

void PodWorker::CreateContainer(const std::string& name, std::uint32_t attempt,
                                const PodSources& sources) {
  // The world may have moved on while the sources were fetched.
  const PodSandbox* sandbox = facts_.ready_sandbox();
  if (IsDeleted() || sandbox == nullptr) return End();
  auto config = BuildConfig(FindSpec(name), attempt, sources);
  if (!config.ok()) {
    FailContainer(name, "CreateContainerConfigError", config.error().message);
    return End();
  }
  context_.runtime.CreateContainer(
      sandbox->id, std::move(*config), [this, name, alive = Alive()](Result<std::string> id) {
        if (!alive.lock()) return;
        if (!id.ok()) {
          FailContainer(name, "CreateContainerError", id.error().message);
          return End();
        }
        context_.events.Normal(root(), "Created", StrCat("Created container: ", name));
        StartCreated(name, *id);
      });
}

void PodWorker::StartCreated(const std::string& name, const std::string& id) {
  context_.runtime.StartContainer(id, [this, name, alive = Alive()](Result<void> result) {
    if (!alive.lock()) return;
    if (!result.ok()) {
      FailContainer(name, "RunContainerError", result.error().message);
    } else {
      waiting_.erase(name);
      container_retry_.erase(name);
      context_.events.Normal(root(), "Started", StrCat("Started container ", name));
      RemoveStale();
    }
    End();
  });
}

// Keeps the attempt that runs and the one before it.
void PodWorker::RemoveStale() {
  const PodFacts facts = LookAtRuntime();
  for (const auto* list : {&facts.init, &facts.regular}) {
    for (const ContainerFacts& each : *list) {
      for (const std::string& id : each.stale) {
        if (auto status = context_.runtime.GetContainerStatus(id); status.ok() && !status->log_path.empty()) {
          (void)context_.files.Remove(status->log_path);
        }
        termination_messages_.erase(id);
        context_.runtime.RemoveContainer(id, [](Result<void>) {});
      }
    }
  }
}

// --- stopping

void PodWorker::RetryStop() {
  retry_at_ = Now() + retry_delay_;
  retry_delay_ = std::min(retry_delay_ * 2, kLongestRetry);
}

void PodWorker::StepStop() {
  if (!StopContainers()) return;
  if (retry_at_ > Now()) return ArmTimer(retry_at_);
  if (!StopSandboxes()) return;
  if (!unprepared_) return Unprepare();
  terminated_ = true;
  if (!IsDeleted()) return;  // it ran to its end: what is left stays until it is deleted
  if (!gone_ && !WriteStatus()) return;
  if (!removed_) return RemoveRemains();
  if (!gone_ && !object_deleted_) return DeleteObject();
  if (gone_) {
    finished_ = true;
    context_.loop.Post([this, alive = Alive()] {
      if (alive.lock()) on_finished_();
    });
  }
}

// True once nothing runs.
bool PodWorker::StopContainers() {
  if (!facts_.any_running()) return true;
  const Value metadata = root()["metadata"];
  std::int64_t seconds = root()["spec"]["terminationGracePeriodSeconds"].integer(30);
  if (auto asked = metadata["deletionGracePeriodSeconds"].optional_integer()) seconds = *asked;
  if (pod_ == nullptr) seconds = 2;  // an orphan: nobody says how long it may take
  const WallTime kill_at = stop_started_ + std::chrono::seconds(std::max<std::int64_t>(seconds, 0));
  const Duration left = std::max<Duration>(kill_at - Now(), Duration::zero());
  auto stop = [&](const std::string& id, const std::string& name) {
    auto [entry, first] = stops_.try_emplace(id, kill_at);
    if (!first && entry->second <= kill_at) return;
    entry->second = kill_at;
    if (first && pod_) {
      context_.events.Normal(root(), "Killing", StrCat("Stopping container ", name));
    }
    StopOne(id, name, left);
  };
  for (const std::string& id : facts_.strangers) stop(id, "of an older version");
  bool others = !facts_.strangers.empty();
  for (const auto* list : {&facts_.regular, &facts_.init}) {
    for (const ContainerFacts& each : *list) {
      if (!each.running() || each.sidecar) continue;
      others = true;
      stop(each.current->id, each.name);
    }
  }
  if (others) return false;
  for (auto each = facts_.init.rbegin(); each != facts_.init.rend(); ++each) {
    if (!each->running()) continue;
    stop(each->current->id, each->name);
    break;  // the next one when this one has ended
  }
  return false;
}

void PodWorker::StopOne(const std::string& id, const std::string& name, Duration grace) {
  const Value hook = FindSpec(name)["lifecycle"]["preStop"]["exec"];
  if (hook.has_value() && grace > Duration::zero() && hooked_.insert(id).second) {
    std::vector<std::string> command;
    for (Value word : hook["command"].elements()) command.emplace_back(word.str());
    const WallTime kill_at = Now() + grace;
    // The hook's time counts; a container it leaves without any gets two more seconds.
    return context_.runtime.ExecSync(
        id, std::move(command), grace, [this, id, name, kill_at, alive = Alive()](Result<ExecResult> result) {
          if (!alive.lock()) return;
          if ((!result.ok() || result->exit_code != 0) && pod_) {
            context_.events.Warning(root(), "FailedPreStopHook",
                                    StrCat("PreStopHook failed: ",
                                           result.ok() ? StrCat("exit code ", result->exit_code)
                                                       : result.error().message));
          }
          StopOne(id, name, std::max<Duration>(kill_at - Now(), std::chrono::seconds(2)));
        });
  }
  context_.runtime.StopContainer(id, grace, [this, id, name, alive = Alive()](Result<void> result) {
    if (!alive.lock()) return;
    if (!result.ok()) {
      kLog.Warning("cannot stop a container", {{"container", name}, {"err", result.error().message}});
      stops_.erase(id);
      return ArmTimer(Now() + kFirstRetry);
    }
    Sync();
  });
}

// True once none is ready.
bool PodWorker::StopSandboxes() {
  for (const PodSandbox& sandbox : facts_.sandboxes) {
    if (sandbox.state != SandboxState::kReady) continue;
    Begin();
    context_.runtime.StopPodSandbox(sandbox.id, [this, alive = Alive()](Result<void> result) {
      if (!alive.lock()) return;
      if (!result.ok()) {
        kLog.Warning("cannot stop a sandbox", {{"podUID", uid_}, {"err", result.error().message}});
        RetryStop();
      }
      End();
    });
    return false;
  }
  return true;
}

void PodWorker::Unprepare() {
  Begin();
  driver_came_ = false;
  context_.dra.Unprepare(uid_, [this, alive = Alive()](Result<void> result) {
    if (!alive.lock()) return;
    waits_for_driver_ = !result.ok();
    if (result.ok()) {
      unprepared_ = true;
      retry_delay_ = kFirstRetry;
    } else {
      kLog.Warning("cannot unprepare", {{"podUID", uid_}, {"err", result.error().message}});
      if (pod_) {
        context_.events.Warning(root(), "FailedUnprepareDynamicResources",
                                StrCat("Failed to unprepare dynamic resources: ", result.error().message));
      }
      if (driver_came_) retry_delay_ = kFirstRetry;
      RetryStop();
    }
    End();
  });
}

void PodWorker::RemoveRemains() {
  if (!facts_.sandboxes.empty()) {
    Begin();
    context_.runtime.RemovePodSandbox(
        facts_.sandboxes.front().id, [this, alive = Alive()](Result<void> result) {
          if (!alive.lock()) return;
          if (!result.ok()) {
            kLog.Warning("cannot remove a sandbox", {{"podUID", uid_}, {"err", result.error().message}});
            RetryStop();
          }
          End();
        });
    return;
  }
  Result<void> gone = context_.files.RemoveTree(PodDirectory());
  if (gone.ok() && pod_) gone = context_.files.RemoveTree(PodLogDirectory(context_.log_root, root()));
  if (!gone.ok()) {
    kLog.Warning("cannot remove the files of a pod", {{"podUID", uid_}, {"err", gone.error().message}});
    RetryStop();
    again_ = true;
    return;
  }
  removed_ = true;
  again_ = true;
}

void PodWorker::DeleteObject() {
  Begin();
  context_.client.Delete(Ref(), {.grace_period_seconds = 0, .precondition_uid = uid_},
                         [this, alive = Alive()](client::Reply reply) {
                           if (!alive.lock()) return;
                           if (reply.ok() || reply.error->code == ErrorCode::kNotFound ||
                               reply.error->code == ErrorCode::kConflict) {
                             object_deleted_ = true;
                           } else {
                             kLog.Warning("cannot delete a pod that has ended",
                                          {{"pod", pod_->qualified_name()}, {"err", reply.error->message}});
                             RetryStop();
                           }
                           End();
                         });
}

// --- status

bool PodWorker::WriteStatus() {
  // What has ended in the API stays as it is.
  if (pod_ == nullptr || gone_ || (IsOverInApi() && !writing_status_)) return true;
  if (removed_) return true;
  if (writing_status_) return false;
  if (status_retry_at_ > Now()) {
    ArmTimer(status_retry_at_);
    return false;
  }
  if (!busy_) facts_ = LookAtRuntime();
  StatusInput input{.pod = root(),
                    .facts = facts_,
                    .waiting = waiting_,
                    .termination_messages = termination_messages_,
                    .verdict = verdict_,
                    .restart = Restart(),
                    .terminated = terminated_,
                    .initialized = initialized_,
                    .host_ip = context_.host_ip,
                    .pod_ip = context_.host_ip,
                    .runtime_name = context_.runtime_name,
                    .now = Now()};
  auto find_probes = [this](const ContainerFacts& facts) -> const ContainerProbes* {
    auto found = probes_.find(facts.name);
    if (found == probes_.end() || !facts.current || found->second->container_id() != facts.current->id) return nullptr;
    return found->second.get();
  };
  input.is_ready = [find_probes](const ContainerFacts& facts) {
    const ContainerProbes* probes = find_probes(facts);
    return probes != nullptr ? probes->ready() : !facts.spec["readinessProbe"].has_value();
  };
  input.is_started = [find_probes](const ContainerFacts& facts) {
    const ContainerProbes* probes = find_probes(facts);
    return probes != nullptr ? probes->started() : !facts.spec["startupProbe"].has_value();
  };
  if (context_.resource_health) {
    input.resource_health = [this](Value container) {
      return context_.resource_health(root(), container);
    };
  }
  api::Draft object(pod_->tree());
  object["status"] = MakePodStatus(input);
  api::TreePtr tree = object.Freeze();
  if (api::Equal(tree->root()["status"], root()["status"])) return true;
  // A server that changes what we write would keep us writing.
  if (asked_ && answered_ && api::Equal(tree->root()["status"], asked_->root()["status"]) &&
      api::Equal(root()["status"], (*answered_)["status"])) {
    return true;
  }
  writing_status_ = true;
  asked_ = tree;
  answered_ = nullptr;
  context_.client.Update(Ref("status"), std::move(tree), {.field_manager = "drakkar-node"},
                         [this, alive = Alive()](client::Reply reply) {
                           if (alive.lock()) OnStatusWritten(std::move(reply));
                         });
  return false;
}

void PodWorker::OnStatusWritten(client::Reply reply) {
  if (reply.ok()) {
    writing_status_ = false;
    status_retry_ = kFirstRetry;
    answered_ = reply.object;
    if (reply.object && reply.object->uid() == uid_ &&
        reply.object->resource_version() >= pod_->resource_version()) {
      pod_ = reply.object;
    }
    return Sync();
  }
  if (reply.error->code == ErrorCode::kConflict) return RefreshObject();
  writing_status_ = false;
  if (reply.error->code == ErrorCode::kNotFound) return ObjectGone();
  kLog.Warning("cannot write a pod's status",
               {{"pod", pod_->qualified_name()}, {"err", reply.error->message}});
  status_retry_at_ = Now() + status_retry_;
  status_retry_ = std::min(status_retry_ * 2, kLongestRetry);
  Sync();
}

// Our copy is old: somebody else has written the pod.
void PodWorker::RefreshObject() {
  context_.client.Get(Ref(), [this, alive = Alive()](client::Reply reply) {
    if (!alive.lock()) return;
    writing_status_ = false;
    if (!reply.ok()) {
      if (reply.error->code == ErrorCode::kNotFound) return ObjectGone();
      status_retry_at_ = Now() + status_retry_;
      return Sync();
    }
    if (reply.object->uid() != uid_) return ObjectGone();
    if (reply.object->resource_version() <= pod_->resource_version()) {
      status_retry_at_ = Now() + std::chrono::milliseconds(100);
    } else {
      pod_ = reply.object;
    }
    Sync();
  });
}

void PodWorker::ReadTerminationMessages() {
  for (const auto* list : {&facts_.init, &facts_.regular}) {
    for (const ContainerFacts& each : *list) {
      for (const auto& status : {each.current, each.previous}) {
        if (!status || status->state != ContainerState::kExited) continue;
        if (termination_messages_.contains(status->id)) continue;
        termination_messages_[status->id] = ReadTerminationMessage(each, *status);
      }
    }
  }
}

std::string PodWorker::ReadTerminationMessage(const ContainerFacts& facts,
                                              const ContainerStatus& status) {
  const std::string path = StrCat(PodDirectory(), "/containers/", facts.name, "/", status.attempt);
  std::string text;
  if (auto content = context_.files.ReadFile(path); content.ok()) {
    text = content->substr(0, kMaxTerminationMessage);
  }
  if (text.empty() && status.exit_code != 0 && !status.log_path.empty() &&
      facts.spec["terminationMessagePolicy"].str() == "FallbackToLogsOnError") {
    if (auto log = context_.files.ReadFile(status.log_path); log.ok()) {
      for (std::string_view line : Split(*log, '\n')) {
        // "<time> <stream> <F|P> <text>"
        std::size_t at = 0;
        for (int spaces = 0; spaces < 3 && at != std::string_view::npos; ++spaces) {
          at = line.find(' ', at);
          if (at != std::string_view::npos) ++at;
        }
        if (at != std::string_view::npos) text += StrCat(line.substr(at), "\n");
      }
      if (text.size() > kMaxFallbackMessage) text = text.substr(text.size() - kMaxFallbackMessage);
    }
  }
  return text;
}

}  // namespace drakkar::node
