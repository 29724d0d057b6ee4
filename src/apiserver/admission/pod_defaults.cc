#include "apiserver/admission/pod_defaults.h"

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

std::optional<Failure> RuntimeClassAdmission::Admit(const Request& request, api::Draft* object,
                                                    api::Value before,
                                                    const StrategyContext& context) {
  if (object == nullptr || before.exists() || !IsForNewPod(request)) return std::nullopt;
  api::Draft* spec = object->Find("spec");
  const api::Draft* given = spec == nullptr ? nullptr : spec->Find("runtimeClassName");
  const std::string name(given == nullptr ? "" : given->str());
  if (name.empty() || context.lookup("node.k8s.io", "runtimeclasses", name) != nullptr) {
    return std::nullopt;
  }
  return ForbiddenFailure(*request.kind, request.name,
                          StrCat("pod rejected: RuntimeClass ", Quote(name), " not found"));
}

}  // namespace drakkar::apiserver
