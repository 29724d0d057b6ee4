#include "allocator/result/result_builder.h"

#include <algorithm>
#include <set>
#include <span>

#include "allocator/search/search_space.h"
#include "base/ids/uuid.h"
#include "base/text/text.h"

namespace drakkar::allocator {
namespace {

using device::AllocatedConfig;
using device::AllocationResult;
using device::DeviceResult;
using device::NodeSelectorRequirement;

void FillDevice(Plan& plan, Alternative& alternative, const SpaceDevice& picked,
                const Features& features, Random& random, DeviceResult& result) {
  const ViewDevice& view = picked.view();
  result.request = alternative.full_name();
  result.id = picked.id();
  result.admin_access = alternative.admin;
  result.tolerations = alternative.spec.tolerations;
  if (features.consumable_capacity && view.device->allow_multiple_allocations) {
    result.share_id = NewUuid(random);
    const CapacityNeed& need = plan.CapacityOf(alternative, view);
    for (std::size_t i = 0; i < view.device->capacity.size(); ++i) {
      result.consumed_capacity.push_back({view.device->capacity[i].name, need.amounts[i]});
    }
  }
  if (features.optional_node_operations) {
    result.skip_node_operations = view.slice->skip_node_operations;
  }
  if (features.device_binding_and_status) {
    result.binding_conditions = view.device->binding_conditions;
    result.binding_failure_conditions = view.device->binding_failure_conditions;
  }
}

bool Contains(const std::vector<std::string>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// Whether the list names the request or its chosen alternative.
bool Names(const std::vector<std::string>& names, const device::Request& request,
           std::uint32_t alternative) {
  if (Contains(names, request.name)) return true;
  if (request.first_available.empty()) return false;
  return Contains(names, StrCat(request.name, "/", request.first_available[alternative].name));
}

void AddConfig(const Problem& problem, std::size_t claim_index,
               const std::vector<std::uint32_t>& chosen, AllocationResult& result) {
  const device::Claim& claim = *problem.claims[claim_index];
  const ClaimPlan& plan = problem.plan->claims()[claim_index];
  // For each class seen so far, the index of its first entry.
  std::vector<std::pair<std::string_view, std::size_t>> first_of_class;
  for (std::size_t r = 0; r < claim.requests.size(); ++r) {
    const RequestPlan& request = plan.requests[r];
    const std::uint32_t alternative = chosen[request.number];
    const device::DeviceClass& device_class =
        *problem.classes[request.first_alternative + alternative];
    if (device_class.config.empty()) continue;
    const std::string name = request.alternatives[alternative].full_name();
    const auto seen =
        std::find_if(first_of_class.begin(), first_of_class.end(),
                     [&](const auto& entry) { return entry.first == device_class.name; });
    if (seen != first_of_class.end()) {
      for (std::size_t i = 0; i < device_class.config.size(); ++i) {
        result.config[seen->second + i].requests.push_back(name);
      }
      continue;
    }
    first_of_class.emplace_back(device_class.name, result.config.size());
    for (const auto& opaque : device_class.config) {
      result.config.push_back({AllocatedConfig::Source::kClass, {name}, opaque});
    }
  }
  for (const device::ClaimConfig& config : claim.config) {
    bool applies = config.requests.empty();
    for (std::size_t r = 0; r < claim.requests.size() && !applies; ++r) {
      applies = Names(config.requests, claim.requests[r], chosen[plan.requests[r].number]);
    }
    if (!applies) continue;
    result.config.push_back({AllocatedConfig::Source::kClaim, config.requests, config.opaque});
  }
  // An empty list means all requests.
  for (AllocatedConfig& config : result.config) {
    bool all = true;
    for (std::size_t r = 0; r < claim.requests.size() && all; ++r) {
      all = Names(config.requests, claim.requests[r], chosen[plan.requests[r].number]);
    }
    if (all) config.requests.clear();
  }
}

bool IsSameRequirement(const NodeSelectorRequirement& a, const NodeSelectorRequirement& b) {
  return a.key == b.key && a.op == b.op &&
         std::set<std::string_view>(a.values.begin(), a.values.end()) ==
             std::set<std::string_view>(b.values.begin(), b.values.end());
}

void AddNew(const std::vector<NodeSelectorRequirement>& from,
            std::vector<NodeSelectorRequirement>& to) {
  for (const NodeSelectorRequirement& requirement : from) {
    const bool known = std::any_of(to.begin(), to.end(), [&](const NodeSelectorRequirement& old) {
      return IsSameRequirement(old, requirement);
    });
    if (!known) to.push_back(requirement);
  }
}

Result<std::optional<device::NodeSelector>> BuildNodeSelector(std::span<const SpaceDevice> devices,
                                                              const std::string& node_name) {
  device::NodeSelectorTerm term;
  for (const SpaceDevice& device : devices) {
    const ViewDevice& view = device.view();
    const device::NodeTarget& target =
        view.slice->per_device_node_selection ? view.device->target : view.slice->target;
    if (!target.node_name.empty() || view.device->binds_to_node) {
      return std::optional(device::SelectNode(node_name));
    }
    if (!target.selector || target.selector->terms.empty()) continue;
    if (target.selector->terms.size() > 1) {
      return InvalidArgument(StrCat("unsupported ResourceSlice.NodeSelector with ",
                                    target.selector->terms.size(), " terms"));
    }
    AddNew(target.selector->terms[0].match_fields, term.match_fields);
    AddNew(target.selector->terms[0].match_expressions, term.match_expressions);
  }
  if (term.match_fields.empty() && term.match_expressions.empty()) {
    return std::optional<device::NodeSelector>();
  }
  device::NodeSelector selector;
  selector.terms.push_back(std::move(term));
  return std::optional(std::move(selector));
}

}  // namespace

Result<std::vector<AllocationResult>> BuildResults(
    const Problem& problem, const NodeIndex::Entry& node, const Features& features,
    const std::vector<Pick>& picks, const std::vector<std::uint32_t>& chosen, Random& random) {
  std::vector<AllocationResult> results(problem.claims.size());
  Plan& plan = *problem.plan;
  const std::vector<SpaceDevice> devices = DevicesOf(node, picks);
  std::size_t next = 0;  // picks are in the order of the claims
  for (std::uint32_t c = 0; c < results.size(); ++c) {
    const std::size_t first = next;
    while (next < picks.size() && picks[next].claim == c) ++next;
    results[c].results.resize(next - first);
    for (std::size_t i = first; i < next; ++i) {
      Alternative& alternative =
          plan.claims()[c].requests[picks[i].request].alternatives[picks[i].alternative];
      FillDevice(plan, alternative, devices[i], features, random, results[c].results[i - first]);
    }
    AddConfig(problem, c, chosen, results[c]);
    Result<std::optional<device::NodeSelector>> selector =
        BuildNodeSelector(std::span(devices).subspan(first, next - first), node.node.name);
    if (!selector.ok()) {
      return std::move(selector).error().Prefixed(
          StrCat("create NodeSelector for claim ", problem.claims[c]->name));
    }
    results[c].node_selector = *std::move(selector);
  }
  return results;
}

}  // namespace drakkar::allocator
