#include "node/pods/pod_worker.h"

#include <algorithm>

#include "base/text/text.h"
#include "node/pods/log_stream.h"
#include "telemetry/log/log.h"

namespace drakkar::node {
namespace {

using api::Value;

constexpr Logger kLog("node.pods");
constexpr std::size_t kMaxTerminationMessage = 4'096;
constexpr std::size_t kMaxFallbackMessage = 2'048;
constexpr std::int64_t kMaxFallbackLines = 80;

}  // namespace

bool PodWorker::WriteStatus() {
  // A final phase in the API is never changed.
  if (pod_ == nullptr || object_gone_ || IsReported(stage())) return true;
  if (IsWritingStatus()) return false;
  if (IsOverInApi()) return true;
  if (status_retry_at_ > Tick()) {
    ArmTimer(status_retry_at_);
    return false;
  }
  if (WaitsWithFirstStatus()) return false;
  if (!IsBusy()) facts_ = LookAtRuntime();
  StatusInput input{.pod = root(),
                    .facts = facts_,
                    .waiting = waiting_,
                    .termination_messages = termination_messages_,
                    .verdict = verdict_,
                    .resize = resize_,
                    .restart = Restart(),
                    .terminated = IsTerminated(stage()),
                    .initialized = IsInitialized(),
                    .host_ip = context_.host_ip,
                    .pod_ips = PodIps(),
                    .runtime_name = context_.runtime_name,
                    .now = Now()};
  auto find_probes = [this](const ContainerFacts& facts) -> const ContainerProbes* {
    auto found = probes_.find(facts.name);
    if (found == probes_.end() || !facts.current ||
        found->second->container_id() != facts.current->id)
      return nullptr;
    return found->second.get();
  };
  input.is_ready = [this, find_probes](const ContainerFacts& facts) {
    if (facts.current && IsPostStarting(facts.current->id)) return false;
    const ContainerProbes* probes = find_probes(facts);
    return probes != nullptr ? probes->ready() : !facts.spec["readinessProbe"].has_value();
  };
  input.is_started = [this, find_probes](const ContainerFacts& facts) {
    if (facts.current && IsPostStarting(facts.current->id)) return false;
    const ContainerProbes* probes = find_probes(facts);
    return probes != nullptr ? probes->started() : !facts.spec["startupProbe"].has_value();
  };
  if (context_.resource_health) {
    input.resource_health = [this](const ContainerFacts& facts) { return ResourceHealth(facts); };
  }
  api::Draft object(pod_->tree());
  object["status"] = MakePodStatus(input);
  api::TreePtr tree = object.Freeze();
  if (api::Equal(tree->root()["status"], root()["status"])) return true;
  // If the server alters what we write, writing again would never converge.
  if (asked_ && answered_ && api::Equal(tree->root()["status"], asked_->root()["status"]) &&
      api::Equal(root()["status"], (*answered_)["status"])) {
    return true;
  }
  status_.Apply(StatusEvent::kBegun);
  asked_ = tree;
  answered_ = nullptr;
  context_.client.Update(
      Ref("status"), std::move(tree), {.field_manager = "drakkar-node"},
      lifetime_.Guard([this](client::Reply reply) { OnStatusWritten(std::move(reply)); }));
  return false;
}

api::Draft PodWorker::ResourceHealth(const ContainerFacts& container) {
  if (!context_.resource_health) return api::Draft();
  api::Draft rows = context_.resource_health(root(), container.spec);
  if (container.running()) return rows;
  Value kept;
  if (const auto found = kept_health_.find(container.name); found != kept_health_.end()) {
    kept = found->second->root();
  } else {
    // A previous process may have unprepared the claims.
    for (const api::FieldName list :
         api::FieldNames{"containerStatuses", "initContainerStatuses"}) {
      for (Value status : root()["status"][list].elements()) {
        if (status["name"].str() == container.name) kept = status["allocatedResourcesStatus"];
      }
    }
  }
  std::set<std::string, std::less<>> current;
  for (std::size_t i = 0; i < rows.size(); ++i) current.emplace(rows.at(i)["name"].str());
  for (Value row : kept.elements()) {
    if (!current.contains(row["name"].str())) rows.Append(api::Draft(api::CopyTree(row)));
  }
  if (rows.exists()) {
    std::ranges::sort(rows.MutableElements(), {},
                      [](api::Draft& row) { return std::string(row["name"].str()); });
  }
  return rows;
}

void PodWorker::KeepHealth() {
  for (const auto* list : {&facts_.init, &facts_.regular}) {
    for (const ContainerFacts& each : *list) {
      if (api::Draft rows = ResourceHealth(each); rows.exists()) {
        kept_health_[each.name] = rows.Freeze();
      }
    }
  }
}

// A restart of all containers does not make the pod uninitialized.
bool PodWorker::IsInitialized() const {
  return facts_.run > 0 || PlanPod(facts_, Restart()).initialized;
}

// Delays the first status so that a pod that starts quickly needs only one write.
bool PodWorker::WaitsWithFirstStatus() {
  if (first_status_at_ == MonotonicTime{}) first_status_at_ = Tick() + kFirstStatusDelay;
  const bool begins = IsBusy() && !IsStopping() && !verdict_ && waiting_.empty() &&
                      facts_.sandboxes.empty() && root()["status"]["startTime"].str().empty();
  if (!begins || first_status_at_ <= Tick()) return false;
  ArmTimer(first_status_at_);
  return true;
}

void PodWorker::OnStatusWritten(client::Reply reply) {
  if (reply.ok()) {
    status_.Apply(StatusEvent::kAnswered);
    status_backoff_.Reset();
    answered_ = reply.object;
    if (reply.object && reply.object->uid() == uid_ &&
        reply.object->resource_version() >= pod_->resource_version()) {
      pod_ = reply.object;
    }
    return Sync();
  }
  if (reply.error->code == ErrorCode::kConflict) return RefreshObject();
  status_.Apply(StatusEvent::kAnswered);
  if (reply.error->code == ErrorCode::kNotFound) return ObjectGone();
  kLog.Warning("could not update pod status",
               {{"pod", pod_->qualified_name()}, {"err", reply.error->message}});
  status_retry_at_ = Tick() + status_backoff_.Next();
  Sync();
}

// Our copy is stale: somebody else has updated the pod.
void PodWorker::RefreshObject() {
  status_.Apply(StatusEvent::kConflicted);
  context_.client.Get(Ref(), lifetime_.Guard([this](client::Reply reply) {
    status_.Apply(StatusEvent::kAnswered);
    if (!reply.ok()) {
      if (reply.error->code == ErrorCode::kNotFound) return ObjectGone();
      status_retry_at_ = Tick() + status_backoff_.Next();
      return Sync();
    }
    if (reply.object->uid() != uid_) return ObjectGone();
    if (reply.object->resource_version() <= pod_->resource_version()) {
      status_retry_at_ = Tick() + std::chrono::milliseconds(100);
    } else {
      pod_ = reply.object;
    }
    Sync();
  }));
}

void PodWorker::ReadTerminationMessages() {
  for (const auto* list : {&facts_.init, &facts_.regular, &facts_.ephemeral}) {
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
  if (auto content = context_.files.ReadFileRange(path, 0, kMaxTerminationMessage); content.ok()) {
    text = *std::move(content);
  }
  if (text.empty() && status.exit_code != 0 && !status.log_path.empty() &&
      facts.spec["terminationMessagePolicy"].str() == "FallbackToLogsOnError") {
    text = ReadLogTail(context_.files, status.log_path, kMaxFallbackLines, kMaxFallbackMessage);
  }
  return text;
}

}  // namespace drakkar::node
