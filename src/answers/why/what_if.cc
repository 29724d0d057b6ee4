#include "answers/why/what_if.h"

#include <utility>

#include "api/tree/draft.h"
#include "claims/pod_claims.h"

namespace drakkar::answers {
namespace {

using api::Value;

using PoolKey = std::pair<std::string_view, std::string_view>;

bool HoldsInAny(const api::Object& claim, const std::set<PoolKey>& pools) {
  for (Value result : claim["status"]["allocation"]["devices"]["results"].elements()) {
    if (pools.contains({result["driver"].str(), result["pool"].str()})) return true;
  }
  return false;
}

api::ObjectPtr Freeze(const api::Draft& draft) {
  return std::make_shared<const api::Object>(draft.Freeze());
}

}  // namespace

WhatIf::WhatIf(const scheduler::Simulation& whole, const std::string& node,
               const scheduler::SimulationOptions& options)
    : options_(options) {
  std::set<PoolKey> pools;
  for (const api::ObjectPtr& each : whole.nodes) {
    if (each->name() == node) simulation_.nodes.push_back(each);
  }
  for (const api::ObjectPtr& slice : whole.slices) {
    const Value spec = (*slice)["spec"];
    const std::string_view on = spec["nodeName"].str();
    if (!on.empty() && on != node) continue;
    simulation_.slices.push_back(slice);
    pools.insert({spec["driver"].str(), spec["pool"]["name"].str()});
  }
  // Include the pools' slices on other nodes, because a pool is only valid as a whole.
  for (const api::ObjectPtr& slice : whole.slices) {
    const Value spec = (*slice)["spec"];
    const std::string_view on = spec["nodeName"].str();
    if (on.empty() || on == node) continue;
    if (pools.contains({spec["driver"].str(), spec["pool"]["name"].str()})) {
      simulation_.slices.push_back(slice);
    }
  }
  const std::vector<std::string> names = claims::ListClaimNames(whole.pod->root());
  const std::set<std::string_view> wanted(names.begin(), names.end());
  for (const api::ObjectPtr& claim : whole.claims) {
    const bool own =
        claim->namespace_() == whole.pod->namespace_() && wanted.contains(claim->name());
    if (own || HoldsInAny(*claim, pools)) simulation_.claims.push_back(claim);
  }
  for (const api::ObjectPtr& pod : whole.pods) {
    if ((*pod)["spec"]["nodeName"].str() == node ||
        (*pod)["status"]["nominatedNodeName"].str() == node) {
      simulation_.pods.push_back(pod);
    }
  }
  simulation_.classes = whole.classes;
  simulation_.taint_rules = whole.taint_rules;
  simulation_.namespaces = whole.namespaces;
  simulation_.pod_groups = whole.pod_groups;
  simulation_.pod = whole.pod;
}

bool WhatIf::Fits(const scheduler::Simulation& simulation,
                  const scheduler::SimulationOptions& options) const {
  const Result<scheduler::SimulationAnswer> answer = scheduler::Simulate(simulation, options);
  return answer.ok() && answer->fits;
}

bool WhatIf::Fits(const scheduler::Simulation& simulation) const {
  return Fits(simulation, options_);
}

bool WhatIf::FitsWithout(const std::set<std::string>& claims) const {
  scheduler::Simulation changed = simulation_;
  std::set<std::string> pods;  // uids
  for (api::ObjectPtr& claim : changed.claims) {
    if (!claims.contains(claim->qualified_name())) continue;
    for (Value each : (*claim)["status"]["reservedFor"].elements()) pods.emplace(each["uid"].str());
    api::Draft draft(claim->tree());
    draft.Remove("status");
    claim = Freeze(draft);
  }
  std::erase_if(changed.pods,
                [&](const api::ObjectPtr& pod) { return pods.contains(std::string(pod->uid())); });
  return Fits(changed);
}

bool WhatIf::FitsWithCount(const std::string& claim, const std::string& request,
                           std::int64_t count) const {
  const std::size_t slash = request.find('/');
  const std::string parent = request.substr(0, slash);
  const std::string child = slash == std::string::npos ? "" : request.substr(slash + 1);
  scheduler::Simulation changed = simulation_;
  for (api::ObjectPtr& each : changed.claims) {
    if (each->qualified_name() != claim) continue;
    api::Draft draft(each->tree());
    for (api::Draft& one : draft["spec"]["devices"]["requests"].MutableElements()) {
      if (one["name"].str() != parent) continue;
      if (child.empty()) {
        one["exactly"]["count"] = count;
        continue;
      }
      for (api::Draft& alternative : one["firstAvailable"].MutableElements()) {
        if (alternative["name"].str() == child) alternative["count"] = count;
      }
    }
    each = Freeze(draft);
  }
  return Fits(changed);
}

bool WhatIf::FitsUncordoned() const {
  scheduler::Simulation changed = simulation_;
  for (api::ObjectPtr& node : changed.nodes) {
    api::Draft draft(node->tree());
    draft["spec"].Remove("unschedulable");
    node = Freeze(draft);
  }
  return Fits(changed);
}

bool WhatIf::FitsWithGates(const FeatureGates& gates) const {
  scheduler::SimulationOptions options = options_;
  options.gates = gates;
  return Fits(simulation_, options);
}

bool WhatIf::FitsDeclaring(const std::vector<std::string>& features) const {
  scheduler::Simulation changed = simulation_;
  for (api::ObjectPtr& node : changed.nodes) {
    std::set<std::string> names(features.begin(), features.end());
    for (Value name : (*node)["status"]["declaredFeatures"].elements()) names.emplace(name.str());
    api::Draft draft(node->tree());
    draft["status"].Remove("declaredFeatures");
    for (const std::string& name : names) draft["status"]["declaredFeatures"].Append(name);
    node = Freeze(draft);
  }
  return Fits(changed);
}

}  // namespace drakkar::answers
