#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result/result.h"
#include "cel/types/type.h"
#include "cel/value/value.h"

namespace drakkar::cel {

// What a function may use in addition to its arguments.
struct CallContext {
  Arena& arena;
};

using Implementation = Value (*)(CallContext& context, std::span<const Value> args);
// A function specialized for arguments known at planning time, such as a compiled pattern. A null
// result means that it cannot be specialized: call the implementation.
class PreparedCall {
 public:
  virtual ~PreparedCall() = default;
  virtual Value Call(CallContext& context, std::span<const Value> args) const = 0;
};
// `constants[i]` is null if argument i is not known.
using Prepare = std::unique_ptr<PreparedCall> (*)(std::span<const Value* const> constants);

struct Overload {
  std::string id;
  std::vector<TypeRef> args;
  TypeRef result;
  bool is_member = false;
  Implementation implementation = nullptr;  // null: the function's own
  Prepare prepare = nullptr;
};

struct Function {
  std::vector<Overload> overloads;
  // Dispatches on the kinds of its arguments itself; used if an overload has no implementation.
  Implementation implementation = nullptr;
  Prepare prepare = nullptr;
};

// The fields of a message type that expressions may select from.
struct StructType {
  std::map<std::string, TypeRef, std::less<>> fields;
};

// Everything an expression can name. Libraries add to it; afterwards it is only read.
class Declarations {
 public:
  void AddFunction(std::string name, Overload overload);
  void SetImplementation(const std::string& name, Implementation implementation,
                         Prepare prepare = nullptr);
  void AddVariable(std::string name, TypeRef type) {
    variables_[std::move(name)] = std::move(type);
  }
  void AddTypeName(const TypeRef& type) { type_names_[type->name()] = type; }
  void AddTypeName(std::string name, const TypeRef& type) { type_names_[std::move(name)] = type; }
  void AddStruct(std::string name, StructType type) { structs_[std::move(name)] = std::move(type); }
  void AddConstant(std::string name, std::int64_t value) { constants_[std::move(name)] = value; }

  const Function* FindFunction(std::string_view name) const;
  const TypeRef* FindVariable(std::string_view name) const;
  const TypeRef* FindTypeName(std::string_view name) const;  // the type the name stands for
  const StructType* FindStruct(std::string_view name) const;
  const std::int64_t* FindConstant(std::string_view name) const;

  // Where unqualified names are looked up: "a.b" also finds a.b.x and a.x as x.
  std::string container;
  bool homogeneous_literals = true;
  bool cross_type_comparisons = true;
  // Testing a value without fields for a field is an error instead of false.
  bool strict_presence = false;

 private:
  std::map<std::string, Function, std::less<>> functions_;
  std::map<std::string, TypeRef, std::less<>> variables_;
  std::map<std::string, TypeRef, std::less<>> type_names_;
  std::map<std::string, StructType, std::less<>> structs_;
  std::map<std::string, std::int64_t, std::less<>> constants_;
};

// The names `name` may stand for in a container, most specific first. A leading dot means only
// the name itself.
std::vector<std::string> CandidateNames(std::string_view container, std::string_view name);

}  // namespace drakkar::cel
