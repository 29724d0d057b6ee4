#include "apiserver/admission/mutating_admission_policy.h"

#include "api/scheme/scheme.h"
#include "api/tree/draft_view.h"
#include "apiserver/admission/policy_params.h"
#include "apiserver/auth/request_authorizer.h"
#include "apiserver/conversion/versions.h"
#include "apiserver/policy/admission_request.h"
#include "base/exec/work_budget.h"
#include "base/text/text.h"
#include "cel/object/tree_value.h"

namespace drakkar::apiserver {

// One request as it passes through the policies.
struct MutatingAdmissionPolicyStep::Run {
  const Request& request;
  const StrategyContext& context;
  const api::KindSchema& stored;
  api::TreePtr object;  // as stored, with all changes so far
  api::Value before;
  std::string_view operation;
  RequestAuthorizer authorizer;
  std::vector<std::string> errors = {};

  AdmissionSubject Subject() const {
    return {.request = request,
            .operation = operation,
            .object = object->root(),
            .before = before,
            .find_namespace = [this](const std::string& name) {
              return context.lookup("", "namespaces", name);
            }};
  }

  void Fail(const MutatingPolicy& policy, std::string_view binding, std::string_view why) {
    if (policy.ignores_errors()) return;
    errors.push_back(binding.empty() ? StrCat("policy '", policy.name(), "' denied request: ", why)
                                     : StrCat("policy '", policy.name(), "' with binding '",
                                              binding, "' denied request: ", why));
  }

  // Applies the mutations of one policy in order, for one parameter.
  std::optional<Failure> Apply(const MutatingPolicy& policy, std::string_view binding,
                               const api::KindSchema& shown, const api::ObjectPtr& param) {
    const api::TreePtr old_shown = before.has_value() && &shown != &stored
                                       ? ConvertTree(api::CopyTree(before), shown)
                                       : nullptr;
    const api::Value old_value = old_shown == nullptr ? before : old_shown->root();
    const AdmissionRequestTree described(request, operation, shown);
    const api::ObjectPtr home =
        request.kind->namespaced ? context.lookup("", "namespaces", request.namespace_) : nullptr;
    const std::string id =
        StrCat(policy.name(), "/", binding, "/", param == nullptr ? "" : param->qualified_name());
    Reinvocation& reinvocation = *context.reinvocation;
    bool is_changed = false;
    for (std::size_t i = 0; i < policy.mutation_count(); ++i) {
      if (WorkBudget::IsExceeded()) return std::nullopt;
      const api::TreePtr current = &shown == &stored ? object : ConvertTree(object, shown);
      cel::Arena arena;
      const MutatingPolicy::Input input = {
          .object = cel::TreeValue(arena, current->root()),
          .old_object = cel::TreeValue(arena, old_value),
          .namespace_object = cel::TreeValue(arena, home == nullptr ? api::Value() : home->root()),
          .request = cel::TreeValue(arena, described.root()),
          .params = cel::TreeValue(arena, param == nullptr ? api::Value() : param->root()),
          .authorizer = NewAuthorizerValue(arena, authorizer, request.user),
          .request_resource = NewResourceCheckValue(arena, authorizer, request.user,
                                                    {.group = std::string(shown.group),
                                                     .resource = std::string(shown.plural),
                                                     .subresource = request.subresource,
                                                     .namespace_ = request.namespace_,
                                                     .name = request.name,
                                                     .field_selector = {}}),
          .asked = &authorizer};
      if (i == 0) {
        std::string error;
        PolicyEvaluation conditions(policy, input);
        const bool matches = conditions.Matches(error);
        if (!error.empty()) Fail(policy, binding, error);
        if (!matches) return std::nullopt;
        if (reinvocation.round > 0 && !reinvocation.pending.contains(id)) return std::nullopt;
      }
      const MutatingPolicy::Change change = policy.Mutate(i, input, current->root(), shown);
      if (!change.error.empty()) {
        Fail(policy, binding, change.error);
        continue;
      }
      if (change.object == nullptr || api::Equal(change.object->root(), current->root())) continue;
      api::TreePtr accepted;
      if (std::optional<Failure> failure =
              (*context.accept_changed)(change.object, shown, accepted)) {
        return api::StatusInternalError(failure->message);
      }
      if (api::Equal(accepted->root(), object->root())) continue;
      object = std::move(accepted);
      is_changed = true;
    }
    if (is_changed) {
      reinvocation.is_changed = true;
      reinvocation.Require();
    }
    if (policy.is_reinvocable()) reinvocation.called.insert(id);
    return std::nullopt;
  }
};

std::optional<Failure> MutatingAdmissionPolicyStep::Admit(const Request& request,
                                                          api::Draft* object, api::Value before,
                                                          const StrategyContext& context) {
  // A deletion has nothing to change, and a pod's Binding is not a stored object.
  if (object == nullptr || context.reinvocation == nullptr) return std::nullopt;
  const api::KindSchema& stored =
      request.kind->storage == nullptr ? *request.kind : *request.kind->storage;
  Run run = {.request = request,
             .context = context,
             .stored = stored,
             .object = object->Freeze(),
             .before = before,
             .operation = before.has_value() ? "UPDATE" : "CREATE",
             .authorizer = RequestAuthorizer(policies_.core(), rbac_)};
  const api::TreePtr original = run.object;
  for (MutatingPolicySet::Active* active : policies_.For(*request.kind)) {
    const AdmissionMatch::Outcome matched = active->match.Match(run.Subject());
    if (matched.kind == nullptr) continue;
    const MutatingPolicy& policy = active->Compiled();
    if (!matched.error.empty()) {
      run.Fail(policy, "", StrCat("failed to configure policy: ", matched.error));
      continue;
    }
    for (const auto& binding : active->bindings) {
      if (WorkBudget::IsExceeded()) return std::nullopt;
      const std::string_view name = binding->object->name();
      if (binding->object->root()["spec"]["matchResources"].has_value()) {
        const AdmissionMatch::Outcome bound = binding->match.Match(run.Subject());
        if (bound.kind == nullptr) continue;
        if (!bound.error.empty()) {
          run.Fail(policy, name, StrCat("failed to configure binding: ", bound.error));
          continue;
        }
      }
      const PolicyParams params =
          FindPolicyParams(policy, *binding->object, request, context, *policies_.core());
      if (!params.policy_error.empty()) {
        run.Fail(policy, "", StrCat("failed to configure policy: ", params.policy_error));
        break;
      }
      if (!params.error.empty()) {
        run.Fail(policy, name, StrCat("failed to configure binding: ", params.error));
        continue;
      }
      for (const api::ObjectPtr& param : params.list) {
        if (std::optional<Failure> failure = run.Apply(policy, name, *matched.kind, param)) {
          return failure;
        }
      }
    }
  }
  if (!run.errors.empty()) {
    Failure failure = ForbiddenFailure(*request.kind, request.name, "");
    failure.reason = "Invalid";
    failure.message = run.errors.front();
    for (const std::string& each : run.errors) failure.causes.push_back({"", each, ""});
    return failure;
  }
  if (run.object != original) *object = api::Draft(run.object);
  return std::nullopt;
}

}  // namespace drakkar::apiserver
