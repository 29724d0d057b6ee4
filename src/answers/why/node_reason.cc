#include "answers/why/node_reason.h"

#include <algorithm>
#include <map>

#include "base/text/text.h"

namespace drakkar::answers {
namespace {

using allocator::Explanation;
using allocator::Refusal;
using allocator::RequestExplanation;
using allocator::Rule;

constexpr std::string_view kDevicePlugin = "DynamicResources";

std::string LowerFirst(std::string text) {
  if (text.size() > 1 && text[0] >= 'A' && text[0] <= 'Z' && text[1] >= 'a' && text[1] <= 'z') {
    text[0] = static_cast<char>(text[0] - 'A' + 'a');
  }
  return text;
}

// The reason in two or three words. The details contain the plugin's full message.
std::string ShortReason(const scheduler::NodeRefusal& refusal) {
  const std::string& plugin = refusal.plugin;
  const std::string reason = refusal.reasons.empty() ? std::string() : refusal.reasons.front();
  if (plugin == "Node") return "not ready";
  if (plugin == "NodeUnschedulable") return "cordoned";
  if (plugin == "TaintToleration") return "tainted";
  if (plugin == "NodeAffinity") return "excluded by node affinity";
  if (plugin == "NodeName") return "not the node that the pod names";
  if (plugin == "NodePorts") return "host port in use";
  if (plugin == "NodeDeclaredFeatures") return "missing node features";
  if (plugin == "NodeResourcesFit") {
    std::vector<std::string> parts;
    for (const std::string& each : refusal.reasons) {
      // "Insufficient cpu (kept for pod ...)": the parenthesis is a detail.
      parts.push_back(LowerFirst(each.substr(0, each.find(" ("))));
    }
    return Join(parts, ", ");
  }
  return reason.empty() ? LowerFirst(plugin) : LowerFirst(reason);
}

// If no device is free or held by others: the last rule that any device of the request reached.
std::string FurthestReason(const RequestExplanation& request) {
  Rule furthest = Rule::kInUse;
  for (const Refusal& refusal : request.refusals) furthest = std::max(furthest, refusal.rule);
  switch (furthest) {
    case Rule::kInUse:
    case Rule::kPicked:
      return "too few devices";
    case Rule::kClassSelector:
      return "wrong class";
    case Rule::kRequestSelector:
      return "no device that the request selects";
    case Rule::kNodeSelection:
      return "no devices";
    case Rule::kCapacity:
      return "too little capacity";
    case Rule::kBindingConditionsDisabled:
    case Rule::kSkipDisabled:
    case Rule::kCountersDisabled:
      return "feature gate off";
    case Rule::kSkipUndeclared:
      return "missing node features";
    case Rule::kCompatibilityGroups:
      return "incompatible partitions";
    case Rule::kCounters:
      return "counters used up";
    case Rule::kTaint:
      return "tainted devices";
    case Rule::kConstraint:
      return "constraints not met";
  }
  return "too few devices";
}

std::size_t DeviceCount(const RequestExplanation& request) {
  std::size_t count = request.candidates;
  for (const Refusal& refusal : request.refusals) count += refusal.count;
  return count;
}

std::size_t MissingOf(const RequestExplanation& request) {
  if (request.wants_all) return request.held_count;  // it needs every device, so none may be held
  return request.wanted > request.candidates ? request.wanted - request.candidates : 0;
}

NodeReason ForRequest(const std::string& claim, const RequestExplanation& request) {
  NodeReason reason;
  reason.claim = claim;
  reason.request = request.name;
  reason.candidates = request.candidates;
  reason.missing = MissingOf(request);
  reason.held = request.held;
  const std::size_t usable = request.candidates + request.held_count;
  if (DeviceCount(request) == 0) {
    reason.text = "no devices";
  } else if (usable == 0) {
    reason.text = FurthestReason(request);
  } else if (!request.wants_all && usable < request.wanted) {
    reason.text = StrCat("too few devices (", usable, " of ", request.wanted, ")");
  } else {
    reason.only_held = true;
    reason.text = request.candidates == 0 ? "full"
                                          : StrCat("short by ", reason.missing,
                                                   reason.missing == 1 ? " device" : " devices");
  }
  return reason;
}

// A request as a whole: the alternative that is missing the least.
struct RequestGroup {
  const std::string* claim;
  const RequestExplanation* best;
};

std::vector<RequestGroup> GroupRequests(const Explanation& explanation) {
  std::vector<RequestGroup> groups;
  for (const allocator::ClaimExplanation& claim : explanation.claims) {
    std::map<std::string, std::size_t> by_request;
    for (const RequestExplanation& request : claim.requests) {
      const std::string name = request.name.substr(0, request.name.find('/'));
      const auto [found, is_new] = by_request.try_emplace(name, groups.size());
      if (is_new) {
        groups.push_back({&claim.name, &request});
      } else if (MissingOf(request) < MissingOf(*groups[found->second].best)) {
        groups[found->second].best = &request;
      }
    }
  }
  return groups;
}

NodeReason ForDevices(const Explanation& explanation) {
  NodeReason reason;
  if (explanation.out_of_budget) {
    reason.text = "search gave up";
    return reason;
  }
  const std::vector<RequestGroup> requests = GroupRequests(explanation);
  const RequestGroup* shortest = nullptr;
  for (const RequestGroup& each : requests) {
    if (MissingOf(*each.best) == 0 && DeviceCount(*each.best) > 0) continue;
    if (shortest == nullptr || MissingOf(*each.best) > MissingOf(*shortest->best)) {
      shortest = &each;
    }
  }
  const bool has_devices =
      std::any_of(requests.begin(), requests.end(),
                  [](const RequestGroup& each) { return DeviceCount(*each.best) > 0; });
  if (!has_devices && !explanation.pools.empty()) {
    reason.text = explanation.pools.front().invalid ? "invalid pool" : "incomplete pool";
    return reason;
  }
  if (shortest != nullptr) return ForRequest(*shortest->claim, *shortest->best);
  // Each request alone would have enough devices.
  for (const allocator::ClosestMiss& miss : explanation.closest) {
    if (miss.rule == Rule::kConstraint) reason.text = "constraints not met";
    if (miss.rule == Rule::kCounters) reason.text = "counters used up";
    if (miss.rule == Rule::kCompatibilityGroups) reason.text = "incompatible partitions";
    if (!reason.text.empty()) return reason;
  }
  for (const allocator::ClosestMiss& miss : explanation.closest) {
    if (miss.rule != Rule::kInUse) continue;
    reason.text = "too few devices for all requests";
    reason.only_held = true;
    reason.missing = 1;
    for (const RequestGroup& each : requests) {
      reason.held.insert(reason.held.end(), each.best->held.begin(), each.best->held.end());
    }
    std::sort(reason.held.begin(), reason.held.end());
    reason.held.erase(std::unique(reason.held.begin(), reason.held.end()), reason.held.end());
    return reason;
  }
  reason.text = "no combination of devices";
  return reason;
}

}  // namespace

NodeReason ClassifyNode(const scheduler::NodeExplanation& explanation) {
  // For a node that accepts no pods at all, that is the reason, whatever its devices.
  for (const scheduler::NodeRefusal& refusal : explanation.refusals) {
    if (refusal.plugin == kDevicePlugin) continue;
    NodeReason reason;
    reason.text = ShortReason(refusal);
    return reason;
  }
  if (explanation.devices && !explanation.devices->fits) return ForDevices(*explanation.devices);
  NodeReason reason;
  for (const scheduler::NodeRefusal& refusal : explanation.refusals) {
    if (refusal.plugin != kDevicePlugin || refusal.reasons.empty()) continue;
    const std::string& text = refusal.reasons.front();
    reason.text = text.starts_with("resourceclaim not available on the node")
                      ? "a claim of the pod is bound elsewhere"
                      : LowerFirst(text);
  }
  if (reason.text.empty()) reason.text = "refused";
  return reason;
}

}  // namespace drakkar::answers
