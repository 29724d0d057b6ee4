#include "apiserver/registry/schema_defaults.h"

namespace drakkar::apiserver {
namespace {

using api::Draft;
using api::FieldKind;
using api::FieldRules;
using api::FieldSchema;
using api::StructSchema;
using api::TypeSchema;
using api::Value;
using api::ValueKind;

// `Tree` is a Value or a Draft.
template <typename Tree>
bool IsMissing(const FieldSchema& field, const Tree& value) {
  if (!value.has_value()) return true;
  if (field.pointer) return false;
  switch (value.kind()) {
    case ValueKind::kString:
      return value.str().empty();
    case ValueKind::kInt:
      return value.integer() == 0;
    case ValueKind::kBool:
      return !value.boolean();
    default:
      return false;
  }
}

// The text of a sibling field: as given, or its own default.
std::string_view TextOf(const StructSchema& schema, const api::Key& key, std::string_view given) {
  if (!given.empty()) return given;
  const FieldSchema* field = schema.Find(key);
  return field == nullptr || field->rules == nullptr ? given : field->rules->default_text;
}

bool DefaultHolds(const StructSchema& schema, const FieldRules& rules, std::string_view sibling) {
  return rules.when_key == nullptr || TextOf(schema, *rules.when_key, sibling) == rules.when_value;
}

bool LacksDefaults(Value object, const StructSchema& schema);

bool LacksDefaults(Value value, const TypeSchema& type) {
  switch (type.kind) {
    case FieldKind::kStruct:
      return LacksDefaults(value, *type.structure);
    case FieldKind::kList:
      for (Value element : value.elements()) {
        if (LacksDefaults(element, *type.element)) return true;
      }
      return false;
    case FieldKind::kMap:
      for (const auto& [key, name, element] : value.members()) {
        if (LacksDefaults(element, *type.element)) return true;
      }
      return false;
    default:
      return false;
  }
}

bool LacksDefaults(Value object, const StructSchema& schema) {
  for (const FieldSchema& field : schema.fields) {
    if (!field.has_defaults) continue;
    const Value value = object.Entry(*field.key);
    if (const FieldRules* rules = field.rules; rules != nullptr &&
                                               rules->default_form != FieldRules::Default::kNone &&
                                               IsMissing(field, value)) {
      const Value sibling = rules->when_key == nullptr ? Value() : object.Entry(*rules->when_key);
      if (DefaultHolds(schema, *rules, sibling.str())) return true;
    }
    const bool is_there =
        value.has_value() || (!field.pointer && field.type.kind == FieldKind::kStruct);
    if (is_there && LacksDefaults(value, field.type)) return true;
  }
  return false;
}

Draft MakeDefault(const FieldRules& rules) {
  switch (rules.default_form) {
    case FieldRules::Default::kText:
      return Draft(rules.default_text);
    case FieldRules::Default::kInteger:
      return Draft(rules.default_number);
    case FieldRules::Default::kBool:
      return Draft(rules.default_number != 0);
    case FieldRules::Default::kEmptyObject:
      return Draft::Object();
    case FieldRules::Default::kNone:
      break;
  }
  return Draft();
}

void Apply(Draft& value, const TypeSchema& type);

void ApplyField(Draft& object, const StructSchema& schema, const FieldSchema& field) {
  Draft* value = object.FindEntry(field.key->view());
  const bool is_missing = value == nullptr || IsMissing(field, *value);
  if (const FieldRules* rules = field.rules;
      is_missing && rules != nullptr && rules->default_form != FieldRules::Default::kNone) {
    const Draft* sibling =
        rules->when_key == nullptr ? nullptr : object.FindEntry(rules->when_key->view());
    if (DefaultHolds(schema, *rules, sibling == nullptr ? "" : sibling->str())) {
      value = &(object.Entry(*field.key) = MakeDefault(*rules));
    }
  }
  if (field.type.kind == FieldKind::kStruct && !field.pointer &&
      (value == nullptr || !value->has_value())) {
    if (!LacksDefaults(Value(), *field.type.structure)) return;
    value = &(object.Entry(*field.key) = Draft::Object());
  }
  if (value != nullptr) Apply(*value, field.type);
}

void ApplyAll(Draft& object, const StructSchema& schema) {
  if (!object.is_object()) return;
  if (const Value untouched = object.borrowed();
      untouched.exists() && !LacksDefaults(untouched, schema)) {
    return;
  }
  for (const FieldSchema& field : schema.fields) {
    if (field.has_defaults) ApplyField(object, schema, field);
  }
}

void Apply(Draft& value, const TypeSchema& type) {
  if (type.kind == FieldKind::kStruct) return ApplyAll(value, *type.structure);
  if (type.kind != FieldKind::kList && type.kind != FieldKind::kMap) return;
  if (const Value untouched = value.borrowed();
      untouched.exists() && !LacksDefaults(untouched, type)) {
    return;
  }
  if (value.is_array() && type.kind == FieldKind::kList) {
    for (Draft& element : value.MutableElements()) Apply(element, *type.element);
  } else if (value.is_object() && type.kind == FieldKind::kMap) {
    for (auto& [key, element] : value.MutableMembers()) Apply(element, *type.element);
  }
}

}  // namespace

void ApplySchemaDefaults(Draft& object, const StructSchema& schema) {
  ApplyAll(object, schema);
}

void ApplySchemaDefaults(Draft& object, const StructSchema& schema, std::string_view member) {
  const FieldSchema* field = schema.Find(member);
  if (field == nullptr || !field->has_defaults || !object.is_object()) return;
  ApplyField(object, schema, *field);
}

}  // namespace drakkar::apiserver
