#include "cel/cost/actual.h"

#include <unordered_map>

#include "cel/cost/factors.h"

namespace drakkar::cel {
namespace {

using cost::Scaled;
using Args = std::span<const Value>;

std::uint64_t Check(Args, const Value&) {
  return 350'000;
}

std::uint64_t FirstTraversal(Args args, const Value&) {
  return Scaled(SizeOf(args[0]), cost::kStringTraversal);
}
std::uint64_t SecondTraversal(Args args, const Value&) {
  return Scaled(SizeOf(args[1]), cost::kStringTraversal);
}
std::uint64_t FirstTwice(Args args, const Value&) {
  return Scaled(SizeOf(args[0]), 2 * cost::kStringTraversal);
}
std::uint64_t ResultTwice(Args, const Value& result) {
  return Scaled(SizeOf(result), 2 * cost::kStringTraversal);
}
std::uint64_t SecondSize(Args args, const Value&) {
  return SizeOf(args[1]);
}

std::uint64_t Smaller(Args args, const Value&) {
  return Scaled(std::min(SizeOf(args[0]), SizeOf(args[1])), cost::kStringTraversal);
}
std::uint64_t Equality(Args args, const Value& result) {
  if (args[0].kind == Kind::kObject) return 1;
  return Smaller(args, result);
}
std::uint64_t Concatenation(Args args, const Value&) {
  return Scaled(SizeOf(args[0]) + SizeOf(args[1]), cost::kStringTraversal);
}
std::uint64_t Contains(Args args, const Value&) {
  return Scaled(SizeOf(args[0]), cost::kStringTraversal) *
         Scaled(SizeOf(args[1]), cost::kStringTraversal);
}
std::uint64_t Matches(Args args, const Value&) {
  return Scaled(1 + SizeOf(args[0]), cost::kStringTraversal) *
         Scaled(SizeOf(args[1]), cost::kRegexLength);
}

// Traverses the whole value.
std::uint64_t Traversal(const Value& value) {
  switch (value.kind) {
    case Kind::kString:
    case Kind::kBytes:
      return static_cast<std::uint64_t>(static_cast<double>(value.size) * cost::kStringTraversal);
    case Kind::kList: {
      std::uint64_t sum = 0;
      for (std::uint32_t i = 0; i < value.size; ++i) sum += Traversal(ListItems(value)[i]);
      return sum;
    }
    case Kind::kMap: {
      std::uint64_t sum = 0;
      for (std::uint32_t i = 0; i < value.size; ++i) {
        sum += Traversal(value.map->KeyAt(i)) + Traversal(value.map->ValueAt(i));
      }
      return sum;
    }
    default:
      return 1;
  }
}
std::uint64_t FirstWalk(Args args, const Value&) {
  return args.empty() ? 0 : Traversal(args[0]);
}

template <bool is_cidr, bool is_text>
std::uint64_t ContainsAddress(Args args, const Value&) {
  const std::uint64_t size = SizeOf(args[0]);
  std::uint64_t sum = Scaled(size + size, cost::kStringTraversal);
  if constexpr (is_cidr) sum += Scaled(size, cost::kStringTraversal) + 1;
  if constexpr (is_text) sum += Scaled(SizeOf(args[1]), cost::kStringTraversal);
  return sum;
}

std::uint64_t Validate(Args args, const Value&) {
  if (args[0].kind != Kind::kObject) return 1;
  return Scaled(1 + SizeOf(args[1]), cost::kStringTraversal) *
         Scaled(args[0].object->PatternSize(), cost::kRegexLength);
}

std::uint64_t Allocating(double factor, std::uint64_t size) {
  return static_cast<std::uint64_t>(static_cast<double>(size) * factor) + 1 + cost::kListCreate;
}
std::uint64_t ListOutput(Args, const Value& result) {
  return Allocating(1, SizeOf(result));
}
std::uint64_t Flatten(Args args, const Value&) {
  const double depth =
      args.size() == 2 && args[1].kind == Kind::kInt ? static_cast<double>(args[1].integer) : 1;
  return Allocating(depth, SizeOf(args[0]));
}
std::uint64_t SelfCompare(const Value& list) {
  const std::uint64_t size = SizeOf(list);
  double factor = 2;
  if (list.kind == Kind::kList && size > 0 &&
      (ListItems(list)[0].kind == Kind::kString || ListItems(list)[0].kind == Kind::kBytes)) {
    factor += cost::kStringTraversal;
  }
  return Allocating(factor, size * size);
}
std::uint64_t CompareFirst(Args args, const Value&) {
  return SelfCompare(args[0]);
}
std::uint64_t CompareSecond(Args args, const Value&) {
  return SelfCompare(args[1]);
}

template <int factor>
std::uint64_t Sets(Args args, const Value&) {
  return 1 + SizeOf(args[0]) * SizeOf(args[1]) * factor;
}

using Table = std::unordered_map<std::string_view, CallCost>;

// Rules of the extension libraries.
const Table& ByExtensionOverload() {
  static const Table kTable = {
      {"list_slice", ListOutput},
      {"list_flatten", Flatten},
      {"list_flatten_int", Flatten},
      {"lists_range", ListOutput},
      {"list_reverse", ListOutput},
      {"list_distinct", CompareFirst},
      {"list_sets_contains_list", Sets<1>},
      {"list_sets_intersects_list", Sets<1>},
      {"list_sets_equivalent_list", Sets<2>},
  };
  return kTable;
}

// Kubernetes' rules depend on the name of the function.
const Table& ByFunction() {
  static const Table kTable = {
      {"check", Check},
      {"isSorted", FirstWalk},
      {"sum", FirstWalk},
      {"max", FirstWalk},
      {"min", FirstWalk},
      {"indexOf", FirstWalk},
      {"lastIndexOf", FirstWalk},
      {"includes", FirstWalk},
      {"url", FirstTraversal},
      {"lowerAscii", FirstTraversal},
      {"upperAscii", FirstTraversal},
      {"substring", FirstTraversal},
      {"trim", FirstTraversal},
      {"jsonpatch.escapeKey", FirstTraversal},
      {"replace", FirstTwice},
      {"split", FirstTwice},
      {"join", ResultTwice},
      {"find", Matches},
      {"findAll", Matches},
      {"cidr", FirstTraversal},
      {"isIP", FirstTraversal},
      {"isCIDR", FirstTraversal},
      {"ip", FirstTraversal},
      {"ip.isCanonical", FirstTwice},
      {"masked", FlatCost},
      {"prefixLength", FlatCost},
      {"family", FlatCost},
      {"isUnspecified", FlatCost},
      {"isLoopback", FlatCost},
      {"isLinkLocalMulticast", FlatCost},
      {"isLinkLocalUnicast", FlatCost},
      {"isGlobalUnicast", FlatCost},
      {"containsIP", ContainsAddress<false, false>},
      {"containsCIDR", ContainsAddress<true, false>},
      {"quantity", FirstTraversal},
      {"isQuantity", FirstTraversal},
      {"semver", FirstTraversal},
      {"isSemver", FirstTraversal},
      {"validate", Validate},
      {"format.named", FlatCost},
      {"sign", FlatCost},
      {"asInteger", FlatCost},
      {"isInteger", FlatCost},
      {"asApproximateFloat", FlatCost},
      {"isGreaterThan", FlatCost},
      {"isLessThan", FlatCost},
      {"compareTo", FlatCost},
      {"add", FlatCost},
      {"sub", FlatCost},
      {"major", FlatCost},
      {"minor", FlatCost},
      {"patch", FlatCost},
      {"getScheme", FlatCost},
      {"getHostname", FlatCost},
      {"getHost", FlatCost},
      {"getPort", FlatCost},
      {"getEscapedPath", FlatCost},
      {"getQuery", FlatCost},
      {"_==_", Equality},
  };
  return kTable;
}

const Table& ByOverload() {
  static const Table kTable = {
      {"starts_with_string", SecondTraversal},
      {"ends_with_string", SecondTraversal},
      {"string_to_bytes", FirstTraversal},
      {"bytes_to_string", FirstTraversal},
      {"strings_quote", FirstTraversal},
      {"string_format", FirstTraversal},
      {"in_list", SecondSize},
      {"less_string", Smaller},
      {"greater_string", Smaller},
      {"less_equals_string", Smaller},
      {"greater_equals_string", Smaller},
      {"less_bytes", Smaller},
      {"greater_bytes", Smaller},
      {"less_equals_bytes", Smaller},
      {"greater_equals_bytes", Smaller},
      {"not_equals", Smaller},
      {"add_string", Concatenation},
      {"add_bytes", Concatenation},
      {"matches_string", Matches},
      {"contains_string", Contains},
  };
  return kTable;
}

CallCost FindIn(const Table& table, std::string_view key) {
  const auto found = table.find(key);
  return found == table.end() ? nullptr : found->second;
}

}  // namespace

std::uint64_t FlatCost(Args, const Value&) {
  return 1;
}

CallCost ActualCostOf(std::string_view function, std::string_view overload_id) {
  if (CallCost rule = FindIn(ByExtensionOverload(), overload_id)) return rule;
  if (overload_id.starts_with("list_") && overload_id.ends_with("_sort")) return CompareFirst;
  if (overload_id.ends_with("_sortByAssociatedKeys")) return CompareSecond;
  if (function == "ip" && overload_id == "cidr_ip") return FlatCost;
  if (overload_id == "cidr_contains_ip_string") return ContainsAddress<false, true>;
  if (overload_id == "cidr_contains_cidr_string") return ContainsAddress<true, true>;
  if (CallCost rule = FindIn(ByFunction(), function)) return rule;
  if (CallCost rule = FindIn(ByOverload(), overload_id)) return rule;
  return FlatCost;
}

}  // namespace drakkar::cel
