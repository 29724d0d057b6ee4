#include "node/pods/pod_worker.h"

#include <algorithm>

#include "api/meta/time.h"
#include "api/scheme/scheme.h"
#include "base/result/check.h"
#include "base/text/text.h"
#include "client/event_recorder.h"
#include "node/admission/node_features.h"
#include "node/cpus/cpu_pool.h"
#include "node/dra/dra_manager.h"
#include "node/dra/pod_claims.h"
#include "node/pods/container_config.h"
#include "node/runtime/network/cni_result.h"
#include "telemetry/log/log.h"
#include "telemetry/metrics/metrics.h"

namespace drakkar::node {
namespace {

using api::Value;

constexpr Logger kLog("node.pods");

}  // namespace

PodWorker::PodWorker(PodContext& context, std::string uid, std::function<void()> on_finished)
    : context_(context), uid_(std::move(uid)), on_finished_(std::move(on_finished)) {}

PodWorker::~PodWorker() {
  if (context_.sources != nullptr) context_.sources->Show(uid_, {});
}

// --- events from outside

void PodWorker::Update(const api::ObjectPtr& pod) {
  context_.loop.AssertInLoop();
  if (object_gone_ || pod->uid() != uid_) return;
  if (pod_ != nullptr && pod->resource_version() < pod_->resource_version()) return;
  if (stage() == PodStage::kRunning && context_.features != nullptr) {
    if (const auto problem = context_.features->CheckUpdate(root(), pod->root())) {
      context_.events.Warning(pod, "FailedNodeDeclaredFeaturesCheck", *problem);
    }
  }
  const bool shows_more =
      pod_ != nullptr && volumes_ && HasChangingVolumes(root()) &&
      (!api::Equal(root()["metadata"]["labels"], (*pod)["metadata"]["labels"]) ||
       !api::Equal(root()["metadata"]["annotations"], (*pod)["metadata"]["annotations"]));
  pod_ = pod;
  if (shows_more) RefreshSoon();
  Sync();
}

void PodWorker::ObjectGone() {
  object_gone_ = true;
  Sync();
}

void PodWorker::DriverUsable() {
  bool waited = false;
  if (recovery_.Accepts(DriverEvent::kDriverUsable)) {
    waited = recovery_.Apply(DriverEvent::kDriverUsable) == DriverCall::kIdle;
    recover_at_ = MonotonicTime{};
    recover_backoff_.Reset();
  }
  if (claims_call_.Accepts(DriverEvent::kDriverUsable) &&
      claims_call_.Apply(DriverEvent::kDriverUsable) == DriverCall::kIdle) {
    waited = true;
    retry_at_ = MonotonicTime{};
    retry_backoff_.Reset();
  }
  if (waited) Sync();
}

void PodWorker::Sync() {
  context_.loop.AssertInLoop();
  if (IsFinished()) return;
  if (stepping_ != Stepping::kIdle) {
    stepping_ = Stepping::kAgain;
    return;
  }
  if (!IsBusy()) {
    do {
      stepping_ = Stepping::kStepping;
      Step();
    } while (stepping_ == Stepping::kAgain && !IsBusy() && !IsFinished());
    stepping_ = Stepping::kIdle;
  }
  if (!IsFinished()) WriteStatus();
}

void PodWorker::StepAgain() {
  if (stepping_ == Stepping::kStepping) stepping_ = Stepping::kAgain;
}

void PodWorker::Begin(PodOperation operation) {
  CHECK(MayBegin(operation, stage(), operation_));
  operation_ = operation;
  kLog.Debug("started pod operation", {{"pod", pod_ ? pod_->qualified_name() : ""},
                                       {"podUID", uid_},
                                       {"stage", node::Name(stage())},
                                       {"operation", node::Name(operation)}});
}

void PodWorker::End() {
  operation_ = PodOperation::kNone;
  Sync();
}

void PodWorker::Advance(PodEvent event, std::string_view reason) {
  const PodStage from = stage();
  const PodStage to = stage_.Apply(event);
  kLog.Debug("changed pod stage", {{"pod", pod_ ? pod_->qualified_name() : ""},
                                   {"podUID", uid_},
                                   {"from", node::Name(from)},
                                   {"event", node::Name(event)},
                                   {"to", node::Name(to)},
                                   {"reason", reason}});
}

void PodWorker::ArmTimer(MonotonicTime when) {
  if (timer_ && timer_at_ <= when) return;
  timer_at_ = when;
  timer_ = context_.loop.RunAfter(std::max<Duration>(when - Tick(), Duration::zero()), [this] {
    timer_.reset();
    Sync();
  });
}

void PodWorker::BackOff() {
  retry_at_ = Tick() + retry_backoff_.Next();
}

// --- decisions

bool PodWorker::IsOverInApi() const {
  const std::string_view phase = root()["status"]["phase"].str();
  return phase == "Succeeded" || phase == "Failed";
}

void PodWorker::Step() {
  facts_ = LookAtRuntime();
  ReadTerminationMessages();
  const PodPlan plan = PlanPod(facts_, Restart());
  RetryFailedStops();
  if (NeedsAdmissionClaims()) return FetchAdmissionClaims();
  if (NeedsRuntimeClass()) return FetchRuntimeClass();
  if (!IsStopping()) {
    if (const auto reason = DecideStop(plan)) {
      Advance(PodEvent::kStopRequested, Name(*reason));
      stop_started_ = Tick();
      retry_at_ = MonotonicTime{};
      retry_backoff_.Reset();
      if (claims_call_.Accepts(DriverEvent::kDropped)) claims_call_.Apply(DriverEvent::kDropped);
      if (context_.sources != nullptr) context_.sources->Show(uid_, {});
    }
  }
  SyncProbes();
  if (IsStopping()) return StepStop();
  RecoverDevices();
  StopChangedContainers();
  if (StopSupersededContainers() && StepResize()) StepRun(plan);
}

PodFacts PodWorker::LookAtRuntime() const {
  PodFacts facts = CollectFacts(root(), uid_, context_.runtime);
  MarkRuns(facts, Restart());
  for (auto* list : {&facts.init, &facts.regular}) {
    for (ContainerFacts& each : *list) {
      const auto attempt = each.current ? attempts_.find(each.current->id) : attempts_.end();
      each.restarts_for_change = attempt != attempts_.end() && attempt->second.restarts_for_change;
    }
  }
  facts.pod = pod_;
  return facts;
}

RestartSettings PodWorker::Restart() const {
  return ReadRestartSettings(root(), context_.container_rules, context_.restart_all_containers);
}

// Stops without grace period or hooks: what follows is a fresh start of the same pod in the same
// sandbox, with the same volumes and devices (KEP-5532).
bool PodWorker::StopSupersededContainers() {
  if (!facts_.any_superseded_running()) return true;
  for (const auto* list : {&facts_.regular, &facts_.init}) {
    for (const ContainerFacts& each : *list) {
      if (!each.superseded || !each.running() || IsStopRequested(each.current->id)) continue;
      context_.events.Normal(pod_, "Killing",
                             StrCat("Stopping container ", each.name,
                                    ", all containers of the pod will be restarted"));
      StopContainer(each.current->id, each.name, Duration::zero());
    }
  }
  return false;
}

void PodWorker::StopChangedContainers() {
  for (const auto* list : {&facts_.init, &facts_.regular}) {
    for (const ContainerFacts& each : *list) {
      if (!each.running() || (each.init && !each.sidecar)) continue;
      const std::string& id = each.current->id;
      const auto image = each.current->annotations.find(kImageAnnotation);
      // Containers of older agents do not say.
      if (image == each.current->annotations.end() || image->second == each.spec["image"].str() ||
          IsStopRequested(id)) {
        continue;
      }
      attempts_[id].restarts_for_change = true;
      context_.events.Normal(
          pod_, "Killing",
          StrCat("Container ", each.name, " definition changed, will be restarted"));
      StopContainer(id, each.name, GracePeriod());
    }
  }
}

// Gives every running container its probes and drops those of earlier attempts.
void PodWorker::SyncProbes() {
  if (IsStopping()) return probes_.clear();
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
        // Posted, because what follows may replace the probes that call this.
        context_.loop.Post(lifetime_.Guard([task = std::move(task)] { task(); }));
      };
      probes_[name] = std::make_unique<ContainerProbes>(
          ContainerProbes::Options{.loop = context_.loop,
                                   .runtime = context_.runtime,
                                   .network = context_.prober,
                                   .pod = pod_,
                                   .container = each.spec,
                                   .container_id = id,
                                   .pod_ip = PodIp(),
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
                      StopContainer(id, name,
                                    own_grace ? BoundedSeconds(*own_grace) : GracePeriod());
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

bool PodWorker::NeedsAdmissionClaims() const {
  if (stage() != PodStage::kAdmitting || admission_claims_) return false;
  if (IsDeleted() || IsOverInApi()) return false;
  if (context_.features == nullptr || !context_.features->AsksClaims()) return false;
  if (context_.dra.FindDisallowedSkip(uid_)) return false;  // they cannot change the answer
  const auto claims = ListPodClaims(root());
  return claims.ok() && !claims->empty();
}

// Claims state their requirements in the allocation. A claim that does not exist has none:
// preparing it fails with the reason. On any other error the fetch is retried.
void PodWorker::FetchAdmissionClaims() {
  if (fetch_at_ > Tick()) return ArmTimer(fetch_at_);
  Begin(PodOperation::kFetchingAdmissionClaims);
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
        lifetime_.Guard([this, answers, name = claim.claim_name](client::Reply reply) {
          if (reply.ok()) {
            answers->claims.push_back(reply.object);
          } else if (reply.error->code != ErrorCode::kNotFound) {
            answers->failure = reply.error->Prefixed(StrCat("fetch ResourceClaim ", name));
          }
          if (--answers->missing > 0) return;
          if (answers->failure) {
            kLog.Warning("could not fetch claims for admission",
                         {{"podUID", uid_}, {"err", answers->failure->message}});
            fetch_at_ = Tick() + fetch_backoff_.Next();
          } else {
            admission_claims_ = std::move(answers->claims);
          }
          End();
        }));
  }
}

// A pod that already has a sandbox was admitted by an earlier agent.
bool PodWorker::NeedsRuntimeClass() const {
  return stage() == PodStage::kAdmitting && !runtime_class_ && facts_.sandboxes.empty() &&
         !IsDeleted() && !IsOverInApi() && !root()["spec"]["runtimeClassName"].str().empty();
}

void PodWorker::GetRuntimeClass(std::function<void(Result<api::ObjectPtr>)> done) {
  context_.client.Get({api::FindResource("node.k8s.io", "v1", "runtimeclasses"), "",
                       std::string(root()["spec"]["runtimeClassName"].str()), ""},
                      lifetime_.Guard([done = std::move(done)](client::Reply reply) {
                        if (reply.ok()) return done(reply.object);
                        if (reply.error->code == ErrorCode::kNotFound) return done(nullptr);
                        done(*reply.error);
                      }));
}

void PodWorker::FetchRuntimeClass() {
  if (fetch_at_ > Tick()) return ArmTimer(fetch_at_);
  Begin(PodOperation::kFetchingRuntimeClass);
  GetRuntimeClass([this](Result<api::ObjectPtr> found) {
    if (found.ok()) {
      runtime_class_ = *std::move(found);
    } else {
      kLog.Warning("could not fetch RuntimeClass",
                   {{"podUID", uid_}, {"err", found.error().message}});
      fetch_at_ = Tick() + fetch_backoff_.Next();
    }
    End();
  });
}

std::optional<PodVerdict> PodWorker::ChooseHandler() {
  const auto runtime_class = std::exchange(runtime_class_, std::nullopt);
  if (!runtime_class) return std::nullopt;
  const std::string_view name = root()["spec"]["runtimeClassName"].str();
  if (*runtime_class == nullptr) {
    return PodVerdict{"RuntimeClassNotFound",
                      StrCat("RuntimeClass ", Quote(name), " does not exist")};
  }
  const std::string handler((**runtime_class)["handler"].str());
  if (const auto handlers = context_.runtime.Handlers()) {
    std::vector<std::string> names;
    for (const RuntimeHandler& each : *handlers) {
      if (!each.name.empty()) names.push_back(each.name);
    }
    if (std::ranges::find(names, handler) == names.end()) {
      return PodVerdict{"RuntimeClassUnsupported",
                        StrCat("this node's runtime has no handler ", Quote(handler),
                               ", which RuntimeClass ", Quote(name), " asks for; it has ",
                               names.empty() ? "only the default one" : Join(names, ", "))};
    }
  }
  handler_ = handler;
  return std::nullopt;
}

std::string_view PodWorker::Name(StopReason reason) {
  switch (reason) {
    case StopReason::kDeleted:
      return "Deleted";
    case StopReason::kEndedInApi:
      return "EndedInApi";
    case StopReason::kRejected:
      return "Rejected";
    case StopReason::kCompleted:
      return "Completed";
    case StopReason::kDeadline:
      return "DeadlineExceeded";
    case StopReason::kEvicted:
      return "Evicted";
  }
  return "?";
}

std::optional<PodWorker::StopReason> PodWorker::DecideStop(const PodPlan& plan) {
  if (IsDeleted()) return StopReason::kDeleted;
  if (IsOverInApi()) return StopReason::kEndedInApi;
  if (stage() == PodStage::kAdmitting) {
    if (const auto reason = Admit()) return reason;
  }
  if (plan.finished) return StopReason::kCompleted;
  if (const auto reason = CheckDeadline()) return reason;
  if (eviction_) {
    verdict_ = eviction_;
    context_.events.Warning(pod_, verdict_->reason, verdict_->message);
    return StopReason::kEvicted;
  }
  return std::nullopt;
}

void PodWorker::Evict(PodVerdict verdict, Duration grace) {
  if (eviction_ || IsStopping()) return;
  eviction_ = std::move(verdict);
  eviction_grace_ = grace;
  Sync();
}

std::optional<PodWorker::StopReason> PodWorker::Admit() {
  if (context_.features != nullptr) {
    verdict_ =
        context_.features->Check(root(), admission_claims_.value_or(std::vector<api::ObjectPtr>()));
  }
  admission_claims_.reset();
  if (!verdict_ && context_.dra.FindDisallowedSkip(uid_)) {
    // Known from before the restart, even if the claim cannot be read now.
    verdict_ = PodVerdict{std::string(features::kPodFeatureUnsupported),
                          features::PodRejectedMessage({"DraOptionalNodePreparation"})};
  }
  if (!verdict_) {
    if (auto refusal = CheckIsolation(root())) {
      verdict_ = PodVerdict{std::move(refusal->reason), std::move(refusal->message)};
    }
  }
  if (!verdict_) verdict_ = CheckOperatingSystem(root());
  if (!verdict_ && !context_.runtime.HasGroupsPolicy() &&
      root()["spec"]["securityContext"]["supplementalGroupsPolicy"].str() == "Strict") {
    verdict_ = PodVerdict{"SupplementalGroupsPolicyNotSupported",
                          "SupplementalGroupsPolicy=Strict is not supported in this node"};
  }
  if (!verdict_) verdict_ = ChooseHandler();
  if (!verdict_) verdict_ = context_.sysctls.Check(root());
  if (!verdict_ && context_.admitted_requests && facts_.sandboxes.empty()) {
    verdict_ = CheckRoom(root(), context_.allocatable, context_.admitted_requests(uid_));
  }
  // A pod that already has a sandbox was admitted by an earlier agent.
  if (!verdict_ && context_.refuse_new && facts_.sandboxes.empty()) {
    verdict_ = context_.refuse_new(root());
  }
  if (!verdict_ && context_.cpus != nullptr) verdict_ = context_.cpus->Admit(root());
  if (!verdict_) {
    Advance(PodEvent::kAdmitted);
    if (const auto ignored = ListIgnoredFields(root(), context_.prober != nullptr);
        !ignored.empty()) {
      context_.events.Warning(pod_, "UnsupportedFields",
                              StrCat("this node ignores: ", Join(ignored, ", ")));
    }
    return std::nullopt;
  }
  if (context_.metrics != nullptr) {
    context_.metrics
        ->GetCounter("kubelet_admission_rejections_total",
                     "Cumulative number pod admission rejections by the Kubelet.",
                     {{"reason", verdict_->reason}})
        .Add();
  }
  context_.events.Warning(pod_, verdict_->reason, verdict_->message);
  kLog.Warning("rejected pod", {{"pod", pod_->qualified_name()},
                                {"podUID", uid_},
                                {"reason", verdict_->reason},
                                {"err", verdict_->message}});
  verdict_->message = StrCat("Pod was rejected: ", verdict_->message);
  return StopReason::kRejected;
}

std::optional<PodWorker::StopReason> PodWorker::CheckDeadline() {
  const auto deadline = root()["spec"]["activeDeadlineSeconds"].optional_integer();
  if (!deadline) return std::nullopt;
  const auto started = api::ParseTime(root()["status"]["startTime"].str());
  const WallTime end = (started.ok() ? *started : Now()) + BoundedSeconds(*deadline);
  if (end > Now()) {
    ArmTimer(Tick() + (end - Now()));
    return std::nullopt;
  }
  verdict_ = PodVerdict{"DeadlineExceeded",
                        "Pod was active on the node longer than the specified deadline"};
  context_.events.Normal(pod_, verdict_->reason, verdict_->message);
  return StopReason::kDeadline;
}

// --- shared helpers

Duration PodWorker::BoundedSeconds(std::int64_t seconds) {
  constexpr std::int64_t kMost =
      std::chrono::duration_cast<std::chrono::seconds>(kLongestTime).count();
  return std::chrono::seconds(std::clamp<std::int64_t>(seconds, 0, kMost));
}

Duration PodWorker::GracePeriod() const {
  return BoundedSeconds(root()["spec"]["terminationGracePeriodSeconds"].integer(30));
}

bool PodWorker::HasOwnNetwork() const {
  const PodSandbox* sandbox = facts_.ready_sandbox();
  return sandbox != nullptr && !sandbox->network_namespace.empty();
}

std::vector<std::string> PodWorker::PodIps() const {
  const PodSandbox* sandbox = facts_.ready_sandbox();
  if (sandbox != nullptr && !sandbox->network_namespace.empty()) {
    return ChoosePodAddresses(sandbox->ips, context_.host_ip);
  }
  if (context_.host_ip.empty()) return {};
  return {context_.host_ip};
}

std::string PodWorker::PodIp() const {
  const std::vector<std::string> ips = PodIps();
  return ips.empty() ? "" : ips.front();
}

DownwardInput PodWorker::Downward() const {
  return {.pod = root(),
          .node_name = context_.node_name,
          .host_ip = context_.host_ip,
          .pod_ips = PodIps(),
          .allocatable_cpu_milli = context_.allocatable.cpu_milli,
          .allocatable_memory_bytes = context_.allocatable.memory_bytes,
          .allocatable_storage_bytes = context_.allocatable.ephemeral_storage_bytes};
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
  for (const api::FieldName list :
       api::FieldNames{"initContainers", "containers", "ephemeralContainers"}) {
    for (Value each : root()["spec"][list].elements()) {
      if (each["name"].str() == name) return each;
    }
  }
  return Value();
}

}  // namespace drakkar::node
