#include "apiserver/admission/validating_admission_policy.h"

#include "api/scheme/scheme.h"
#include "apiserver/admission/policy_params.h"
#include "apiserver/auth/request_authorizer.h"
#include "apiserver/conversion/versions.h"
#include "apiserver/policy/admission_request.h"
#include "base/exec/work_budget.h"
#include "base/text/text.h"
#include "cel/object/tree_value.h"
#include "telemetry/log/log.h"

namespace drakkar::apiserver {
namespace {

constexpr Logger kLog("admission");

int CodeOf(std::string_view reason) {
  if (reason == "Forbidden") return 403;
  if (reason == "Unauthorized") return 401;
  if (reason == "RequestEntityTooLarge") return 413;
  return 422;
}

// The tree of a request's object in the version that a policy matched.
class VersionedObject {
 public:
  VersionedObject(api::Value stored, const api::KindSchema& in, const api::KindSchema& wanted)
      : value_(stored) {
    if (!stored.has_value() || &in == &wanted) return;
    tree_ = ConvertTree(api::CopyTree(stored), wanted);
    value_ = tree_->root();
  }
  api::Value value() const { return value_; }

 private:
  api::TreePtr tree_;
  api::Value value_;
};

}  // namespace

std::optional<Failure> ValidatingAdmissionPolicyStep::Check(const Request& request,
                                                            api::Value object, api::Value before,
                                                            const StrategyContext& context,
                                                            std::vector<std::string>& warnings) {
  return Evaluate(request, AdmissionOperation(object, before), nullptr, object, before, context,
                  warnings);
}

std::optional<Failure> ValidatingAdmissionPolicyStep::CheckAction(
    const Request& request, const Action& action, const StrategyContext& context,
    std::vector<std::string>& warnings) {
  return Evaluate(request, action.operation, &action.body, request.object->root(), api::Value(),
                  context, warnings);
}

std::optional<Failure> ValidatingAdmissionPolicyStep::Evaluate(const Request& request,
                                                               std::string_view operation,
                                                               const api::KindSchema* body,
                                                               api::Value object, api::Value before,
                                                               const StrategyContext& context,
                                                               std::vector<std::string>& warnings) {
  std::optional<Failure> denied;
  const auto deny = [&](std::string_view policy, const PolicyBinding* binding,
                        std::string_view message, std::string_view reason) {
    if (denied) return;
    const std::string text =
        binding == nullptr
            ? StrCat("ValidatingAdmissionPolicy '", policy, "' denied request: ", message)
            : StrCat("ValidatingAdmissionPolicy '", policy, "' with binding '",
                     binding->object->name(), "' denied request: ", message);
    denied = ForbiddenFailure(*request.kind, request.name, text);
    denied->reason = reason.empty() ? "Invalid" : std::string(reason);
    denied->code = CodeOf(denied->reason);
    denied->causes.push_back({"", text, ""});
  };

  const AdmissionSubject subject = {.request = request,
                                    .operation = operation,
                                    .object = object,
                                    .before = before,
                                    .find_namespace = [&](const std::string& name) {
                                      return context.lookup("", "namespaces", name);
                                    }};
  const api::KindSchema& stored =
      request.kind->storage == nullptr ? *request.kind : *request.kind->storage;
  RequestAuthorizer authorizer(policies_.core(), rbac_);

  for (PolicySet::Active* active : policies_.For(*request.kind)) {
    if (WorkBudget::IsExceeded()) return denied;
    const AdmissionMatch::Outcome matched = active->match.Match(subject);
    if (matched.kind == nullptr) continue;
    const ValidatingPolicy& policy = active->Compiled();
    const auto misconfigured = [&](const PolicyBinding* binding, std::string_view why) {
      if (policy.ignores_errors()) return;
      deny(policy.name(), binding,
           StrCat(binding == nullptr ? "failed to configure policy: "
                                     : "failed to configure binding: ",
                  why),
           "");
    };
    if (!matched.error.empty()) {
      misconfigured(nullptr, matched.error);
      continue;
    }
    std::optional<VersionedObject> shown;
    std::optional<VersionedObject> shown_before;
    std::optional<AdmissionRequestTree> described;
    for (const auto& binding : active->bindings) {
      if (binding->object->root()["spec"]["matchResources"].has_value()) {
        const AdmissionMatch::Outcome bound = binding->match.Match(subject);
        if (bound.kind == nullptr) continue;
        if (!bound.error.empty()) {
          misconfigured(binding.get(), bound.error);
          continue;
        }
      }
      const PolicyParams params =
          FindPolicyParams(policy, *binding->object, request, context, *policies_.core());
      if (!params.policy_error.empty()) {
        misconfigured(nullptr, params.policy_error);
        break;
      }
      if (!params.error.empty()) {
        misconfigured(binding.get(), params.error);
        continue;
      }
      if (!described) {
        // A body has no other versions.
        const api::KindSchema& wanted = body == nullptr ? *matched.kind : stored;
        shown.emplace(object, stored, wanted);
        shown_before.emplace(before, stored, wanted);
        described.emplace(request, operation, *matched.kind, body, request.name);
      }
      const api::ObjectPtr home =
          request.kind->namespaced ? context.lookup("", "namespaces", request.namespace_) : nullptr;
      for (const api::ObjectPtr& param : params.list) {
        if (WorkBudget::IsExceeded()) return denied;
        cel::Arena arena;
        const ValidatingPolicy::Input input = {
            .object = cel::TreeValue(arena, shown->value()),
            .old_object = cel::TreeValue(arena, shown_before->value()),
            .namespace_object =
                cel::TreeValue(arena, home == nullptr ? api::Value() : home->root()),
            .request = cel::TreeValue(arena, described->root()),
            .params = cel::TreeValue(arena, param == nullptr ? api::Value() : param->root()),
            .authorizer = NewAuthorizerValue(arena, authorizer, request.user),
            .request_resource =
                NewResourceCheckValue(arena, authorizer, request.user,
                                      {.group = std::string(matched.kind->group),
                                       .resource = std::string(matched.kind->plural),
                                       .subresource = request.subresource,
                                       .namespace_ = request.namespace_,
                                       .name = request.name,
                                       .field_selector = {}}),
            .asked = &authorizer};
        const ValidatingPolicy::Result result = policy.Evaluate(input);
        for (const ValidatingPolicy::Verdict& verdict : result.denials) {
          if (binding->denies) deny(policy.name(), binding.get(), verdict.message, verdict.reason);
          if (binding->warns) {
            warnings.push_back(StrCat("Validation failed for ValidatingAdmissionPolicy '",
                                      policy.name(), "' with binding '", binding->object->name(),
                                      "': ", verdict.message));
          }
          if (binding->audits) {
            kLog.Info("policy violated", {{"policy", policy.name()},
                                          {"binding", binding->object->name()},
                                          {"user", request.user.name},
                                          {"resource", request.kind->plural},
                                          {"namespace", request.namespace_},
                                          {"name", request.name},
                                          {"reason", verdict.message}});
          }
        }
        for (const ValidatingPolicy::Annotation& annotation : result.annotations) {
          kLog.Info("policy annotated request", {{"policy", policy.name()},
                                                 {"key", annotation.key},
                                                 {"value", annotation.value},
                                                 {"user", request.user.name},
                                                 {"name", request.name}});
        }
      }
    }
  }
  return denied;
}

}  // namespace drakkar::apiserver
