#include <cmath>

#include "base/text/text.h"
#include "cel/library/library.h"

namespace drakkar::cel::library {
namespace {

using namespace types;  // NOLINT

template <Order prefer>
Value Extreme(CallContext& c, Args args) {
  const Value* items = args.data();
  std::size_t count = args.size();
  if (args.size() == 1 && args[0].kind == Kind::kList) {
    items = ListItems(args[0]);
    count = args[0].size;
    if (count == 0) {
      return NewError(c.arena, StrCat(prefer == Order::kGreater ? "math.@max" : "math.@min",
                                      "(list) argument must not be empty"));
    }
  }
  Value best = items[0];
  for (std::size_t i = 0; i < count; ++i) {
    if (!items[i].IsNumber()) return NewError(c.arena, "no such overload");
    if (CompareValues(items[i], best) == prefer) best = items[i];
  }
  return best;
}

using Rounding = double (*)(double);
template <Rounding rounding>
Value Round(CallContext& c, Args args) {
  return args[0].kind == Kind::kDouble ? MakeDouble(rounding(args[0].number)) : NoSuchOverload(c);
}
double RoundAway(double x) {
  return std::round(x);
}
double Ceil(double x) {
  return std::ceil(x);
}
double Floor(double x) {
  return std::floor(x);
}
double Truncate(double x) {
  return std::trunc(x);
}

Value Absolute(CallContext& c, Args args) {
  switch (args[0].kind) {
    case Kind::kInt:
      if (args[0].integer == INT64_MIN) return NewError(c.arena, "integer overflow");
      return MakeInt(args[0].integer < 0 ? -args[0].integer : args[0].integer);
    case Kind::kUint:
      return args[0];
    case Kind::kDouble:
      return MakeDouble(std::fabs(args[0].number));
    default:
      return NoSuchOverload(c);
  }
}
Value SignOf(CallContext& c, Args args) {
  switch (args[0].kind) {
    case Kind::kInt:
      return MakeInt(args[0].integer < 0 ? -1 : args[0].integer > 0 ? 1 : 0);
    case Kind::kUint:
      return MakeUint(args[0].unsigned_integer > 0 ? 1 : 0);
    case Kind::kDouble: {
      const double x = args[0].number;
      return MakeDouble(std::isnan(x) ? x : x < 0 ? -1 : x > 0 ? 1 : 0);
    }
    default:
      return NoSuchOverload(c);
  }
}
Value Root(CallContext& c, Args args) {
  switch (args[0].kind) {
    case Kind::kInt:
      return MakeDouble(std::sqrt(static_cast<double>(args[0].integer)));
    case Kind::kUint:
      return MakeDouble(std::sqrt(static_cast<double>(args[0].unsigned_integer)));
    case Kind::kDouble:
      return MakeDouble(std::sqrt(args[0].number));
    default:
      return NoSuchOverload(c);
  }
}
Value IsNan(CallContext& c, Args args) {
  return args[0].kind == Kind::kDouble ? MakeBool(std::isnan(args[0].number)) : NoSuchOverload(c);
}
Value IsInf(CallContext& c, Args args) {
  return args[0].kind == Kind::kDouble ? MakeBool(std::isinf(args[0].number)) : NoSuchOverload(c);
}
Value IsFinite(CallContext& c, Args args) {
  return args[0].kind == Kind::kDouble ? MakeBool(std::isfinite(args[0].number))
                                       : NoSuchOverload(c);
}

enum class Bit { kAnd, kOr, kXor };
template <Bit bit>
Value Bits(CallContext& c, Args args) {
  if (args[0].kind != args[1].kind || (args[0].kind != Kind::kInt && args[0].kind != Kind::kUint))
    return NoSuchOverload(c);
  const std::uint64_t a = args[0].unsigned_integer;
  const std::uint64_t b = args[1].unsigned_integer;
  Value result = args[0];
  result.unsigned_integer = bit == Bit::kAnd ? (a & b) : bit == Bit::kOr ? (a | b) : (a ^ b);
  return result;
}
Value BitNot(CallContext& c, Args args) {
  if (args[0].kind != Kind::kInt && args[0].kind != Kind::kUint) return NoSuchOverload(c);
  Value result = args[0];
  result.unsigned_integer = ~result.unsigned_integer;
  return result;
}
template <bool left>
Value Shift(CallContext& c, Args args) {
  if ((args[0].kind != Kind::kInt && args[0].kind != Kind::kUint) || args[1].kind != Kind::kInt)
    return NoSuchOverload(c);
  const std::int64_t by = args[1].integer;
  if (by < 0)
    return NewError(c.arena, StrCat(left ? "math.bitShiftLeft()" : "math.bitShiftRight()",
                                    " negative offset: ", by));
  Value result = args[0];
  result.unsigned_integer = by > 63 ? 0
                            : left  ? result.unsigned_integer << by
                                    : result.unsigned_integer >> by;
  return result;
}

}  // namespace

void AddMath(Declarations& d) {
  for (const auto& [name, implementation] :
       {std::pair<const char*, Implementation>{"math.@max", Extreme<Order::kGreater>},
        {"math.@min", Extreme<Order::kLess>}}) {
    const TypeRef numbers[] = {Int(), Uint(), Double()};
    for (const TypeRef& a : numbers) {
      Global(d, name, StrCat(name, "_", a->name()), {a}, a);
      for (const TypeRef& b : numbers) {
        Global(d, name, StrCat(name, "_", a->name(), "_", b->name()), {a, b},
               Type::Same(*a, *b) ? a : Dyn());
      }
      Global(d, name, StrCat(name, "_list_", a->name()), {List(a)}, a);
    }
    d.SetImplementation(name, implementation);
  }
  Global(d, "math.ceil", "math_ceil_double", {Double()}, Double(), Round<Ceil>);
  Global(d, "math.floor", "math_floor_double", {Double()}, Double(), Round<Floor>);
  Global(d, "math.round", "math_round_double", {Double()}, Double(), Round<RoundAway>);
  Global(d, "math.trunc", "math_trunc_double", {Double()}, Double(), Round<Truncate>);
  Global(d, "math.isNaN", "math_isNaN_double", {Double()}, Bool(), IsNan);
  Global(d, "math.isInf", "math_isInf_double", {Double()}, Bool(), IsInf);
  Global(d, "math.isFinite", "math_isFinite_double", {Double()}, Bool(), IsFinite);
  for (const TypeRef& type : {Int(), Uint(), Double()}) {
    Global(d, "math.abs", StrCat("math_abs_", type->name()), {type}, type, Absolute);
    Global(d, "math.sign", StrCat("math_sign_", type->name()), {type}, type, SignOf);
    Global(d, "math.sqrt", StrCat("math_sqrt_", type->name()), {type}, Double(), Root);
  }
  for (const TypeRef& type : {Int(), Uint()}) {
    const std::string& n = type->name();
    Global(d, "math.bitAnd", "math_bitAnd_" + n, {type, type}, type, Bits<Bit::kAnd>);
    Global(d, "math.bitOr", "math_bitOr_" + n, {type, type}, type, Bits<Bit::kOr>);
    Global(d, "math.bitXor", "math_bitXor_" + n, {type, type}, type, Bits<Bit::kXor>);
    Global(d, "math.bitNot", "math_bitNot_" + n, {type}, type, BitNot);
    Global(d, "math.bitShiftLeft", "math_bitShiftLeft_" + n, {type, Int()}, type, Shift<true>);
    Global(d, "math.bitShiftRight", "math_bitShiftRight_" + n, {type, Int()}, type, Shift<false>);
  }
}

}  // namespace drakkar::cel::library
