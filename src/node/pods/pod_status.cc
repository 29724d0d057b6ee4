#include "node/pods/pod_status.h"

#include "api/json/reader.h"
#include "api/meta/time.h"
#include "base/text/text.h"

namespace drakkar::node {
namespace {

using api::Draft;
using api::Value;

std::string ContainerId(const StatusInput& input, const std::string& id) {
  return StrCat(input.runtime_name, "://", id);
}

Draft Terminated(const StatusInput& input, const ContainerStatus& status) {
  Draft state = Draft::Object();
  Draft& terminated = state["terminated"];
  terminated["exitCode"] =
      status.state == ContainerState::kUnknown && status.exit_code == 0 ? 137 : status.exit_code;
  if (status.exit_code > 128 && status.exit_code <= 128 + 64)
    terminated["signal"] = status.exit_code - 128;
  terminated["reason"] = !status.reason.empty() ? status.reason
                         : status.state == ContainerState::kUnknown
                             ? std::string(kReasonContainerStatusUnknown)
                             : std::string(status.exit_code == 0 ? kReasonCompleted : kReasonError);
  std::string message = status.message;
  if (auto found = input.termination_messages.find(status.id);
      found != input.termination_messages.end() && !found->second.empty()) {
    message = found->second;
  }
  if (!message.empty()) terminated["message"] = message;
  if (status.started_at != WallTime{}) terminated["startedAt"] = api::FormatTime(status.started_at);
  if (status.finished_at != WallTime{})
    terminated["finishedAt"] = api::FormatTime(status.finished_at);
  terminated["containerID"] = ContainerId(input, status.id);
  return state;
}

Draft Waiting(std::string_view reason, std::string_view message) {
  Draft state = Draft::Object();
  state["waiting"]["reason"] = reason;
  if (!message.empty()) state["waiting"]["message"] = message;
  return state;
}

bool IsReady(const StatusInput& input, const ContainerFacts& facts) {
  if (facts.ephemeral) return false;  // nothing depends on it
  if (facts.init && !facts.sidecar) return facts.succeeded();
  if (!facts.running()) return false;
  return !input.is_ready || input.is_ready(facts);
}

bool IsStarted(const StatusInput& input, const ContainerFacts& facts) {
  if (facts.ephemeral) return false;
  if (!facts.running()) return false;
  return !input.is_started || input.is_started(facts);
}

// Whether a container that the runtime does not have is reported as terminated once the pod has
// ended. One that never ran because an init container failed is not. `initializing`: it comes after
// the last init container that ran.
bool IsLost(const StatusInput& input, const ContainerFacts& facts, bool initializing) {
  if (!input.terminated) return false;
  return facts.init ? !initializing : facts.ephemeral || input.initialized;
}

Draft MakeContainerStatus(const StatusInput& input, const ContainerFacts& facts,
                          bool initializing = false) {
  Draft status = Draft::Object();
  status["name"] = facts.name;
  const auto waiting = input.waiting.find(facts.name);
  const bool is_waiting = waiting != input.waiting.end() && !facts.running();
  Draft state;
  Draft last = Draft::Object();
  if (facts.running()) {
    state = Draft::Object();
    state["running"]["startedAt"] = api::FormatTime(facts.current->started_at);
    if (facts.previous) last = Terminated(input, *facts.previous);
  } else if (is_waiting && !input.terminated) {
    state = Waiting(waiting->second.reason, waiting->second.message);
    if (facts.ended()) {
      last = Terminated(input, *facts.current);
    } else if (facts.previous) {
      last = Terminated(input, *facts.previous);
    }
  } else if (facts.superseded && facts.ended() && !input.terminated) {
    state = Waiting("RestartingAllContainers", "");
    last = Terminated(input, *facts.current);
  } else if (facts.ended()) {
    state = Terminated(input, *facts.current);
    if (facts.previous) last = Terminated(input, *facts.previous);
  } else if (IsLost(input, facts, initializing)) {
    state = Draft::Object();
    state["terminated"]["exitCode"] = 137;
    state["terminated"]["reason"] = std::string(kReasonContainerStatusUnknown);
    state["terminated"]["message"] =
        "The container could not be located when the pod was terminated";
    // Kubernetes writes zero times as null; we omit them.
  } else {
    state = Waiting(input.facts.init.empty() ? "ContainerCreating" : "PodInitializing", "");
  }
  status["state"] = std::move(state);
  status["lastState"] = std::move(last);
  status["ready"] = IsReady(input, facts);
  status["restartCount"] = facts.current ? static_cast<std::int64_t>(facts.current->attempt) : 0;
  status["image"] = facts.current && !facts.current->image.empty()
                        ? std::string_view(facts.current->image)
                        : facts.spec["image"].str();
  status["imageID"] = facts.current ? facts.current->image_id : std::string();
  if (facts.current) status["containerID"] = ContainerId(input, facts.current->id);
  status["started"] = IsStarted(input, facts);
  if (facts.running() && !facts.ephemeral) {
    const auto applied = facts.current->annotations.find(kResourcesAnnotation);
    auto resources = applied == facts.current->annotations.end() ? api::ParseJson("{}")
                                                                 : api::ParseJson(applied->second);
    if (resources.ok()) {
      // Also without any: clients read an absent field as "not known".
      status["resources"] = Draft(*resources);
      const Value requests = (*resources)->root()["requests"];
      if (requests.has_value()) status["allocatedResources"] = Draft(api::CopyTree(requests));
    }
  }
  if (facts.current && facts.current->user) {
    Draft user = {{"uid", facts.current->user->uid}, {"gid", facts.current->user->gid}};
    for (const std::int64_t gid : facts.current->user->supplemental_groups) {
      user["supplementalGroups"].Append(Draft(gid));
    }
    status["user"]["linux"] = std::move(user);
  }
  if (input.resource_health && !facts.ephemeral)
    status["allocatedResourcesStatus"] = input.resource_health(facts);
  return status;
}

struct Condition {
  std::string type;
  bool status = false;
  std::string reason;
  std::string message;
};

void PutCondition(const StatusInput& input, Draft& conditions, const Condition& condition) {
  const Value before = [&] {
    for (Value each : input.pod["status"]["conditions"].elements()) {
      if (each["type"].str() == condition.type) return each;
    }
    return Value();
  }();
  Draft made = Draft::Object();
  made["type"] = condition.type;
  if (const Value generation = input.pod["metadata"]["generation"]; generation.has_value()) {
    made["observedGeneration"] = generation.integer();
  }
  made["status"] = condition.status ? "True" : "False";
  made["lastProbeTime"] = nullptr;
  const bool same = before["status"].str() == (condition.status ? "True" : "False");
  made["lastTransitionTime"] = same && before["lastTransitionTime"].has_value()
                                   ? std::string(before["lastTransitionTime"].str())
                                   : api::FormatTime(input.now);
  if (!condition.reason.empty()) made["reason"] = condition.reason;
  if (!condition.message.empty()) made["message"] = condition.message;
  if (conditions.is_array()) {
    for (Draft& each : conditions.MutableElements()) {
      if (each["type"].str() != condition.type) continue;
      each = std::move(made);
      return;
    }
  }
  conditions.Append(std::move(made));
}

void PutResizeConditions(const StatusInput& input, Draft& conditions) {
  for (const bool pending : {true, false}) {
    const std::string type = pending ? "PodResizePending" : "PodResizeInProgress";
    if (input.resize && input.resize->is_pending() == pending) {
      PutCondition(input, conditions,
                   {type, true, std::string(input.resize->reason()), input.resize->message});
    } else if (conditions.is_array()) {
      std::erase_if(conditions.MutableElements(),
                    [&](Draft& each) { return each["type"].str() == type; });
    }
  }
}

std::string UnreadyNames(const StatusInput& input, const std::vector<ContainerFacts>& list,
                         bool sidecars_only) {
  std::vector<std::string> names;
  for (const ContainerFacts& each : list) {
    if (sidecars_only && !each.sidecar) continue;
    if (!IsReady(input, each)) names.push_back(each.name);
  }
  return Join(names, " ");
}

}  // namespace

std::string_view ResizeState::reason() const {
  switch (stage) {
    case Stage::kInProgress:
      return "";
    case Stage::kFailed:
      return "Error";
    case Stage::kDeferred:
      return "Deferred";
    case Stage::kInfeasible:
      return "Infeasible";
  }
  return "";
}

std::string_view PodPhase(const PodFacts& facts, const RestartSettings& settings, bool terminated,
                          bool initialized) {
  std::size_t ended = 0, succeeded = 0, unstarted = 0, restarting = 0;
  for (const ContainerFacts& each : facts.regular) {
    if (each.running()) continue;
    if (!each.ended()) {
      // Created for a further attempt of a container that ran before.
      ++(each.current && each.current->attempt > 0 ? restarting : unstarted);
      continue;
    }
    if (!terminated && ShouldRestart(each, settings)) {
      ++restarting;
      continue;
    }
    ++ended;
    if (each.succeeded()) ++succeeded;
  }
  if (terminated) {
    const bool all_good =
        unstarted == 0 && ended > 0 && ended == succeeded && ended == facts.regular.size();
    return all_good ? "Succeeded" : "Failed";
  }
  if (!initialized || unstarted > 0) return "Pending";
  return "Running";  // also while claims are unprepared after the last container exited
}

Draft MakePodStatus(const StatusInput& input) {
  Draft status(input.pod["status"]);
  if (!status.is_object()) status = Draft::Object();
  std::string_view phase =
      PodPhase(input.facts, input.restart, input.terminated, input.initialized);
  if (input.verdict) {
    phase = input.terminated ? "Failed" : input.pod["status"]["phase"].str("Pending");
    status["reason"] = input.verdict->reason;
    status["message"] = input.verdict->message;
  }
  status["phase"] = phase;
  const bool over = phase == "Succeeded" || phase == "Failed";
  if (const Value generation = input.pod["metadata"]["generation"]; generation.has_value()) {
    status["observedGeneration"] = generation.integer();
  }
  if (!input.host_ip.empty()) {
    status["hostIP"] = input.host_ip;
    status["hostIPs"] = Draft::Array({Draft{{"ip", Draft(input.host_ip)}}});
  }
  if (!input.pod_ips.empty() && input.facts.ready_sandbox() != nullptr) {
    status["podIP"] = input.pod_ips.front();
    Draft ips = Draft::Array();
    for (const std::string& ip : input.pod_ips) ips.Append(Draft{{"ip", Draft(ip)}});
    status["podIPs"] = std::move(ips);
  }
  if (!input.pod["status"]["startTime"].has_value())
    status["startTime"] = api::FormatTime(input.now);

  // A pod that was rejected before anything ran has no container statuses.
  const bool nothing_ran = input.verdict && input.facts.sandboxes.empty();
  if (!nothing_ran) {
    if (!input.facts.init.empty()) {
      std::size_t tried = input.facts.init.size();
      while (tried > 1 && !input.facts.init[tried - 1].current) --tried;
      Draft list = Draft::Array();
      for (std::size_t i = 0; i < input.facts.init.size(); ++i)
        list.Append(MakeContainerStatus(input, input.facts.init[i], i >= tried));
      status["initContainerStatuses"] = std::move(list);
    }
    Draft list = Draft::Array();
    for (const ContainerFacts& each : input.facts.regular)
      list.Append(MakeContainerStatus(input, each));
    status["containerStatuses"] = std::move(list);
    if (!input.facts.ephemeral.empty()) {
      Draft ephemeral = Draft::Array();
      for (const ContainerFacts& each : input.facts.ephemeral)
        ephemeral.Append(MakeContainerStatus(input, each));
      status["ephemeralContainerStatuses"] = std::move(ephemeral);
    }
  }

  Draft& conditions = status["conditions"];
  PutCondition(
      input, conditions,
      {"PodReadyToStartContainers", input.facts.ready_sandbox() != nullptr && !over, "", ""});
  const std::string incomplete = UnreadyNames(input, input.facts.init, false);
  Condition initialized{"Initialized", input.initialized, "", ""};
  if (phase == "Succeeded") {
    initialized.status = true;
    initialized.reason = "PodCompleted";
  } else if (!input.initialized) {
    initialized.reason = "ContainersNotInitialized";
    initialized.message = StrCat("containers with incomplete status: [", incomplete, "]");
  }
  PutCondition(input, conditions, initialized);
  std::string unready = UnreadyNames(input, input.facts.regular, false);
  const std::string sidecars = UnreadyNames(input, input.facts.init, true);
  if (!sidecars.empty()) unready = unready.empty() ? sidecars : StrCat(sidecars, " ", unready);
  Condition ready{"Ready", unready.empty() && input.initialized && !over, "", ""};
  if (over) {
    ready.reason = phase == "Succeeded" ? "PodCompleted" : "PodFailed";
  } else if (!unready.empty()) {
    ready.reason = "ContainersNotReady";
    ready.message = StrCat("containers with unready status: [", unready, "]");
  }
  PutCondition(input, conditions, {"ContainersReady", ready.status, ready.reason, ready.message});
  PutCondition(input, conditions, ready);
  if (input.restart.restart_all_containers && MayRestartAll(input.pod)) {
    Condition restarting{"AllContainersRestarting", !over && input.facts.restart_begins, "", ""};
    if (over) {
      restarting.reason = phase == "Succeeded" ? "PodCompleted" : "PodFailed";
    } else if (restarting.status) {
      restarting.reason = "RestartAllContainersStarted";
      restarting.message = "container exited with restart policy rule";
    }
    PutCondition(input, conditions, restarting);
  }
  PutResizeConditions(input, conditions);
  if (input.verdict && input.verdict->is_disruption) {
    PutCondition(input, conditions,
                 {"DisruptionTarget", true, "TerminationByKubelet", input.verdict->message});
  }
  const bool has_scheduled = [&] {
    for (Value each : input.pod["status"]["conditions"].elements()) {
      if (each["type"].str() == "PodScheduled") return true;
    }
    return false;
  }();
  if (!has_scheduled) PutCondition(input, conditions, {"PodScheduled", true, "", ""});
  return status;
}

}  // namespace drakkar::node
