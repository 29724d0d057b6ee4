#include <algorithm>

#include "base/text/text.h"
#include "cel/library/library.h"

namespace drakkar::cel::library {
namespace {

using namespace types;  // NOLINT

// lists.range(n) and flatten can produce more elements than their arguments have; this is the
// limit.
constexpr std::int64_t kMaxMadeElements = 1'000'000;

Value Slice(CallContext& c, Args args) {
  const std::int64_t start = args[1].integer;
  const std::int64_t end = args[2].integer;
  const auto call = [&] { return StrCat("cannot slice(", start, ", ", end, "), "); };
  if (start < 0 || end < 0) return NewError(c.arena, call() + "negative indexes not supported");
  if (start > end)
    return NewError(c.arena, call() + "start index must be less than or equal to end index");
  if (static_cast<std::int64_t>(args[0].size) < end) {
    return NewError(c.arena, StrCat(call(), "list is length ", args[0].size));
  }
  return NewList(c.arena, ListItems(args[0]) + start, static_cast<std::size_t>(end - start));
}

void FlattenInto(const Value& list, std::int64_t depth, std::vector<Value>& out) {
  for (std::uint32_t i = 0; i < list.size; ++i) {
    const Value& item = ListItems(list)[i];
    if (item.kind == Kind::kList && depth > 0) {
      FlattenInto(item, depth - 1, out);
    } else {
      out.push_back(item);
    }
  }
}

Value Flatten(CallContext& c, Args args) {
  const std::int64_t depth = args.size() == 2 ? args[1].integer : 1;
  if (depth < 0) return NewError(c.arena, "level must be non-negative");
  std::vector<Value> out;
  FlattenInto(args[0], depth, out);
  return NewList(c.arena, out.data(), out.size());
}

Value SortBy(CallContext& c, const Value& list, const Value& keys) {
  if (list.size != keys.size) {
    return NewError(
        c.arena,
        StrCat(
            "@sortByAssociatedKeys() expected a list of the same size as the associated keys list, "
            "but got ",
            list.size, " and ", keys.size, " elements respectively"));
  }
  if (list.size == 0) return list;
  const Value* items = ListItems(keys);
  if (CompareValues(items[0], items[0]) == Order::kNone)
    return NewError(c.arena, "list elements must be comparable");
  std::vector<std::uint32_t> order(list.size);
  for (std::uint32_t i = 0; i < list.size; ++i) {
    if (items[i].kind != items[0].kind)
      return NewError(c.arena, "list elements must have the same type");
    order[i] = i;
  }
  std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
    return CompareValues(items[a], items[b]) == Order::kLess;
  });
  std::vector<Value> sorted;
  for (const std::uint32_t i : order) sorted.push_back(ListItems(list)[i]);
  return NewList(c.arena, sorted.data(), sorted.size());
}

Value Sort(CallContext& c, Args args) {
  return args[0].kind == Kind::kList ? SortBy(c, args[0], args[0]) : NoSuchOverload(c);
}
Value SortByKeys(CallContext& c, Args args) {
  if (args[0].kind != Kind::kList || args[1].kind != Kind::kList) return NoSuchOverload(c);
  return SortBy(c, args[0], args[1]);
}

Value Range(CallContext& c, Args args) {
  const std::int64_t count = std::max<std::int64_t>(args[0].integer, 0);
  if (count > kMaxMadeElements)
    return NewError(c.arena, StrCat("lists.range: more than ", kMaxMadeElements, " elements"));
  Value* items = c.arena.AllocateArray<Value>(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i) items[i] = MakeInt(i);
  return NewListView(c.arena, items, static_cast<std::size_t>(count));
}

Value Reverse(CallContext& c, Args args) {
  Value* items = c.arena.AllocateArray<Value>(args[0].size);
  for (std::uint32_t i = 0; i < args[0].size; ++i)
    items[i] = ListItems(args[0])[args[0].size - 1 - i];
  return NewListView(c.arena, items, args[0].size);
}

Value Distinct(CallContext& c, Args args) {
  std::vector<Value> unique;
  for (std::uint32_t i = 0; i < args[0].size; ++i) {
    const Value& item = ListItems(args[0])[i];
    if (std::none_of(unique.begin(), unique.end(),
                     [&](const Value& other) { return Equal(item, other); })) {
      unique.push_back(item);
    }
  }
  return NewList(c.arena, unique.data(), unique.size());
}

}  // namespace

void AddLists(Declarations& d) {
  const TypeRef list = List(Param("T"));
  Member(d, "slice", "list_slice", {list, Int(), Int()}, list, Slice);
  Member(d, "flatten", "list_flatten", {List(list)}, list, Flatten);
  Member(d, "flatten", "list_flatten_int", {List(Dyn()), Int()}, List(Dyn()), Flatten);
  for (const TypeRef& type :
       {Int(), Uint(), Double(), Bool(), Duration(), Timestamp(), String(), Bytes()}) {
    Member(d, "sort", StrCat("list_", type->name(), "_sort"), {List(type)}, List(type));
    Member(d, "@sortByAssociatedKeys", StrCat("list_", type->name(), "_sortByAssociatedKeys"),
           {list, List(type)}, list);
  }
  d.SetImplementation("sort", Sort);
  d.SetImplementation("@sortByAssociatedKeys", SortByKeys);
  Global(d, "lists.range", "lists_range", {Int()}, List(Int()), Range);
  Member(d, "reverse", "list_reverse", {list}, list, Reverse);
  Member(d, "distinct", "list_distinct", {list}, list, Distinct);
}

}  // namespace drakkar::cel::library
