#include "node/pods/pod_facts.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/text/text.h"

namespace drakkar::node {
namespace {

using api::Value;

ContainerFacts MakeFacts(Value spec, bool init,
                         std::map<std::string, std::vector<ContainerStatus>>& by_name) {
  ContainerFacts facts;
  facts.name = std::string(spec["name"].str());
  facts.init = init;
  facts.sidecar = init && spec["restartPolicy"].str() == "Always";
  facts.spec = spec;
  auto found = by_name.find(facts.name);
  if (found == by_name.end()) return facts;
  auto& attempts = found->second;
  std::stable_sort(attempts.begin(), attempts.end(),
                   [](const auto& a, const auto& b) { return a.attempt < b.attempt; });
  facts.current = attempts.back();
  if (attempts.size() > 1) facts.previous = attempts[attempts.size() - 2];
  for (std::size_t i = 0; i + 2 < attempts.size(); ++i) facts.stale.push_back(attempts[i].id);
  by_name.erase(found);
  return facts;
}

}  // namespace

const PodSandbox* PodFacts::ready_sandbox() const {
  if (sandboxes.empty() || sandboxes.back().state != SandboxState::kReady) return nullptr;
  return &sandboxes.back();
}

bool PodFacts::any_running() const {
  if (!strangers.empty()) return true;
  for (const auto* list : {&init, &regular, &ephemeral}) {
    for (const ContainerFacts& each : *list) {
      if (each.running()) return true;
    }
  }
  return false;
}

bool PodFacts::any_superseded_running() const {
  for (const auto* list : {&init, &regular}) {
    for (const ContainerFacts& each : *list) {
      if (each.superseded && each.running()) return true;
    }
  }
  return false;
}

std::uint32_t PodFacts::next_sandbox_attempt() const {
  return sandboxes.empty() ? 0 : sandboxes.back().attempt + 1;
}

PodFacts CollectFacts(Value pod, const std::string& uid, const Runtime& runtime) {
  PodFacts facts;
  std::set<std::string> sandbox_ids;
  for (PodSandbox& sandbox : runtime.ListPodSandboxes()) {
    if (sandbox.uid != uid) continue;
    sandbox_ids.insert(sandbox.id);
    facts.sandboxes.push_back(std::move(sandbox));
  }
  std::stable_sort(facts.sandboxes.begin(), facts.sandboxes.end(),
                   [](const auto& a, const auto& b) { return a.attempt < b.attempt; });
  std::map<std::string, std::vector<ContainerStatus>> by_name;
  for (ContainerStatus& status : runtime.ListContainers()) {
    if (sandbox_ids.contains(status.sandbox_id)) by_name[status.name].push_back(std::move(status));
  }
  for (Value spec : pod["spec"]["initContainers"].elements()) {
    facts.init.push_back(MakeFacts(spec, true, by_name));
  }
  for (Value spec : pod["spec"]["containers"].elements()) {
    facts.regular.push_back(MakeFacts(spec, false, by_name));
  }
  for (Value spec : pod["spec"]["ephemeralContainers"].elements()) {
    facts.ephemeral.push_back(MakeFacts(spec, false, by_name));
    facts.ephemeral.back().ephemeral = true;
  }
  for (const auto& [name, attempts] : by_name) {
    for (const ContainerStatus& status : attempts) {
      if (status.state == ContainerState::kRunning) facts.strangers.push_back(status.id);
    }
  }
  return facts;
}

namespace {

RestartPolicy ParsePolicy(std::string_view text) {
  if (text == "Never") return RestartPolicy::kNever;
  if (text == "OnFailure") return RestartPolicy::kOnFailure;
  return RestartPolicy::kAlways;
}

bool Matches(Value rule, int exit_code) {
  const Value codes = rule["exitCodes"];
  bool listed = false;
  for (Value code : codes["values"].elements()) listed = listed || code.integer() == exit_code;
  if (codes["operator"].str() == "In") return listed;
  return codes["operator"].str() == "NotIn" && !listed;
}

// The action of the first rule that matches the container's exit code; empty if none does.
std::string_view ActionOf(const ContainerFacts& container, const RestartSettings& settings) {
  if (!settings.container_rules || !container.current ||
      container.current->state != ContainerState::kExited) {
    return {};
  }
  for (Value rule : container.spec["restartPolicyRules"].elements()) {
    const std::string_view action = rule["action"].str();
    if (action == "RestartAllContainers" && !settings.restart_all_containers) continue;
    if (Matches(rule, container.current->exit_code)) return action;
  }
  return {};
}

std::uint32_t RunOf(const ContainerStatus& status) {
  const auto found = status.annotations.find(kPodRunAnnotation);
  if (found == status.annotations.end()) return 0;
  return static_cast<std::uint32_t>(ParseInt64(found->second).value_or(0));
}

}  // namespace

RestartSettings ReadRestartSettings(Value pod, bool container_rules, bool restart_all_containers) {
  return {ParsePolicy(pod["spec"]["restartPolicy"].str()), container_rules,
          container_rules && restart_all_containers};
}

bool ShouldRestart(const ContainerFacts& container, const RestartSettings& settings) {
  if (container.superseded) return true;
  if (!container.ended()) return false;
  if (container.sidecar || container.restarts_for_change) return true;
  if (container.init && container.succeeded()) return false;
  if (ActionOf(container, settings) == "Restart") return true;
  RestartPolicy policy = settings.policy;
  if (const Value own = container.spec["restartPolicy"];
      settings.container_rules && own.has_value()) {
    policy = ParsePolicy(own.str());
  }
  if (policy == RestartPolicy::kAlways) return true;
  return policy == RestartPolicy::kOnFailure && !container.succeeded();
}

bool RestartsAll(const ContainerFacts& container, const RestartSettings& settings) {
  return ActionOf(container, settings) == "RestartAllContainers";
}

bool MayRestartAll(Value pod) {
  for (const api::FieldName list : api::FieldNames{"initContainers", "containers"}) {
    for (Value container : pod["spec"][list].elements()) {
      for (Value rule : container["restartPolicyRules"].elements()) {
        if (rule["action"].str() == "RestartAllContainers") return true;
      }
    }
  }
  return false;
}

void MarkRuns(PodFacts& facts, const RestartSettings& settings) {
  facts.run = 0;
  facts.restart_begins = false;
  if (!settings.restart_all_containers) return;
  for (auto* list : {&facts.init, &facts.regular}) {
    for (const ContainerFacts& each : *list) {
      if (each.current) facts.run = std::max(facts.run, RunOf(*each.current));
    }
  }
  for (auto* list : {&facts.init, &facts.regular}) {
    for (const ContainerFacts& each : *list) {
      if (each.current && RunOf(*each.current) == facts.run && RestartsAll(each, settings)) {
        facts.restart_begins = true;
      }
    }
  }
  if (facts.restart_begins) ++facts.run;
  for (auto* list : {&facts.init, &facts.regular}) {
    for (ContainerFacts& each : *list) {
      each.superseded = each.current && RunOf(*each.current) < facts.run;
    }
  }
}

PodPlan PlanPod(const PodFacts& facts, const RestartSettings& settings) {
  PodPlan plan;
  auto needs_start = [&](const ContainerFacts& each) {
    return !each.current || each.current->state == ContainerState::kCreated ||
           ShouldRestart(each, settings);
  };
  // If a regular container exists, initialization has completed, even if the init containers were
  // removed since.
  const bool begun = std::any_of(facts.regular.begin(), facts.regular.end(),
                                 [](const auto& each) { return each.current && !each.superseded; });
  std::vector<const ContainerFacts*> sidecars;
  bool initialized = true;
  for (const ContainerFacts& each : facts.init) {
    if (each.sidecar) {
      if (needs_start(each)) sidecars.push_back(&each);
      if (!begun && (!each.running() || each.superseded)) {
        initialized = false;
        break;
      }
      continue;
    }
    if (begun || (each.succeeded() && !each.superseded)) continue;
    initialized = false;
    if (needs_start(each)) {
      plan.start.push_back(&each);
    } else if (each.ended()) {
      plan.finished = true;  // failed and is not retried
    }
    break;
  }
  plan.initialized = initialized;
  if (plan.finished) {
    plan.start.clear();
    return plan;
  }
  if (initialized) {
    bool all_ended = !facts.regular.empty();
    for (const ContainerFacts& each : facts.regular) {
      if (needs_start(each)) plan.start.push_back(&each);
      if (!each.ended() || ShouldRestart(each, settings)) all_ended = false;
    }
    plan.finished = all_ended;
  }
  if (plan.finished) {
    plan.start.clear();
  } else {
    plan.start.insert(plan.start.begin(), sidecars.begin(), sidecars.end());
    // Also while an init container hangs: debugging that is what they are for.
    for (const ContainerFacts& each : facts.ephemeral) {
      if (!each.current || each.current->state == ContainerState::kCreated)
        plan.start.push_back(&each);
    }
  }
  return plan;
}

}  // namespace drakkar::node
