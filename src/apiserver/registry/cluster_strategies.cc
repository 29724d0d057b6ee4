#include "apiserver/registry/cluster_strategies.h"

#include <set>
#include <utility>

#include "apiserver/registry/kept_members.h"
#include "apiserver/registry/small_strategies.h"
#include "apiserver/validation/cause.h"
#include "apiserver/validation/container_resources.h"
#include "apiserver/validation/value_rules.h"
#include "base/exec/work_budget.h"
#include "base/text/text.h"
#include "features/gates/feature_gates.h"

namespace drakkar::apiserver {
namespace {

bool IsLetter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

// "MyFeature" or "MyFeature/mySubFeature".
bool IsFeatureName(std::string_view name) {
  bool first = true;
  for (std::string_view segment : Split(name, '/')) {
    if (segment.empty() || !IsLetter(segment[0])) return false;
    if (first && !(segment[0] >= 'A' && segment[0] <= 'Z')) return false;
    first = false;
    for (char c : segment) {
      if (!IsLetter(c) && !(c >= '0' && c <= '9')) return false;
    }
  }
  return true;
}

// The field is dropped while its gate is off, unless the node already has it.
void DropDisabledFeatures(api::Draft& object, api::Value before, const StrategyContext& context) {
  if (context.gates.Enabled(Gate::kNodeDeclaredFeatures)) return;
  if (!before["status"]["declaredFeatures"].empty()) return;
  if (api::Draft* status = object.Find("status")) status->Remove("declaredFeatures");
}

}  // namespace

void NodeStrategy::Default(api::Draft& object, const StrategyContext&) const {
  // podCIDR is the first of podCIDRs; whichever is given sets the other.
  if (api::Draft* spec = object.Find("spec")) {
    const api::Draft* one = spec->Find("podCIDR");
    api::Draft* all = spec->Find("podCIDRs");
    const std::string first(one == nullptr ? "" : one->str());
    const std::string listed(all == nullptr || all->size() == 0 ? "" : all->at(0).str());
    if (first.empty() && !listed.empty()) (*spec)["podCIDR"] = listed;
    if (!first.empty() && first != listed) {
      spec->Remove("podCIDRs");
      (*spec)["podCIDRs"].Append(first);
    }
  }
  // A node that reserves nothing for itself offers all it has.
  api::Draft* status = object.Find("status");
  if (status == nullptr || !status->Has("capacity") || status->Has("allocatable")) return;
  (*status)["allocatable"] = (*status)["capacity"];
}

void NodeStrategy::PrepareForCreate(api::Draft& object, const StrategyContext& context) const {
  DropDisabledFeatures(object, api::Value(), context);
}

void NodeStrategy::PrepareForUpdate(api::Draft& object, api::Value before, std::string_view,
                                    const StrategyContext& context) const {
  DropDisabledFeatures(object, before, context);
}

api::FieldErrors ValidateDeclaredFeatures(api::Value features) {
  api::FieldErrors causes;
  std::string_view previous;
  std::size_t index = 0;
  for (api::Value feature : features.elements()) {
    const std::string path = StrCat("status.declaredFeatures[", index, "]");
    const std::string_view name = feature.str();
    if (name.size() > 253) {
      causes.push_back(Invalid(
          path, name,
          StrCat("invalid feature name ", Quote(name), ": must be no more than 253 characters")));
    } else if (!IsFeatureName(name)) {
      causes.push_back(Invalid(
          path, name,
          StrCat("invalid feature name ", Quote(name),
                 ": must start with an UpperCamelCase segment, with subsequent segments separated "
                 "by '/' (e.g., MyFeature or MyFeature/mySubFeature), and contain only "
                 "alphanumeric characters and slashes")));
    }
    if (index > 0 && name == previous) {
      causes.push_back(Duplicate(path, name));
    } else if (index > 0 && name < previous) {
      causes.push_back(Invalid(path, name, "list must be sorted alphabetically"));
    }
    previous = name;
    ++index;
  }
  return causes;
}

namespace {

// What is checked whenever a node is written.
api::FieldErrors CheckNode(api::Value object) {
  api::FieldErrors errors = ValidateTaints(object["spec"]["taints"]);
  for (const api::FieldName list : api::FieldNames{"capacity", "allocatable"}) {
    const api::FieldPath path = api::FieldPath("status").Child(list.view());
    for (const auto& [key, name, value] : object["status"][list].members()) {
      if (WorkBudget::IsExceeded()) return errors;
      CheckResourceAmount(errors, path.Child(name), name, value);
    }
  }
  errors.Append(ValidateDeclaredFeatures(object["status"]["declaredFeatures"]));
  return errors;
}

void CheckPodNetworks(api::FieldErrors& errors, api::Value networks) {
  const api::FieldPath path("spec.podCIDRs");
  std::size_t index = 0;
  for (const api::Value network : networks.elements()) {
    if (WorkBudget::IsExceeded()) return;
    CheckNetwork(errors, path.Index(index++), network.str());
  }
  const auto is_v6 = [&](std::size_t place) {
    return networks.at(place).str().find(':') != std::string_view::npos;
  };
  if (networks.size() > 2 || (networks.size() == 2 && is_v6(0) == is_v6(1))) {
    errors.push_back(
        Invalid(path, networks, "may specify no more than one CIDR for each IP family"));
  }
}

// A node's networks and its name at the cloud provider are set once.
void CheckNodeUpdate(api::FieldErrors& errors, api::Value object, api::Value before) {
  const api::Value spec = object["spec"];
  const api::Value old = before["spec"];
  if (!old["podCIDRs"].empty() && !api::Equal(spec["podCIDRs"], old["podCIDRs"])) {
    errors.push_back(Forbidden("spec.podCIDRs",
                               R"(node updates may not change podCIDR except from "" to valid)"));
  }
  const std::string_view provider = spec["providerID"].str();
  const std::string_view old_provider = old["providerID"].str();
  if (!old_provider.empty() && provider != old_provider) {
    errors.push_back(Invalid("spec.providerID", nullptr,
                             provider.empty() ? "field cannot be cleared once set"
                                              : "field cannot be modified once set"));
  }
  if (spec["externalID"].str() != old["externalID"].str()) {
    errors.push_back(Forbidden("spec.externalID", "may not be updated"));
  }
  std::set<std::pair<std::string_view, std::string_view>> seen;
  std::size_t index = 0;
  for (const api::Value address : object["status"]["addresses"].elements()) {
    if (WorkBudget::IsExceeded()) return;
    const api::FieldPath at = api::FieldPath("status.addresses").Index(index++);
    if (!seen.emplace(address["type"].str(), address["address"].str()).second) {
      errors.push_back(Duplicate(at, address));
    }
  }
}

// Namespaces list finalizers of their own, by which controllers hold up their deletion.
void CheckNamespaceFinalizers(api::FieldErrors& errors, api::Value object) {
  std::size_t index = 0;
  for (const api::Value finalizer : object["spec"]["finalizers"].elements()) {
    if (WorkBudget::IsExceeded()) return;
    const api::FieldPath at = api::FieldPath("spec.finalizers").Index(index++);
    const std::string_view name = finalizer.str();
    AddProblems(errors, at, name, api::CheckLabelKey(name));
    const bool is_standard =
        name == "kubernetes" || name == "orphan" || name == "foregroundDeletion";
    if (is_standard || name.find('/') != std::string_view::npos) continue;
    errors.push_back(
        Invalid(at, name, "name is neither a standard finalizer name nor is it fully qualified"));
  }
}

}  // namespace

api::FieldErrors NodeStrategy::Validate(api::Value object, const StrategyContext&) const {
  api::FieldErrors errors = CheckNode(object);
  CheckPodNetworks(errors, object["spec"]["podCIDRs"]);
  return errors;
}

api::FieldErrors NodeStrategy::ValidateUpdate(api::Value object, api::Value before,
                                              std::string_view, const StrategyContext&) const {
  api::FieldErrors errors = CheckNode(object);
  CheckNodeUpdate(errors, object, before);
  return errors;
}

api::FieldErrors NamespaceStrategy::ValidateUpdate(api::Value object, api::Value,
                                                   std::string_view subresource,
                                                   const StrategyContext&) const {
  api::FieldErrors errors;
  if (subresource == "finalize") CheckNamespaceFinalizers(errors, object);
  if (subresource != "status") return errors;
  const bool ends = !object["metadata"]["deletionTimestamp"].str().empty();
  const std::string_view phase = object["status"]["phase"].str();
  if (phase != (ends ? "Terminating" : "Active")) {
    errors.push_back(Invalid("status.Phase", phase,
                             ends ? "may only be 'Terminating' if `deletionTimestamp` is not empty"
                                  : "may only be 'Active' if `deletionTimestamp` is empty"));
  }
  return errors;
}

void NamespaceStrategy::PrepareForCreate(api::Draft& object, const StrategyContext&) const {
  object["status"] = api::Draft::Object();
  object["status"]["phase"] = "Active";
  object["spec"] = api::Draft::Object();
  object["spec"]["finalizers"].Append("kubernetes");
  // So that selectors can match a namespace by name.
  object["metadata"]["labels"].Entry("kubernetes.io/metadata.name") =
      std::string(object["metadata"]["name"].str());
}

void NamespaceStrategy::PrepareForUpdate(api::Draft& object, api::Value before,
                                         std::string_view subresource,
                                         const StrategyContext&) const {
  if (subresource != "finalize") {
    KeepMember("spec", before, object);
  }
}

bool NamespaceStrategy::HoldsDeletion(api::Value object) const {
  return !object["spec"]["finalizers"].empty();
}

std::string_view NamespaceStrategy::WhyKept(std::string_view name) const {
  for (std::string_view each : {"default", "kube-system", "kube-public"}) {
    if (name == each) return "this namespace may not be deleted";
  }
  return {};
}

}  // namespace drakkar::apiserver
