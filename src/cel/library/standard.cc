// Operators, the boolean and container functions of the language, and the plain string functions.
#include <cmath>

#include "base/text/text.h"
#include "cel/library/library.h"
#include "cel/library/regex.h"
#include "cel/library/standard_families.h"
#include "cel/library/time.h"

namespace drakkar::cel::library {
namespace {

using namespace types;  // NOLINT: type names read as in the language's own tables

Value Overflow(CallContext& c) {
  return NewError(c.arena, "integer overflow");
}
Value UnsignedOverflow(CallContext& c) {
  return NewError(c.arena, "unsigned integer overflow");
}

Value AddTime(CallContext& c, const Value& timestamp, std::int64_t nanoseconds) {
  const __int128 total =
      static_cast<__int128>(timestamp.integer) * 1'000'000'000 + timestamp.size + nanoseconds;
  __int128 seconds = total / 1'000'000'000;
  __int128 rest = total % 1'000'000'000;
  if (rest < 0) {
    rest += 1'000'000'000;
    --seconds;
  }
  if (seconds < kMinTimestampSeconds || seconds > kMaxTimestampSeconds) {
    return NewError(c.arena, "timestamp overflow");
  }
  return MakeTimestamp(static_cast<std::int64_t>(seconds), static_cast<std::uint32_t>(rest));
}

Value AddDurations(CallContext& c, std::int64_t a, std::int64_t b) {
  std::int64_t sum = 0;
  if (__builtin_add_overflow(a, b, &sum)) return NewError(c.arena, "duration overflow");
  return MakeDuration(sum);
}

Value Concatenate(CallContext& c, const Value& a, const Value& b) {
  char* memory = static_cast<char*>(c.arena.Allocate(a.size + b.size));
  std::copy(a.data, a.data + a.size, memory);
  std::copy(b.data, b.data + b.size, memory + a.size);
  return MakeText(a.kind, {memory, a.size + b.size});
}

Value Plus(CallContext& c, Args args) {
  const Value& a = args[0];
  const Value& b = args[1];
  if (a.kind == Kind::kDuration && b.kind == Kind::kTimestamp) return AddTime(c, b, a.integer);
  if (a.kind == Kind::kTimestamp && b.kind == Kind::kDuration) return AddTime(c, a, b.integer);
  if (a.kind != b.kind) return NoSuchOverload(c);
  switch (a.kind) {
    case Kind::kInt: {
      std::int64_t sum = 0;
      return __builtin_add_overflow(a.integer, b.integer, &sum) ? Overflow(c) : MakeInt(sum);
    }
    case Kind::kUint: {
      std::uint64_t sum = 0;
      return __builtin_add_overflow(a.unsigned_integer, b.unsigned_integer, &sum)
                 ? UnsignedOverflow(c)
                 : MakeUint(sum);
    }
    case Kind::kDouble:
      return MakeDouble(a.number + b.number);
    case Kind::kString:
    case Kind::kBytes:
      return Concatenate(c, a, b);
    case Kind::kList:
      return Append(c.arena, a, ListItems(b), b.size);
    case Kind::kDuration:
      return AddDurations(c, a.integer, b.integer);
    default:
      return NoSuchOverload(c);
  }
}

Value Minus(CallContext& c, Args args) {
  const Value& a = args[0];
  const Value& b = args[1];
  if (a.kind == Kind::kTimestamp && b.kind == Kind::kDuration) {
    return b.integer == INT64_MIN ? NewError(c.arena, "timestamp overflow")
                                  : AddTime(c, a, -b.integer);
  }
  if (a.kind != b.kind) return NoSuchOverload(c);
  switch (a.kind) {
    case Kind::kInt: {
      std::int64_t difference = 0;
      return __builtin_sub_overflow(a.integer, b.integer, &difference) ? Overflow(c)
                                                                       : MakeInt(difference);
    }
    case Kind::kUint:
      if (a.unsigned_integer < b.unsigned_integer) return UnsignedOverflow(c);
      return MakeUint(a.unsigned_integer - b.unsigned_integer);
    case Kind::kDouble:
      return MakeDouble(a.number - b.number);
    case Kind::kDuration: {
      std::int64_t difference = 0;
      if (__builtin_sub_overflow(a.integer, b.integer, &difference))
        return NewError(c.arena, "duration overflow");
      return MakeDuration(difference);
    }
    case Kind::kTimestamp: {
      const __int128 nanoseconds =
          (static_cast<__int128>(a.integer) - b.integer) * 1'000'000'000 +
          (static_cast<std::int64_t>(a.size) - static_cast<std::int64_t>(b.size));
      if (nanoseconds > INT64_MAX || nanoseconds < INT64_MIN)
        return NewError(c.arena, "duration overflow");
      return MakeDuration(static_cast<std::int64_t>(nanoseconds));
    }
    default:
      return NoSuchOverload(c);
  }
}

Value Times(CallContext& c, Args args) {
  const Value& a = args[0];
  const Value& b = args[1];
  if (a.kind != b.kind) return NoSuchOverload(c);
  switch (a.kind) {
    case Kind::kInt: {
      std::int64_t product = 0;
      return __builtin_mul_overflow(a.integer, b.integer, &product) ? Overflow(c)
                                                                    : MakeInt(product);
    }
    case Kind::kUint: {
      std::uint64_t product = 0;
      return __builtin_mul_overflow(a.unsigned_integer, b.unsigned_integer, &product)
                 ? UnsignedOverflow(c)
                 : MakeUint(product);
    }
    case Kind::kDouble:
      return MakeDouble(a.number * b.number);
    default:
      return NoSuchOverload(c);
  }
}

Value Divide(CallContext& c, Args args) {
  const Value& a = args[0];
  const Value& b = args[1];
  if (a.kind != b.kind) return NoSuchOverload(c);
  switch (a.kind) {
    case Kind::kInt:
      if (b.integer == 0) return NewError(c.arena, "division by zero");
      if (a.integer == INT64_MIN && b.integer == -1) return Overflow(c);
      return MakeInt(a.integer / b.integer);
    case Kind::kUint:
      if (b.unsigned_integer == 0) return NewError(c.arena, "division by zero");
      return MakeUint(a.unsigned_integer / b.unsigned_integer);
    case Kind::kDouble:
      return MakeDouble(a.number / b.number);
    default:
      return NoSuchOverload(c);
  }
}

Value Modulo(CallContext& c, Args args) {
  const Value& a = args[0];
  const Value& b = args[1];
  if (a.kind != b.kind) return NoSuchOverload(c);
  switch (a.kind) {
    case Kind::kInt:
      if (b.integer == 0) return NewError(c.arena, "modulus by zero");
      if (a.integer == INT64_MIN && b.integer == -1) return Overflow(c);
      return MakeInt(a.integer % b.integer);
    case Kind::kUint:
      if (b.unsigned_integer == 0) return NewError(c.arena, "modulus by zero");
      return MakeUint(a.unsigned_integer % b.unsigned_integer);
    default:
      return NoSuchOverload(c);
  }
}

Value Negate(CallContext& c, Args args) {
  const Value& a = args[0];
  switch (a.kind) {
    case Kind::kInt:
      return a.integer == INT64_MIN ? Overflow(c) : MakeInt(-a.integer);
    case Kind::kDouble:
      return MakeDouble(-a.number);
    case Kind::kDuration:
      return a.integer == INT64_MIN ? NewError(c.arena, "duration overflow")
                                    : MakeDuration(-a.integer);
    default:
      return NoSuchOverload(c);
  }
}

Value Not(CallContext& c, Args args) {
  return args[0].kind == Kind::kBool ? MakeBool(!args[0].boolean) : NoSuchOverload(c);
}

template <bool less, bool equal>
Value Compare(CallContext& c, Args args) {
  const Value& a = args[0];
  const Value& b = args[1];
  if (a.kind == Kind::kInt && b.kind == Kind::kInt) {
    if (a.integer == b.integer) return MakeBool(equal);
    return MakeBool((a.integer < b.integer) == less);
  }
  const bool comparable = (a.IsNumber() && b.IsNumber()) || a.kind == b.kind;
  if (!comparable) return NoSuchOverload(c);
  const Order order = CompareValues(a, b);
  if (order == Order::kNone) {
    // Ordering a NaN is false; anything else that cannot be ordered is an error.
    return a.IsNumber() ? MakeBool(false) : NoSuchOverload(c);
  }
  if (order == Order::kEqual) return MakeBool(equal);
  return MakeBool((order == Order::kLess) == less);
}

Value In(CallContext& c, Args args) {
  const Value& container = args[1];
  if (container.kind == Kind::kMap)
    return MakeBool(container.map->Contains(args[0], container.size));
  if (container.kind != Kind::kList) return NoSuchOverload(c);
  for (std::uint32_t i = 0; i < container.size; ++i) {
    if (Equal(ListItems(container)[i], args[0])) return MakeBool(true);
  }
  return MakeBool(false);
}

Value Size(CallContext& c, Args args) {
  switch (args[0].kind) {
    case Kind::kString:
    case Kind::kBytes:
    case Kind::kList:
    case Kind::kMap:
      return MakeInt(static_cast<std::int64_t>(SizeOf(args[0])));
    default:
      return NewError(c.arena, "no such overload: size");
  }
}

bool TwoStrings(Args args) {
  return args[0].kind == Kind::kString && args[1].kind == Kind::kString;
}

Value Contains(CallContext& c, Args args) {
  if (!TwoStrings(args)) return NoSuchOverload(c);
  return MakeBool(args[0].text().find(args[1].text()) != std::string_view::npos);
}
Value StartsWith(CallContext& c, Args args) {
  return TwoStrings(args) ? MakeBool(args[0].text().starts_with(args[1].text()))
                          : NoSuchOverload(c);
}
Value EndsWith(CallContext& c, Args args) {
  return TwoStrings(args) ? MakeBool(args[0].text().ends_with(args[1].text())) : NoSuchOverload(c);
}

void AddComparison(Declarations& d, const std::string& name, const std::string& id,
                   Implementation implementation) {
  struct Named {
    const char* name;
    const TypeRef& type;
  };
  const Named scalars[] = {{"bool", Bool()},           {"int64", Int()},        {"uint64", Uint()},
                           {"double", Double()},       {"string", String()},    {"bytes", Bytes()},
                           {"timestamp", Timestamp()}, {"duration", Duration()}};
  for (const Named& scalar : scalars) {
    Global(d, name, StrCat(id, "_", scalar.name), {scalar.type, scalar.type}, Bool());
  }
  if (d.cross_type_comparisons) {
    Global(d, name, id + "_int64_uint64", {Int(), Uint()}, Bool());
    Global(d, name, id + "_int64_double", {Int(), Double()}, Bool());
    Global(d, name, id + "_uint64_int64", {Uint(), Int()}, Bool());
    Global(d, name, id + "_uint64_double", {Uint(), Double()}, Bool());
    Global(d, name, id + "_double_int64", {Double(), Int()}, Bool());
    Global(d, name, id + "_double_uint64", {Double(), Uint()}, Bool());
  }
  d.SetImplementation(name, implementation);
}

void AddArithmetic(Declarations& d) {
  const TypeRef a = Param("A");
  Global(d, "_+_", "add_bytes", {Bytes(), Bytes()}, Bytes());
  Global(d, "_+_", "add_double", {Double(), Double()}, Double());
  Global(d, "_+_", "add_duration_duration", {Duration(), Duration()}, Duration());
  Global(d, "_+_", "add_duration_timestamp", {Duration(), Timestamp()}, Timestamp());
  Global(d, "_+_", "add_timestamp_duration", {Timestamp(), Duration()}, Timestamp());
  Global(d, "_+_", "add_int64", {Int(), Int()}, Int());
  Global(d, "_+_", "add_list", {List(a), List(a)}, List(a));
  Global(d, "_+_", "add_string", {String(), String()}, String());
  Global(d, "_+_", "add_uint64", {Uint(), Uint()}, Uint());
  d.SetImplementation("_+_", Plus);
  Global(d, "_-_", "subtract_double", {Double(), Double()}, Double());
  Global(d, "_-_", "subtract_duration_duration", {Duration(), Duration()}, Duration());
  Global(d, "_-_", "subtract_int64", {Int(), Int()}, Int());
  Global(d, "_-_", "subtract_timestamp_duration", {Timestamp(), Duration()}, Timestamp());
  Global(d, "_-_", "subtract_timestamp_timestamp", {Timestamp(), Timestamp()}, Duration());
  Global(d, "_-_", "subtract_uint64", {Uint(), Uint()}, Uint());
  d.SetImplementation("_-_", Minus);
  struct Operator {
    const char* name;
    const char* id;
    bool has_double;
    Implementation implementation;
  };
  for (const Operator& op :
       {Operator{"_*_", "multiply", true, Times}, Operator{"_/_", "divide", true, Divide},
        Operator{"_%_", "modulo", false, Modulo}}) {
    if (op.has_double) Global(d, op.name, StrCat(op.id, "_double"), {Double(), Double()}, Double());
    Global(d, op.name, StrCat(op.id, "_int64"), {Int(), Int()}, Int());
    Global(d, op.name, StrCat(op.id, "_uint64"), {Uint(), Uint()}, Uint());
    d.SetImplementation(op.name, op.implementation);
  }
  Global(d, "-_", "negate_double", {Double()}, Double());
  Global(d, "-_", "negate_int64", {Int()}, Int());
  Global(d, "-_", "negate_duration", {Duration()}, Duration());
  d.SetImplementation("-_", Negate);
}

void AddLogic(Declarations& d) {
  const TypeRef a = Param("A");
  const TypeRef b = Param("B");
  Global(d, "_?_:_", "conditional", {Bool(), a, a}, a);
  Global(d, "_&&_", "logical_and", {Bool(), Bool()}, Bool());
  Global(d, "_||_", "logical_or", {Bool(), Bool()}, Bool());
  Global(d, "!_", "logical_not", {Bool()}, Bool());
  d.SetImplementation("!_", Not);
  Global(d, "@not_strictly_false", "not_strictly_false", {Bool()}, Bool());
  Global(d, "_==_", "equals", {a, a}, Bool());
  Global(d, "_!=_", "not_equals", {a, a}, Bool());
  Global(d, "@in", "in_list", {a, List(a)}, Bool());
  Global(d, "@in", "in_map", {a, Map(a, b)}, Bool());
  d.SetImplementation("@in", In);
  Global(d, "_[_]", "index_list", {List(a), Int()}, a);
  Global(d, "_[_]", "index_map", {Map(a, b), a}, b);
}

void AddContainersAndText(Declarations& d) {
  const TypeRef a = Param("A");
  const TypeRef b = Param("B");
  struct Sized {
    const char* name;
    TypeRef type;
  };
  for (const Sized& sized : {Sized{"bytes", Bytes()}, Sized{"list", List(a)},
                             Sized{"map", Map(a, b)}, Sized{"string", String()}}) {
    Global(d, "size", StrCat("size_", sized.name), {sized.type}, Int());
    Member(d, "size", StrCat(sized.name, "_size"), {sized.type}, Int());
  }
  d.SetImplementation("size", Size);
  Member(d, "contains", "contains_string", {String(), String()}, Bool());
  d.SetImplementation("contains", Contains);
  Member(d, "startsWith", "starts_with_string", {String(), String()}, Bool());
  d.SetImplementation("startsWith", StartsWith);
  Member(d, "endsWith", "ends_with_string", {String(), String()}, Bool());
  d.SetImplementation("endsWith", EndsWith);
  Global(d, "matches", "matches", {String(), String()}, Bool());
  Member(d, "matches", "matches_string", {String(), String()}, Bool());
  d.SetImplementation("matches", MatchesRegex, PrepareMatches);
}

}  // namespace

void AddStandard(Declarations& d) {
  for (const TypeRef& type :
       {Bool(), Int(), Uint(), Double(), String(), Bytes(), Duration(), Timestamp(), Null()}) {
    d.AddTypeName(type);
  }
  d.AddTypeName(List(Dyn()));
  d.AddTypeName(Map(Dyn(), Dyn()));
  d.AddTypeName(TypeType());
  AddLogic(d);
  AddArithmetic(d);
  AddComparison(d, "_<_", "less", Compare<true, false>);
  AddComparison(d, "_<=_", "less_equals", Compare<true, true>);
  AddComparison(d, "_>_", "greater", Compare<false, false>);
  AddComparison(d, "_>=_", "greater_equals", Compare<false, true>);
  AddContainersAndText(d);
  AddConversions(d);
  AddTimeAccessors(d);
}

}  // namespace drakkar::cel::library
