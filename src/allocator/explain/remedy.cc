#include "allocator/explain/remedy.h"

#include <algorithm>

#include "base/text/text.h"
#include "device/toleration.h"

namespace drakkar::allocator {
namespace {

using Expressions = std::vector<std::shared_ptr<const device::Expression>>;

// An alternative and the first device that the rule rejected for it.
struct Refused {
  std::string path;  // "claim ns/name: spec.devices.requests[0].exactly"
  const Alternative& alternative;
  const device::DeviceClass& device_class;
  const RequestExplanation& explained;
  const SpaceDevice& device;
};

// The selector that rejects the device, with its text; the first one if none rejects it alone.
std::string SelectorText(const Expressions& compiled, const std::vector<device::Selector>& written,
                         const SpaceDevice& device) {
  std::size_t culprit = 0;
  for (std::size_t i = 0; i < compiled.size(); ++i) {
    if (compiled[i]->compile_error()) continue;
    const Result<bool> matches =
        compiled[i]->Matches(device.pool->id.driver, *device.view().device);
    if (matches.ok() && *matches) continue;
    culprit = i;
    break;
  }
  return StrCat("selectors[", culprit, "].cel.expression: ", written[culprit].cel.value_or(""));
}

std::string TaintText(const Refused& refused) {
  const device::Taint* taint = device::FindUntolerated(
      refused.device.pool->taints[refused.device.index], refused.alternative.spec.tolerations);
  if (taint == nullptr) return StrCat(refused.path, ".tolerations");
  return StrCat(refused.path, ".tolerations: ", taint->key, taint->value.empty() ? "" : "=",
                taint->value, ":", taint->effect, " of ", refused.device.id().ToString());
}

std::string InUseText(const Refused& refused) {
  const RequestExplanation& explained = refused.explained;
  if (!explained.wants_all && explained.candidates > 0 && explained.candidates < explained.wanted) {
    return StrCat(refused.path, ".count: ", explained.wanted, " with ", explained.candidates,
                  " free");
  }
  // The first device in use may be one that would not do even if it were free.
  const device::DeviceId held =
      explained.held.empty() ? refused.device.id() : explained.held.front();
  return StrCat("the claim that holds ", held.ToString());
}

std::string RemedyFor(Rule rule, const Refused& refused) {
  const ViewDevice& view = refused.device.view();
  switch (rule) {
    case Rule::kInUse:
    case Rule::kPicked:
      return InUseText(refused);
    case Rule::kClassSelector:
      return StrCat("class ", refused.device_class.name, ": spec.",
                    SelectorText(refused.alternative.class_selectors,
                                 refused.device_class.selectors, refused.device));
    case Rule::kRequestSelector:
      return StrCat(refused.path, ".",
                    SelectorText(refused.alternative.selectors, refused.alternative.spec.selectors,
                                 refused.device));
    case Rule::kNodeSelection:
      return StrCat("slice ", view.slice->name, ": the nodes of device ", view.device->name);
    case Rule::kCapacity:
      return StrCat(refused.path, ".capacity.requests");
    case Rule::kTaint:
      return TaintText(refused);
    case Rule::kSkipUndeclared:
      return "feature gate DRAOptionalNodePreparation of the node, which then declares "
             "DraOptionalNodePreparation";
    case Rule::kSkipDisabled:
      return "feature gate DRAOptionalNodePreparation of the scheduler";
    case Rule::kBindingConditionsDisabled:
      return "feature gates DRADeviceBindingConditions and DRAResourceClaimDeviceStatus of the "
             "scheduler";
    case Rule::kCountersDisabled:
      return "feature gate DRAPartitionableDevices of the scheduler";
    case Rule::kCompatibilityGroups:
    case Rule::kCounters:
      return StrCat("slice ", view.slice->name, ": consumesCounters of device ", view.device->name);
    case Rule::kConstraint:
      break;
  }
  return "";
}

std::vector<std::string> ConstraintRemedies(const Problem& problem) {
  std::vector<std::string> remedies;
  const auto& claims = problem.plan->claims();
  for (std::size_t c = 0; c < claims.size(); ++c) {
    for (std::size_t i = 0; i < claims[c].constraints.size(); ++i) {
      const ConstraintPlan& constraint = claims[c].constraints[i];
      remedies.push_back(
          StrCat("claim ", problem.ClaimName(c), ": spec.devices.constraints[", i,
                 constraint.distinct ? "].distinctAttribute: " : "].matchAttribute: ",
                 constraint.attribute));
    }
  }
  return remedies;
}

}  // namespace

std::vector<std::string> FindRemedies(Rule rule, const Problem& problem, const SearchSpace& space,
                                      const Explanation& explanation) {
  std::vector<std::string> short_of;  // requests with too few candidates
  std::vector<std::string> others;
  if (rule == Rule::kConstraint) short_of = ConstraintRemedies(problem);
  const auto& claims = problem.plan->claims();
  for (std::size_t c = 0; c < claims.size() && rule != Rule::kConstraint; ++c) {
    std::size_t next = 0;
    for (std::size_t r = 0; r < claims[c].requests.size(); ++r) {
      const RequestPlan& request = claims[c].requests[r];
      for (std::size_t a = 0; a < request.alternatives.size(); ++a) {
        const RequestExplanation& explained = explanation.claims[c].requests[next++];
        const auto found =
            std::find_if(explained.refusals.begin(), explained.refusals.end(),
                         [&](const Refusal& refusal) { return refusal.rule == rule; });
        if (found == explained.refusals.end()) continue;
        const std::string where =
            request.prioritized ? StrCat("firstAvailable[", a, "]") : "exactly";
        const bool enough = !explained.wants_all && explained.candidates >= explained.wanted;
        (enough ? others : short_of)
            .push_back(RemedyFor(
                rule,
                {StrCat("claim ", problem.ClaimName(c), ": spec.devices.requests[", r, "].", where),
                 request.alternatives[a], *problem.classes[request.first_alternative + a],
                 explained, space.devices[found->first]}));
      }
    }
  }
  std::vector<std::string> remedies;
  for (std::string& remedy : short_of.empty() ? others : short_of) {
    if (remedies.size() == kMaxRemedies) break;
    if (std::find(remedies.begin(), remedies.end(), remedy) == remedies.end()) {
      remedies.push_back(std::move(remedy));
    }
  }
  return remedies;
}

}  // namespace drakkar::allocator
