#include "apiserver/admission/pod_defaults.h"

#include "api/meta/quantity.h"
#include "api/scheme/scheme.h"
#include "base/text/text.h"

namespace drakkar::apiserver {
bool IsForNewPod(const Request& request) {
  return request.verb != Verb::kDelete && request.subresource.empty() &&
         request.kind->group.empty() && request.kind->kind == "Pod";
}

std::optional<Failure> PriorityAdmission::Admit(const Request& request, api::Draft* object,
                                                api::Value before, const StrategyContext& context) {
  if (object == nullptr || before.exists() || !IsForNewPod(request)) return std::nullopt;
  api::Draft& spec = (*object)["spec"];
  const std::string name(spec["priorityClassName"].str());
  api::ObjectPtr found;
  if (name.empty()) {
    if (context.find_first) {
      found = context.find_first(
          "scheduling.k8s.io", "priorityclasses",
          [](const api::Object& each) { return each["globalDefault"].boolean(); });
    }
  } else {
    found = context.lookup("scheduling.k8s.io", "priorityclasses", name);
    if (found == nullptr) {
      return ForbiddenFailure(*request.kind, request.name,
                              StrCat("no PriorityClass with name ", name, " was found"));
    }
  }
  const std::int64_t value = found == nullptr ? 0 : (*found)["value"].integer();
  const std::string_view policy = found == nullptr
                                      ? "PreemptLowerPriority"
                                      : (*found)["preemptionPolicy"].str("PreemptLowerPriority");
  if (spec["priority"].has_value() && spec["priority"].integer() != value) {
    return ForbiddenFailure(
        *request.kind, request.name,
        StrCat("the integer value of priority (", spec["priority"].integer(),
               ") must not be provided in pod spec; priority admission controller computed ", value,
               " from the given PriorityClass name"));
  }
  if (spec["preemptionPolicy"].has_value() && spec["preemptionPolicy"].str() != policy) {
    return ForbiddenFailure(
        *request.kind, request.name,
        StrCat("the string value of PreemptionPolicy (", spec["preemptionPolicy"].str(),
               ") must not be provided in pod spec; priority admission controller computed ",
               policy, " from the given PriorityClass name"));
  }
  spec["priority"] = value;
  spec["preemptionPolicy"] = policy;
  return std::nullopt;
}

std::optional<Failure> DefaultTolerationSeconds::Admit(const Request& request, api::Draft* object,
                                                       api::Value, const StrategyContext&) {
  if (object == nullptr || !IsForNewPod(request)) return std::nullopt;
  // A node that comes back within this time keeps its pods.
  for (const std::string_view key :
       {"node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"}) {
    api::Draft& tolerations = (*object)["spec"]["tolerations"];
    bool tolerated = false;
    for (std::size_t i = 0; tolerations.is_array() && i < tolerations.size(); ++i) {
      api::Draft& each = tolerations.at(i);
      const std::string_view its = each["key"].str();
      const std::string_view effect = each["effect"].str();
      tolerated =
          tolerated || ((its == key || its.empty()) && (effect == "NoExecute" || effect.empty()));
    }
    if (tolerated) continue;
    tolerations.Append({{"key", key},
                        {"operator", "Exists"},
                        {"effect", "NoExecute"},
                        {"tolerationSeconds", kSeconds}});
  }
  return std::nullopt;
}

namespace {

bool SameAmounts(const api::Draft& a, api::Value b) {
  const api::TreePtr given = a.Freeze();
  if (given->root().size() != b.size()) return false;
  for (const auto& [key, name, value] : b.members()) {
    const Result<api::Quantity> x = api::Quantity::Parse(given->root().Entry(name).str());
    const Result<api::Quantity> y = api::Quantity::Parse(value.str());
    if (!x.ok() || !y.ok() || *x != *y) return false;
  }
  return true;
}

// Adds the class's scheduling settings to those of the pod. Returns a description of what
// contradicts.
std::string MergeScheduling(api::Draft& spec, api::Value scheduling) {
  for (const auto& [key, name, value] : scheduling["nodeSelector"].members()) {
    api::Draft& own = spec["nodeSelector"].Entry(name);
    if (own.exists() && own.str() != value.str()) {
      return StrCat("conflict: runtimeClass.scheduling.nodeSelector[", name, "] = ", value.str(),
                    "; pod.spec.nodeSelector[", name, "] = ", own.str());
    }
    own = value.str();
  }
  for (api::Value toleration : scheduling["tolerations"].elements()) {
    api::Draft& tolerations = spec["tolerations"];
    const api::TreePtr given = tolerations.Freeze();
    bool found = false;
    for (api::Value each : given->root().elements()) {
      found = found || api::Equal(each, toleration);
    }
    if (!found) tolerations.Append(api::Draft(api::CopyTree(toleration)));
  }
  return {};
}

}  // namespace

std::optional<Failure> RuntimeClassAdmission::Admit(const Request& request, api::Draft* object,
                                                    api::Value before,
                                                    const StrategyContext& context) {
  if (object == nullptr || before.exists() || !IsForNewPod(request)) return std::nullopt;
  api::Draft* spec = object->Find("spec");
  if (spec == nullptr) return std::nullopt;
  const auto rejected = [&](std::string_view why) {
    return ForbiddenFailure(*request.kind, request.name, why);
  };
  const api::Draft* given = spec->Find("runtimeClassName");
  const std::string name(given == nullptr ? "" : given->str());
  api::ObjectPtr found;
  if (!name.empty()) {
    found = context.lookup("node.k8s.io", "runtimeclasses", name);
    if (found == nullptr) {
      return rejected(StrCat("pod rejected: RuntimeClass ", Quote(name), " not found"));
    }
  }
  const api::Value overhead = found == nullptr ? api::Value() : (*found)["overhead"]["podFixed"];
  if (overhead.has_value()) {
    api::Draft& own = (*spec)["overhead"];
    if (own.size() > 0 && !SameAmounts(own, overhead)) {
      return rejected("pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead");
    }
    own = api::Draft(api::CopyTree(overhead));
  } else if (spec->Has("overhead")) {
    return rejected(
        "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead");
  }
  if (found != nullptr) {
    const std::string conflict = MergeScheduling(*spec, (*found)["scheduling"]);
    if (!conflict.empty()) return rejected(conflict);
  }
  return std::nullopt;
}

}  // namespace drakkar::apiserver
