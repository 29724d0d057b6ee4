#include "answers/free/fits.h"

#include <algorithm>
#include <map>

#include "answers/cluster/natural_order.h"
#include "api/tree/draft.h"
#include "base/text/text.h"
#include "device/from_api.h"
#include "scheduler/simulated_world.h"

namespace drakkar::answers {
namespace {

constexpr std::string_view kDevicePlugin = "DynamicResources";

// Applies the API server's defaults.
void ApplyDefaults(api::Draft& request) {
  if (!request.Has("allocationMode")) request["allocationMode"] = "ExactCount";
  if (request["allocationMode"].str() == "ExactCount" && !request.Has("count")) {
    request["count"] = 1;
  }
}

// The claim as the API server would store it.
Result<api::ObjectPtr> MakeClaim(api::Value written, std::string_view ns) {
  const bool is_template = written["kind"].str() == "ResourceClaimTemplate";
  const api::Value spec = is_template ? written["spec"]["spec"] : written["spec"];
  if (!spec["devices"]["requests"].is_array() || spec["devices"]["requests"].empty()) {
    return InvalidArgument(StrCat(is_template ? "spec.spec" : "spec",
                                  ".devices.requests: the claim asks for no device"));
  }
  const std::string_view name =
      written["metadata"]["name"].str(written["metadata"]["generateName"].str("claim"));
  api::Draft claim = api::Draft::Object();
  claim["apiVersion"] = "resource.k8s.io/v1";
  claim["kind"] = "ResourceClaim";
  claim["metadata"]["name"] = name;
  claim["metadata"]["namespace"] = ns;
  claim["metadata"]["uid"] = "what-if";
  claim["metadata"]["resourceVersion"] = "1";
  claim["spec"] = api::Draft(spec);
  for (api::Draft& request : claim["spec"]["devices"]["requests"].MutableElements()) {
    if (request.Has("exactly")) ApplyDefaults(request["exactly"]);
    if (!request.Has("firstAvailable")) continue;
    for (api::Draft& each : request["firstAvailable"].MutableElements()) ApplyDefaults(each);
  }
  return std::make_shared<const api::Object>(claim.Freeze());
}

}  // namespace

api::ObjectPtr PodForClaim(std::string_view ns, std::string_view claim_name,
                           std::string_view claim_uid) {
  api::Draft pod = api::Draft::Object();
  pod["apiVersion"] = "v1";
  pod["kind"] = "Pod";
  pod["metadata"]["name"] = claim_name;
  pod["metadata"]["namespace"] = ns;
  pod["metadata"]["uid"] = StrCat("explain-", claim_uid);
  api::Draft reference = api::Draft::Object();
  reference["name"] = "claim";
  reference["resourceClaimName"] = claim_name;
  pod["spec"]["resourceClaims"].Append(std::move(reference));
  return std::make_shared<const api::Object>(pod.Freeze());
}

Result<FitsAnswer> CountFits(const Snapshot& snapshot, api::Value written,
                             scheduler::SimulationOptions options) {
  const std::string_view ns = written["metadata"]["namespace"].str("default");
  ASSIGN_OR_RETURN(const api::ObjectPtr object, MakeClaim(written, ns));
  ASSIGN_OR_RETURN(device::Claim claim, device::ClaimFromApi(object->root()));
  if (!claim.unknown_fields.empty()) {
    return InvalidArgument(StrCat("unknown field ", Quote(claim.unknown_fields.front())));
  }

  scheduler::Simulation simulation;
  simulation.nodes = snapshot.nodes;
  simulation.slices = snapshot.slices;
  simulation.classes = snapshot.classes;
  simulation.taint_rules = snapshot.taint_rules;
  simulation.claims = snapshot.claims;
  simulation.claims.push_back(object);
  simulation.leases = snapshot.leases;
  simulation.pod = PodForClaim(ns, object->name(), object->uid());

  FitsAnswer answer;
  answer.claim = object->name();
  answer.notes = snapshot.notes;
  scheduler::SimulatedWorld world(simulation, options);
  scheduler::Cycle cycle;
  cycle.pod = scheduler::MakePodInfo(simulation.pod);
  const scheduler::Framework::Survey survey = world.framework.Look(cycle);
  if (!survey.status.ok()) {
    answer.why_none = survey.status.Message();
    return answer;
  }
  allocator::Allocator& allocator = world.devices.allocator();
  const std::vector<std::shared_ptr<const device::Claim>> claims = {
      std::make_shared<const device::Claim>(std::move(claim))};
  const allocator::Problem problem = allocator.Prepare(
      claims, [&](std::string_view name) { return world.devices.FindClass(name); });

  std::vector<std::string> nodes;
  world.nodes.known().ForEach([&](scheduler::NodeIndex node) {
    const auto refusals = survey.refusals.find(node);
    const bool refused =
        refusals != survey.refusals.end() &&
        std::any_of(refusals->second.begin(), refusals->second.end(),
                    [](const auto& each) { return each.plugin->name() != kDevicePlugin; });
    if (!refused) nodes.push_back(world.nodes.name(node));
  });
  std::sort(nodes.begin(), nodes.end(), NaturalLess);
  for (const std::string& node : nodes) {
    std::size_t count = 0;
    while (answer.total < kMaxFits) {
      ASSIGN_OR_RETURN(const allocator::Outcome outcome, allocator.Allocate(problem, node, {}));
      const auto* found = std::get_if<allocator::Allocation>(&outcome);
      if (found == nullptr) break;
      ++count;
      ++answer.total;
      // Admin access holds nothing, so any number fits.
      bool holds = false;
      for (const device::AllocationResult& result : found->results) {
        for (const device::DeviceResult& each : result.results) holds |= !each.admin_access;
        world.devices.allocated().Add(result);
      }
      if (!holds) answer.total = kMaxFits;
    }
    if (count > 0) answer.nodes.push_back({node, count});
  }
  answer.at_least = answer.total >= kMaxFits;
  std::stable_sort(answer.nodes.begin(), answer.nodes.end(),
                   [](const auto& a, const auto& b) { return a.count > b.count; });
  return answer;
}

}  // namespace drakkar::answers
