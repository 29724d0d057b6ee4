#include "apiserver/registry/cluster_strategies.h"

#include "apiserver/registry/kept_members.h"
#include "apiserver/registry/small_strategies.h"
#include "apiserver/validation/cause.h"
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

api::FieldErrors NodeStrategy::Validate(api::Value object, const StrategyContext&) const {
  api::FieldErrors errors = ValidateTaints(object["spec"]["taints"]);
  errors.Append(ValidateDeclaredFeatures(object["status"]["declaredFeatures"]));
  return errors;
}

api::FieldErrors NodeStrategy::ValidateUpdate(api::Value object, api::Value, std::string_view,
                                              const StrategyContext& context) const {
  return Validate(object, context);
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
