#include "scheduler/explain.h"

#include <algorithm>
#include <map>

#include "api/meta/time.h"
#include "base/exec/event_loop.h"
#include "base/text/text.h"
#include "scheduler/plugins/dynamic_resources/dynamic_resources.h"
#include "scheduler/simulated_world.h"

namespace drakkar::scheduler {

namespace {

// Why the node would not run the pod although no plugin rejects it; empty if there is no reason.
std::string FindNotReady(const api::Object& node, const Simulation& simulation, WallTime now) {
  for (api::Value condition : node["status"]["conditions"].elements()) {
    if (condition["type"].str() != "Ready" || condition["status"].str() == "True") continue;
    const std::string_view why = condition["message"].str();
    return StrCat("the node is not ready", why.empty() ? "" : ": ", why);
  }
  for (const api::ObjectPtr& lease : simulation.leases) {
    if (lease->name() != node.name()) continue;
    const api::Value spec = lease->root()["spec"];
    const Result<WallTime> renewed = api::ParseTime(spec["renewTime"].str());
    const std::chrono::seconds duration(spec["leaseDurationSeconds"].integer());
    if (!renewed.ok() || duration.count() <= 0 || *renewed + duration >= now) continue;
    return StrCat("the node has not renewed its lease since ", spec["renewTime"].str());
  }
  return {};
}

}  // namespace

bool PodExplanation::FitsSomewhere() const {
  return std::any_of(nodes.begin(), nodes.end(),
                     [](const NodeExplanation& node) { return node.fits(); });
}

Result<PodExplanation> ExplainPod(const Simulation& simulation, SimulationOptions options) {
  SimulatedWorld world(simulation, options);
  PodExplanation explanation;
  Cycle cycle;
  cycle.pod = MakePodInfo(simulation.pod);
  explanation.blocked = world.PreEnqueue(*cycle.pod);
  if (!explanation.blocked.empty()) return explanation;
  Framework::Survey survey = world.framework.Look(cycle);
  if (survey.status.IsRejected()) {
    explanation.blocked = survey.status.Message();
    return explanation;
  }
  if (!survey.status.ok()) return Internal(survey.status.Message());
  const DynamicResources& devices = GetPlugin<DynamicResources>(world.plugins);
  std::map<std::string, NodeExplanation> by_name;
  world.nodes.known().ForEach([&](NodeIndex node) {
    NodeExplanation& each = by_name[world.nodes.name(node)];
    each.node = world.nodes.name(node);
    for (Framework::Refusal& refusal : survey.refusals[node]) {
      each.refusals.push_back({std::string(refusal.plugin->name()), std::move(refusal.reasons)});
    }
    if (std::string why =
            FindNotReady(*world.nodes.object(node), simulation, options.loop.clock().Now());
        !why.empty()) {
      each.refusals.push_back({"Node", {std::move(why)}});
    }
    each.devices = devices.ExplainDevices(cycle, node);
    if (each.fits()) {
      each.preferred = survey.preferred.Contains(node);
      each.waits_for = devices.DescribeWait(cycle, node);
    }
  });
  for (auto& [name, each] : by_name) explanation.nodes.push_back(std::move(each));
  return explanation;
}

}  // namespace drakkar::scheduler
