#include "cel/types/type.h"

namespace drakkar::cel {
namespace {

TypeRef Make(TypeKind kind, std::string name) {
  return std::make_shared<const Type>(kind, std::move(name));
}

std::string_view ErrorName(const Type& type) {
  switch (type.kind()) {
    case TypeKind::kError:
      return "!error!";
    case TypeKind::kAny:
      return "any";
    case TypeKind::kDuration:
      return "duration";
    case TypeKind::kTimestamp:
      return "timestamp";
    case TypeKind::kNull:
      return "null";
    default:
      return type.name();
  }
}

template <typename Print>
std::string Format(const Type& type, std::string_view name, const Print& print) {
  if (type.nullable()) return "wrapper(" + std::string(name) + ")";
  std::string text(name);
  if (type.parameters().empty()) return text;
  text += '(';
  for (std::size_t i = 0; i < type.parameters().size(); ++i) {
    if (i > 0) text += ", ";
    text += print(*type.parameter(i));
  }
  return text + ')';
}

}  // namespace

bool Type::Same(const Type& a, const Type& b) {
  if (&a == &b) return true;
  if (a.kind_ != b.kind_ || a.nullable_ != b.nullable_ || a.name_ != b.name_ ||
      a.parameters_.size() != b.parameters_.size()) {
    return false;
  }
  for (std::size_t i = 0; i < a.parameters_.size(); ++i) {
    if (!Same(*a.parameters_[i], *b.parameters_[i])) return false;
  }
  return true;
}

std::string Type::ToString() const {
  return Format(*this, name_, [](const Type& type) { return type.ToString(); });
}

std::string Type::ToErrorString() const {
  return Format(*this, ErrorName(*this), [](const Type& type) { return type.ToErrorString(); });
}

namespace types {

#define DRAKKAR_CEL_TYPE(function, kind, name)              \
  const TypeRef& function() {                               \
    static const TypeRef type = Make(TypeKind::kind, name); \
    return type;                                            \
  }
DRAKKAR_CEL_TYPE(Error, kError, "*error*")
DRAKKAR_CEL_TYPE(Dyn, kDyn, "dyn")
DRAKKAR_CEL_TYPE(Any, kAny, "google.protobuf.Any")
DRAKKAR_CEL_TYPE(Null, kNull, "null_type")
DRAKKAR_CEL_TYPE(Bool, kBool, "bool")
DRAKKAR_CEL_TYPE(Int, kInt, "int")
DRAKKAR_CEL_TYPE(Uint, kUint, "uint")
DRAKKAR_CEL_TYPE(Double, kDouble, "double")
DRAKKAR_CEL_TYPE(String, kString, "string")
DRAKKAR_CEL_TYPE(Bytes, kBytes, "bytes")
DRAKKAR_CEL_TYPE(Duration, kDuration, "google.protobuf.Duration")
DRAKKAR_CEL_TYPE(Timestamp, kTimestamp, "google.protobuf.Timestamp")
DRAKKAR_CEL_TYPE(TypeType, kType, "type")
#undef DRAKKAR_CEL_TYPE

TypeRef List(TypeRef element) {
  return std::make_shared<const Type>(TypeKind::kList, "list",
                                      std::vector<TypeRef>{std::move(element)});
}
TypeRef Map(TypeRef key, TypeRef value) {
  return std::make_shared<const Type>(TypeKind::kMap, "map",
                                      std::vector<TypeRef>{std::move(key), std::move(value)});
}
TypeRef Optional(TypeRef value) {
  return Opaque("optional_type", {std::move(value)});
}
TypeRef TypeOf(TypeRef type) {
  return std::make_shared<const Type>(TypeKind::kType, "type",
                                      std::vector<TypeRef>{std::move(type)});
}
TypeRef Param(std::string name) {
  return Make(TypeKind::kTypeParam, std::move(name));
}
TypeRef Opaque(std::string name, std::vector<TypeRef> parameters) {
  return std::make_shared<const Type>(TypeKind::kOpaque, std::move(name), std::move(parameters));
}
TypeRef Struct(std::string name) {
  return Make(TypeKind::kStruct, std::move(name));
}
TypeRef Object(TypeKind kind, const std::string_view& name) {
  return std::make_shared<const Type>(kind, std::string(name), std::vector<TypeRef>{}, false,
                                      &name);
}
TypeRef Wrapper(const TypeRef& primitive) {
  return std::make_shared<const Type>(primitive->kind(), primitive->name(), std::vector<TypeRef>{},
                                      true);
}

}  // namespace types
}  // namespace drakkar::cel
