#include "base/text/text.h"
#include "cel/library/library.h"

namespace drakkar::cel::library {
namespace {

using namespace types;  // NOLINT

Value IsSorted(CallContext& c, Args args) {
  if (args[0].kind != Kind::kList) return NoSuchOverload(c);
  for (std::uint32_t i = 1; i < args[0].size; ++i) {
    const Order order = CompareValues(ListItems(args[0])[i - 1], ListItems(args[0])[i]);
    if (order == Order::kNone) return NoSuchOverload(c);
    if (order == Order::kGreater) return MakeBool(false);
  }
  return MakeBool(true);
}

template <Kind kind>
Value Sum(CallContext& c, Args args) {
  Value sum;
  sum.kind = kind;
  for (std::uint32_t i = 0; i < args[0].size; ++i) {
    const Value& item = ListItems(args[0])[i];
    if (item.kind != kind) return NoSuchOverload(c);
    bool overflow = false;
    if constexpr (kind == Kind::kDouble) {
      sum.number += item.number;
    } else if constexpr (kind == Kind::kUint) {
      overflow = __builtin_add_overflow(sum.unsigned_integer, item.unsigned_integer,
                                        &sum.unsigned_integer);
    } else {
      overflow = __builtin_add_overflow(sum.integer, item.integer, &sum.integer);
    }
    if (overflow) return NoSuchOverload(c);
  }
  return sum;
}

template <Order replace>
Value Extreme(CallContext& c, Args args) {
  constexpr bool kIsMin = replace == Order::kGreater;
  if (args[0].size == 0)
    return NewError(c.arena, StrCat(kIsMin ? "min" : "max", " called on empty list"));
  Value best = ListItems(args[0])[0];
  for (std::uint32_t i = 1; i < args[0].size; ++i) {
    const Value& item = ListItems(args[0])[i];
    const Order order = CompareValues(best, item);
    if (order == Order::kNone && !item.IsNumber()) return NoSuchOverload(c);
    if (order == replace) best = item;
  }
  return best;
}

Value IndexOf(CallContext&, Args args) {
  for (std::uint32_t i = 0; i < args[0].size; ++i) {
    if (Equal(ListItems(args[0])[i], args[1])) return MakeInt(i);
  }
  return MakeInt(-1);
}
Value LastIndexOf(CallContext&, Args args) {
  for (std::uint32_t i = args[0].size; i > 0; --i) {
    if (Equal(ListItems(args[0])[i - 1], args[1])) return MakeInt(static_cast<std::int64_t>(i) - 1);
  }
  return MakeInt(-1);
}

Value Includes(CallContext& c, Args args) {
  if (args[0].kind != Kind::kList) return MakeBool(Equal(args[0], args[1]));
  return MakeBool(IndexOf(c, args).integer >= 0);
}

}  // namespace

void AddKubernetesLists(Declarations& d) {
  struct Named {
    const char* name;
    TypeRef type;
  };
  for (const Named& item :
       {Named{"int", Int()}, Named{"uint", Uint()}, Named{"double", Double()},
        Named{"bool", Bool()}, Named{"duration", Duration()}, Named{"timestamp", Timestamp()},
        Named{"string", String()}, Named{"bytes", Bytes()}}) {
    Member(d, "isSorted", StrCat("list_", item.name, "_is_sorted_bool"), {List(item.type)}, Bool(),
           IsSorted);
    Member(d, "max", StrCat("list_", item.name, "_max_", item.name), {List(item.type)}, item.type,
           Extreme<Order::kLess>);
    Member(d, "min", StrCat("list_", item.name, "_min_", item.name), {List(item.type)}, item.type,
           Extreme<Order::kGreater>);
  }
  Member(d, "sum", "list_int_sum_int", {List(Int())}, Int(), Sum<Kind::kInt>);
  Member(d, "sum", "list_uint_sum_uint", {List(Uint())}, Uint(), Sum<Kind::kUint>);
  Member(d, "sum", "list_double_sum_double", {List(Double())}, Double(), Sum<Kind::kDouble>);
  Member(d, "sum", "list_duration_sum_duration", {List(Duration())}, Duration(),
         Sum<Kind::kDuration>);
  const TypeRef a = Param("A");
  Member(d, "indexOf", "list_a_index_of_int", {List(a), a}, Int(), IndexOf);
  Member(d, "lastIndexOf", "list_a_last_index_of_int", {List(a), a}, Int(), LastIndexOf);
}

void AddIncludes(Declarations& d, std::string overload_id) {
  Member(d, "includes", std::move(overload_id), {Dyn(), Dyn()}, Bool(), Includes);
}

}  // namespace drakkar::cel::library
