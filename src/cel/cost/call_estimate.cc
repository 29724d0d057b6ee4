#include "cel/cost/call_estimate.h"

#include <cmath>
#include <set>

#include "cel/cost/factors.h"

namespace drakkar::cel {
namespace {

constexpr Estimate kOne{1, 1};

bool IsText(const TypeRef& type) {
  return type->kind() == TypeKind::kString || type->kind() == TypeKind::kBytes;
}

std::optional<CostNode> ElementOf(const CostNode& list) {
  if (list.type->parameters().empty()) return std::nullopt;
  CostNode element;
  element.type = list.type->parameter(0);
  if (!list.path.empty()) {
    element.path = list.path;
    element.path.emplace_back("@items");
  }
  return element;
}

std::uint64_t LiteralOr(const CostNode& node, std::uint64_t fallback) {
  if (node.expr == nullptr || node.expr->kind != ExprKind::kLiteral) return fallback;
  const auto* value = std::get_if<std::int64_t>(&node.expr->literal);
  return value && *value >= 0 ? static_cast<std::uint64_t>(*value) : fallback;
}

CallEstimate AllocatingList(double factor, Estimate size) {
  return {size.Scaled(factor).Plus(kOne).Plus(Estimate::Exactly(cost::kListCreate)), size};
}

std::optional<CallEstimate> SortedList(const CallOperands& o, const CostNode& keys,
                                       std::string_view overload_id) {
  const bool text =
      overload_id.starts_with("list_string_") || overload_id.starts_with("list_bytes_");
  const Estimate size = o.SizeOf(keys);
  return AllocatingList(2 + (text ? cost::kStringTraversal : 0), size.Times(size));
}

std::optional<CallEstimate> ExtensionCall(std::string_view id, const CallOperands& o) {
  const auto& args = o.args;
  if (id == "list_slice" && o.target && args.size() == 2) {
    const std::uint64_t start = LiteralOr(args[0], 0);
    const std::uint64_t end = LiteralOr(args[1], o.SizeOf(*o.target).max);
    return AllocatingList(1, Estimate::Exactly(end - start));
  }
  if (id == "lists_range")
    return AllocatingList(1, Estimate::Exactly(LiteralOr(args[0], Estimate::kUnbounded)));
  if (id == "list_reverse") return AllocatingList(1, o.SizeOf(*o.target));
  if (id == "list_flatten" || id == "list_flatten_int") {
    const std::uint64_t depth = args.empty() ? 1 : LiteralOr(args[0], Estimate::kUnbounded);
    return AllocatingList(static_cast<double>(depth), o.SizeOf(*o.target));
  }
  if (id == "list_distinct") {
    const Estimate size = o.SizeOf(*o.target);
    return AllocatingList(2, size.Times(size));
  }
  if (id.starts_with("list_") && id.ends_with("_sort")) return SortedList(o, *o.target, id);
  if (id.ends_with("_sortByAssociatedKeys")) return SortedList(o, args[0], id);
  if (id.starts_with("list_sets_") && args.size() == 2) {
    const double factor = id == "list_sets_equivalent_list" ? 2 : 1;
    return CallEstimate{o.SizeOf(args[0]).Times(o.SizeOf(args[1])).Scaled(factor).Plus(kOne),
                        std::nullopt};
  }
  return std::nullopt;
}

CallEstimate Walk(std::string_view function, const CallOperands& o) {
  const Estimate size = o.SizeOf(*o.target);
  Estimate element_cost = kOne;
  if (const std::optional<CostNode> element = ElementOf(*o.target)) {
    if (IsText(element->type))
      element_cost = element_cost.Plus(o.SizeOf(*element).Scaled(cost::kStringTraversal));
    return {size.Times(element_cost), std::nullopt};
  }
  if (function == "includes") return {size.Times(element_cost), std::nullopt};
  return {size.Scaled(cost::kStringTraversal), std::nullopt};
}

std::uint64_t CeilDivide(std::uint64_t a, std::uint64_t b) {
  return static_cast<std::uint64_t>(std::ceil(static_cast<double>(a) / static_cast<double>(b)));
}

CallEstimate Replace(const CallOperands& o) {
  const Estimate size = o.SizeOf(*o.target);
  const Estimate from = o.SizeOf(o.args[0]);
  const Estimate to = o.SizeOf(o.args[1]);
  Estimate count;
  Estimate kept;
  if (from.min == 0) {
    count.max = size.max < Estimate::kUnbounded ? size.max + 1 : size.max;
    kept.max = size.max;
  } else if (to.max <= from.min) {
    kept.max = size.max;
  } else {
    count.max = CeilDivide(size.max, from.min);
  }
  if (from.max == 0) {
    count.min = size.min < Estimate::kUnbounded ? size.min + 1 : size.min;
    kept.min = size.min;
  } else if (from.max <= to.min) {
    kept.min = size.min;
  } else {
    count.min = CeilDivide(size.min, from.max);
  }
  return {size.Scaled(2 * cost::kStringTraversal), count.Times(to).Plus(kept)};
}

CallEstimate JoinTexts(const CallOperands& o) {
  Estimate size;
  const Estimate count = o.SizeOf(*o.target);
  if (const std::optional<CostNode> element = ElementOf(*o.target))
    size = count.Times(o.SizeOf(*element));
  if (!o.args.empty()) {
    const Estimate separators{count.min > 0 ? count.min - 1 : 0, count.max > 0 ? count.max - 1 : 0};
    size = size.Plus(o.SizeOf(o.args[0]).Times(separators));
  }
  return {size.Scaled(cost::kStringTraversal), size};
}

std::optional<CallEstimate> Equality(const CallOperands& o) {
  if (o.args.size() != 2 || !Type::Same(*o.args[0].type, *o.args[1].type)) return std::nullopt;
  const std::string& name = o.args[0].type->name();
  if (name == "net.IP" || name == "net.CIDR" || name == "kubernetes.Quantity" ||
      name == "kubernetes.Semver") {
    return CallEstimate{kOne, std::nullopt};
  }
  if (name == "kubernetes.NamedFormat")
    return CallEstimate{Estimate{1, 64}.Scaled(cost::kStringTraversal), std::nullopt};
  if (name == "kubernetes.URL") {
    const Estimate size = o.args[1].size ? *o.args[1].size : kOne;
    return CallEstimate{Estimate{1, size.max}.Scaled(cost::kStringTraversal), std::nullopt};
  }
  return std::nullopt;
}

CallEstimate ContainsAddress(std::string_view function, std::string_view id,
                             const CallOperands& o) {
  const Estimate bytes{4, 16};
  Estimate sum = bytes.Plus(bytes).Scaled(cost::kStringTraversal);
  if (function == "containsCIDR") sum = sum.Plus(bytes.Scaled(cost::kStringTraversal)).Plus(kOne);
  if (id.ends_with("_string")) sum = sum.Plus(o.SizeOf(o.args[0]).Scaled(cost::kStringTraversal));
  return {sum, std::nullopt};
}

bool IsConstantCost(std::string_view function) {
  static const std::set<std::string_view> kFunctions = {"serviceAccount",
                                                        "path",
                                                        "group",
                                                        "resource",
                                                        "subresource",
                                                        "namespace",
                                                        "name",
                                                        "allowed",
                                                        "reason",
                                                        "error",
                                                        "errored",
                                                        "masked",
                                                        "prefixLength",
                                                        "family",
                                                        "isUnspecified",
                                                        "isLoopback",
                                                        "isLinkLocalMulticast",
                                                        "isLinkLocalUnicast",
                                                        "isGlobalUnicast",
                                                        "format.named",
                                                        "sign",
                                                        "asInteger",
                                                        "isInteger",
                                                        "asApproximateFloat",
                                                        "isGreaterThan",
                                                        "isLessThan",
                                                        "compareTo",
                                                        "add",
                                                        "sub",
                                                        "major",
                                                        "minor",
                                                        "patch",
                                                        "getScheme",
                                                        "getHostname",
                                                        "getHost",
                                                        "getPort",
                                                        "getEscapedPath",
                                                        "getQuery"};
  return kFunctions.contains(function);
}

bool IsWalk(std::string_view function) {
  static const std::set<std::string_view> kFunctions = {"isSorted", "sum",         "max",     "min",
                                                        "indexOf",  "lastIndexOf", "includes"};
  return kFunctions.contains(function);
}

bool IsArgumentTraversal(std::string_view function) {
  static const std::set<std::string_view> kFunctions = {
      "cidr", "isIP", "isCIDR", "ip", "quantity", "isQuantity", "semver", "isSemver"};
  return kFunctions.contains(function);
}

constexpr double kNamedFormatPattern = 128;

}  // namespace

std::optional<CallEstimate> EstimateLibraryCall(std::string_view f, std::string_view id,
                                                const CallOperands& o) {
  if (std::optional<CallEstimate> extension = ExtensionCall(id, o)) return extension;
  if (f == "check") return CallEstimate{Estimate::Exactly(350'000), std::nullopt};
  if (IsConstantCost(f)) return CallEstimate{kOne, std::nullopt};
  if (IsWalk(f) && o.target) return Walk(f, o);
  if ((f == "url" || f == "jsonpatch.escapeKey") && o.args.size() == 1) {
    const Estimate size = o.SizeOf(o.args[0]);
    return CallEstimate{size.Scaled(cost::kStringTraversal), size};
  }
  if ((f == "lowerAscii" || f == "upperAscii" || f == "substring" || f == "trim") && o.target) {
    const Estimate size = o.SizeOf(*o.target);
    return CallEstimate{size.Scaled(cost::kStringTraversal), size};
  }
  if (f == "replace" && o.target && o.args.size() >= 2) return Replace(o);
  if (f == "split" && o.target) {
    const Estimate size = o.SizeOf(*o.target);
    std::uint64_t most = size.max;
    if (o.args.size() > 1 && o.args[1].expr && o.args[1].expr->kind == ExprKind::kLiteral) {
      if (const auto* limit = std::get_if<std::int64_t>(&o.args[1].expr->literal))
        most = static_cast<std::uint64_t>(*limit);
    }
    return CallEstimate{size.Scaled(2 * cost::kStringTraversal), Estimate{0, most}};
  }
  if (f == "join" && o.target) return JoinTexts(o);
  if ((f == "find" || f == "findAll") && o.target && !o.args.empty()) {
    const Estimate size = o.SizeOf(*o.target);
    return CallEstimate{size.Plus(kOne)
                            .Scaled(cost::kStringTraversal)
                            .Times(o.SizeOf(o.args[0]).Scaled(cost::kRegexLength)),
                        Estimate{0, size.max}};
  }
  if (f == "ip" && id == "cidr_ip") return CallEstimate{kOne, std::nullopt};
  if (IsArgumentTraversal(f) && !o.args.empty()) {
    return CallEstimate{o.SizeOf(o.args[0]).Scaled(cost::kStringTraversal), std::nullopt};
  }
  if (f == "ip.isCanonical")
    return CallEstimate{o.SizeOf(o.args[0]).Scaled(2 * cost::kStringTraversal), std::nullopt};
  if ((f == "containsIP" || f == "containsCIDR") && !o.args.empty())
    return ContainsAddress(f, id, o);
  if (f == "validate" && !o.args.empty()) {
    return CallEstimate{o.SizeOf(o.args[0])
                            .Scaled(cost::kStringTraversal)
                            .Scaled(kNamedFormatPattern * cost::kRegexLength),
                        std::nullopt};
  }
  if (f == "_==_") return Equality(o);
  return std::nullopt;
}

}  // namespace drakkar::cel
