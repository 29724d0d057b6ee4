#include "apiserver/validation/pod_scheduling.h"

#include <map>
#include <set>
#include <utility>

#include "api/meta/compared_taint.h"
#include "apiserver/validation/cause.h"
#include "apiserver/validation/resource_rules.h"
#include "apiserver/validation/schema_rules.h"
#include "apiserver/validation/value_rules.h"
#include "base/exec/work_budget.h"
#include "base/text/text.h"
#include "features/gates/feature_gates.h"

namespace drakkar::apiserver {
namespace {

using api::FieldErrors;
using api::FieldPath;
using api::Value;

constexpr std::int64_t kMaxWeight = 100;

void CheckWeight(FieldErrors& errors, const FieldPath& path, Value weight) {
  if (weight.integer() >= 1 && weight.integer() <= kMaxWeight) return;
  errors.push_back(Invalid(path, weight.integer(), "must be in the range 1-100"));
}

void CheckToleration(FieldErrors& errors, const FieldPath& path, Value toleration,
                     const FeatureGates& gates) {
  const std::string_view key = toleration["key"].str();
  const std::string_view op = toleration["operator"].str();
  const std::string_view value = toleration["value"].str();
  const std::string_view effect = toleration["effect"].str();
  if (!key.empty()) AddProblems(errors, path.Child("key"), key, api::CheckLabelKey(key));
  if (key.empty() && op != "Exists") {
    errors.push_back(Invalid(path.Child("operator"), op,
                             "operator must be Exists when `key` is empty, which means \"match all "
                             "values and all keys\""));
  }
  if (toleration["tolerationSeconds"].has_value() && effect != "NoExecute") {
    errors.push_back(Invalid(path.Child("effect"), effect,
                             "effect must be 'NoExecute' when `tolerationSeconds` is set"));
  }
  if (op.empty() || op == "Equal") {
    if (const api::Problems problems = api::CheckLabelValue(value); !problems.empty()) {
      errors.push_back(Invalid(path.Child("operator"), value, Join(problems, ";")));
    }
  } else if (op == "Exists") {
    if (!value.empty()) {
      errors.push_back(Invalid(path.Child("operator"), value,
                               "value must be empty when `operator` is 'Exists'"));
    }
  } else if (api::IsComparison(op) && gates.Enabled(Gate::kTaintTolerationComparisonOperators)) {
    AddProblems(errors, path.Child("value"), value, api::CheckComparedValue(value));
  } else if (api::IsComparison(op)) {
    errors.push_back(NotSupported(path.Child("operator"), op, {"Equal", "Exists", "Gt", "Lt"}));
  } else {
    errors.push_back(NotSupported(path.Child("operator"), op, {"Equal", "Exists"}));
  }
  if (!effect.empty()) {
    CheckOneOf(errors, path.Child("effect"), effect,
               {"NoSchedule", "PreferNoSchedule", "NoExecute"});
  }
}

void CheckTerm(FieldErrors& errors, const FieldPath& path, Value term) {
  Findings findings;
  CheckNodeSelectorTerm(findings, path, term, LabelValues::kAny);
  errors.Append(PlainErrors(findings));
}

void CheckNodeAffinity(FieldErrors& errors, const FieldPath& path, Value affinity) {
  const Value required = affinity["requiredDuringSchedulingIgnoredDuringExecution"];
  if (required.has_value()) {
    Findings findings;
    CheckNodeSelector(findings, path.Child("requiredDuringSchedulingIgnoredDuringExecution"),
                      required);
    errors.Append(PlainErrors(findings));
  }
  const FieldPath list = path.Child("preferredDuringSchedulingIgnoredDuringExecution");
  std::size_t index = 0;
  for (const Value each : affinity["preferredDuringSchedulingIgnoredDuringExecution"].elements()) {
    if (WorkBudget::IsExceeded()) return;
    const FieldPath at = list.Index(index++);
    CheckWeight(errors, at.Child("weight"), each["weight"]);
    // A label value that no node can have does no harm in a preference.
    CheckTerm(errors, at.Child("preference"), each["preference"]);
  }
}

bool CheckLabelKeys(FieldErrors& errors, const FieldPath& path, Value keys, Value selector) {
  if (keys.empty()) return true;
  if (!selector.has_value()) {
    errors.push_back(Forbidden(path, "must not be specified when labelSelector is not set"));
    return false;
  }
  std::size_t index = 0;
  for (const Value key : keys.elements()) {
    if (WorkBudget::IsExceeded()) return false;
    AddProblems(errors, path.Index(index++), key.str(), api::CheckLabelKey(key.str()));
  }
  return true;
}

// matchLabelKeys and mismatchLabelKeys. By now the server has added a requirement to the selector
// for each of them, so a key that the client selects by as well occurs twice.
void CheckMatchLabelKeys(FieldErrors& errors, const FieldPath& path, Value term) {
  const Value selector = term["labelSelector"];
  const Value keys = term["matchLabelKeys"];
  const Value other_keys = term["mismatchLabelKeys"];
  CheckLabelKeys(errors, path.Child("matchLabelKeys"), keys, selector);
  CheckLabelKeys(errors, path.Child("mismatchLabelKeys"), other_keys, selector);
  if (keys.empty()) return;
  std::map<std::string_view, std::size_t> places;
  std::set<std::string_view> others;
  std::size_t index = 0;
  for (const Value key : keys.elements()) places[key.str()] = index++;
  for (const Value key : other_keys.elements()) others.insert(key.str());
  std::set<std::string_view> selected;
  for (const auto& [key, name, value] : selector["matchLabels"].members()) selected.insert(name);
  for (const Value requirement : selector["matchExpressions"].elements()) {
    const std::string_view key = requirement["key"].str();
    const auto place = places.find(key);
    if (!selected.insert(key).second && place != places.end()) {
      errors.push_back(Invalid(path.Index(place->second), key,
                               "exists in both matchLabelKeys and labelSelector"));
    }
  }
  index = 0;
  for (const Value key : keys.elements()) {
    const FieldPath at = path.Child("matchLabelKeys").Index(index++);
    if (!others.contains(key.str())) continue;
    errors.push_back(Invalid(at, key.str(), "exists in both matchLabelKeys and mismatchLabelKeys"));
  }
}

void CheckPodAffinityTerm(FieldErrors& errors, const FieldPath& path, Value term) {
  for (const api::FieldName field : api::FieldNames{"labelSelector", "namespaceSelector"}) {
    if (term[field].has_value()) {
      CheckLabelSelector(errors, path.Child(field.view()), term[field]);
    }
  }
  for (const Value name : term["namespaces"].elements()) {
    CheckDnsLabel(errors, path.Child("namespace"), name.str());
  }
  CheckMatchLabelKeys(errors, path, term);
  const std::string_view key = term["topologyKey"].str();
  const FieldPath at = path.Child("topologyKey");
  if (key.empty()) errors.push_back(Required(at, "can not be empty"));
  AddProblems(errors, at, key, api::CheckLabelKey(key));
}

void CheckPodAffinity(FieldErrors& errors, const FieldPath& path, Value affinity) {
  const FieldPath required = path.Child("requiredDuringSchedulingIgnoredDuringExecution");
  std::size_t index = 0;
  for (const Value term : affinity["requiredDuringSchedulingIgnoredDuringExecution"].elements()) {
    if (WorkBudget::IsExceeded()) return;
    CheckPodAffinityTerm(errors, required.Index(index++), term);
  }
  const FieldPath preferred = path.Child("preferredDuringSchedulingIgnoredDuringExecution");
  index = 0;
  for (const Value each : affinity["preferredDuringSchedulingIgnoredDuringExecution"].elements()) {
    if (WorkBudget::IsExceeded()) return;
    const FieldPath at = preferred.Index(index++);
    CheckWeight(errors, at.Child("weight"), each["weight"]);
    CheckPodAffinityTerm(errors, at.Child("podAffinityTerm"), each["podAffinityTerm"]);
  }
}

// Whether `now` begins with the elements of `before`.
bool HasOnlyAdditions(Value now, Value before) {
  if (now.size() < before.size()) return false;
  for (std::size_t i = 0; i < before.size(); ++i) {
    if (!api::Equal(now.at(i), before.at(i))) return false;
  }
  return true;
}

}  // namespace

void CheckTolerations(FieldErrors& errors, const FieldPath& path, Value tolerations,
                      const FeatureGates& gates) {
  std::size_t index = 0;
  for (const Value toleration : tolerations.elements()) {
    if (WorkBudget::IsExceeded()) return;
    CheckToleration(errors, path.Index(index++), toleration, gates);
  }
}

void CheckAffinity(FieldErrors& errors, const FieldPath& path, Value affinity) {
  CheckNodeAffinity(errors, path.Child("nodeAffinity"), affinity["nodeAffinity"]);
  CheckPodAffinity(errors, path.Child("podAffinity"), affinity["podAffinity"]);
  CheckPodAffinity(errors, path.Child("podAntiAffinity"), affinity["podAntiAffinity"]);
}

void CheckSpreadConstraints(FieldErrors& errors, const FieldPath& path, Value constraints) {
  const auto identity = [](Value constraint) {
    return std::pair(constraint["topologyKey"].str(), constraint["whenUnsatisfiable"].str());
  };
  std::map<std::pair<std::string_view, std::string_view>, std::size_t> last;
  std::size_t index = 0;
  for (const Value constraint : constraints.elements()) last[identity(constraint)] = index++;
  index = 0;
  for (const Value constraint : constraints.elements()) {
    if (WorkBudget::IsExceeded()) return;
    const FieldPath at = path.Index(index);
    const auto check_positive = [&](api::FieldName field) {
      const std::int64_t number = constraint[field].integer();
      if (number > 0) return;
      errors.push_back(Invalid(at.Child(field.view()), number, "must be greater than zero"));
    };
    check_positive("maxSkew");
    const auto [key, action] = identity(constraint);
    if (key.empty()) errors.push_back(Required(at.Child("topologyKey"), "can not be empty"));
    CheckOneOf(errors, at.Child("whenUnsatisfiable"), action, {"DoNotSchedule", "ScheduleAnyway"});
    // The earlier one of two with the same key is reported.
    if (last[{key, action}] != index) {
      errors.push_back(Duplicate(at.Child("{topologyKey, whenUnsatisfiable}"),
                                 StrCat("{", key, ", ", action, "}")));
    }
    if (constraint["minDomains"].has_value()) {
      check_positive("minDomains");
      if (action != "DoNotSchedule") {
        errors.push_back(Invalid(
            at.Child("minDomains"), constraint["minDomains"].integer(),
            StrCat("can only use minDomains if whenUnsatisfiable=DoNotSchedule, not ", action)));
      }
    }
    for (const api::FieldName policy : api::FieldNames{"nodeAffinityPolicy", "nodeTaintsPolicy"}) {
      if (!constraint[policy].has_value()) continue;
      CheckOneOf(errors, at.Child(policy.view()), constraint[policy].str(), {"Honor", "Ignore"});
    }
    CheckMatchLabelKeys(errors, at, constraint);
    if (constraint["labelSelector"].has_value()) {
      CheckLabelSelector(errors, at.Child("labelSelector"), constraint["labelSelector"]);
    }
    ++index;
  }
}

void CheckNodeSelectorChange(FieldErrors& errors, const FieldPath& path, Value now, Value before) {
  for (const auto& [key, name, value] : before.members()) {
    const Value kept = now.Entry(name);
    if (kept.exists() && kept.str() == value.str()) continue;
    errors.push_back(Invalid(
        path, now, "only additions to spec.nodeSelector are allowed (no mutations or deletions)"));
    return;
  }
}

void CheckNodeAffinityChange(FieldErrors& errors, const FieldPath& path, Value now, Value before) {
  const auto terms_of = [](Value affinity) {
    return affinity["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"];
  };
  const Value terms = terms_of(now);
  const Value old_terms = terms_of(before);
  if (old_terms.empty()) return;
  const FieldPath at =
      path.Child("requiredDuringSchedulingIgnoredDuringExecution").Child("nodeSelectorTerms");
  if (terms.size() != old_terms.size()) {
    errors.push_back(Invalid(at, terms,
                             "no additions/deletions to non-empty NodeSelectorTerms list are "
                             "allowed"));
    return;
  }
  for (std::size_t i = 0; i < terms.size(); ++i) {
    const Value term = terms.at(i);
    const Value old = old_terms.at(i);
    // A term without requirements matches no node, and must not come to match some.
    const bool was_empty = old["matchExpressions"].empty() && old["matchFields"].empty();
    const bool is_empty = term["matchExpressions"].empty() && term["matchFields"].empty();
    const bool narrower =
        was_empty ? is_empty
                  : HasOnlyAdditions(term["matchExpressions"], old["matchExpressions"]) &&
                        HasOnlyAdditions(term["matchFields"], old["matchFields"]);
    if (narrower) continue;
    errors.push_back(
        Invalid(at.Index(i), term, "only additions are allowed (no mutations or deletions)"));
  }
}

}  // namespace drakkar::apiserver
