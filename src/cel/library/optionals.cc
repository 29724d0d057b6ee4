#include "cel/library/library.h"

namespace drakkar::cel::library {
namespace {

using namespace types;  // NOLINT

Value Of(CallContext& c, Args args) {
  return NewOptional(c.arena, args[0]);
}
Value OfNonZero(CallContext& c, Args args) {
  return IsZeroValue(args[0]) ? MakeOptional(nullptr) : NewOptional(c.arena, args[0]);
}
Value None(CallContext&, Args) {
  return MakeOptional(nullptr);
}
Value Content(CallContext& c, Args args) {
  return args[0].optional ? *args[0].optional : NewError(c.arena, "optional.none() dereference");
}
Value HasContent(CallContext&, Args args) {
  return MakeBool(args[0].optional != nullptr);
}
Value First(CallContext& c, Args args) {
  return args[0].size == 0 ? MakeOptional(nullptr) : NewOptional(c.arena, ListItems(args[0])[0]);
}
Value Last(CallContext& c, Args args) {
  return args[0].size == 0 ? MakeOptional(nullptr)
                           : NewOptional(c.arena, ListItems(args[0])[args[0].size - 1]);
}
Value Unwrap(CallContext& c, Args args) {
  std::vector<Value> items;
  for (std::uint32_t i = 0; i < args[0].size; ++i) {
    const Value& item = ListItems(args[0])[i];
    if (item.kind != Kind::kOptional) return NewError(c.arena, "value is not optional");
    if (item.optional) items.push_back(*item.optional);
  }
  return NewList(c.arena, items.data(), items.size());
}

Value InsertEntries(CallContext& c, Args args) {
  if (args[0].kind != Kind::kMap) return NoSuchOverload(c);
  Value map = args[0];
  const auto insert = [&](const Value& key, const Value& value) {
    if (map.map->Contains(key, map.size)) return false;
    map = MapInsert(c.arena, map, key, value);
    return true;
  };
  if (args.size() == 3) {
    if (!insert(args[1], args[2]))
      return NewError(c.arena, "insert failed: key " + DebugText(args[1]) + " already exists");
    return map;
  }
  if (args[1].kind != Kind::kMap) return NoSuchOverload(c);
  for (std::uint32_t i = 0; i < args[1].size; ++i) {
    const Value key = args[1].map->KeyAt(i);
    if (!insert(key, args[1].map->ValueAt(i))) {
      return NewError(c.arena, "insert failed: key " + DebugText(key) + " already exists");
    }
  }
  return map;
}

}  // namespace

void AddOptionals(Declarations& d) {
  const TypeRef k = Param("K");
  const TypeRef v = Param("V");
  const TypeRef optional = Optional(v);
  const TypeRef map = Map(k, v);
  d.AddTypeName("optional_type", Optional(Dyn()));
  Global(d, "optional.of", "optional_of", {v}, optional, Of);
  Global(d, "optional.ofNonZeroValue", "optional_ofNonZeroValue", {v}, optional, OfNonZero);
  Global(d, "optional.none", "optional_none", {}, optional, None);
  Member(d, "value", "optional_value", {optional}, v, Content);
  Member(d, "hasValue", "optional_hasValue", {optional}, Bool(), HasContent);
  Member(d, "or", "optional_or_optional", {optional, optional}, optional);
  Member(d, "orValue", "optional_orValue_value", {optional, v}, v);
  Global(d, "_?._", "select_optional_field", {Dyn(), String()}, optional);
  Global(d, "_[?_]", "list_optindex_optional_int", {List(v), Int()}, optional);
  Global(d, "_[?_]", "optional_list_optindex_optional_int", {Optional(List(v)), Int()}, optional);
  Global(d, "_[?_]", "map_optindex_optional_value", {map, k}, optional);
  Global(d, "_[?_]", "optional_map_optindex_optional_value", {Optional(map), k}, optional);
  Global(d, "_[_]", "optional_list_index_int", {Optional(List(v)), Int()}, optional);
  Global(d, "_[_]", "optional_map_index_value", {Optional(map), k}, optional);
  Member(d, "first", "list_first", {List(v)}, optional, First);
  Member(d, "last", "list_last", {List(v)}, optional, Last);
  Global(d, "optional.unwrap", "optional_unwrap", {List(optional)}, List(v), Unwrap);
  Member(d, "unwrapOpt", "optional_unwrapOpt", {List(optional)}, List(v), Unwrap);
}

void AddTwoVariables(Declarations& d) {
  const TypeRef map = Map(Param("K"), Param("V"));
  Global(d, "cel.@mapInsert", "@mapInsert_map_map", {map, map}, map, InsertEntries);
  Global(d, "cel.@mapInsert", "@mapInsert_map_key_value", {map, Param("K"), Param("V")}, map,
         InsertEntries);
}

}  // namespace drakkar::cel::library
