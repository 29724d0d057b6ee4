#include "apiserver/custom/json_schema.h"

#include <algorithm>
#include <set>

#include "base/exec/work_budget.h"
#include "base/text/text.h"

namespace drakkar::apiserver {
namespace {

using api::FieldError;
using api::FieldErrors;
using api::FieldPath;
using api::Value;
using Type = JsonSchema::Type;

enum class Level { kRoot, kItem, kField, kNested };

// A schema costs this much to read, in steps of the work budget.
constexpr std::size_t kStepsPerSchema = 2'000;

std::optional<Type> TypeOf(std::string_view text) {
  if (text == "object") return Type::kObject;
  if (text == "array") return Type::kArray;
  if (text == "string") return Type::kString;
  if (text == "integer") return Type::kInteger;
  if (text == "number") return Type::kNumber;
  if (text == "boolean") return Type::kBoolean;
  return std::nullopt;
}

std::optional<double> Number(Value value) {
  if (value.kind() != api::ValueKind::kInt && value.kind() != api::ValueKind::kDouble) {
    return std::nullopt;
  }
  return value.number();
}

// The pattern that Kubernetes allows to spell out: anyOf [{type: integer}, {type: string}].
bool IsIntOrStringList(Value list) {
  return list.size() == 2 && list.at(0).size() == 1 && list.at(1).size() == 1 &&
         list.at(0)["type"].str() == "integer" && list.at(1)["type"].str() == "string";
}

class SchemaReader {
 public:
  explicit SchemaReader(FieldErrors& errors) : errors_(errors) {}

  JsonSchema Read(Value source, const FieldPath& path, Level level) {
    JsonSchema schema;
    schema.source = source;
    WorkBudget::Charge(kStepsPerSchema);
    if (WorkBudget::IsExceeded()) return schema;
    RefuseUnsupported(source, path);
    ReadType(source, path, level, schema);
    schema.nullable = source["nullable"].boolean();
    schema.preserves_unknown = source["x-kubernetes-preserve-unknown-fields"].boolean();
    schema.is_embedded =
        level == Level::kRoot || source["x-kubernetes-embedded-resource"].boolean();
    schema.is_atomic = source["x-kubernetes-map-type"].str() == "atomic";
    schema.format = source["format"].str();
    schema.default_value = source["default"];
    if (level == Level::kNested && schema.default_value.exists()) {
      errors_.push_back(
          FieldError::Forbidden(path.Child("default"), "must be undefined to be structural"));
    }
    ReadObject(source, path, level, schema);
    ReadArray(source, path, level, schema);
    ReadValues(source, path, schema);
    for (Value rule : source["x-kubernetes-validations"].elements()) {
      schema.rules.push_back({rule});
    }
    if (level == Level::kNested && !schema.rules.empty()) {
      errors_.push_back(FieldError::Forbidden(path.Child("x-kubernetes-validations"),
                                              "must be empty to be structural"));
    }
    CheckExtensions(source, path, level, schema);
    schema.has_defaults = schema.default_value.exists();
    schema.has_rules = !schema.rules.empty();
    const auto look = [&](const JsonSchema* below) {
      if (below == nullptr) return;
      schema.has_defaults = schema.has_defaults || below->has_defaults;
      schema.has_rules = schema.has_rules || below->has_rules;
    };
    for (const auto& [name, property] : schema.properties) look(property.get());
    look(schema.additional.get());
    look(schema.items.get());
    return schema;
  }

 private:
  void RefuseUnsupported(Value source, const FieldPath& path) {
    for (const api::FieldName name : api::FieldNames{"$ref", "definitions", "dependencies",
                                                     "patternProperties", "additionalItems"}) {
      if (source[name].has_value() &&
          !(name == api::FieldName("$ref") && source[name].str().empty())) {
        errors_.push_back(
            FieldError::Forbidden(path.Child(name), StrCat(name.view(), " is not supported")));
      }
    }
    if (source["uniqueItems"].boolean()) {
      errors_.push_back(FieldError::Forbidden(path.Child("uniqueItems"),
                                              "uniqueItems cannot be set to true since the runtime "
                                              "complexity becomes quadratic"));
    }
  }

  void ReadType(Value source, const FieldPath& path, Level level, JsonSchema& schema) {
    const std::string_view text = source["type"].str();
    schema.int_or_string = source["x-kubernetes-int-or-string"].boolean();
    const bool is_open = source["x-kubernetes-preserve-unknown-fields"].boolean();
    if (const std::optional<Type> type = TypeOf(text)) {
      schema.type = *type;
    } else if (!text.empty()) {
      errors_.push_back(FieldError::NotSupported(
          path.Child("type"), text, {"array", "boolean", "integer", "number", "object", "string"}));
    }
    if (level == Level::kNested) {
      if (!text.empty()) {
        errors_.push_back(
            FieldError::Forbidden(path.Child("type"), "must be empty to be structural"));
      }
      return;
    }
    if (text.empty() && !schema.int_or_string && !is_open) {
      errors_.push_back(FieldError::Required(
          path.Child("type"), level == Level::kRoot ? "must not be empty at the root"
                              : level == Level::kItem
                                  ? "must not be empty for specified array items"
                                  : "must not be empty for specified object fields"));
    }
    if (level == Level::kRoot && !text.empty() && text != "object") {
      errors_.push_back(
          FieldError::Invalid(path.Child("type"), text, "must be object at the root"));
    }
    if (source["x-kubernetes-embedded-resource"].boolean() && text != "object") {
      errors_.push_back(FieldError::Invalid(
          path.Child("type"), text, "must be object if x-kubernetes-embedded-resource is true"));
    }
  }

  void ReadObject(Value source, const FieldPath& path, Level level, JsonSchema& schema) {
    const Level below = level == Level::kNested ? Level::kNested : Level::kField;
    const Value properties = source["properties"];
    std::vector<std::string_view> names;
    for (const auto& [key, name, value] : properties.members()) names.push_back(name);
    std::ranges::sort(names);
    for (std::string_view name : names) {
      if (WorkBudget::IsExceeded()) return;
      const FieldPath at = path.Child("properties").Key(name);
      if (level == Level::kRoot && name == "metadata") {
        CheckMetadata(properties.Entry(name), at);
        continue;
      }
      schema.properties.emplace_back(
          name, std::make_unique<JsonSchema>(Read(properties.Entry(name), at, below)));
      if (level == Level::kRoot && (name == "apiVersion" || name == "kind") &&
          schema.properties.back().second->type != Type::kString) {
        errors_.push_back(FieldError::Invalid(
            at.Child("type"), properties.Entry(name)["type"].str(), "must be string"));
      }
    }
    for (Value each : source["required"].elements()) schema.required.push_back(each.str());
    const Value additional = source["additionalProperties"];
    if (!additional.has_value()) return;
    const FieldPath at = path.Child("additionalProperties");
    if (level == Level::kRoot) {
      errors_.push_back(FieldError::Forbidden(at, "must not be used at the root"));
    }
    if (level == Level::kNested) {
      errors_.push_back(FieldError::Forbidden(at, "must be undefined to be structural"));
    }
    if (!schema.properties.empty()) {
      errors_.push_back(
          FieldError::Forbidden(at, "additionalProperties and properties are mutual exclusive"));
    }
    if (additional.is_object()) {
      schema.additional = std::make_unique<JsonSchema>(Read(additional, at, below));
    } else if (additional.boolean()) {
      schema.allows_any = true;
    } else {
      errors_.push_back(FieldError::Forbidden(at, "additionalProperties cannot be set to false"));
    }
  }

  // Only name and generateName can be restricted; Kubernetes defines the rest.
  void CheckMetadata(Value source, const FieldPath& path) {
    if (source["type"].str() != "object") {
      errors_.push_back(
          FieldError::Invalid(path.Child("type"), source["type"].str(), "must be object"));
    }
    for (const auto& [key, name, value] : source["properties"].members()) {
      if (name == "name" || name == "generateName") continue;
      errors_.push_back(FieldError::Forbidden(
          path,
          "must not specify anything other than name and generateName, but metadata is implicitly "
          "specified"));
      return;
    }
  }

  void ReadArray(Value source, const FieldPath& path, Level level, JsonSchema& schema) {
    const Value items = source["items"];
    if (items.is_array()) {
      errors_.push_back(FieldError::Forbidden(path.Child("items"),
                                              "items must be a schema object and not an array"));
      return;
    }
    if (items.is_object()) {
      schema.items = std::make_unique<JsonSchema>(Read(
          items, path.Child("items"), level == Level::kNested ? Level::kNested : Level::kItem));
    } else if (schema.type == Type::kArray && level != Level::kNested) {
      errors_.push_back(FieldError::Required(path.Child("items"), "must be specified"));
    }
    const std::string_view list_type = source["x-kubernetes-list-type"].str();
    for (Value key : source["x-kubernetes-list-map-keys"].elements()) {
      schema.list_keys.push_back(key.str());
    }
    if (list_type.empty() || list_type == "atomic") {
      if (!schema.list_keys.empty()) {
        errors_.push_back(
            FieldError::Required(path.Child("x-kubernetes-list-type"),
                                 "must be map if x-kubernetes-list-map-keys is non-empty"));
      }
      return;
    }
    if (schema.type != Type::kArray) {
      errors_.push_back(
          FieldError::Invalid(path.Child("type"), source["type"].str(),
                              "must be array if x-kubernetes-list-type is specified"));
      return;
    }
    if (list_type == "set") {
      schema.list_type = JsonSchema::ListType::kSet;
    } else if (list_type == "map") {
      schema.list_type = JsonSchema::ListType::kMap;
      CheckListKeys(path, schema);
    } else {
      errors_.push_back(FieldError::NotSupported(path.Child("x-kubernetes-list-type"), list_type,
                                                 {"atomic", "map", "set"}));
    }
  }

  void CheckListKeys(const FieldPath& path, const JsonSchema& schema) {
    if (schema.list_keys.empty()) {
      errors_.push_back(FieldError::Required(path.Child("x-kubernetes-list-map-keys"),
                                             "must not be empty if x-kubernetes-list-type is map"));
    }
    if (schema.items == nullptr || schema.items->type != Type::kObject) {
      errors_.push_back(
          FieldError::Invalid(path.Child("items").Child("type"), "",
                              "must be object if parent array's x-kubernetes-list-type is map"));
      return;
    }
    std::size_t index = 0;
    for (std::string_view key : schema.list_keys) {
      const JsonSchema* property = schema.items->Find(key);
      const FieldPath at = path.Child("x-kubernetes-list-map-keys").Index(index++);
      if (property == nullptr) {
        errors_.push_back(
            FieldError::Invalid(at, key, "entries must all be names of item properties"));
      } else if (property->type == Type::kArray || property->type == Type::kObject) {
        errors_.push_back(FieldError::Invalid(
            path.Child("items").Child("properties").Key(key).Child("type"),
            JsonTypeName(property->type),
            "must be a scalar type if parent array's x-kubernetes-list-type is map"));
      } else if (std::ranges::find(schema.items->required, key) == schema.items->required.end() &&
                 !property->default_value.exists()) {
        errors_.push_back(FieldError::Required(
            path.Child("items").Child("properties").Key(key).Child("default"),
            "this property is in x-kubernetes-list-map-keys, so it must have a default or be a "
            "required property"));
      }
    }
  }

  void ReadValues(Value source, const FieldPath& path, JsonSchema& schema) {
    auto values = std::make_unique<JsonValueRules>();
    bool any = false;
    const auto number = [&](Value value, std::optional<double>& into) {
      into = Number(value);
      any = any || into.has_value();
    };
    const auto integer = [&](Value value, std::optional<std::int64_t>& into) {
      into = value.optional_integer();
      any = any || into.has_value();
    };
    number(source["maximum"], values->maximum);
    number(source["minimum"], values->minimum);
    number(source["multipleOf"], values->multiple_of);
    values->exclusive_maximum = source["exclusiveMaximum"].boolean();
    values->exclusive_minimum = source["exclusiveMinimum"].boolean();
    integer(source["maxLength"], values->max_length);
    integer(source["minLength"], values->min_length);
    integer(source["maxItems"], values->max_items);
    integer(source["minItems"], values->min_items);
    integer(source["maxProperties"], values->max_properties);
    integer(source["minProperties"], values->min_properties);
    if (const std::string_view pattern = source["pattern"].str(); !pattern.empty()) {
      any = true;
      std::string why;
      values->pattern_text = pattern;
      values->pattern = cel::library::Pattern::Compile(pattern, &why);
      if (values->pattern == nullptr) {
        errors_.push_back(
            FieldError::Invalid(path.Child("pattern"), pattern,
                                StrCat("must be a valid regular expression, but isn't: ", why)));
      }
    }
    if (source["enum"].is_array()) {
      any = true;
      values->enumeration = source["enum"];
    }
    const auto nested = [&](api::FieldName name, std::vector<JsonSchema>& into) {
      std::size_t index = 0;
      for (Value each : source[name].elements()) {
        any = true;
        into.push_back(Read(each, path.Child(name).Index(index++), Level::kNested));
      }
    };
    // The spelled-out form of x-kubernetes-int-or-string needs no check of its own.
    const bool spelled =
        schema.int_or_string &&
        (IsIntOrStringList(source["anyOf"]) || IsIntOrStringList(source["allOf"].at(0)["anyOf"]));
    if (!spelled) {
      nested("anyOf", values->any_of);
      nested("allOf", values->all_of);
    }
    nested("oneOf", values->one_of);
    if (source["not"].is_object()) {
      any = true;
      values->negated =
          std::make_unique<JsonSchema>(Read(source["not"], path.Child("not"), Level::kNested));
    }
    if (any) schema.values = std::move(values);
  }

  void CheckExtensions(Value source, const FieldPath& path, Level level, const JsonSchema& schema) {
    if (schema.int_or_string && schema.preserves_unknown) {
      errors_.push_back(FieldError::Invalid(path.Child("x-kubernetes-preserve-unknown-fields"),
                                            true,
                                            "must be false if x-kubernetes-int-or-string is true"));
    }
    if (source["x-kubernetes-preserve-unknown-fields"].optional_boolean() == false) {
      errors_.push_back(FieldError::Invalid(path.Child("x-kubernetes-preserve-unknown-fields"),
                                            false, "must be true or undefined"));
    }
    if (level == Level::kNested) return;
    if (source["x-kubernetes-embedded-resource"].boolean() && !schema.preserves_unknown &&
        schema.properties.empty()) {
      errors_.push_back(FieldError::Required(
          path.Child("properties"),
          "must not be empty if x-kubernetes-embedded-resource is true without "
          "x-kubernetes-preserve-unknown-fields"));
    }
  }

  FieldErrors& errors_;
};

}  // namespace

JsonSchema::JsonSchema() = default;
JsonSchema::~JsonSchema() = default;
JsonSchema::JsonSchema(JsonSchema&&) noexcept = default;
JsonSchema& JsonSchema::operator=(JsonSchema&&) noexcept = default;

const JsonSchema* JsonSchema::Find(std::string_view property) const {
  const auto found = std::ranges::lower_bound(properties, property, {},
                                              [](const auto& each) { return each.first; });
  return found != properties.end() && found->first == property ? found->second.get() : nullptr;
}

std::string_view JsonTypeName(JsonSchema::Type type) {
  switch (type) {
    case Type::kNone:
      return "";
    case Type::kObject:
      return "object";
    case Type::kArray:
      return "array";
    case Type::kString:
      return "string";
    case Type::kInteger:
      return "integer";
    case Type::kNumber:
      return "number";
    case Type::kBoolean:
      return "boolean";
  }
  return "";
}

JsonSchema ReadJsonSchema(Value source, const FieldPath& path, FieldErrors& errors) {
  return SchemaReader(errors).Read(source, path, Level::kRoot);
}

}  // namespace drakkar::apiserver
