#include "cel/parser/macros.h"

#include <span>

#include "base/text/text.h"

namespace drakkar::cel {
namespace {

using Args = std::vector<ExprPtr>;

// Macros of a namespace are written as members of an identifier: cel.bind(...).
bool TargetIs(const ExprPtr& target, std::string_view name) {
  return target && target->kind == ExprKind::kIdent && target->name == name;
}

ExprPtr Fold(Builder& b, std::int32_t at, Comprehension comprehension) {
  ExprPtr expr = b.New(ExprKind::kComprehension, at);
  expr->comprehension = std::make_unique<Comprehension>(std::move(comprehension));
  return expr;
}

ExprPtr Accu(Builder& b, std::int32_t at) {
  return b.NewIdent(names::kAccumulator, at);
}
ExprPtr True(Builder& b, std::int32_t at) {
  return b.NewLiteral(true, at);
}
ExprPtr EmptyList(Builder& b, std::int32_t at) {
  return b.New(ExprKind::kList, at);
}

ExprPtr OneElement(Builder& b, std::int32_t at, ExprPtr element) {
  ExprPtr list = EmptyList(b, at);
  list->args.push_back(std::move(element));
  return list;
}

// The name of an iteration variable, or empty after reporting an error.
std::string Variable(Builder& b, const Expr& expr) {
  if (expr.kind != ExprKind::kIdent) {
    b.Report(b.OffsetOf(expr), "argument must be a simple name");
    return "";
  }
  if (expr.name == names::kAccumulator || expr.name == "__result__") {
    b.Report(b.OffsetOf(expr), "iteration variable overwrites accumulator variable");
    return "";
  }
  return expr.name;
}

ExprPtr ExpandHas(Builder& b, std::int32_t at, ExprPtr&, Args& args) {
  Expr& arg = *args[0];
  if (arg.kind != ExprKind::kSelect || arg.test_only) {
    b.Report(b.OffsetOf(arg), "invalid argument to has() macro");
    return nullptr;
  }
  ExprPtr test = b.New(ExprKind::kSelect, at);
  test->operand = std::move(arg.operand);
  test->name = std::move(arg.name);
  test->test_only = true;
  return test;
}

enum class Quantifier { kAll, kExists, kExistsOne };

template <Quantifier quantifier, bool two>
ExprPtr ExpandQuantifier(Builder& b, std::int32_t at, ExprPtr& target, Args& args) {
  const std::string first = Variable(b, *args[0]);
  if (first.empty()) return nullptr;
  std::string second;
  if constexpr (two) {
    second = Variable(b, *args[1]);
    if (second.empty()) return nullptr;
    if (second == first) {
      b.Report(b.OffsetOf(*args[1]), StrCat("duplicate variable name: ", second));
      return nullptr;
    }
  }
  ExprPtr predicate = std::move(args.back());
  Comprehension fold{std::move(target), first,   second,  names::kAccumulator,
                     nullptr,           nullptr, nullptr, nullptr};
  if constexpr (quantifier == Quantifier::kAll) {
    fold.accu_init = True(b, at);
    fold.loop_condition = b.NewCall(names::kNotStrictlyFalse, at, Accu(b, at));
    fold.loop_step = b.NewCall(names::kAnd, at, Accu(b, at), std::move(predicate));
    fold.result = Accu(b, at);
  } else if constexpr (quantifier == Quantifier::kExists) {
    fold.accu_init = b.NewLiteral(false, at);
    fold.loop_condition =
        b.NewCall(names::kNotStrictlyFalse, at, b.NewCall(names::kNot, at, Accu(b, at)));
    fold.loop_step = b.NewCall(names::kOr, at, Accu(b, at), std::move(predicate));
    fold.result = Accu(b, at);
  } else {
    const auto one = [&] { return b.NewLiteral(std::int64_t{1}, at); };
    fold.accu_init = b.NewLiteral(std::int64_t{0}, at);
    fold.loop_condition = True(b, at);
    fold.loop_step = b.NewCall(names::kConditional, at, std::move(predicate),
                               b.NewCall("_+_", at, Accu(b, at), one()), Accu(b, at));
    fold.result = b.NewCall(names::kEquals, at, Accu(b, at), one());
  }
  return Fold(b, at, std::move(fold));
}

// A fold that builds a container; with a filter, an element is added only if it holds.
ExprPtr Collect(Builder& b, std::int32_t at, Comprehension fold, ExprPtr init, ExprPtr step,
                ExprPtr filter) {
  fold.accu_var = names::kAccumulator;
  fold.accu_init = std::move(init);
  fold.loop_condition = True(b, at);
  fold.loop_step =
      filter ? b.NewCall(names::kConditional, at, std::move(filter), std::move(step), Accu(b, at))
             : std::move(step);
  fold.result = Accu(b, at);
  return Fold(b, at, std::move(fold));
}

ExprPtr MakeMap(Builder& b, std::int32_t at, ExprPtr target, Args& args) {
  const std::string variable = Variable(b, *args[0]);
  if (variable.empty()) return nullptr;
  ExprPtr filter = args.size() == 3 ? std::move(args[1]) : nullptr;
  ExprPtr step = b.NewCall("_+_", at, Accu(b, at), OneElement(b, at, std::move(args.back())));
  return Collect(b, at, {std::move(target), variable, "", "", nullptr, nullptr, nullptr, nullptr},
                 EmptyList(b, at), std::move(step), std::move(filter));
}

ExprPtr ExpandMap(Builder& b, std::int32_t at, ExprPtr& target, Args& args) {
  return MakeMap(b, at, std::move(target), args);
}

ExprPtr ExpandFilter(Builder& b, std::int32_t at, ExprPtr& target, Args& args) {
  const std::string variable = Variable(b, *args[0]);
  if (variable.empty()) return nullptr;
  ExprPtr step = b.NewCall("_+_", at, Accu(b, at), OneElement(b, at, std::move(args[0])));
  return Collect(b, at, {std::move(target), variable, "", "", nullptr, nullptr, nullptr, nullptr},
                 EmptyList(b, at), std::move(step), std::move(args[1]));
}

enum class Transform { kList, kMap, kMapEntry };

template <Transform transform>
ExprPtr ExpandTransform(Builder& b, std::int32_t at, ExprPtr& target, Args& args) {
  const std::string first = Variable(b, *args[0]);
  if (first.empty()) return nullptr;
  const std::string second = Variable(b, *args[1]);
  if (second.empty()) return nullptr;
  if (second == first) {
    b.Report(b.OffsetOf(*args[1]), StrCat("duplicate variable name: ", second));
    return nullptr;
  }
  ExprPtr filter = args.size() == 4 ? std::move(args[2]) : nullptr;
  ExprPtr value = std::move(args.back());
  ExprPtr init;
  ExprPtr step;
  if constexpr (transform == Transform::kList) {
    init = EmptyList(b, at);
    step = b.NewCall("_+_", at, Accu(b, at), OneElement(b, at, std::move(value)));
  } else if constexpr (transform == Transform::kMap) {
    init = b.New(ExprKind::kMap, at);
    step = b.NewCall("cel.@mapInsert", at, Accu(b, at), std::move(args[0]), std::move(value));
  } else {
    init = b.New(ExprKind::kMap, at);
    step = b.NewCall("cel.@mapInsert", at, Accu(b, at), std::move(value));
  }
  return Collect(b, at, {std::move(target), first, second, "", nullptr, nullptr, nullptr, nullptr},
                 std::move(init), std::move(step), std::move(filter));
}

// A local variable is a fold over nothing whose accumulator is the variable.
ExprPtr Bind(Builder& b, std::int32_t at, std::string variable, ExprPtr value, ExprPtr result) {
  ExprPtr self = b.NewIdent(variable, at);
  return Fold(b, at,
              {EmptyList(b, at), names::kUnusedVar, "", std::move(variable), std::move(value),
               b.NewLiteral(false, at), std::move(self), std::move(result)});
}

ExprPtr ExpandBind(Builder& b, std::int32_t at, ExprPtr& target, Args& args) {
  if (!TargetIs(target, "cel")) return nullptr;
  if (args[0]->kind != ExprKind::kIdent) {
    b.Report(b.OffsetOf(*args[0]), "cel.bind() variable names must be simple identifiers");
    return nullptr;
  }
  return Bind(b, at, args[0]->name, std::move(args[1]), std::move(args[2]));
}

template <bool flat>
ExprPtr ExpandOptMap(Builder& b, std::int32_t at, ExprPtr& target, Args& args) {
  if (args[0]->kind != ExprKind::kIdent) {
    b.Report(b.OffsetOf(*args[0]), flat ? "optFlatMap() variable name must be a simple identifier"
                                        : "optMap() variable name must be a simple identifier");
    return nullptr;
  }
  ExprPtr value = b.NewMemberCall("value", at, b.Copy(*target));
  ExprPtr mapped = Bind(b, at, args[0]->name, std::move(value), std::move(args[1]));
  if (!flat) mapped = b.NewCall("optional.of", at, std::move(mapped));
  return b.NewCall(names::kConditional, at, b.NewMemberCall("hasValue", at, std::move(target)),
                   std::move(mapped), b.NewCall("optional.none", at));
}

ExprPtr ExpandSortBy(Builder& b, std::int32_t at, ExprPtr& target, Args& args) {
  switch (target->kind) {
    case ExprKind::kList:
    case ExprKind::kSelect:
    case ExprKind::kIdent:
    case ExprKind::kComprehension:
    case ExprKind::kCall:
      break;
    default:
      b.Report(b.OffsetOf(*target),
               "sortBy can only be applied to a list, identifier, comprehension, call or select "
               "expression");
      return nullptr;
  }
  static constexpr char kInput[] = "@__sortBy_input__";
  ExprPtr keys = MakeMap(b, at, b.NewIdent(kInput, at), args);
  if (!keys) return nullptr;
  ExprPtr sorted =
      b.NewMemberCall("@sortByAssociatedKeys", at, b.NewIdent(kInput, at), std::move(keys));
  return Bind(b, at, kInput, std::move(target), std::move(sorted));
}

template <bool greatest>
ExprPtr ExpandExtremum(Builder& b, std::int32_t at, ExprPtr& target, Args& args) {
  if (!TargetIs(target, "math")) return nullptr;
  const std::string name = greatest ? "math.greatest" : "math.least";
  const std::string function = greatest ? "math.@max" : "math.@min";
  const auto numeric = [](const Expr& arg) {
    switch (arg.kind) {
      case ExprKind::kLiteral:
        return std::holds_alternative<std::int64_t>(arg.literal) ||
               std::holds_alternative<std::uint64_t>(arg.literal) ||
               std::holds_alternative<double>(arg.literal);
      case ExprKind::kList:
      case ExprKind::kMap:
      case ExprKind::kStruct:
        return false;
      default:
        return true;
    }
  };
  if (args.empty()) {
    b.Report(b.OffsetOf(*target), name + "() requires at least one argument");
    return nullptr;
  }
  if (args.size() == 1) {
    Expr& arg = *args[0];
    if (arg.kind == ExprKind::kList) {
      if (arg.args.empty()) {
        b.Report(b.OffsetOf(arg), name + "() invalid single argument value");
        return nullptr;
      }
      for (const ExprPtr& element : arg.args) {
        if (!numeric(*element)) {
          b.Report(b.OffsetOf(arg), name + "() invalid single argument value");
          return nullptr;
        }
      }
      return b.NewCall(function, at, std::move(args[0]));
    }
    if (!numeric(arg)) {
      b.Report(b.OffsetOf(arg), name + "() invalid single argument value");
      return nullptr;
    }
    return b.NewCall(function, at, std::move(args[0]));
  }
  for (const ExprPtr& arg : args) {
    if (!numeric(*arg)) {
      b.Report(b.OffsetOf(*arg), name + "() simple literal arguments must be numeric");
      return nullptr;
    }
  }
  if (args.size() == 2) return b.NewCall(function, at, std::move(args[0]), std::move(args[1]));
  ExprPtr list = b.New(ExprKind::kList, at);
  list->args = std::move(args);
  return b.NewCall(function, at, std::move(list));
}

// cel.block([v0, v1, ...], result): the variables are local and lazily bound, in order.
ExprPtr ExpandBlock(Builder& b, std::int32_t at, ExprPtr& target, Args& args) {
  if (!TargetIs(target, "cel")) return nullptr;
  if (args[0]->kind != ExprKind::kList) {
    b.Report(b.OffsetOf(*args[0]), "cel.block() first argument must be a list literal");
    return nullptr;
  }
  ExprPtr result = std::move(args[1]);
  Args& values = args[0]->args;
  for (std::size_t i = values.size(); i > 0; --i) {
    result = Bind(b, at, StrCat("@index", i - 1), std::move(values[i - 1]), std::move(result));
  }
  return result;
}

std::int64_t LiteralIndex(const Expr& expr) {
  const auto* value = std::get_if<std::int64_t>(&expr.literal);
  return expr.kind == ExprKind::kLiteral && value && *value >= 0 ? *value : -1;
}

ExprPtr ExpandIndex(Builder& b, std::int32_t at, ExprPtr& target, Args& args) {
  if (!TargetIs(target, "cel") || LiteralIndex(*args[0]) < 0) return nullptr;
  return b.NewIdent(StrCat("@index", LiteralIndex(*args[0])), at);
}

template <bool accu>
ExprPtr ExpandHiddenVar(Builder& b, std::int32_t at, ExprPtr& target, Args& args) {
  if (!TargetIs(target, "cel") || LiteralIndex(*args[0]) < 0 || LiteralIndex(*args[1]) < 0)
    return nullptr;
  return b.NewIdent(
      StrCat(accu ? "@ac:" : "@it:", LiteralIndex(*args[0]), ":", LiteralIndex(*args[1])), at);
}

constexpr std::size_t kAnyCount = static_cast<std::size_t>(-1);

constexpr Macro kStandard[] = {
    {"has", 1, false, ExpandHas},
    {"all", 2, true, ExpandQuantifier<Quantifier::kAll, false>},
    {"exists", 2, true, ExpandQuantifier<Quantifier::kExists, false>},
    {"exists_one", 2, true, ExpandQuantifier<Quantifier::kExistsOne, false>},
    {"map", 2, true, ExpandMap},
    {"map", 3, true, ExpandMap},
    {"filter", 2, true, ExpandFilter},
};
constexpr Macro kTwoVariables[] = {
    {"all", 3, true, ExpandQuantifier<Quantifier::kAll, true>},
    {"exists", 3, true, ExpandQuantifier<Quantifier::kExists, true>},
    {"existsOne", 3, true, ExpandQuantifier<Quantifier::kExistsOne, true>},
    {"exists_one", 3, true, ExpandQuantifier<Quantifier::kExistsOne, true>},
    {"transformList", 3, true, ExpandTransform<Transform::kList>},
    {"transformList", 4, true, ExpandTransform<Transform::kList>},
    {"transformMap", 3, true, ExpandTransform<Transform::kMap>},
    {"transformMap", 4, true, ExpandTransform<Transform::kMap>},
    {"transformMapEntry", 3, true, ExpandTransform<Transform::kMapEntry>},
    {"transformMapEntry", 4, true, ExpandTransform<Transform::kMapEntry>},
};
constexpr Macro kOptionals[] = {
    {"optMap", 2, true, ExpandOptMap<false>},
    {"optFlatMap", 2, true, ExpandOptMap<true>},
};
constexpr Macro kBindings[] = {{"bind", 3, true, ExpandBind}};
constexpr Macro kLists[] = {{"sortBy", 2, true, ExpandSortBy}};
constexpr Macro kBlock[] = {
    {"block", 2, true, ExpandBlock},
    {"index", 1, true, ExpandIndex},
    {"iterVar", 2, true, ExpandHiddenVar<false>},
    {"accuVar", 2, true, ExpandHiddenVar<true>},
};
constexpr Macro kMath[] = {
    {"greatest", kAnyCount, true, ExpandExtremum<true>},
    {"least", kAnyCount, true, ExpandExtremum<false>},
};

}  // namespace

const Macro* FindMacro(const MacroOptions& options, std::string_view name,
                       std::size_t argument_count, bool is_member) {
  const auto find = [&](bool enabled, std::span<const Macro> family) -> const Macro* {
    if (!enabled) return nullptr;
    for (const Macro& macro : family) {
      if (macro.name == name && macro.is_member == is_member &&
          (macro.argument_count == argument_count || macro.argument_count == kAnyCount)) {
        return &macro;
      }
    }
    return nullptr;
  };
  const Macro* found = find(options.standard, kStandard);
  if (!found) found = find(options.two_variables, kTwoVariables);
  if (!found) found = find(options.optionals, kOptionals);
  if (!found) found = find(options.bindings, kBindings);
  if (!found) found = find(options.lists, kLists);
  if (!found) found = find(options.block, kBlock);
  if (!found) found = find(options.math, kMath);
  return found;
}

}  // namespace drakkar::cel
