#include "apiserver/registry/quota_strategies.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <set>

#include "api/meta/quantity.h"
#include "apiserver/validation/cause.h"
#include "apiserver/validation/container_resources.h"
#include "base/exec/work_budget.h"
#include "base/text/text.h"
#include "quota/pod_resources.h"

namespace drakkar::apiserver {
namespace {

using api::Draft;
using api::FieldErrors;
using api::Quantity;
using api::Value;
using quota::Amounts;

void SetMissing(Draft& into, const Amounts& from) {
  for (const auto& [name, amount] : from) {
    if (!into.HasEntry(name)) into.Entry(name) = amount.ToString();
  }
}

std::string Key(std::string_view path, std::string_view name) {
  return StrCat(path, "[", name, "]");
}

// A resource that must be requested in the amount that is used.
bool IsOvercommitAllowed(std::string_view name) {
  return IsNativeResource(name) && !IsHugePageResource(name);
}

// The rules for one resource of an item.
class ItemChecker {
 public:
  ItemChecker(FieldErrors& errors, const std::string& path, Value item)
      : errors_(errors),
        path_(path),
        min_(quota::ReadAmounts(item["min"])),
        max_(quota::ReadAmounts(item["max"])),
        default_(quota::ReadAmounts(item["default"])),
        request_(quota::ReadAmounts(item["defaultRequest"])),
        ratio_(quota::ReadAmounts(item["maxLimitRequestRatio"])) {}

  void Check() {
    std::set<std::string> names;
    for (const Amounts* each : {&min_, &max_, &default_, &request_, &ratio_}) {
      for (const auto& [name, amount] : *each) names.insert(name);
    }
    for (const std::string& name : names) CheckResource(name);
  }

 private:
  static const Quantity* Find(const Amounts& amounts, const std::string& name) {
    const auto found = amounts.find(name);
    return found == amounts.end() ? nullptr : &found->second;
  }

  void Order(const std::string& name, std::string_view field, const Quantity* value,
             const Quantity* low, std::string_view low_name, const Quantity* high,
             std::string_view high_name) {
    if (low == nullptr || high == nullptr || *low <= *high) return;
    errors_.push_back(Invalid(Key(StrCat(path_, ".", field), name), value->ToString(),
                              StrCat(low_name, " value ", low->ToString(), " is greater than ",
                                     high_name, " value ", high->ToString())));
  }

  void CheckResource(const std::string& name) {
    const Quantity* min = Find(min_, name);
    const Quantity* max = Find(max_, name);
    const Quantity* limit = Find(default_, name);
    const Quantity* request = Find(request_, name);
    const Quantity* ratio = Find(ratio_, name);
    Order(name, "min", min, min, "min", max, "max");
    Order(name, "defaultRequest", request, min, "min", request, "default request");
    Order(name, "defaultRequest", request, request, "default request", max, "max");
    Order(name, "defaultRequest", request, request, "default request", limit, "default limit");
    Order(name, "default", min, min, "min", limit, "default");
    Order(name, "default", max, limit, "default", max, "max");
    if (ratio != nullptr) CheckRatio(name, *ratio, min, max);
    if (!IsOvercommitAllowed(name) && limit != nullptr && request != nullptr &&
        *limit != *request) {
      errors_.push_back(Invalid(
          Key(path_ + ".defaultRequest", name), request->ToString(),
          StrCat("default value ", limit->ToString(), " must equal to defaultRequest value ",
                 request->ToString(), " in ", name)));
    }
  }

  void CheckRatio(const std::string& name, const Quantity& ratio, const Quantity* min,
                  const Quantity* max) {
    const std::string field = Key(path_ + ".maxLimitRequestRatio", name);
    if (ratio.CompareInt64(1) < 0) {
      errors_.push_back(
          Invalid(field, ratio.ToString(), StrCat("ratio ", ratio.ToString(), " is less than 1")));
    }
    if (min == nullptr || max == nullptr || min->IsZero()) return;
    const double most = max->AsApproximateFloat() / min->AsApproximateFloat();
    if (ratio.AsApproximateFloat() <= most) return;
    char text[64];
    std::snprintf(text, sizeof text, "%f", most);
    errors_.push_back(
        Invalid(field, ratio.ToString(),
                StrCat("ratio ", ratio.ToString(), " is greater than max/min = ", text)));
  }

  FieldErrors& errors_;
  const std::string& path_;
  const Amounts min_, max_, default_, request_, ratio_;
};

constexpr std::array kCountable = {"pods",
                                   "resourcequotas",
                                   "services",
                                   "replicationcontrollers",
                                   "secrets",
                                   "configmaps",
                                   "persistentvolumeclaims",
                                   "services.nodeports",
                                   "services.loadbalancers"};
constexpr std::array kCompute = {"cpu",        "memory",          "requests.cpu",
                                 "limits.cpu", "requests.memory", "limits.memory"};
constexpr std::array kStorage = {"ephemeral-storage", "requests.storage",
                                 "requests.ephemeral-storage", "limits.ephemeral-storage"};

template <typename Names>
bool IsAmong(const Names& names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

bool IsStandard(std::string_view name) {
  return IsAmong(kCountable, name) || IsAmong(kCompute, name) || IsAmong(kStorage, name) ||
         name.starts_with("hugepages-") || name.starts_with("requests.hugepages-");
}

bool IsScopeFor(std::string_view scope, std::string_view name) {
  if (scope == "BestEffort") return name == "pods";
  if (scope == "VolumeAttributesClass") {
    return name == "persistentvolumeclaims" || name == "requests.storage";
  }
  return name == "pods" || IsAmong(kCompute, name);
}

bool IsKnownScope(std::string_view scope) {
  constexpr std::array kScopes = {"Terminating",          "NotTerminating",
                                  "BestEffort",           "NotBestEffort",
                                  "PriorityClass",        "CrossNamespacePodAffinity",
                                  "VolumeAttributesClass"};
  return IsAmong(kScopes, scope);
}

bool AreInConflict(const std::set<std::string_view>& scopes) {
  return (scopes.contains("BestEffort") && scopes.contains("NotBestEffort")) ||
         (scopes.contains("Terminating") && scopes.contains("NotTerminating"));
}

bool FitsAllResources(std::string_view scope, Value hard) {
  for (const auto& [key, name, value] : hard.members()) {
    if (IsStandard(name) && !IsScopeFor(scope, name)) return false;
  }
  return true;
}

// Each problem is reported once, with the whole list.
void CheckScopes(FieldErrors& errors, Value spec) {
  std::set<std::string_view> scopes;
  const std::string_view path = "spec.scopes";
  for (Value each : spec["scopes"].elements()) scopes.insert(each.str());
  const bool known = std::ranges::all_of(scopes, IsKnownScope);
  const bool fitting = std::ranges::all_of(
      scopes, [&](std::string_view scope) { return FitsAllResources(scope, spec["hard"]); });
  if (!known) errors.push_back(Invalid(path, spec["scopes"], "unsupported scope"));
  if (!fitting) {
    errors.push_back(Invalid(path, spec["scopes"], "unsupported scope applied to resource"));
  }
  if (AreInConflict(scopes)) errors.push_back(Invalid(path, spec["scopes"], "conflicting scopes"));
}

void CheckScopeSelector(FieldErrors& errors, Value spec) {
  const Value selector = spec["scopeSelector"];
  const std::string path = "spec.scopeSelector.matchExpressions";
  std::set<std::string_view> scopes;
  for (Value each : selector["matchExpressions"].elements()) {
    const std::string_view scope = each["scopeName"].str();
    const std::string_view op = each["operator"].str();
    scopes.insert(scope);
    if (!IsKnownScope(scope)) {
      errors.push_back(Invalid(path + ".scopeName", scope, "unsupported scope"));
    }
    if (!FitsAllResources(scope, spec["hard"])) {
      errors.push_back(Invalid(path, selector, "unsupported scope applied to resource"));
    }
    if (scope != "PriorityClass" && scope != "VolumeAttributesClass" && IsKnownScope(scope) &&
        op != "Exists") {
      errors.push_back(Invalid(
          path + ".operator", op,
          "must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, "
          "ResourceQuotaScopeNotTerminating, ResourceQuotaScopeBestEffort, "
          "ResourceQuotaScopeNotBestEffort or ResourceQuotaScopeCrossNamespacePodAffinity"));
    }
    if (op == "In" || op == "NotIn") {
      if (each["values"].empty()) {
        errors.push_back(Required(path + ".values",
                                  "must be at least one value when `operator` is 'In' or 'NotIn' "
                                  "for scope selector"));
      }
    } else if (op == "Exists" || op == "DoesNotExist") {
      if (!each["values"].empty()) {
        errors.push_back(Invalid(path + ".values", each["values"],
                                 "must be no value when `operator` is 'Exist' or 'DoesNotExist' "
                                 "for scope selector"));
      }
    } else {
      errors.push_back(Invalid(path + ".operator", op, "not a valid selector operator"));
    }
  }
  if (AreInConflict(scopes)) errors.push_back(Invalid(path, spec["scopes"], "conflicting scopes"));
}

void CheckAmounts(FieldErrors& errors, std::string_view path, Value amounts) {
  for (const auto& [key, name, value] : amounts.members()) {
    const api::FieldPath field = api::FieldPath(path).Key(name);
    AddProblems(errors, field, name, ResourceNameProblems(name));
    if (name.find('/') == std::string_view::npos && !IsStandard(name)) {
      errors.push_back(Invalid(field, name, "must be a standard resource for quota"));
    }
    CheckResourceAmount(errors, field, name, value);
  }
}

std::set<std::string_view> Strings(Value list) {
  std::set<std::string_view> strings;
  for (Value each : list.elements()) strings.insert(each.str());
  return strings;
}

}  // namespace

void LimitRangeStrategy::Default(Draft& object, const StrategyContext&) const {
  Draft* limits = object["spec"].Find("limits");
  if (limits == nullptr || !limits->is_array()) return;
  for (std::size_t i = 0; i < limits->size(); ++i) {
    Draft& item = limits->at(i);
    if (!item.is_object() || item["type"].str() != "Container") continue;
    const api::TreePtr given = item.Freeze();
    Draft& limit = item["default"];
    SetMissing(limit, quota::ReadAmounts(given->root()["max"]));
    const api::TreePtr limit_now = limit.Freeze();
    SetMissing(item["defaultRequest"], quota::ReadAmounts(limit_now->root()));
    SetMissing(item["defaultRequest"], quota::ReadAmounts(given->root()["min"]));
  }
}

FieldErrors LimitRangeStrategy::Validate(Value object, const StrategyContext&) const {
  FieldErrors errors;
  std::set<std::string_view> types;
  std::size_t index = 0;
  for (Value item : object["spec"]["limits"].elements()) {
    const std::string path = StrCat("spec.limits[", index++, "]");
    const std::string_view type = item["type"].str();
    const api::Problems problems = api::CheckLabelKey(type);
    AddProblems(errors, path + ".type", type, problems);
    constexpr std::array kTypes = {"Pod", "Container", "PersistentVolumeClaim"};
    if (problems.empty() && type.find('/') == std::string_view::npos && !IsAmong(kTypes, type)) {
      errors.push_back(
          Invalid(path + ".type", type, "must be a standard limit type or fully qualified"));
    }
    if (!types.insert(type).second) errors.push_back(Duplicate(path + ".type", type));
    if (type == "Pod") {
      for (const api::FieldName field : api::FieldNames{"default", "defaultRequest"}) {
        if (item[field].empty()) continue;
        errors.push_back(Forbidden(StrCat(path, ".", field.view()),
                                   "may not be specified when `type` is 'Pod'"));
      }
    }
    if (type == "PersistentVolumeClaim" && !item["min"].Entry("storage").exists() &&
        !item["max"].Entry("storage").exists()) {
      errors.push_back(Required(
          path + ".limits",
          "either minimum or maximum storage value is required, but neither was provided"));
    }
    for (const api::FieldName list :
         api::FieldNames{"max", "min", "default", "defaultRequest", "maxLimitRequestRatio"}) {
      const api::FieldPath list_path = api::FieldPath(path).Child(list.view());
      const bool is_refused = type == "Pod" && list.view().starts_with("default");
      for (const auto& [key, name, value] : item[list].members()) {
        if (WorkBudget::IsExceeded() || is_refused) break;
        const api::FieldPath at = list_path.Key(name);
        if (type == "Pod" || type == "Container") {
          CheckContainerResourceName(errors, at, name);
        } else {
          AddProblems(errors, at, name, ResourceNameProblems(name));
        }
      }
    }
    ItemChecker(errors, path, item).Check();
  }
  return errors;
}

FieldErrors LimitRangeStrategy::ValidateUpdate(Value object, Value, std::string_view,
                                               const StrategyContext& context) const {
  return Validate(object, context);
}

FieldErrors ResourceQuotaStrategy::Validate(Value object, const StrategyContext&) const {
  FieldErrors errors;
  CheckAmounts(errors, "spec.hard", object["spec"]["hard"]);
  CheckScopes(errors, object["spec"]);
  CheckScopeSelector(errors, object["spec"]);
  return errors;
}

FieldErrors ResourceQuotaStrategy::ValidateUpdate(Value object, Value before,
                                                  std::string_view subresource,
                                                  const StrategyContext& context) const {
  if (subresource == "status") {
    FieldErrors errors;
    CheckAmounts(errors, "status.hard", object["status"]["hard"]);
    CheckAmounts(errors, "status.used", object["status"]["used"]);
    return errors;
  }
  FieldErrors errors = Validate(object, context);
  if (Strings(object["spec"]["scopes"]) != Strings(before["spec"]["scopes"])) {
    errors.push_back(Invalid("spec.scopes", object["spec"]["scopes"], "field is immutable"));
  }
  return errors;
}

}  // namespace drakkar::apiserver
