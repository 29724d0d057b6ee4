#include "cel/library/library.h"

namespace drakkar::cel::library {
namespace {

using namespace types;  // NOLINT

bool Has(const Value& list, const Value& item) {
  for (std::uint32_t i = 0; i < list.size; ++i) {
    if (Equal(ListItems(list)[i], item)) return true;
  }
  return false;
}

bool ContainsAll(const Value& list, const Value& other) {
  for (std::uint32_t i = 0; i < other.size; ++i) {
    if (!Has(list, ListItems(other)[i])) return false;
  }
  return true;
}

Value SetContains(CallContext&, Args args) {
  return MakeBool(ContainsAll(args[0], args[1]));
}
Value Equivalent(CallContext&, Args args) {
  return MakeBool(ContainsAll(args[0], args[1]) && ContainsAll(args[1], args[0]));
}
Value Intersects(CallContext&, Args args) {
  for (std::uint32_t i = 0; i < args[0].size; ++i) {
    if (Has(args[1], ListItems(args[0])[i])) return MakeBool(true);
  }
  return MakeBool(false);
}

}  // namespace

void AddSets(Declarations& d) {
  const TypeRef list = List(Param("T"));
  Global(d, "sets.contains", "list_sets_contains_list", {list, list}, Bool(), SetContains);
  Global(d, "sets.equivalent", "list_sets_equivalent_list", {list, list}, Bool(), Equivalent);
  Global(d, "sets.intersects", "list_sets_intersects_list", {list, list}, Bool(), Intersects);
}

}  // namespace drakkar::cel::library
