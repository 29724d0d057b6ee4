#include "apiserver/custom/json_values.h"

#include <algorithm>
#include <cmath>
#include <unordered_set>

#include "api/json/writer.h"
#include "base/exec/work_budget.h"
#include "base/hash/base64.h"
#include "base/text/text.h"
#include "base/text/truncate.h"
#include "cel/library/time.h"
#include "cel/value/value.h"

namespace drakkar::apiserver {
namespace {

using api::Draft;
using api::FieldError;
using api::FieldErrors;
using api::FieldPath;
using api::Value;
using api::ValueKind;
using Type = JsonSchema::Type;

// More than any work budget allows: the request is rejected.
constexpr std::size_t kEverything = std::size_t{1} << 36;

// ---- Pruning ----

bool IsMetaField(std::string_view name) {
  return name == "apiVersion" || name == "kind" || name == "metadata";
}

// Whether a member is removed because nothing in the schema allows it.
bool IsUnknown(const JsonSchema& schema, std::string_view name) {
  return !schema.preserves_unknown && !schema.is_map() && schema.Find(name) == nullptr &&
         !(schema.is_embedded && IsMetaField(name));
}

const JsonSchema* SchemaOfMember(const JsonSchema& schema, std::string_view name) {
  if (const JsonSchema* property = schema.Find(name)) return property;
  return schema.additional.get();
}

// A null that stands for an omitted field.
bool IsDroppedNull(const JsonSchema* schema, ValueKind kind) {
  return kind == ValueKind::kNull && schema != nullptr && !schema->nullable &&
         schema->default_value.exists();
}

bool NeedsPruning(Value value, const JsonSchema& schema) {
  if (WorkBudget::IsExceeded()) return false;
  WorkBudget::Charge(value.size());
  if (value.is_object()) {
    // A schema that does not mention members: either all of them are allowed or none.
    for (const auto& [key, name, member] : value.members()) {
      if (IsUnknown(schema, name)) return true;
      const JsonSchema* below = SchemaOfMember(schema, name);
      if (IsDroppedNull(below, member.kind())) return true;
      if (below != nullptr && NeedsPruning(member, *below)) return true;
    }
  } else if (value.is_array() && schema.items != nullptr) {
    for (Value element : value.elements()) {
      if (NeedsPruning(element, *schema.items)) return true;
    }
  }
  return false;
}

class Pruner {
 public:
  explicit Pruner(std::vector<std::string>* unknown) : unknown_(unknown) {}

  void Prune(Draft& value, const JsonSchema& schema) {
    if (WorkBudget::IsExceeded()) return;
    if (const Value borrowed = value.borrowed();
        borrowed.exists() && !NeedsPruning(borrowed, schema)) {
      return;
    }
    if (value.is_object()) {
      Draft::Members& members = value.MutableMembers();
      Draft::Members kept;
      kept.reserve(members.size());
      for (auto& [key, member] : members) {
        const std::string_view name = key->view();
        if (IsUnknown(schema, name)) {
          Report(name);
          continue;
        }
        const JsonSchema* below = SchemaOfMember(schema, name);
        if (IsDroppedNull(below, member.kind())) continue;
        if (below != nullptr) {
          path_.push_back({name, 0});
          Prune(member, *below);
          path_.pop_back();
        }
        kept.emplace_back(std::move(key), std::move(member));
      }
      members = std::move(kept);
    } else if (value.is_array() && schema.items != nullptr) {
      std::size_t index = 0;
      for (Draft& element : value.MutableElements()) {
        path_.push_back({{}, index++});
        Prune(element, *schema.items);
        path_.pop_back();
      }
    }
  }

 private:
  struct Step {
    std::string_view name;  // empty data: an index
    std::size_t index = 0;
  };

  // The path is built only when an error is reported: names can be as long as the request.
  void Report(std::string_view name) {
    if (unknown_ == nullptr || unknown_->size() >= kMaxUnknownFields) return;
    std::string path;
    for (const Step& step : path_) {
      if (step.name.data() == nullptr) {
        path += StrCat("[", step.index, "]");
      } else {
        path += StrCat(path.empty() ? "" : ".", step.name);
      }
    }
    path += StrCat(path.empty() ? "" : ".", name);
    WorkBudget::Charge(path.size());
    unknown_->push_back(TruncateMessage(path, kMaxUnknownBytes));
  }

  std::vector<std::string>* const unknown_;
  std::vector<Step> path_;
};

// ---- Defaults ----

bool LacksDefaults(Value value, const JsonSchema& schema) {
  if (!schema.has_defaults) return false;
  if (value.is_object()) {
    for (const auto& [name, property] : schema.properties) {
      if (!property->has_defaults) continue;
      const Value member = value.Entry(name);
      if (!member.exists() && property->default_value.exists()) return true;
      if (member.exists() && LacksDefaults(member, *property)) return true;
    }
    if (schema.additional != nullptr && schema.additional->has_defaults) {
      for (const auto& [key, name, member] : value.members()) {
        if (LacksDefaults(member, *schema.additional)) return true;
      }
    }
  } else if (value.is_array() && schema.items != nullptr) {
    for (Value element : value.elements()) {
      if (LacksDefaults(element, *schema.items)) return true;
    }
  }
  return false;
}

// In a list of a million empty objects, each can get a large default.
class Defaulter {
 public:
  void Add(Draft& value, const JsonSchema& schema) {
    if (!schema.has_defaults || is_full_) return;
    WorkBudget::Charge(10);
    if (const Value borrowed = value.borrowed();
        borrowed.exists() && !LacksDefaults(borrowed, schema)) {
      return;
    }
    if (value.is_object()) {
      for (const auto& [name, property] : schema.properties) {
        if (!property->has_defaults) continue;
        Draft* member = value.FindEntry(name);
        if ((member == nullptr || !member->exists()) && property->default_value.exists()) {
          api::TreePtr added = api::CopyTree(property->default_value);
          if (!Take(added->size_bytes())) return;
          member = &(value.Entry(name) = Draft(std::move(added)));
        }
        if (member != nullptr && member->exists()) Add(*member, *property);
      }
      if (schema.additional != nullptr && schema.additional->has_defaults) {
        for (auto& [key, member] : value.MutableMembers()) {
          if (is_full_) return;
          Add(member, *schema.additional);
        }
      }
    } else if (value.is_array() && schema.items != nullptr) {
      for (Draft& element : value.MutableElements()) {
        if (is_full_) return;
        Add(element, *schema.items);
      }
    }
  }

 private:
  bool Take(std::size_t bytes) {
    bytes_ += bytes;
    if (bytes_ <= kMaxDefaultBytes && !WorkBudget::IsExceeded()) return true;
    is_full_ = true;
    WorkBudget::Charge(kEverything);
    return false;
  }

  std::size_t bytes_ = 0;
  bool is_full_ = false;
};

// ---- Validation ----

std::string NumberText(double number) {
  if (std::trunc(number) == number && std::fabs(number) < 1e15) {
    return std::to_string(static_cast<std::int64_t>(number));
  }
  return cel::DoubleText(number);
}

bool IsWhole(Value value) {
  return value.kind() == ValueKind::kInt ||
         (value.kind() == ValueKind::kDouble && std::trunc(value.number()) == value.number());
}

bool HasType(Value value, const JsonSchema& schema) {
  if (schema.int_or_string) return value.is_string() || IsWhole(value);
  switch (schema.type) {
    case Type::kNone:
      return true;
    case Type::kObject:
      return value.is_object();
    case Type::kArray:
      return value.is_array();
    case Type::kString:
      return value.is_string();
    case Type::kInteger:
      return IsWhole(value);
    case Type::kNumber:
      return value.kind() == ValueKind::kInt || value.kind() == ValueKind::kDouble;
    case Type::kBoolean:
      return value.kind() == ValueKind::kBool;
  }
  return true;
}

// Only the formats that Kubernetes checks; null: not checked.
bool HasFormat(std::string_view text, std::string_view format) {
  if (format == "date-time") return cel::ParseTimestamp(text).has_value();
  if (format == "date") {
    return text.size() == 10 && cel::ParseTimestamp(StrCat(text, "T00:00:00Z")).has_value();
  }
  if (format == "duration") return cel::ParseDuration(text).has_value();
  if (format == "byte") return Base64Decode(text).ok();
  return true;
}

// A text by which equal values are equal, for sets and keys of lists.
std::string Canonical(Value value) {
  return api::WriteJson(value);
}

constexpr std::size_t kStepsPerComparison = 10;
constexpr std::size_t kStepsPerShown = 200;    // of the values that an enumeration supports
constexpr std::size_t kStepsPerElement = 400;  // of a set, or a list with keys

class ValueChecker {
 public:
  explicit ValueChecker(FieldErrors& errors) : errors_(errors) {}

  void Check(const FieldPath& path, Value value, Value before, const JsonSchema& schema) {
    if (WorkBudget::IsExceeded() || !value.exists()) return;
    WorkBudget::Charge(20);
    if (before.exists() && api::Equal(value, before)) return;
    if (value.kind() == ValueKind::kNull) {
      if (!schema.nullable && (schema.type != Type::kNone || schema.int_or_string)) {
        WrongType(path, "null", schema);
      }
      return;
    }
    if (!HasType(value, schema)) return WrongType(path, JsonTypeOf(value), schema);
    if (value.is_object()) CheckObject(path, value, before, schema);
    if (value.is_array()) CheckArray(path, value, before, schema);
    if (value.is_string() && !schema.format.empty() && !HasFormat(value.str(), schema.format)) {
      errors_.push_back(FieldError::Invalid(path, value,
                                            StrCat(Name(path), " in body must be of type ",
                                                   schema.format, ": ", Quote(value.str()))));
    }
    if (schema.values != nullptr) CheckRules(path, value, *schema.values, schema);
  }

 private:
  static std::string Name(const FieldPath& path) { return path.text(); }

  void WrongType(const FieldPath& path, std::string_view found, const JsonSchema& schema) {
    const std::string_view wanted =
        schema.int_or_string ? std::string_view("integer,string") : JsonTypeName(schema.type);
    errors_.push_back(FieldError::TypeInvalid(
        path, found, StrCat(Name(path), " in body must be of type ", wanted, ": ", Quote(found))));
  }
  void Bad(const FieldPath& path, Value value, std::string_view what) {
    errors_.push_back(FieldError::Invalid(path, value, StrCat(Name(path), " in body ", what)));
  }

  void CheckObject(const FieldPath& path, Value value, Value before, const JsonSchema& schema) {
    for (std::string_view name : schema.required) {
      if (!value.Entry(name).exists()) {
        errors_.push_back(FieldError::Required(path.Child(name), ""));
      }
    }
    for (const auto& [key, name, member] : value.members()) {
      if (WorkBudget::IsExceeded()) return;
      if (schema.is_embedded && path.empty() && IsMetaField(name)) continue;
      if (const JsonSchema* below = SchemaOfMember(schema, name)) {
        Check(path.Child(name), member, before.Entry(name), *below);
      }
    }
  }

  void CheckArray(const FieldPath& path, Value value, Value before, const JsonSchema& schema) {
    if (schema.items != nullptr) {
      std::size_t index = 0;
      for (Value element : value.elements()) {
        if (WorkBudget::IsExceeded()) return;
        const Value same = schema.list_type == JsonSchema::ListType::kMap
                               ? FindByKeys(before, element, schema)
                               : Value();
        Check(path.Index(index++), element, same, *schema.items);
      }
    }
    if (schema.list_type == JsonSchema::ListType::kAtomic) return;
    std::unordered_set<std::string> seen;
    std::size_t index = 0;
    for (Value element : value.elements()) {
      WorkBudget::Charge(kStepsPerElement);
      if (WorkBudget::IsExceeded()) return;
      const FieldPath at = path.Index(index++);
      if (schema.list_type == JsonSchema::ListType::kSet) {
        if (!seen.insert(Canonical(element)).second) {
          errors_.push_back(FieldError::Duplicate(at, element));
        }
        continue;
      }
      std::string keys;
      Draft shown = Draft::Object();
      for (std::string_view key : schema.list_keys) {
        keys += StrCat(Canonical(element.Entry(key)), ",");
        if (element.Entry(key).exists()) shown.Entry(key) = Draft(element.Entry(key));
      }
      if (!seen.insert(keys).second) {
        errors_.push_back(FieldError::Duplicate(at, shown.Freeze()->root()));
      }
    }
  }

  static Value FindByKeys(Value list, Value element, const JsonSchema& schema) {
    if (list.size() > 64) return {};
    for (Value each : list.elements()) {
      if (std::ranges::all_of(schema.list_keys, [&](std::string_view key) {
            return api::Equal(each.Entry(key), element.Entry(key));
          })) {
        return each;
      }
    }
    return {};
  }

  void CheckRules(const FieldPath& path, Value value, const JsonValueRules& rules,
                  const JsonSchema& schema) {
    if (rules.enumeration.exists()) CheckEnumeration(path, value, rules.enumeration);
    if (value.is_string()) {
      const auto length = static_cast<std::int64_t>(cel::CountCharacters(value.str()));
      if (rules.max_length && length > *rules.max_length) {
        errors_.push_back(FieldError::TooLong(path, static_cast<std::size_t>(*rules.max_length)));
      }
      if (rules.min_length && length < *rules.min_length) {
        Bad(path, value, StrCat("should be at least ", *rules.min_length, " chars long"));
      }
      // Work that takes too long exceeds the work budget.
      if (rules.pattern != nullptr && !rules.pattern->Matches(value.str()).value_or(true)) {
        Bad(path, value, StrCat("should match '", rules.pattern_text, "'"));
      }
    }
    if (value.kind() == ValueKind::kInt || value.kind() == ValueKind::kDouble) {
      const double number = value.number();
      if (rules.maximum &&
          (rules.exclusive_maximum ? number >= *rules.maximum : number > *rules.maximum)) {
        Bad(path, value,
            StrCat("should be less than ", rules.exclusive_maximum ? "" : "or equal to ",
                   NumberText(*rules.maximum)));
      }
      if (rules.minimum &&
          (rules.exclusive_minimum ? number <= *rules.minimum : number < *rules.minimum)) {
        Bad(path, value,
            StrCat("should be greater than ", rules.exclusive_minimum ? "" : "or equal to ",
                   NumberText(*rules.minimum)));
      }
      if (rules.multiple_of && *rules.multiple_of > 0) {
        const double quotient = number / *rules.multiple_of;
        if (std::trunc(quotient) != quotient) {
          Bad(path, value, StrCat("should be a multiple of ", NumberText(*rules.multiple_of)));
        }
      }
    }
    const auto size = static_cast<std::int64_t>(value.size());
    if (value.is_array()) {
      if (rules.max_items && size > *rules.max_items) {
        errors_.push_back(
            FieldError::TooMany(path, value.size(), static_cast<std::size_t>(*rules.max_items)));
      }
      if (rules.min_items && size < *rules.min_items) {
        errors_.push_back(FieldError::Invalid(
            path, size,
            StrCat(Name(path), " in body should have at least ", *rules.min_items, " items")));
      }
    }
    if (value.is_object()) {
      if (rules.max_properties && size > *rules.max_properties) {
        errors_.push_back(FieldError::TooMany(path, value.size(),
                                              static_cast<std::size_t>(*rules.max_properties)));
      }
      if (rules.min_properties && size < *rules.min_properties) {
        errors_.push_back(FieldError::Invalid(path, size,
                                              StrCat(Name(path), " in body should have at least ",
                                                     *rules.min_properties, " properties")));
      }
    }
    CheckCombinations(path, value, rules, schema);
  }

  void CheckEnumeration(const FieldPath& path, Value value, Value allowed) {
    WorkBudget::Charge(kStepsPerComparison * allowed.size());
    for (Value each : allowed.elements()) {
      if (api::Equal(each, value)) return;
    }
    if (WorkBudget::IsExceeded()) return;
    std::vector<std::string> texts;
    for (Value each : allowed.elements()) {
      texts.push_back(each.is_string() ? std::string(each.str()) : api::WriteJson(each));
    }
    WorkBudget::Charge(kStepsPerShown * texts.size());
    std::vector<std::string_view> supported(texts.begin(), texts.end());
    errors_.push_back(FieldError::NotSupported(path, value, std::move(supported)));
  }

  bool Holds(const FieldPath& path, Value value, const JsonSchema& schema) {
    FieldErrors found;
    ValueChecker(found).Check(path, value, Value(), schema);
    return found.empty();
  }

  void CheckCombinations(const FieldPath& path, Value value, const JsonValueRules& rules,
                         const JsonSchema&) {
    for (const JsonSchema& each : rules.all_of) {
      Check(path, value, Value(), each);
    }
    if (!rules.any_of.empty() && std::ranges::none_of(rules.any_of, [&](const JsonSchema& each) {
          return Holds(path, value, each);
        })) {
      Combination(path, "must validate at least one schema (anyOf)");
    }
    if (!rules.one_of.empty()) {
      const auto count = std::ranges::count_if(
          rules.one_of, [&](const JsonSchema& each) { return Holds(path, value, each); });
      if (count == 0) {
        Combination(path, "must validate one and only one schema (oneOf). Found none valid");
      } else if (count > 1) {
        Combination(path, StrCat("must validate one and only one schema (oneOf). Found ", count,
                                 " valid alternatives"));
      }
    }
    if (rules.negated != nullptr && Holds(path, value, *rules.negated)) {
      Combination(path, "must not validate the schema (not)");
    }
  }
  void Combination(const FieldPath& path, std::string_view what) {
    errors_.push_back(FieldError::Invalid(path, "", StrCat(Quote(Name(path)), " ", what)));
  }

  FieldErrors& errors_;
};

}  // namespace

api::TreePtr PruneUnknown(const api::TreePtr& object, const JsonSchema& schema,
                          std::vector<std::string>* unknown) {
  if (!NeedsPruning(object->root(), schema)) return object;
  Draft draft(object);
  Pruner(unknown).Prune(draft, schema);
  return draft.Freeze();
}

void ApplyJsonDefaults(Draft& object, const JsonSchema& schema) {
  Defaulter().Add(object, schema);
}

void CheckJsonValue(FieldErrors& errors, const FieldPath& path, Value value, Value before,
                    const JsonSchema& schema) {
  ValueChecker(errors).Check(path, value, before, schema);
}

std::string_view JsonTypeOf(Value value) {
  switch (value.kind()) {
    case ValueKind::kAbsent:
    case ValueKind::kNull:
      return "null";
    case ValueKind::kBool:
      return "boolean";
    case ValueKind::kInt:
      return "integer";
    case ValueKind::kDouble:
      return "number";
    case ValueKind::kString:
      return "string";
    case ValueKind::kArray:
      return "array";
    case ValueKind::kRaw:
    case ValueKind::kObject:
      return "object";
  }
  return "null";
}

}  // namespace drakkar::apiserver
