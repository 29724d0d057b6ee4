#include "apiserver/admission/policy_params.h"

#include "api/meta/label_selector.h"
#include "api/scheme/scheme.h"
#include "apiserver/conversion/versions.h"
#include "base/exec/work_budget.h"
#include "base/text/text.h"

namespace drakkar::apiserver {

PolicyParams FindPolicyParams(const AdmissionPolicy& policy, const api::Object& binding,
                              const Request& request, const StrategyContext& context,
                              const Core& core) {
  PolicyParams params;
  const api::Value ref = binding.root()["spec"]["paramRef"];
  if (policy.param_kind().empty()) {
    params.list.push_back(nullptr);
    return params;
  }
  const api::KindSchema* kind = core.FindKind(policy.param_api_version(), policy.param_kind());
  if (kind == nullptr || kind->plural.empty()) {
    const std::string_view version = policy.param_api_version();
    params.policy_error = StrCat("failed to find resource referenced by paramKind: '", version,
                                 ", Kind=", policy.param_kind(), "'");
    return params;
  }
  if (!ref.has_value()) {
    params.list.push_back(nullptr);
    return params;
  }
  const api::KindSchema& stored = kind->storage == nullptr ? *kind : *kind->storage;
  bool is_missing = false;
  const auto cannot_convert = [&] {
    params.list.clear();
    params.error = StrCat(
        "parameters of a kind with a conversion webhook must be read in the "
        "version in which they are stored, ",
        stored.version);
    return params;
  };
  std::string namespace_;
  if (kind->namespaced) {
    namespace_ =
        ref["namespace"].str().empty() ? request.namespace_ : std::string(ref["namespace"].str());
    if (namespace_.empty()) {
      params.error =
          "cannot use namespaced paramRef in policy binding that matches cluster-scoped resources";
      return params;
    }
  } else if (!ref["namespace"].str().empty()) {
    params.error = "paramRef.namespace must not be provided for a cluster-scoped `paramKind`";
    return params;
  }
  if (const std::string_view name = ref["name"].str(); !name.empty()) {
    const std::string key = namespace_.empty() ? std::string(name) : StrCat(namespace_, "/", name);
    if (api::ObjectPtr found = context.lookup(stored.group, stored.plural, key)) {
      if ((found = ConvertObjectTo(found, *kind)) == nullptr) return cannot_convert();
      params.list.push_back(std::move(found));
    }
  } else {
    Result<api::LabelSelector> selector = api::LabelSelector::FromObject(ref["selector"]);
    if (!selector.ok()) {
      params.error = selector.error().message;
      return params;
    }
    context.visit(stored.group, stored.plural, namespace_, [&](const api::ObjectPtr& each) {
      WorkBudget::Charge(100);
      if (!selector->Matches(each->root()["metadata"]["labels"])) return;
      params.list.push_back(ConvertObjectTo(each, *kind));
      is_missing = is_missing || params.list.back() == nullptr;
    });
    if (is_missing) return cannot_convert();
  }
  if (params.list.empty() && ref["parameterNotFoundAction"].str() == "Deny") {
    params.error = "no params found for policy binding with `Deny` parameterNotFoundAction";
  }
  return params;
}

}  // namespace drakkar::apiserver
