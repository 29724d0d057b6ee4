#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace drakkar::cel {

enum class TypeKind {
  kError,
  kDyn,
  kAny,
  kNull,
  kBool,
  kInt,
  kUint,
  kDouble,
  kString,
  kBytes,
  kDuration,
  kTimestamp,
  kList,
  kMap,
  kType,
  kTypeParam,
  kOpaque,
  kStruct,
};

class Type;
using TypeRef = std::shared_ptr<const Type>;

// A static type, immutable and shared. Types are compared structurally (`Same`).
class Type {
 public:
  Type(TypeKind kind, std::string name, std::vector<TypeRef> parameters = {}, bool nullable = false,
       const std::string_view* object_id = nullptr)
      : kind_(kind),
        nullable_(nullable),
        name_(std::move(name)),
        parameters_(std::move(parameters)),
        object_id_(object_id) {}

  TypeKind kind() const { return kind_; }
  // The name at run time: "int", "list", "google.protobuf.Duration", "optional_type".
  const std::string& name() const { return name_; }
  const std::vector<TypeRef>& parameters() const { return parameters_; }
  const TypeRef& parameter(std::size_t i) const { return parameters_[i]; }
  // The id that values of the type carry, for types added by a library.
  const std::string_view* object_id() const { return object_id_; }
  // A wrapper: a primitive or null.
  bool nullable() const { return nullable_; }

  bool IsDyn() const { return kind_ == TypeKind::kDyn || kind_ == TypeKind::kAny; }
  bool IsDynOrError() const { return IsDyn() || kind_ == TypeKind::kError; }
  bool IsOptional() const { return kind_ == TypeKind::kOpaque && name_ == "optional_type"; }

  static bool Same(const Type& a, const Type& b);

  // As declarations print: "list(google.protobuf.Duration)".
  std::string ToString() const;
  // As checker errors print: "list(duration)".
  std::string ToErrorString() const;

 private:
  TypeKind kind_;
  bool nullable_;
  std::string name_;
  std::vector<TypeRef> parameters_;
  const std::string_view* object_id_;
};

namespace types {
const TypeRef& Error();
const TypeRef& Dyn();
const TypeRef& Any();
const TypeRef& Null();
const TypeRef& Bool();
const TypeRef& Int();
const TypeRef& Uint();
const TypeRef& Double();
const TypeRef& String();
const TypeRef& Bytes();
const TypeRef& Duration();
const TypeRef& Timestamp();
const TypeRef& TypeType();  // type, of anything

TypeRef List(TypeRef element);
TypeRef Map(TypeRef key, TypeRef value);
TypeRef Optional(TypeRef value);
TypeRef TypeOf(TypeRef type);
TypeRef Param(std::string name);
TypeRef Opaque(std::string name, std::vector<TypeRef> parameters = {});
TypeRef Struct(std::string name);
// A type of objects: `name` is the constant their values refer to.
TypeRef Object(TypeKind kind, const std::string_view& name);
TypeRef Wrapper(const TypeRef& primitive);
}  // namespace types

}  // namespace drakkar::cel
