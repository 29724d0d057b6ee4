#include "apiserver/validation/schema_rules.h"

#include <algorithm>

#include "api/meta/names.h"
#include "apiserver/validation/findings.h"
#include "apiserver/validation/metadata.h"
#include "apiserver/validation/semantic_equal.h"
#include "base/exec/work_budget.h"
#include "base/text/text.h"

namespace drakkar::apiserver {
namespace {

using api::FieldError;
using api::FieldErrors;
using api::FieldKind;
using api::FieldPath;
using api::FieldRules;
using api::FieldSchema;
using api::StructSchema;
using api::TypeSchema;
using api::Value;
using api::ValueKind;

bool IsEmpty(Value value) {
  switch (value.kind()) {
    case ValueKind::kString:
      return value.str().empty();
    case ValueKind::kArray:
      return value.empty();
    default:
      return !value.has_value();
  }
}

void AddProblems(FieldErrors& errors, const FieldPath& path, std::string_view value,
                 const api::Problems& problems) {
  for (const std::string& problem : problems) {
    errors.push_back(FieldError::Invalid(path, value, problem));
  }
}

void CheckText(FieldErrors& errors, const FieldPath& path, std::string_view text,
               const FieldRules& rules) {
  if (!rules.values.empty() && std::ranges::find(rules.values, text) == rules.values.end()) {
    errors.push_back(
        FieldError::NotSupported(path, text, {rules.values.begin(), rules.values.end()}));
  }
  switch (rules.format) {
    case FieldRules::Format::kDnsLabel:
      return AddProblems(errors, path, text, api::CheckDnsLabel(text));
    case FieldRules::Format::kDnsSubdomain:
      return AddProblems(errors, path, text, api::CheckDnsSubdomain(text));
    case FieldRules::Format::kDns1035Label:
      return AddProblems(errors, path, text, api::CheckDns1035Label(text));
    case FieldRules::Format::kLabelKey:
      return AddProblems(errors, path, text, api::CheckLabelKey(text));
    case FieldRules::Format::kLabelValue:
      return AddProblems(errors, path, text, api::CheckLabelValue(text));
    case FieldRules::Format::kAny:
    case FieldRules::Format::kIntOrPercent:
    case FieldRules::Format::kLabelSelector:
      return;
  }
}

void CheckNumber(FieldErrors& errors, const FieldPath& path, std::int64_t number,
                 const FieldRules& rules) {
  if (rules.minimum && rules.maximum) {
    if (number >= *rules.minimum && number <= *rules.maximum) return;
    errors.push_back(FieldError::Invalid(
        path, number,
        StrCat("must be between ", *rules.minimum, " and ", *rules.maximum, ", inclusive")));
  } else if (rules.minimum && number < *rules.minimum) {
    errors.push_back(FieldError::Invalid(
        path, number, StrCat("must be greater than or equal to ", *rules.minimum)));
  }
}

void CheckValue(FieldErrors& errors, const FieldPath& path, const FieldSchema& field, Value value) {
  const FieldRules& rules = *field.rules;
  if (IsEmpty(value)) {
    if (rules.needed) errors.push_back(FieldError::Required(path, ""));
    return;
  }
  if (rules.max_items != 0 && value.size() > rules.max_items) {
    errors.push_back(FieldError::TooMany(path, value.size(), rules.max_items));
    return;
  }
  if (rules.format == FieldRules::Format::kLabelSelector) {
    CheckLabelSelector(errors, path, value);
  } else if (rules.format == FieldRules::Format::kIntOrPercent) {
    CheckIntOrPercent(errors, path, value);
  } else if (value.is_string()) {
    CheckText(errors, path, value.str(), rules);
  } else if (value.is_array() && field.type.element->kind == FieldKind::kString) {
    std::size_t index = 0;
    for (Value each : value.elements()) {
      if (WorkBudget::IsExceeded()) return;
      CheckText(errors, path.Index(index++), each.str(), rules);
    }
  } else if (const auto number = value.optional_integer()) {
    CheckNumber(errors, path, *number, rules);
  }
}

void CheckBelow(FieldErrors& errors, const FieldPath& path, Value value, Value before,
                const TypeSchema& type) {
  switch (type.kind) {
    case FieldKind::kStruct:
      return CheckSchemaRules(errors, path, value, before, *type.structure);
    case FieldKind::kList: {
      std::size_t index = 0;
      for (Value each : value.elements()) {
        if (WorkBudget::IsExceeded()) return;
        CheckBelow(errors, path.Index(index++), each, Value(), *type.element);
      }
      return;
    }
    case FieldKind::kMap:
      for (const auto& [key, name, each] : value.members()) {
        if (WorkBudget::IsExceeded()) return;
        CheckBelow(errors, path.Key(name), each, before.Entry(name), *type.element);
      }
      return;
    default:
      return;
  }
}

}  // namespace

void CheckSchemaRules(FieldErrors& errors, const FieldPath& path, Value object, Value before,
                      const StructSchema& schema) {
  for (const FieldSchema& field : schema.fields) {
    if (!field.has_checks) continue;
    const Value value = object.Entry(*field.key);
    const Value old = before.Entry(*field.key);
    if (before.exists() && api::Equal(value, old)) continue;
    const FieldPath at = path.Child(field.key->view());
    if (field.rules != nullptr) {
      CheckValue(errors, at, field, value);
      if (field.rules->immutable && before.exists() && !(IsEmpty(value) && IsEmpty(old)) &&
          !SemanticEqual(value, old, field.type)) {
        errors.push_back(FieldError::Invalid(at, value, "field is immutable"));
      }
    }
    const bool is_there =
        value.has_value() || (!field.pointer && field.type.kind == FieldKind::kStruct);
    if (is_there) CheckBelow(errors, at, value, old, field.type);
  }
}

void CheckLabelSelector(FieldErrors& errors, const FieldPath& path, Value selector) {
  Findings labels;
  CheckLabels(labels, path.Child("matchLabels"), selector["matchLabels"]);
  errors.Append(PlainErrors(labels));
  std::size_t index = 0;
  for (Value requirement : selector["matchExpressions"].elements()) {
    if (WorkBudget::IsExceeded()) return;
    const FieldPath at = path.Child("matchExpressions").Index(index++);
    const std::string_view op = requirement["operator"].str();
    const Value values = requirement["values"];
    if (op == "In" || op == "NotIn") {
      if (values.empty()) {
        errors.push_back(FieldError::Required(
            at.Child("values"), "must be specified when `operator` is 'In' or 'NotIn'"));
      }
    } else if (op == "Exists" || op == "DoesNotExist") {
      if (!values.empty()) {
        errors.push_back(
            FieldError::Forbidden(at.Child("values"),
                                  "may not be specified when `operator` is 'Exists' or "
                                  "'DoesNotExist'"));
      }
    } else {
      errors.push_back(
          FieldError::Invalid(at.Child("operator"), op, "not a valid selector operator"));
    }
    const std::string_view key = requirement["key"].str();
    AddProblems(errors, at.Child("key"), key, api::CheckLabelKey(key));
    std::size_t place = 0;
    for (Value value : values.elements()) {
      if (WorkBudget::IsExceeded()) return;
      AddProblems(errors, at.Child("values").Index(place++), value.str(),
                  api::CheckLabelValue(value.str()));
    }
  }
}

void CheckIntOrPercent(FieldErrors& errors, const FieldPath& path, Value value) {
  if (const auto number = value.optional_integer()) {
    if (*number < 0) {
      errors.push_back(FieldError::Invalid(path, *number, "must be greater than or equal to 0"));
    }
    return;
  }
  const std::string_view text = value.str();
  const bool percent = text.size() > 1 && text.ends_with('%') &&
                       text.find_first_not_of("0123456789") == text.size() - 1;
  if (percent) return;
  errors.push_back(FieldError::Invalid(
      path, text,
      "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or "
      "'93%', regex used for validation is '[0-9]+%')"));
}

}  // namespace drakkar::apiserver
