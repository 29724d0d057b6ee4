#include "node/pods/pod_worker.h"

#include <algorithm>

#include "api/meta/time.h"
#include "api/scheme/scheme.h"
#include "base/text/text.h"
#include "client/event_recorder.h"
#include "node/dra/dra_manager.h"
#include "node/dra/pod_claims.h"
#include "node/pods/container_config.h"
#include "node/status/node_features.h"
#include "telemetry/log/log.h"
#include "telemetry/metrics/metrics.h"

namespace drakkar::node {
namespace {

using api::Value;

constexpr Logger kLog("node.pods");

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
      context_.events.Warning(pod, "FailedNodeDeclaredFeaturesCheck", *problem);
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
  const bool lost = recover_at_ > Tick();
  recover_at_ = MonotonicTime{};
  recover_delay_ = kFirstRetry;
  if (lost) Sync();
  if (!waits_for_driver_) return;
  retry_at_ = MonotonicTime{};
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

void PodWorker::ArmTimer(MonotonicTime when) {
  if (timer_ && timer_at_ <= when) return;
  timer_at_ = when;
  timer_ = context_.loop.RunAfter(std::max<Duration>(when - Tick(), Duration::zero()), [this] {
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
    return;
  }
  RecoverDevices();
  if (StopSupersededContainers() && StepResize()) StepRun(plan);
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
      if (!stops_.try_emplace(each.current->id, Tick()).second) continue;
      context_.events.Normal(pod_, "Killing",
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
                  [this, later, name, id](const std::string& why,
                                          std::optional<std::int64_t> own_grace) {
                    later([this, name, id, why, own_grace] {
                      context_.events.Normal(
                          pod_, "Killing",
                          StrCat("Container ", name, " ", why, ", will be restarted"));
                      const std::int64_t grace = own_grace.value_or(
                          root()["spec"]["terminationGracePeriodSeconds"].integer(30));
                      StopOne(id, name, std::chrono::seconds(grace));
                    });
                  },
              .on_failure =
                  [this, later](const std::string& message) {
                    later([this, message] { context_.events.Warning(pod_, "Unhealthy", message); });
                  },
              .on_warning =
                  [this, later](const std::string& message) {
                    later([this, message] {
                      context_.events.Warning(pod_, "ProbeWarning", message);
                    });
                  }});
    }
  }
}

bool PodWorker::AdmissionWantsClaims() const {
  if (stopping_ || admitted_ || claims_fetched_ || IsDeleted() || IsOverInApi()) return false;
  if (context_.features == nullptr || !context_.features->AsksClaims()) return false;
  if (context_.dra.FindDisallowedSkip(uid_)) return false;  // they cannot change the answer
  const auto claims = ListPodClaims(root());
  return claims.ok() && !claims->empty();
}

// What claims ask of the node is in their allocation. One that is not there asks for nothing:
// preparing it fails and says why. Any other answer leaves it open, and then it is asked again.
void PodWorker::FetchAdmissionClaims() {
  if (fetch_claims_at_ > Tick()) return ArmTimer(fetch_claims_at_);
  Begin();
  const auto claims = ListPodClaims(root());
  const auto* kind = api::FindResource("resource.k8s.io", "v1", "resourceclaims");
  struct Answers {
    std::size_t missing;
    std::vector<api::ObjectPtr> claims;
    std::optional<Error> failure;
  };
  auto answers = std::make_shared<Answers>(Answers{.missing = claims->size()});
  for (const PodClaim& claim : *claims) {
    context_.client.Get(
        {kind, std::string(pod_->namespace_()), claim.claim_name, ""},
        [this, answers, name = claim.claim_name, alive = Alive()](client::Reply reply) {
          if (!alive.lock()) return;
          if (reply.ok()) {
            answers->claims.push_back(reply.object);
          } else if (reply.error->code != ErrorCode::kNotFound) {
            answers->failure = reply.error->Prefixed(StrCat("fetch ResourceClaim ", name));
          }
          if (--answers->missing > 0) return;
          if (answers->failure) {
            kLog.Warning("cannot tell what a pod asks of this node",
                         {{"podUID", uid_}, {"err", answers->failure->message}});
            fetch_claims_at_ = Tick() + fetch_claims_delay_;
            fetch_claims_delay_ = std::min(fetch_claims_delay_ * 2, kLongestRetry);
          } else {
            admission_claims_ = std::move(answers->claims);
            claims_fetched_ = true;
          }
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
    if (!verdict_) {
      if (auto refusal = CheckIsolation(root())) {
        verdict_ = PodVerdict{std::move(refusal->reason), std::move(refusal->message)};
      }
    }
    if (verdict_) {
      if (context_.metrics != nullptr) {
        context_.metrics
            ->GetCounter("kubelet_admission_rejections_total",
                         "Cumulative number pod admission rejections by the Kubelet.",
                         {{"reason", verdict_->reason}})
            .Add();
      }
      context_.events.Warning(pod_, verdict_->reason, verdict_->message);
      kLog.Warning("a pod is rejected",
                   {{"podUID", uid_}, {"reason", verdict_->reason}, {"err", verdict_->message}});
      verdict_->message = StrCat("Pod was rejected: ", verdict_->message);
      stopping_ = true;
    } else if (const auto ignored = ListIgnoredFields(root(), context_.prober != nullptr);
               !ignored.empty()) {
      context_.events.Warning(pod_, "UnsupportedFields",
                              StrCat("this node does not act on: ", Join(ignored, ", ")));
    }
  }
  if (!stopping_ && plan.finished) stopping_ = true;
  if (const auto deadline = root()["spec"]["activeDeadlineSeconds"].optional_integer();
      !stopping_ && deadline) {
    auto started = api::ParseTime(root()["status"]["startTime"].str());
    const WallTime end = (started.ok() ? *started : Now()) + std::chrono::seconds(*deadline);
    if (end > Now()) {
      ArmTimer(Tick() + (end - Now()));
    } else {
      verdict_ = PodVerdict{"DeadlineExceeded",
                            "Pod was active on the node longer than the specified deadline"};
      context_.events.Normal(pod_, verdict_->reason, verdict_->message);
      stopping_ = true;
    }
  }
  if (!stopping_ && eviction_) {
    verdict_ = eviction_;
    context_.events.Warning(pod_, verdict_->reason, verdict_->message);
    stopping_ = true;
  }
  if (stopping_) {
    stop_started_ = Tick();
    retry_at_ = MonotonicTime{};
    retry_delay_ = kFirstRetry;
    waits_for_driver_ = false;
  }
}

// --- what all parts of it use

DownwardInput PodWorker::Downward() const {
  return {.pod = root(),
          .node_name = context_.node_name,
          .host_ip = context_.host_ip,
          .pod_ip = context_.host_ip,
          .allocatable_cpu_milli = context_.machine_cpu_milli,
          .allocatable_memory_bytes = context_.machine_memory_bytes};
}

VolumeInput PodWorker::Volumes(const PodSources& sources) const {
  return {context_.files, context_.volume_host, context_.device_probe,
          PodDirectory(), Downward(),           sources};
}

std::string PodWorker::PodDirectory() const {
  return StrCat(context_.root_directory, "/pods/", uid_);
}

client::ResourceRef PodWorker::Ref(std::string subresource) const {
  return {api::FindResource("", "v1", "pods"), std::string(pod_->namespace_()),
          std::string(pod_->name()), std::move(subresource)};
}

Value PodWorker::FindSpec(const std::string& name) const {
  for (const char* list : {"initContainers", "containers", "ephemeralContainers"}) {
    for (Value each : root()["spec"][list].elements()) {
      if (each["name"].str() == name) return each;
    }
  }
  return Value();
}

}  // namespace drakkar::node
