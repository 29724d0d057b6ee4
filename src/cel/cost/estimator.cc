#include "cel/cost/estimator.h"

#include <map>
#include <set>

#include "cel/cost/call_estimate.h"
#include "cel/cost/factors.h"
#include "cel/value/value.h"

namespace drakkar::cel {
namespace {

using Path = std::vector<std::string>;
constexpr Estimate kOne{1, 1};

// What is known about the elements of a list or the entries of a map.
struct EntrySize {
  TypeKind container = TypeKind::kList;
  Estimate key;
  Estimate value;
};

bool IsScalar(const Type& type) {
  switch (type.kind()) {
    case TypeKind::kBool:
    case TypeKind::kInt:
    case TypeKind::kUint:
    case TypeKind::kDouble:
    case TypeKind::kDuration:
    case TypeKind::kTimestamp:
      return true;
    case TypeKind::kOpaque:
      return type.IsOptional() && IsScalar(*type.parameter(0));
    default:
      return false;
  }
}

class Estimator {
 public:
  Estimator(const CheckedAst& checked, const EstimatorOptions& options)
      : checked_(checked), options_(options) {}

  Estimate Cost(const Expr& expr) {
    switch (expr.kind) {
      case ExprKind::kIdent:
        return CostIdent(expr);
      case ExprKind::kSelect:
        return CostSelect(expr);
      case ExprKind::kCall:
        return CostCall(expr);
      case ExprKind::kList:
        return CostList(expr);
      case ExprKind::kMap:
        return CostMap(expr);
      case ExprKind::kStruct:
        return CostStruct(expr);
      case ExprKind::kComprehension:
        return IsBind(*expr.comprehension) ? CostBind(expr) : CostFold(expr);
      default:
        return {};
    }
  }

 private:
  struct Local {
    Path path;
    std::optional<Estimate> size;
    std::optional<EntrySize> entries;
  };

  const TypeRef& TypeOf(const Expr& expr) const { return checked_.TypeOf(expr); }

  const Local* FindLocal(const std::string& name) const {
    const auto found = locals_.find(name);
    return found == locals_.end() || found->second.empty() ? nullptr : &found->second.back();
  }
  void Pop(const std::string& name) { locals_[name].pop_back(); }

  Path PathOf(const Expr& expr) const {
    if (expr.kind == ExprKind::kIdent) {
      if (const Local* local = FindLocal(expr.name)) return local->path;
    }
    const auto found = paths_.find(expr.id);
    return found == paths_.end() ? Path() : found->second;
  }
  Path Extended(const Expr& expr, const std::string& step) const {
    Path path = PathOf(expr);
    path.push_back(step);
    return path;
  }

  void SetSize(const Expr& expr, const std::optional<Estimate>& size) {
    if (size) sizes_[expr.id] = *size;
  }
  void SetEntries(const Expr& expr, const std::optional<EntrySize>& entries) {
    if (entries) entries_[expr.id] = *entries;
  }

  std::optional<Estimate> SizeOf(const Expr& expr) {
    if (const auto found = sizes_.find(expr.id); found != sizes_.end()) return found->second;
    if (const std::optional<Estimate> literal = LiteralSize(expr)) return literal;
    const Path path = PathOf(expr);
    if (options_.size_of_path && !path.empty()) {
      if (const std::optional<Estimate> size = options_.size_of_path(path)) {
        sizes_[expr.id] = *size;
        return size;
      }
    }
    if (IsScalar(*TypeOf(expr))) return kOne;
    if (expr.kind == ExprKind::kIdent) {
      if (const Local* local = FindLocal(expr.name)) return local->size;
    }
    return std::nullopt;
  }
  Estimate SizeOrUnknown(const Expr& expr) { return SizeOf(expr).value_or(Estimate::Unknown()); }

  static std::optional<Estimate> LiteralSize(const Expr& expr) {
    switch (expr.kind) {
      case ExprKind::kLiteral:
        if (const auto* text = std::get_if<std::string>(&expr.literal))
          return Estimate::Exactly(CountCharacters(*text));
        if (const auto* bytes = std::get_if<BytesLiteral>(&expr.literal))
          return Estimate::Exactly(bytes->value.size());
        return kOne;
      case ExprKind::kList:
        return Estimate::Exactly(expr.args.size());
      case ExprKind::kMap:
        return Estimate::Exactly(expr.entries.size());
      default:
        return std::nullopt;
    }
  }

  std::optional<EntrySize> EntriesOf(const Expr& expr) const {
    if (const auto found = entries_.find(expr.id); found != entries_.end()) return found->second;
    if (expr.kind == ExprKind::kIdent) {
      if (const Local* local = FindLocal(expr.name)) return local->entries;
    }
    return std::nullopt;
  }

  static std::optional<EntrySize> UnionEntries(const std::optional<EntrySize>& a,
                                               const std::optional<EntrySize>& b) {
    if (!a || !b) return std::nullopt;
    return EntrySize{a->container, a->key.Union(b->key), a->value.Union(b->value)};
  }

  Estimate CostIdent(const Expr& expr) {
    const Local* local = FindLocal(expr.name);
    paths_[expr.id] = local ? local->path : Path{expr.name};
    return kOne;
  }

  Estimate CostSelect(const Expr& expr) {
    if (expr.test_only) return Cost(*expr.operand);
    Estimate sum = Cost(*expr.operand);
    switch (TypeOf(*expr.operand)->kind()) {
      case TypeKind::kMap:
      case TypeKind::kStruct:
      case TypeKind::kTypeParam:
        sum = sum.Plus(kOne);
        break;
      default:
        break;
    }
    paths_[expr.id] = Extended(*expr.operand, expr.name);
    return sum;
  }

  CostNode NodeOf(const Expr& expr) {
    CostNode node{&expr, TypeOf(expr), PathOf(expr), SizeOf(expr)};
    if (!node.path.empty() && node.path[0] == names::kAccumulator) node.path.clear();
    return node;
  }

  Estimate CostCall(const Expr& expr) {
    if (expr.name == "dyn") {
      const Estimate argument = Cost(*expr.args[0]);
      SetSize(expr, SizeOf(*expr.args[0]));
      SetEntries(expr, EntriesOf(*expr.args[0]));
      return kOne.Plus(argument);
    }
    CallOperands operands;
    operands.size_of_path = options_.size_of_path;
    std::vector<Estimate> arg_costs;
    for (const ExprPtr& arg : expr.args) {
      arg_costs.push_back(Cost(*arg));
      operands.args.push_back(NodeOf(*arg));
    }
    const Reference* reference = checked_.ReferenceOf(expr);
    if (reference == nullptr || reference->overload_ids.empty()) return {};
    Estimate sum;
    CostNode target;
    if (expr.operand) {
      sum = Cost(*expr.operand);
      target = NodeOf(*expr.operand);
      operands.target = &target;
    }
    Estimate call_cost{Estimate::kUnbounded, 0};
    std::optional<Estimate> result_size;
    for (const std::string& id : reference->overload_ids) {
      const CallEstimate estimate = CostOverload(expr, id, operands, arg_costs);
      call_cost = call_cost.Union(estimate.cost);
      if (estimate.result_size) {
        result_size =
            result_size ? result_size->Union(*estimate.result_size) : *estimate.result_size;
      }
      if ((id == "index_list" || id == "index_map") && !expr.args.empty()) {
        const std::optional<EntrySize> entries = EntriesOf(*expr.args[0]);
        result_size = entries ? std::optional<Estimate>(entries->value) : std::nullopt;
        paths_[expr.id] = Extended(*expr.args[0], id == "index_list" ? "@items" : "@values");
      }
      if (!result_size) result_size = SizeOf(expr);
    }
    SetSize(expr, result_size);
    return sum.Plus(call_cost);
  }

  CallEstimate CostOverload(const Expr& expr, const std::string& id, const CallOperands& o,
                            const std::vector<Estimate>& arg_costs) {
    Estimate args;
    for (const Estimate& cost : arg_costs) args = args.Plus(cost);
    if (std::optional<CallEstimate> library = EstimateLibraryCall(expr.name, id, o)) {
      library->cost = library->cost.Plus(args);
      return *library;
    }
    const auto size = [](const CostNode& node) { return node.size.value_or(Estimate::Unknown()); };
    const auto traversal = [&](const CostNode& node) {
      return size(node).Scaled(cost::kStringTraversal);
    };
    if (id == "string_format" && o.target) return {traversal(*o.target).Plus(args), std::nullopt};
    if (id == "string_to_bytes") {
      const Estimate s = size(o.args[0]);
      return {traversal(o.args[0]).Plus(args), Estimate{s.min, s.max * 4}};
    }
    if (id == "bytes_to_string") {
      const Estimate s = size(o.args[0]);
      return {traversal(o.args[0]).Plus(args), Estimate{s.min / 4, s.max}};
    }
    if (id == "strings_quote") {
      const Estimate s = size(o.args[0]);
      return {traversal(o.args[0]).Plus(args), Estimate{s.min + 2, s.max * 2 + 2}};
    }
    if ((id == "starts_with_string" || id == "ends_with_string") && o.args.size() == 1) {
      return {traversal(o.args[0]).Plus(args), std::nullopt};
    }
    if (id == "in_list") return {size(o.args[1]).Scaled(1).Plus(args), std::nullopt};
    if (id == "matches_string" && o.target) {
      const Estimate text = size(*o.target).Plus(kOne).Scaled(cost::kStringTraversal);
      return {text.Times(size(o.args[0]).Scaled(cost::kRegexLength)).Plus(args), std::nullopt};
    }
    if (id == "contains_string" && o.target)
      return {traversal(*o.target).Times(traversal(o.args[0])).Plus(args), std::nullopt};
    if (id == "logical_or" || id == "logical_and") {
      return {Estimate{arg_costs[0].min, arg_costs[0].Plus(arg_costs[1]).max}, std::nullopt};
    }
    if (id == "conditional") {
      SetEntries(expr, UnionEntries(EntriesOf(*expr.args[1]), EntriesOf(*expr.args[2])));
      return {arg_costs[0].Plus(arg_costs[1].Union(arg_costs[2])),
              size(o.args[1]).Union(size(o.args[2]))};
    }
    if (id == "add_string" || id == "add_bytes" || id == "add_list") {
      const Estimate both = size(o.args[0]).Plus(size(o.args[1]));
      SetEntries(expr, UnionEntries(EntriesOf(*expr.args[0]), EntriesOf(*expr.args[1])));
      if (id == "add_list") return {kOne.Plus(args), both};
      return {both.Scaled(cost::kStringTraversal).Plus(args), both};
    }
    if (IsComparison(id)) {
      const std::uint64_t smaller = std::min(size(o.args[0]).max, size(o.args[1]).max);
      const Estimate range{smaller > 0 ? std::uint64_t{1} : 0, smaller};
      return {range.Scaled(cost::kStringTraversal).Plus(args), std::nullopt};
    }
    return {kOne.Plus(args), std::nullopt};
  }

  static bool IsComparison(const std::string& id) {
    static const std::set<std::string> kIds = {
        "less_string", "greater_string", "less_equals_string", "greater_equals_string",
        "less_bytes",  "greater_bytes",  "less_equals_bytes",  "greater_equals_bytes",
        "equals",      "not_equals"};
    return kIds.contains(id);
  }

  Estimate CostList(const Expr& expr) {
    Estimate sum;
    Estimate item{expr.args.empty() ? 0 : Estimate::kUnbounded, 0};
    for (const ExprPtr& arg : expr.args) {
      sum = sum.Plus(Cost(*arg));
      item = item.Union(SizeOrUnknown(*arg));
    }
    SetEntries(expr, EntrySize{TypeKind::kList, kOne, item});
    return sum.Plus(Estimate::Exactly(cost::kListCreate));
  }

  Estimate CostMap(const Expr& expr) {
    Estimate sum;
    Estimate key{expr.entries.empty() ? 0 : Estimate::kUnbounded, 0};
    Estimate value = key;
    for (const MapEntry& entry : expr.entries) {
      sum = sum.Plus(Cost(*entry.key)).Plus(Cost(*entry.value));
      key = key.Union(SizeOrUnknown(*entry.key));
      value = value.Union(SizeOrUnknown(*entry.value));
    }
    SetEntries(expr, EntrySize{TypeKind::kMap, key, value});
    return sum.Plus(Estimate::Exactly(cost::kMapCreate));
  }

  Estimate CostStruct(const Expr& expr) {
    Estimate sum;
    for (const StructField& field : expr.fields) sum = sum.Plus(Cost(*field.value));
    return sum.Plus(Estimate::Exactly(cost::kStructCreate));
  }

  void PushIteration(const std::string& name, const Expr& range, bool is_key) {
    const std::optional<EntrySize> entries = EntriesOf(range);
    const bool is_list = (entries ? entries->container : TypeOf(range)->kind()) == TypeKind::kList;
    Local local;
    if (entries) local.size = is_key ? entries->key : entries->value;
    local.path = Extended(
        range, is_key ? (is_list ? "@indices" : "@keys") : (is_list ? "@items" : "@values"));
    locals_[name].push_back(std::move(local));
  }

  void PushAccumulator(const std::string& name, const Expr& init) {
    Local local{PathOf(init), SizeOf(init), EntriesOf(init)};
    locals_[name].push_back(std::move(local));
  }

  Estimate CostFold(const Expr& expr) {
    const Comprehension& fold = *expr.comprehension;
    Estimate sum = Cost(*fold.iter_range).Plus(Cost(*fold.accu_init));
    PushAccumulator(fold.accu_var, *fold.accu_init);
    const bool two = !fold.iter_var2.empty();
    if (two) {
      PushIteration(fold.iter_var, *fold.iter_range, true);
      PushIteration(fold.iter_var2, *fold.iter_range, false);
    } else {
      const std::optional<EntrySize> entries = EntriesOf(*fold.iter_range);
      const bool is_list =
          (entries ? entries->container : TypeOf(*fold.iter_range)->kind()) == TypeKind::kList;
      PushIteration(fold.iter_var, *fold.iter_range, !is_list);
    }
    const Estimate condition = Cost(*fold.loop_condition);
    const Estimate step = Cost(*fold.loop_step);
    Pop(fold.iter_var);
    if (two) Pop(fold.iter_var2);
    sum = sum.Plus(Cost(*fold.result));
    Pop(fold.accu_var);
    const Estimate count = SizeOrUnknown(*fold.iter_range);
    sum = sum.Plus(count.Times(step.Plus(condition)));
    if (fold.accu_init->kind == ExprKind::kLiteral) {
      SetSize(expr, SizeOf(*fold.accu_init));
    } else if (fold.accu_init->kind == ExprKind::kList || fold.accu_init->kind == ExprKind::kMap) {
      SetSize(expr, count);
      SetEntries(expr, EntriesOf(*fold.loop_step));
    }
    return sum;
  }

  static bool IsBind(const Comprehension& fold) {
    const auto* condition = std::get_if<bool>(&fold.loop_condition->literal);
    return fold.iter_range->kind == ExprKind::kList && fold.iter_range->args.empty() &&
           fold.loop_condition->kind == ExprKind::kLiteral && condition && !*condition &&
           fold.accu_var != names::kAccumulator;
  }

  Estimate CostBind(const Expr& expr) {
    const Comprehension& fold = *expr.comprehension;
    Estimate sum = Cost(*fold.iter_range).Plus(Cost(*fold.accu_init));
    PushAccumulator(fold.accu_var, *fold.accu_init);
    sum = sum.Plus(Cost(*fold.result));
    Pop(fold.accu_var);
    SetSize(expr, SizeOf(*fold.result));
    SetEntries(expr, EntriesOf(*fold.result));
    return sum;
  }

  const CheckedAst& checked_;
  const EstimatorOptions& options_;
  std::map<std::int64_t, Path> paths_;
  std::map<std::int64_t, Estimate> sizes_;
  std::map<std::int64_t, EntrySize> entries_;
  std::map<std::string, std::vector<Local>> locals_;
};

}  // namespace

Estimate EstimateCost(const CheckedAst& checked, const EstimatorOptions& options) {
  return Estimator(checked, options).Cost(*checked.ast.root);
}

}  // namespace drakkar::cel
