#include "apiserver/validation/admission_policy.h"

#include <algorithm>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "api/meta/names.h"
#include "apiserver/custom/webhook_client_rules.h"
#include "apiserver/policy/expressions.h"
#include "apiserver/validation/metadata.h"
#include "base/exec/work_budget.h"
#include "base/text/text.h"

namespace drakkar::apiserver {
namespace {

using api::FieldError;
using api::FieldErrors;
using api::FieldPath;
using api::Value;

constexpr std::size_t kMaxConditions = 64;
constexpr std::size_t kMaxAuditAnnotations = 20;
constexpr std::size_t kMaxValueExpressionBytes = std::size_t{5} * 1024;

bool Has(Value list, std::string_view wanted) {
  for (Value each : list.elements()) {
    if (each.str() == wanted) return true;
  }
  return false;
}

void AddProblems(FieldErrors& errors, const FieldPath& path, std::string_view value,
                 const api::Problems& problems) {
  for (const std::string& problem : problems) {
    errors.push_back(FieldError::Invalid(path, value, problem));
  }
}

void CheckResources(FieldErrors& errors, const FieldPath& path, Value resources) {
  if (resources.empty()) errors.push_back(FieldError::Required(path, ""));
  std::set<std::string_view> with_all_below;  // x/*
  std::set<std::string_view> below_all;       // */x
  bool is_wildcard = false;
  bool is_plain = false;
  std::size_t index = 0;
  for (Value each : resources.elements()) {
    const FieldPath at = path.Index(index++);
    const std::string_view text = each.str();
    if (text.empty()) {
      errors.push_back(FieldError::Required(at, ""));
      continue;
    }
    if (text == "*") is_wildcard = true;
    const std::size_t slash = text.find('/');
    if (slash == std::string_view::npos) {
      is_plain = text != "*";
      continue;
    }
    const std::string_view resource = text.substr(0, slash);
    const std::string_view below = text.substr(slash + 1);
    if (with_all_below.contains(resource)) {
      errors.push_back(FieldError::Invalid(
          at, text, StrCat("if '", resource, "/*' is present, must not specify ", text)));
    }
    if (below_all.contains(below)) {
      errors.push_back(FieldError::Invalid(
          at, text, StrCat("if '*/", below, "' is present, must not specify ", text)));
    }
    if (below == "*") with_all_below.insert(resource);
    if (resource == "*") below_all.insert(below);
  }
  if (resources.size() > 1 && Has(resources, "*/*")) {
    errors.push_back(FieldError::Invalid(path, resources,
                                         "if '*/*' is present, must not specify other resources"));
  }
  if (is_wildcard && is_plain) {
    errors.push_back(FieldError::Invalid(
        path, resources,
        "if '*' is present, must not specify other resources without subresources"));
  }
}

void CheckRule(FieldErrors& errors, const FieldPath& path, Value rule) {
  const Value operations = rule["operations"];
  if (operations.empty()) errors.push_back(FieldError::Required(path.Child("operations"), ""));
  if (operations.size() > 1 && Has(operations, "*")) {
    errors.push_back(FieldError::Invalid(path.Child("operations"), operations,
                                         "if '*' is present, must not specify other operations"));
  }
  std::size_t index = 0;
  for (Value each : operations.elements()) {
    const FieldPath at = path.Child("operations").Index(index++);
    const std::string_view text = each.str();
    if (text != "*" && text != "CREATE" && text != "UPDATE" && text != "DELETE" &&
        text != "CONNECT") {
      errors.push_back(
          FieldError::NotSupported(at, text, {"*", "CONNECT", "CREATE", "DELETE", "UPDATE"}));
    }
  }
  const auto check = [&](api::FieldName name, std::string_view what, bool may_be_empty) {
    const Value list = rule[name];
    const FieldPath at = path.Child(name);
    if (list.empty()) errors.push_back(FieldError::Required(at, ""));
    if (list.size() > 1 && Has(list, "*")) {
      errors.push_back(FieldError::Invalid(
          at, list, StrCat("if '*' is present, must not specify other ", what)));
    }
    std::size_t place = 0;
    for (Value each : list.elements()) {
      if (each.str().empty() && !may_be_empty) {
        errors.push_back(FieldError::Required(at.Index(place), ""));
      }
      ++place;
    }
  };
  check("apiGroups", "API groups", true);
  check("apiVersions", "API versions", false);
  CheckResources(errors, path.Child("resources"), rule["resources"]);
  if (const std::string_view scope = rule["scope"].str("*");
      scope != "*" && scope != "Cluster" && scope != "Namespaced") {
    errors.push_back(
        FieldError::NotSupported(path.Child("scope"), scope, {"*", "Cluster", "Namespaced"}));
  }
}

void CheckNamedRules(FieldErrors& errors, const FieldPath& path, Value rules) {
  std::size_t index = 0;
  for (Value rule : rules.elements()) {
    if (WorkBudget::IsExceeded()) return;
    const FieldPath at = path.Index(index++);
    std::set<std::string_view> names;
    std::size_t place = 0;
    for (Value name : rule["resourceNames"].elements()) {
      const FieldPath where = at.Child("resourceNames").Index(place++);
      AddProblems(errors, where, name.str(), PathSegmentProblems(name.str(), false));
      if (!names.insert(name.str()).second) {
        errors.push_back(FieldError::Duplicate(where, name.str()));
      }
    }
    CheckRule(errors, at, rule);
  }
}

void CheckMatchResources(FieldErrors& errors, const FieldPath& path, Value match) {
  CheckNamedRules(errors, path.Child("resourceRules"), match["resourceRules"]);
  CheckNamedRules(errors, path.Child("excludeResourceRules"), match["excludeResourceRules"]);
}

void AddExpressionError(FieldErrors& errors, const FieldPath& path,
                        const PolicyExpression& expression) {
  if (expression.error.empty()) return;
  errors.push_back(expression.internal_error
                       ? FieldError::Internal(path, expression.error)
                       : FieldError::Invalid(path, expression.source, expression.error));
}

void CheckConditions(FieldErrors& errors, const FieldPath& path, Value conditions,
                     const PolicyCompiler& compiler) {
  if (conditions.size() > kMaxConditions) {
    errors.push_back(FieldError::TooMany(path, conditions.size(), kMaxConditions));
  }
  std::set<std::string_view> names;
  std::size_t index = 0;
  for (Value condition : conditions.elements()) {
    if (WorkBudget::IsExceeded()) return;
    const FieldPath at = path.Index(index++);
    const std::string_view source = Trim(condition["expression"].str());
    if (source.empty()) {
      errors.push_back(FieldError::Required(at.Child("expression"), ""));
    } else {
      AddExpressionError(errors, at.Child("expression"), compiler.CompileCondition(source));
    }
    const std::string_view name = condition["name"].str();
    if (name.empty()) {
      errors.push_back(FieldError::Required(at.Child("name"), ""));
      continue;
    }
    AddProblems(errors, at.Child("name"), name, api::CheckLabelKey(name));
    if (!names.insert(name).second) {
      errors.push_back(FieldError::Duplicate(at.Child("name"), name));
    }
  }
}

bool IsIdentifier(std::string_view text) {
  constexpr std::string_view kReserved[] = {
      "true",     "false",   "null",      "in",       "as",  "break",  "const",
      "continue", "else",    "for",       "function", "if",  "import", "let",
      "loop",     "package", "namespace", "return",   "var", "void",   "while"};
  const auto is_letter = [](char c) {
    return c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  };
  if (text.empty() || !is_letter(text[0])) return false;
  for (char c : text) {
    if (!is_letter(c) && !(c >= '0' && c <= '9')) return false;
  }
  return std::ranges::find(kReserved, text) == std::end(kReserved);
}

void CheckVariables(FieldErrors& errors, const FieldPath& path, Value variables,
                    PolicyCompiler& compiler) {
  std::size_t index = 0;
  for (Value variable : variables.elements()) {
    if (WorkBudget::IsExceeded()) return;
    const FieldPath at = path.Index(index++);
    const std::string_view name = variable["name"].str();
    if (Trim(name).empty()) {
      errors.push_back(FieldError::Required(at.Child("name"), "name is not specified"));
    } else if (!IsIdentifier(name)) {
      errors.push_back(
          FieldError::Invalid(at.Child("name"), name, "must be a valid CEL identifier"));
    }
    const std::string_view source = variable["expression"].str();
    if (Trim(source).empty()) {
      errors.push_back(FieldError::Required(at.Child("expression"), "expression is not specified"));
    } else {
      AddExpressionError(errors, at.Child("expression"), compiler.CompileVariable(name, source));
    }
  }
}

void CheckValidation(FieldErrors& errors, const FieldPath& at, Value validation,
                     const PolicyCompiler& compiler) {
  const std::string_view source = validation["expression"].str();
  if (Trim(source).empty()) {
    errors.push_back(FieldError::Required(at.Child("expression"), "expression is not specified"));
  } else {
    AddExpressionError(errors, at.Child("expression"), compiler.Compile(source, Returns::kBool));
  }
  const std::string_view message_source = validation["messageExpression"].str();
  if (!message_source.empty() && Trim(message_source).empty()) {
    errors.push_back(FieldError::Invalid(at.Child("messageExpression"), message_source,
                                         "must be non-empty if specified"));
  } else if (!message_source.empty()) {
    AddExpressionError(errors, at.Child("messageExpression"),
                       compiler.Compile(message_source, Returns::kText, false));
  }
  const std::string_view message = validation["message"].str();
  if (!message.empty() && Trim(message).empty()) {
    errors.push_back(
        FieldError::Invalid(at.Child("message"), message, "must be non-empty if specified"));
  } else if (Trim(message).find_first_of("\r\n") != std::string_view::npos) {
    errors.push_back(
        FieldError::Invalid(at.Child("message"), message, "must not contain line breaks"));
  }
  if (const Value reason = validation["reason"]; reason.has_value()) {
    const std::string_view text = reason.str();
    if (text != "Forbidden" && text != "Invalid" && text != "RequestEntityTooLarge" &&
        text != "Unauthorized") {
      errors.push_back(FieldError::NotSupported(at.Child("reason"), text,
                                                {"Forbidden", "Invalid", "RequestEntityTooLarge"}));
    }
  }
}

void CheckAnnotations(FieldErrors& errors, const FieldPath& path, Value policy,
                      const PolicyCompiler& compiler) {
  const Value annotations = policy["spec"]["auditAnnotations"];
  if (annotations.size() > kMaxAuditAnnotations) {
    errors.push_back(FieldError::Invalid(
        path, annotations,
        StrCat("must not have more than ", kMaxAuditAnnotations, " auditAnnotations")));
  }
  std::set<std::string_view> keys;
  std::size_t index = 0;
  for (Value annotation : annotations.elements()) {
    if (WorkBudget::IsExceeded()) return;
    const FieldPath at = path.Index(index++);
    const std::string_view key = annotation["key"].str();
    const std::string whole = StrCat(policy["metadata"]["name"].str(), "/", key);
    AddProblems(errors, at.Child("key"), whole, api::CheckLabelKey(whole));
    const std::string_view source = Trim(annotation["valueExpression"].str());
    if (source.empty()) {
      errors.push_back(
          FieldError::Required(at.Child("valueExpression"), "valueExpression is not specified"));
    } else if (source.size() > kMaxValueExpressionBytes) {
      errors.push_back(FieldError::Required(
          at.Child("valueExpression"),
          StrCat("must not exceed ", kMaxValueExpressionBytes, " bytes in length")));
    } else {
      AddExpressionError(errors, at.Child("valueExpression"),
                         compiler.Compile(source, Returns::kTextOrNull));
    }
    if (!keys.insert(key).second) errors.push_back(FieldError::Duplicate(at.Child("key"), key));
  }
}

void CheckParamKind(FieldErrors& errors, const FieldPath& path, Value param) {
  const std::string_view version = param["apiVersion"].str();
  const FieldPath at = path.Child("apiVersion");
  if (version.empty()) {
    errors.push_back(FieldError::Required(at, ""));
  } else if (std::ranges::count(version, '/') > 1) {
    errors.push_back(
        FieldError::Invalid(at, version, StrCat("unexpected GroupVersion string: ", version)));
  } else {
    const std::size_t slash = version.find('/');
    const std::string_view group =
        slash == std::string_view::npos ? std::string_view() : version.substr(0, slash);
    const std::string_view name =
        slash == std::string_view::npos ? version : version.substr(slash + 1);
    if (!group.empty()) {
      if (const api::Problems problems = api::CheckDnsSubdomain(group); !problems.empty()) {
        errors.push_back(FieldError::Invalid(at, group, Join(problems, ",")));
      }
    }
    if (name.empty()) {
      errors.push_back(FieldError::Invalid(at, version, "version must be specified"));
    } else if (const api::Problems problems = api::CheckDns1035Label(name); !problems.empty()) {
      errors.push_back(FieldError::Invalid(at, name, Join(problems, ",")));
    }
  }
  const std::string_view kind = param["kind"].str();
  if (kind.empty()) {
    errors.push_back(FieldError::Required(path.Child("kind"), ""));
    return;
  }
  std::string lower(kind);
  for (char& c : lower) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  if (const api::Problems problems = api::CheckDns1035Label(lower); !problems.empty()) {
    errors.push_back(FieldError::Invalid(
        path.Child("kind"), kind,
        StrCat("may have mixed case, but should otherwise match: ", Join(problems, ","))));
  }
}

void CheckParamRef(FieldErrors& errors, const FieldPath& path, Value ref) {
  const std::string_view name = ref["name"].str();
  const bool selects = ref["selector"].has_value();
  if (!name.empty()) {
    AddProblems(errors, path.Child("name"), name, PathSegmentProblems(name, false));
    if (selects) {
      for (const char* each : {"name", "selector"}) {
        errors.push_back(
            FieldError::Forbidden(path.Child(each), "name and selector are mutually exclusive"));
      }
    }
  } else if (!selects) {
    errors.push_back(FieldError::Required(path, "one of name or selector must be specified"));
  }
  const FieldPath at = path.Child("parameterNotFoundAction");
  const std::string_view action = ref["parameterNotFoundAction"].str();
  if (action.empty()) {
    errors.push_back(FieldError::Required(at, ""));
  } else if (action != "Deny" && action != "Allow") {
    errors.push_back(FieldError::NotSupported(at, action, {"Deny", "Allow"}));
  }
}

void CheckActions(FieldErrors& errors, const FieldPath& path, Value actions) {
  std::set<std::string_view> seen;
  std::size_t index = 0;
  for (Value action : actions.elements()) {
    const FieldPath at = path.Index(index++);
    const std::string_view text = action.str();
    if (text != "Deny" && text != "Warn" && text != "Audit") {
      errors.push_back(FieldError::NotSupported(at, text, {"Audit", "Deny", "Warn"}));
    }
    if (!seen.insert(text).second) errors.push_back(FieldError::Duplicate(at, text));
  }
  if (seen.contains("Deny") && seen.contains("Warn")) {
    errors.push_back(FieldError::Invalid(
        path, actions,
        "must not contain both Deny and Warn (repeating the same validation failure information in "
        "the API response and headers serves no purpose)"));
  }
  if (seen.empty()) {
    errors.push_back(FieldError::Required(path, "at least one validation action is required"));
  }
}

void CheckWebhook(FieldErrors& errors, const FieldPath& at, Value hook,
                  const PolicyCompiler& compiler) {
  const std::string_view name = hook["name"].str();
  if (name.empty()) {
    errors.push_back(FieldError::Required(at.Child("name"), ""));
  } else if (const api::Problems problems = api::CheckDnsSubdomain(name); !problems.empty()) {
    AddProblems(errors, at.Child("name"), name, problems);
  } else if (std::ranges::count(name, '.') < 2) {
    errors.push_back(
        FieldError::Invalid(at.Child("name"), name,
                            "should be a domain with at least three segments separated by dots"));
  }
  std::size_t index = 0;
  for (Value rule : hook["rules"].elements()) {
    CheckRule(errors, at.Child("rules").Index(index++), rule);
  }
  const std::string_view effects = hook["sideEffects"].str();
  if (effects.empty()) {
    errors.push_back(
        FieldError::Required(at.Child("sideEffects"), "must specify one of None, NoneOnDryRun"));
  } else if (effects != "None" && effects != "NoneOnDryRun") {
    errors.push_back(
        FieldError::NotSupported(at.Child("sideEffects"), effects, {"None", "NoneOnDryRun"}));
  }
  constexpr std::int64_t kMaxTimeoutSeconds = 30;
  if (const std::int64_t timeout = hook["timeoutSeconds"].integer(1);
      timeout < 1 || timeout > kMaxTimeoutSeconds) {
    errors.push_back(FieldError::Invalid(at.Child("timeoutSeconds"), timeout,
                                         "the timeout value must be between 1 and 30 seconds"));
  }
  const Value client = hook["clientConfig"];
  const FieldPath where = at.Child("clientConfig");
  if (client["url"].has_value() == client["service"].has_value()) {
    errors.push_back(FieldError::Required(where, "exactly one of url or service is required"));
  } else if (client["url"].has_value()) {
    CheckWebhookUrl(errors, where.Child("url"), client["url"].str());
  } else {
    CheckWebhookService(errors, where.Child("service"), client["service"]);
  }
  const Value versions = hook["admissionReviewVersions"];
  const FieldPath versions_path = at.Child("admissionReviewVersions");
  if (versions.empty()) {
    errors.push_back(FieldError::Required(versions_path, "must specify one of v1, v1beta1"));
  } else if (!Has(versions, "v1") && !Has(versions, "v1beta1")) {
    errors.push_back(
        FieldError::Invalid(versions_path, versions, "must include at least one of v1, v1beta1"));
  }
  CheckConditions(errors, at.Child("matchConditions"), hook["matchConditions"], compiler);
}

// Only creations and updates can be changed.
void CheckMutatedOperations(FieldErrors& errors, const FieldPath& path, Value match) {
  for (Value rule : match["resourceRules"].elements()) {
    for (Value operation : rule["operations"].elements()) {
      const std::string_view text = operation.str();
      if (text == "CREATE" || text == "UPDATE") continue;
      errors.push_back(FieldError::NotSupported(path.Child("resourceRules").Child("operations"),
                                                text, {"CREATE", "UPDATE"}));
    }
  }
}

void CheckMutation(FieldErrors& errors, const FieldPath& at, Value mutation,
                   const PolicyCompiler& compiler) {
  const std::string_view type = mutation["patchType"].str();
  if (type.empty()) {
    errors.push_back(FieldError::Required(at.Child("patchType"), ""));
    return;
  }
  if (type != "JSONPatch" && type != "ApplyConfiguration") {
    errors.push_back(
        FieldError::NotSupported(at.Child("patchType"), type, {"ApplyConfiguration", "JSONPatch"}));
    return;
  }
  const bool is_patch = type == "JSONPatch";
  const api::FieldName used =
      is_patch ? api::FieldName("jsonPatch") : api::FieldName("applyConfiguration");
  const api::FieldName unused =
      is_patch ? api::FieldName("applyConfiguration") : api::FieldName("jsonPatch");
  if (!mutation[used].has_value()) {
    errors.push_back(
        FieldError::Required(at.Child(used), StrCat("must be specified when patchType is ", type)));
  } else {
    const FieldPath where = at.Child(used).Child("expression");
    const std::string_view source = Trim(mutation[used]["expression"].str());
    if (source.empty()) {
      errors.push_back(FieldError::Required(where, ""));
    } else {
      AddExpressionError(
          errors, where,
          compiler.CompileMutation(source, is_patch ? Returns::kPatch : Returns::kObject));
    }
  }
  if (mutation[unused].has_value()) {
    errors.push_back(FieldError::Invalid(at.Child(unused),
                                         is_patch ? "{applyConfiguration}" : "{jsonPatch}",
                                         StrCat("must not be specified when patchType is ", type)));
  }
}

}  // namespace

FieldErrors ValidateValidatingPolicy(Value policy) {
  FieldErrors errors;
  const Value spec = policy["spec"];
  const FieldPath path("spec");
  if (spec["paramKind"].has_value()) {
    CheckParamKind(errors, path.Child("paramKind"), spec["paramKind"]);
  }
  const Value constraints = spec["matchConstraints"];
  if (!constraints.has_value()) {
    errors.push_back(FieldError::Required(path.Child("matchConstraints"), ""));
  } else {
    CheckMatchResources(errors, path.Child("matchConstraints"), constraints);
    if (constraints["resourceRules"].empty()) {
      errors.push_back(
          FieldError::Required(path.Child("matchConstraints").Child("resourceRules"), ""));
    }
  }
  PolicyCompiler compiler(spec["paramKind"].has_value(), !spec["variables"].empty());
  CheckConditions(errors, path.Child("matchConditions"), spec["matchConditions"], compiler);
  CheckVariables(errors, path.Child("variables"), spec["variables"], compiler);
  if (spec["validations"].empty() && spec["auditAnnotations"].empty()) {
    constexpr char kOne[] = "validations or auditAnnotations must contain at least one item";
    errors.push_back(FieldError::Required(path.Child("validations"), kOne));
    errors.push_back(FieldError::Required(path.Child("auditAnnotations"), kOne));
  }
  std::size_t index = 0;
  for (Value validation : spec["validations"].elements()) {
    if (WorkBudget::IsExceeded()) return errors;
    CheckValidation(errors, path.Child("validations").Index(index++), validation, compiler);
  }
  CheckAnnotations(errors, path.Child("auditAnnotations"), policy, compiler);
  return errors;
}

FieldErrors ValidateValidatingPolicyBinding(Value binding) {
  FieldErrors errors;
  const Value spec = binding["spec"];
  const FieldPath path("spec");
  const std::string_view name = spec["policyName"].str();
  if (name.empty()) {
    errors.push_back(FieldError::Required(path.Child("policyName"), ""));
  } else {
    AddProblems(errors, path.Child("policyName"), name, SubdomainNameProblems(name, false));
  }
  if (spec["paramRef"].has_value()) {
    CheckParamRef(errors, path.Child("paramRef"), spec["paramRef"]);
  }
  CheckMatchResources(errors, path.Child("matchResources"), spec["matchResources"]);
  CheckActions(errors, path.Child("validationActions"), spec["validationActions"]);
  return errors;
}

FieldErrors ValidateMutatingPolicy(Value policy) {
  FieldErrors errors;
  const Value spec = policy["spec"];
  const FieldPath path("spec");
  if (spec["paramKind"].has_value()) {
    CheckParamKind(errors, path.Child("paramKind"), spec["paramKind"]);
  }
  const Value constraints = spec["matchConstraints"];
  const FieldPath constraints_path = path.Child("matchConstraints");
  if (!constraints.has_value()) {
    errors.push_back(FieldError::Required(constraints_path, ""));
  } else {
    CheckMatchResources(errors, constraints_path, constraints);
    if (constraints["resourceRules"].empty()) {
      errors.push_back(FieldError::Required(constraints_path.Child("resourceRules"), ""));
    }
    CheckMutatedOperations(errors, constraints_path, constraints);
  }
  PolicyCompiler compiler(spec["paramKind"].has_value(), !spec["variables"].empty(),
                          /*constructs=*/true);
  CheckConditions(errors, path.Child("matchConditions"), spec["matchConditions"], compiler);
  CheckVariables(errors, path.Child("variables"), spec["variables"], compiler);
  if (spec["mutations"].empty()) {
    errors.push_back(
        FieldError::Required(path.Child("mutations"), "mutations must contain at least one item"));
  }
  std::size_t index = 0;
  for (Value mutation : spec["mutations"].elements()) {
    if (WorkBudget::IsExceeded()) return errors;
    CheckMutation(errors, path.Child("mutations").Index(index++), mutation, compiler);
  }
  const std::string_view reinvocation = spec["reinvocationPolicy"].str();
  if (reinvocation.empty()) {
    errors.push_back(FieldError::Required(path.Child("reinvocationPolicy"), ""));
  } else if (reinvocation != "Never" && reinvocation != "IfNeeded") {
    errors.push_back(FieldError::NotSupported(path.Child("reinvocationPolicy"), reinvocation,
                                              {"IfNeeded", "Never"}));
  }
  return errors;
}

FieldErrors ValidateMutatingPolicyBinding(Value binding) {
  FieldErrors errors;
  const Value spec = binding["spec"];
  const FieldPath path("spec");
  const std::string_view name = spec["policyName"].str();
  if (name.empty()) {
    errors.push_back(FieldError::Required(path.Child("policyName"), ""));
  } else {
    AddProblems(errors, path.Child("policyName"), name, SubdomainNameProblems(name, false));
  }
  if (spec["paramRef"].has_value()) {
    CheckParamRef(errors, path.Child("paramRef"), spec["paramRef"]);
  }
  const Value match = spec["matchResources"];
  CheckMatchResources(errors, path.Child("matchResources"), match);
  CheckMutatedOperations(errors, path.Child("matchResources"), match);
  return errors;
}

FieldErrors ValidateWebhookConfiguration(Value configuration) {
  FieldErrors errors;
  const PolicyCompiler compiler(false, false);
  std::set<std::string_view> names;
  std::size_t index = 0;
  for (Value hook : configuration["webhooks"].elements()) {
    if (WorkBudget::IsExceeded()) return errors;
    const FieldPath at = FieldPath("webhooks").Index(index++);
    CheckWebhook(errors, at, hook, compiler);
    const std::string_view name = hook["name"].str();
    if (!name.empty() && !names.insert(name).second) {
      errors.push_back(FieldError::Duplicate(at.Child("name"), name));
    }
  }
  return errors;
}

}  // namespace drakkar::apiserver
