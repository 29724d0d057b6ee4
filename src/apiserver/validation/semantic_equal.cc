#include "apiserver/validation/semantic_equal.h"

#include <algorithm>
#include <string>
#include <vector>

#include "api/json/compact.h"
#include "api/json/reader.h"
#include "api/meta/quantity.h"
#include "base/result/check.h"
#include "base/text/text.h"

namespace drakkar::apiserver {
namespace {

using api::FieldKind;
using api::TypeSchema;
using api::Value;

bool SameQuantity(Value a, Value b) {
  if (a.str() == b.str()) return a.has_value() == b.has_value();
  if (!a.has_value() || !b.has_value()) return false;
  const Result<api::Quantity> left = api::Quantity::Parse(a.str());
  const Result<api::Quantity> right = api::Quantity::Parse(b.str());
  return left.ok() && right.ok() && *left == *right;
}

bool SameList(Value a, Value b, const TypeSchema& type) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (!SemanticEqual(a.at(i), b.at(i), *type.element)) return false;
  }
  return true;
}

bool SameMap(Value a, Value b, const TypeSchema& type) {
  if (a.size() != b.size()) return false;
  for (const auto& [key, name, value] : a.members()) {
    const Value other = b.Entry(name);
    if (!other.exists() || !SemanticEqual(value, other, *type.element)) return false;
  }
  return true;
}

// A number or string that Go cannot tell from its zero value.
bool SameScalar(Value a, Value b) {
  if (a.has_value() && b.has_value()) return api::Equal(a, b);
  const Value there = a.has_value() ? a : b;
  switch (there.kind()) {
    case api::ValueKind::kString:
      return there.str().empty();
    case api::ValueKind::kInt:
      return there.integer() == 0;
    case api::ValueKind::kDouble:
      return there.number() == 0;
    case api::ValueKind::kBool:
      return !there.boolean();
    default:
      return !there.has_value();
  }
}

// A free-form value is bytes if it came in a request, and a tree if it was read from the store.
bool SameFreeForm(Value a, Value b) {
  if (a.has_value() != b.has_value()) return false;
  if (!a.has_value() || api::Equal(a, b)) return true;
  const bool a_is_text = a.kind() == api::ValueKind::kRaw;
  const bool b_is_text = b.kind() == api::ValueKind::kRaw;
  // The store may have dropped the spaces that a client sends.
  if (a_is_text && b_is_text) return api::CompactJson(a.str()) == api::CompactJson(b.str());
  if (!a_is_text && !b_is_text) return false;
  const auto parsed = api::ParseJson(a_is_text ? a.str() : b.str(), {.refuse_duplicates = false});
  return parsed.ok() && api::Equal((*parsed)->root(), a_is_text ? b : a);
}

bool SameStruct(Value a, Value b, const api::StructSchema& structure) {
  for (const api::FieldSchema& field : structure.fields) {
    const Value left = a.Entry(*field.key);
    const Value right = b.Entry(*field.key);
    if (field.pointer && left.has_value() != right.has_value() &&
        field.type.kind != FieldKind::kSkipNodeOperations) {
      return false;
    }
    if (!SemanticEqual(left, right, field.type)) return false;
  }
  return true;
}

}  // namespace

bool SemanticEqual(Value a, Value b, const TypeSchema& type) {
  switch (type.kind) {
    case FieldKind::kList:
      return SameList(a, b, type);
    case FieldKind::kMap:
      return SameMap(a, b, type);
    case FieldKind::kStruct:
      return SameStruct(a, b, *type.structure);
    case FieldKind::kQuantity:
      return SameQuantity(a, b);
    case FieldKind::kSkipNodeOperations:
      return SameSkippedOperations(a, b);
    case FieldKind::kRaw:
    case FieldKind::kJson:
      return SameFreeForm(a, b);
    default:
      return SameScalar(a, b);
  }
}

bool SemanticEqual(Value a, Value b, const api::StructSchema& structure) {
  return SameStruct(a, b, structure);
}

bool SemanticEqual(Value a, Value b, std::string_view structure) {
  const api::StructSchema* schema = api::FindStruct(StrCat("io.k8s.api.resource.v1.", structure));
  if (schema == nullptr) {
    schema = api::FindStruct(StrCat("io.k8s.api.resource.v1alpha3.", structure));
  }
  CHECK(schema != nullptr);
  return SameStruct(a, b, *schema);
}

}  // namespace drakkar::apiserver
