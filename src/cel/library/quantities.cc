#include "cel/library/library.h"
#include "cel/library/objects.h"

namespace drakkar::cel {
namespace types {

const TypeRef& Quantity() {
  static const TypeRef type = Object(TypeKind::kStruct, QuantityValue::kTypeName);
  return type;
}
const TypeRef& Semver() {
  static const TypeRef type = Object(TypeKind::kStruct, SemverValue::kTypeName);
  return type;
}

}  // namespace types

namespace library {
namespace {

using types::Bool, types::Double, types::Int, types::String;

const api::Quantity& Get(const Value& value) {
  return static_cast<const QuantityValue*>(value.object)->quantity;
}
Value New(CallContext& c, api::Quantity quantity) {
  return MakeObject(c.arena.New<QuantityValue>(std::move(quantity)));
}

Value FromText(CallContext& c, Args args) {
  Result<api::Quantity> parsed = api::Quantity::Parse(args[0].text());
  if (!parsed.ok()) return NewError(c.arena, parsed.error().message);
  return New(c, *std::move(parsed));
}
Value IsText(CallContext&, Args args) {
  return MakeBool(api::Quantity::Parse(args[0].text()).ok());
}
Value Sign(CallContext&, Args args) {
  return MakeInt(Get(args[0]).Sign());
}
Value Greater(CallContext&, Args args) {
  return MakeBool(Get(args[0]).Compare(Get(args[1])) > 0);
}
Value Less(CallContext&, Args args) {
  return MakeBool(Get(args[0]).Compare(Get(args[1])) < 0);
}
Value CompareTo(CallContext&, Args args) {
  return MakeInt(Get(args[0]).Compare(Get(args[1])));
}
Value ToFloat(CallContext&, Args args) {
  return MakeDouble(Get(args[0]).AsApproximateFloat());
}
Value ToInteger(CallContext& c, Args args) {
  const std::optional<std::int64_t> value = Get(args[0]).AsInt64();
  return value ? MakeInt(*value) : NewError(c.arena, "cannot convert value to integer");
}
Value IsInteger(CallContext&, Args args) {
  return MakeBool(Get(args[0]).AsInt64().has_value());
}

api::Quantity Operand(const Value& value) {
  return value.kind == Kind::kInt
             ? api::Quantity(value.integer, api::Quantity::Format::kDecimalExponent)
             : Get(value);
}
Value Add(CallContext& c, Args args) {
  api::Quantity sum = Get(args[0]);
  sum.Add(Operand(args[1]));
  return New(c, std::move(sum));
}
Value Subtract(CallContext& c, Args args) {
  api::Quantity difference = Get(args[0]);
  difference.Subtract(Operand(args[1]));
  return New(c, std::move(difference));
}

}  // namespace

void AddQuantities(Declarations& d) {
  const TypeRef& q = types::Quantity();
  d.AddTypeName(q);
  Global(d, "quantity", "string_to_quantity", {String()}, q, FromText);
  Global(d, "isQuantity", "is_quantity_string", {String()}, Bool(), IsText);
  Global(d, "sign", "quantity_sign", {q}, Int(), Sign);
  Member(d, "isGreaterThan", "quantity_is_greater_than", {q, q}, Bool(), Greater);
  Member(d, "isLessThan", "quantity_is_less_than", {q, q}, Bool(), Less);
  Member(d, "compareTo", "quantity_compare_to", {q, q}, Int(), CompareTo);
  Member(d, "asApproximateFloat", "quantity_get_float", {q}, Double(), ToFloat);
  Member(d, "asInteger", "quantity_get_int", {q}, Int(), ToInteger);
  Member(d, "isInteger", "quantity_is_integer", {q}, Bool(), IsInteger);
  Member(d, "add", "quantity_add", {q, q}, q, Add);
  Member(d, "add", "quantity_add_int", {q, Int()}, q, Add);
  Member(d, "sub", "quantity_sub", {q, q}, q, Subtract);
  Member(d, "sub", "quantity_sub_int", {q, Int()}, q, Subtract);
}

}  // namespace library
}  // namespace drakkar::cel
