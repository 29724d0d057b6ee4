#include "apiserver/validation/resource_rules.h"

#include <algorithm>

#include "api/json/reader.h"
#include "apiserver/validation/name_rules.h"
#include "apiserver/validation/semantic_equal.h"
#include "base/text/text.h"
#include "features/gates/feature_gates.h"

namespace drakkar::apiserver {

using api::FieldError;
using api::FieldPath;
using api::Value;

namespace {

constexpr std::string_view kOmitted = "<value omitted>";

void CheckLabelValueAt(Findings& out, const FieldPath& path, std::string_view value,
                       std::string_view origin = {}) {
  out.AddProblems(path, value, api::CheckLabelValue(value), origin);
}

bool IsTaintEffect(std::string_view effect) {
  return effect == "NoSchedule" || effect == "NoExecute" || effect == "None";
}

FieldError UnsupportedEffect(const FieldPath& path, std::string_view effect) {
  return FieldError::NotSupported(path, effect, {"NoSchedule", "NoExecute", "None"});
}

}  // namespace

void CheckItems(Findings& out, const FieldPath& path, Value list, std::optional<std::size_t> limit,
                Covered size_covered, const ItemRule& rule) {
  if (limit && list.size() > *limit) {
    out.Add(FieldError::TooMany(path, list.size(), *limit), "maxItems", size_covered);
    return;
  }
  std::size_t index = 0;
  for (const Value item : list.elements()) {
    if (Findings::IsFull()) return;
    rule(item, path.Index(index++));
  }
}

void CheckUniqueItems(Findings& out, const FieldPath& path, Value list,
                      std::optional<std::size_t> limit, Covered size_covered,
                      Covered unique_covered, const ItemRule& rule, const ItemKey& key) {
  CheckItems(out, path, list, limit, size_covered, rule);
  if (limit && list.size() > *limit) return;
  std::set<std::string> seen;
  std::size_t index = 0;
  for (const Value item : list.elements()) {
    if (Findings::IsFull()) return;
    std::string text = key(item);
    if (!seen.insert(text).second) {
      out.Add(FieldError::Duplicate(path.Index(index), text), {}, unique_covered);
    }
    ++index;
  }
}

std::string TextKey(Value item) {
  return std::string(item.str());
}

void CheckSelectors(Findings& out, const FieldPath& path, Value selectors,
                    const FeatureGates& gates, Stored stored) {
  CheckItems(out, path, selectors, kMaxSelectors, Covered::kYes,
             [&](Value selector, const FieldPath& at) {
               const Value cel = selector["cel"];
               if (!cel.has_value()) {
                 out.Add(FieldError::Required(at.Child("cel"), ""));
               } else if (stored == Stored::kNo) {
                 CheckExpression(out, at.Child("cel").Child("expression"), cel["expression"].str(),
                                 gates, nullptr);
               }
             });
}

void CheckConfiguration(Findings& out, const FieldPath& path, Value config, Stored stored) {
  const Value opaque = config["opaque"];
  const FieldPath at = path.Child("opaque");
  if (!opaque.has_value()) {
    out.Add(FieldError::Required(at, ""));
    return;
  }
  CheckDriverName(out, at.Child("driver"), opaque["driver"].str(), Covered::kYes);
  CheckRawObject(out, at.Child("parameters"), opaque["parameters"], kMaxOpaqueBytes, stored);
}

void CheckRawObject(Findings& out, const FieldPath& path, Value raw, std::size_t limit,
                    Stored stored) {
  const std::string_view text = raw.str();
  if (text.empty()) {
    out.Add(FieldError::Required(path, ""));
    return;
  }
  if (stored == Stored::kNo && text.size() > limit) {
    out.Add(FieldError::TooLong(path, limit));
    return;
  }
  const Result<api::TreePtr> parsed = api::ParseJson(text, {.refuse_duplicates = false});
  if (!parsed.ok()) {
    out.Add(FieldError::Invalid(path, kOmitted,
                                StrCat("error parsing data as JSON: ", parsed.error().message)));
  } else if (!(*parsed)->root().has_value()) {
    out.Add(FieldError::Required(path, ""));
  } else if (!(*parsed)->root().is_object()) {
    out.Add(FieldError::Invalid(path, kOmitted, "must be a valid JSON object"));
  }
}

void CheckTaint(Findings& out, const FieldPath& path, Value taint, Value before) {
  CheckLabelKeyName(out, path.Child("key"), taint["key"].str());
  if (const std::string_view value = taint["value"].str(); !value.empty()) {
    CheckLabelValueAt(out, path.Child("value"), value);
  }
  const std::string_view effect = taint["effect"].str();
  if (before.has_value() && before["effect"].str() == effect) return;
  if (effect.empty()) {
    out.Add(FieldError::Required(path.Child("effect"), ""), {}, Covered::kYes);
  } else if (!IsTaintEffect(effect)) {
    out.Add(UnsupportedEffect(path.Child("effect"), effect), {}, Covered::kYes);
  }
}

void CheckToleration(Findings& out, const FieldPath& path, Value toleration) {
  if (const std::string_view key = toleration["key"].str(); !key.empty()) {
    CheckLabelKeyName(out, path.Child("key"), key, Covered::kYes);
  }
  const std::string_view operation = toleration["operator"].str();
  const std::string_view value = toleration["value"].str();
  if (operation == "Exists") {
    if (!value.empty()) {
      out.Add(
          FieldError::Invalid(path.Child("value"), value, "must be empty for operator `Exists`"));
    }
  } else if (operation == "Equal") {
    CheckLabelValueAt(out, path.Child("value"), value);
  } else if (operation.empty()) {
    out.Add(FieldError::Required(path.Child("operator"), ""), {}, Covered::kYes);
  } else {
    out.Add(FieldError::NotSupported(path.Child("operator"), operation, {"Equal", "Exists"}), {},
            Covered::kYes);
  }
  const std::string_view effect = toleration["effect"].str();
  if (!effect.empty() && !IsTaintEffect(effect)) {
    out.Add(UnsupportedEffect(path.Child("effect"), effect), {}, Covered::kYes);
  }
}

void CheckBindingConditions(Findings& out, const FieldPath& path, Value owner) {
  const Value conditions = owner["bindingConditions"];
  const Value failures = owner["bindingFailureConditions"];
  const FieldPath conditions_path = path.Child("bindingConditions");
  const FieldPath failures_path = path.Child("bindingFailureConditions");
  auto name = [&](Value item, const FieldPath& at) { CheckLabelKeyName(out, at, item.str()); };
  CheckItems(out, conditions_path, conditions, kMaxBindingConditions, Covered::kYes, name);
  CheckItems(out, failures_path, failures, kMaxBindingConditions, Covered::kYes, name);
  // Each list is optional on its own.
  std::set<std::string_view> success;
  std::size_t index = 0;
  for (const Value item : conditions.elements()) {
    if (!success.insert(item.str()).second) {
      out.Add(FieldError::Duplicate(conditions_path.Index(index), item.str()));
    }
    ++index;
  }
  std::set<std::string_view> failed;
  index = 0;
  for (const Value item : failures.elements()) {
    const FieldPath at = failures_path.Index(index++);
    if (!failed.insert(item.str()).second) out.Add(FieldError::Duplicate(at, item.str()));
    if (success.contains(item.str())) {
      out.Add(FieldError::Invalid(at, item.str(),
                                  "bindingFailureConditions must not overlap with "
                                  "bindingConditions"));
    }
  }
}

void CheckSkippedOperations(Findings& out, const FieldPath& path, Value field) {
  const std::vector<std::string_view> operations = SkippedOperations(field);
  auto has = [&](std::string_view operation) {
    return std::ranges::find(operations, operation) != operations.end();
  };
  if (has("NodePrepareResources") && !has("NodeUnprepareResources") && !has("*")) {
    out.Add(FieldError::Invalid(path, field,
                                "NodePrepareResources cannot be skipped unless "
                                "NodeUnprepareResources is also skipped"));
  }
}

void CheckSkippedOperationsGate(Findings& out, const FieldPath& path, Value field, Value before,
                                const FeatureGates& gates) {
  if (gates.Enabled(Gate::kDRAOptionalNodePreparation)) return;
  if (SkippedOperations(field).empty() || SameSkippedOperations(field, before)) return;
  out.Add(FieldError::Forbidden(
      path, StrCat("may not be set while the feature gate ",
                   GateName(Gate::kDRAOptionalNodePreparation), " is disabled")));
}

namespace {

void CheckNodeRequirement(Findings& out, const FieldPath& path, Value requirement,
                          LabelValues label_values) {
  const std::string_view operation = requirement["operator"].str();
  const Value values = requirement["values"];
  const FieldPath at = path.Child("values");
  if (operation == "In" || operation == "NotIn") {
    if (values.empty()) {
      out.Add(FieldError::Required(at, "must be specified when `operator` is 'In' or 'NotIn'"));
    }
  } else if (operation == "Exists" || operation == "DoesNotExist") {
    if (!values.empty()) {
      out.Add(FieldError::Forbidden(
          at, "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"));
    }
  } else if (operation == "Gt" || operation == "Lt") {
    if (values.size() != 1) {
      out.Add(FieldError::Required(
          at, "must be specified single value when `operator` is 'Lt' or 'Gt'"));
    }
  } else {
    out.Add(
        FieldError::Invalid(path.Child("operator"), operation, "not a valid selector operator"));
  }
  CheckLabelKeyName(out, path.Child("key"), requirement["key"].str());
  if (label_values == LabelValues::kAny) return;
  std::size_t index = 0;
  for (const Value value : values.elements()) {
    CheckLabelValueAt(out, at.Index(index++), value.str(), "format=k8s-label-value");
  }
}

void CheckNodeFieldRequirement(Findings& out, const FieldPath& path, Value requirement) {
  const std::string_view operation = requirement["operator"].str();
  const Value values = requirement["values"];
  if (operation != "In" && operation != "NotIn") {
    out.Add(
        FieldError::Invalid(path.Child("operator"), operation, "not a valid selector operator"));
  } else if (values.size() != 1) {
    out.Add(FieldError::Required(
        path.Child("values"),
        "must be only one value when `operator` is 'In' or 'NotIn' for node field selector"));
  }
  if (const std::string_view key = requirement["key"].str(); key != "metadata.name") {
    out.Add(FieldError::Invalid(path.Child("key"), key, "not a valid field selector key"));
    return;
  }
  std::size_t index = 0;
  for (const Value value : values.elements()) {
    CheckNodeName(out, path.Child("values").Index(index++), value.str());
  }
}

bool IsConditionReason(std::string_view text) {
  auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  auto word = [&](char c) { return letter(c) || (c >= '0' && c <= '9') || c == '_'; };
  return !text.empty() && letter(text.front()) && word(text.back()) &&
         std::ranges::all_of(text, [&](char c) { return word(c) || c == ',' || c == ':'; });
}

void CheckCondition(Findings& out, const FieldPath& path, Value condition) {
  constexpr std::size_t kMaxReasonBytes = 1024;
  constexpr std::size_t kMaxMessageBytes = 32 * 1024;
  if (const std::string_view type = condition["type"].str(); type.empty()) {
    out.Add(FieldError::Required(path.Child("type"), "is required"), {}, Covered::kYes);
  } else {
    CheckLabelKeyName(out, path.Child("type"), type);
  }
  const std::string_view status = condition["status"].str();
  if (status.empty()) {
    out.Add(FieldError::Required(path.Child("status"), ""), {}, Covered::kYes);
  } else if (status != "True" && status != "False" && status != "Unknown") {
    out.Add(FieldError::NotSupported(path.Child("status"), status, {"True", "False", "Unknown"}),
            {}, Covered::kYes);
  }
  if (const std::int64_t generation = condition["observedGeneration"].integer(); generation < 0) {
    out.Add(FieldError::Invalid(path.Child("observedGeneration"), generation,
                                "must be greater than or equal to zero"),
            "minimum", Covered::kYes);
  }
  if (condition["lastTransitionTime"].str().empty()) {
    out.Add(FieldError::Required(path.Child("lastTransitionTime"), ""), {}, Covered::kYes);
  }
  const std::string_view reason = condition["reason"].str();
  if (reason.empty()) {
    out.Add(FieldError::Required(path.Child("reason"), ""), {}, Covered::kYes);
  } else {
    if (!IsConditionReason(reason)) {
      out.Add(FieldError::Invalid(
          path.Child("reason"), reason,
          "a condition reason must start with alphabetic character, optionally followed by a "
          "string of alphanumeric characters or '_,:', and must end with an alphanumeric character "
          "or '_' (e.g. 'my_name',  or 'MY_NAME',  or 'MyName',  or 'ReasonA,ReasonB',  or "
          "'ReasonA:ReasonB', regex used for validation is "
          "'[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?')"));
    }
    if (reason.size() > kMaxReasonBytes) {
      out.Add(FieldError::TooLong(path.Child("reason"), kMaxReasonBytes), "maxBytes",
              Covered::kYes);
    }
  }
  if (condition["message"].str().size() > kMaxMessageBytes) {
    out.Add(FieldError::TooLong(path.Child("message"), kMaxMessageBytes));
  }
}

}  // namespace

void CheckNodeSelector(Findings& out, const FieldPath& path, Value selector) {
  const FieldPath terms_path = path.Child("nodeSelectorTerms");
  const Value terms = selector["nodeSelectorTerms"];
  if (terms.empty()) {
    out.Add(FieldError::Required(terms_path, "must have at least one node selector term"));
    return;
  }
  std::size_t index = 0;
  for (const Value term : terms.elements()) {
    CheckNodeSelectorTerm(out, terms_path.Index(index++), term, LabelValues::kValid);
  }
}

void CheckNodeSelectorTerm(Findings& out, const FieldPath& path, Value term, LabelValues values) {
  CheckItems(out, path.Child("matchExpressions"), term["matchExpressions"], std::nullopt,
             Covered::kNo, [&](Value requirement, const FieldPath& item) {
               CheckNodeRequirement(out, item, requirement, values);
             });
  CheckItems(out, path.Child("matchFields"), term["matchFields"], std::nullopt, Covered::kNo,
             [&](Value requirement, const FieldPath& item) {
               CheckNodeFieldRequirement(out, item, requirement);
             });
}

void CheckConditions(Findings& out, const FieldPath& path, Value conditions) {
  CheckUniqueItems(
      out, path, conditions, std::nullopt, Covered::kNo, Covered::kYes,
      [&](Value condition, const FieldPath& at) { CheckCondition(out, at, condition); },
      [](Value condition) { return std::string(condition["type"].str()); });
}

}  // namespace drakkar::apiserver
