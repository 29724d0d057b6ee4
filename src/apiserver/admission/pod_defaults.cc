#include "apiserver/admission/pod_defaults.h"

#include "api/scheme/scheme.h"
#include "base/text/text.h"

namespace drakkar::apiserver {
namespace {

constexpr std::string_view kMirror = "kubernetes.io/config.mirror";

}  // namespace

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

std::optional<Failure> ServiceAccountAdmission::Admit(const Request& request, api::Draft* object,
                                                      api::Value before,
                                                      const StrategyContext& context) {
  if (object == nullptr || before.exists() || !IsForNewPod(request)) return std::nullopt;
  // A static pod's image in the API has no account.
  if (api::Draft* metadata = object->Find("metadata")) {
    api::Draft* annotations = metadata->Find("annotations");
    if (annotations != nullptr && annotations->Has(kMirror)) return std::nullopt;
  }
  api::Draft& spec = (*object)["spec"];
  if (!spec["serviceAccountName"].str().empty()) {
    const std::string name(spec["serviceAccountName"].str());
    if (name != "default" &&
        context.lookup("", "serviceaccounts", StrCat(request.namespace_, "/", name)) == nullptr) {
      return ForbiddenFailure(*request.kind, request.name,
                              StrCat("error looking up service account ", request.namespace_, "/",
                                     name, ": serviceaccount ", Quote(name), " not found"));
    }
  } else {
    spec["serviceAccountName"] = "default";
  }
  spec["serviceAccount"] = std::string(spec["serviceAccountName"].str());
  return std::nullopt;
}

}  // namespace drakkar::apiserver
