#include "cel/checker/checker.h"

#include <set>

#include "base/text/text.h"
#include "cel/checker/unify.h"
#include "cel/value/record.h"

namespace drakkar::cel {
namespace {

// Whether expressions may construct values of this type with any fields.
bool IsObjectType(const Declarations& declarations, std::string_view name) {
  if (declarations.FindStruct(kObjectTypeName) == nullptr) return false;
  return name == kObjectTypeName ||
         (name.starts_with(kObjectTypeName) && name[kObjectTypeName.size()] == '.');
}

// "a.b.c" if the expression consists only of names and selections.
std::optional<std::string> QualifiedName(const Expr& expr) {
  if (expr.kind == ExprKind::kIdent) return expr.name;
  if (expr.kind != ExprKind::kSelect || expr.test_only) return std::nullopt;
  const std::optional<std::string> prefix = QualifiedName(*expr.operand);
  if (!prefix) return std::nullopt;
  return StrCat(*prefix, ".", expr.name);
}

const Expr& Root(const Expr& expr) {
  return expr.operand && expr.kind == ExprKind::kSelect ? Root(*expr.operand) : expr;
}

class Checker {
 public:
  Checker(CheckedAst& checked, const Declarations& declarations, std::vector<Issue>& issues)
      : checked_(checked), declarations_(declarations), issues_(issues) {}

  void Run() {
    Visit(*checked_.ast.root);
    for (TypeRef& type : checked_.types) {
      if (type) type = substitution_.Apply(type, true);
    }
  }

 private:
  using Scope = std::map<std::string, TypeRef>;
  // `"%s %d".format(["a", 1])`: each element of the list is for a verb of the template.
  static constexpr std::string_view kMixedLiteralFunction = "format";

  void Report(std::int64_t id, std::string message) {
    issues_.push_back({checked_.ast.offsets[static_cast<std::size_t>(id)], std::move(message)});
  }
  void SetType(const Expr& expr, TypeRef type) {
    checked_.types[static_cast<std::size_t>(expr.id)] = std::move(type);
  }
  const TypeRef& TypeOf(const Expr& expr) const {
    return checked_.types[static_cast<std::size_t>(expr.id)];
  }
  void SetReference(const Expr& expr, Reference reference) {
    checked_.references[static_cast<std::size_t>(expr.id)] = std::move(reference);
  }
  TypeRef NewVariable() { return types::Param(StrCat("_var", variables_++)); }

  void ReportUndeclared(std::int64_t id, std::string_view name) {
    Report(id, StrCat("undeclared reference to '", name, "' (in container '",
                      declarations_.container, "')"));
  }
  void ReportMismatch(std::int64_t id, const TypeRef& expected, const TypeRef& actual) {
    Report(id, StrCat("expected type '", expected->ToErrorString(), "' but found '",
                      actual->ToErrorString(), "'"));
  }

  void Visit(Expr& expr) {
    switch (expr.kind) {
      case ExprKind::kUnspecified:
        SetType(expr, types::Error());
        break;
      case ExprKind::kLiteral:
        SetType(expr, LiteralType(expr.literal));
        break;
      case ExprKind::kIdent:
        VisitIdent(expr);
        break;
      case ExprKind::kSelect:
        VisitSelect(expr);
        break;
      case ExprKind::kCall:
        VisitCall(expr);
        break;
      case ExprKind::kList:
        VisitList(expr);
        break;
      case ExprKind::kMap:
        VisitMap(expr);
        break;
      case ExprKind::kStruct:
        VisitStruct(expr);
        break;
      case ExprKind::kComprehension:
        VisitComprehension(expr);
        break;
    }
  }

  static TypeRef LiteralType(const Literal& literal) {
    switch (literal.index()) {
      case 0:
        return types::Null();
      case 1:
        return types::Bool();
      case 2:
        return types::Int();
      case 3:
        return types::Uint();
      case 4:
        return types::Double();
      case 5:
        return types::String();
      default:
        return types::Bytes();
    }
  }

  const TypeRef* FindLocal(std::string_view name) const {
    for (std::size_t i = scopes_.size(); i > 0; --i) {
      const auto found = scopes_[i - 1].find(std::string(name));
      if (found != scopes_[i - 1].end()) return &found->second;
    }
    return nullptr;
  }

  // Sets the expression's type and reference if one of the declared names matches.
  bool ResolveName(Expr& expr, std::string_view name) {
    for (const std::string& candidate : CandidateNames(declarations_.container, name)) {
      if (const TypeRef* type = declarations_.FindVariable(candidate)) {
        SetType(expr, *type);
        SetReference(expr, {candidate});
      } else if (const TypeRef* type_name = declarations_.FindTypeName(candidate)) {
        SetType(expr, types::TypeOf(*type_name));
        SetReference(expr, {candidate, {}, true});
      } else if (const std::int64_t* constant = declarations_.FindConstant(candidate)) {
        SetType(expr, types::Int());
        SetReference(expr, {candidate, {}, false, *constant});
      } else {
        continue;
      }
      expr.kind = ExprKind::kIdent;
      expr.name = candidate;
      return true;
    }
    return false;
  }

  void VisitIdent(Expr& expr) {
    if (const TypeRef* local = FindLocal(expr.name)) {
      SetType(expr, *local);
      return;
    }
    if (ResolveName(expr, expr.name)) return;
    SetType(expr, types::Error());
    ReportUndeclared(expr.id, expr.name);
  }

  void VisitSelect(Expr& expr) {
    const std::optional<std::string> qualified = QualifiedName(expr);
    if (qualified && !FindLocal(Root(expr).name) && ResolveName(expr, *qualified)) {
      expr.operand = nullptr;
      return;
    }
    TypeRef result = SelectField(expr, *expr.operand, expr.name, false);
    if (expr.test_only) result = types::Bool();
    SetType(expr, substitution_.Apply(result, false));
  }

  TypeRef SelectField(const Expr& expr, Expr& operand, const std::string& field, bool optional) {
    Visit(operand);
    TypeRef target = substitution_.Apply(TypeOf(operand), false);
    const bool is_optional = target->IsOptional();
    if (is_optional) target = target->parameter(0);
    TypeRef result = types::Error();
    switch (target->kind()) {
      case TypeKind::kMap:
        result = target->parameter(1);
        break;
      case TypeKind::kStruct:
        result = FieldType(expr.id, target->name(), field);
        break;
      case TypeKind::kTypeParam:
        substitution_.Assignable(types::Dyn(), target);
        result = types::Dyn();
        break;
      default:
        if (!target->IsDynOrError()) {
          Report(expr.id,
                 StrCat("type '", target->ToErrorString(), "' does not support field selection"));
        }
        result = types::Dyn();
    }
    return is_optional || optional ? types::Optional(result) : result;
  }

  TypeRef FieldType(std::int64_t id, const std::string& type, const std::string& field) {
    if (IsObjectType(declarations_, type)) return types::Dyn();
    const StructType* structure = declarations_.FindStruct(type);
    if (structure == nullptr) {
      Report(id, StrCat("unexpected failed resolution of '", type, "'"));
      return types::Error();
    }
    const auto found = structure->fields.find(field);
    if (found != structure->fields.end()) return found->second;
    Report(id, StrCat("undefined field '", field, "'"));
    return types::Error();
  }

  void VisitCall(Expr& expr) {
    if (expr.name == names::kOptSelect) {
      const auto* field = std::get_if<std::string>(&expr.args[1]->literal);
      SetType(*expr.args[1], types::String());
      TypeRef result = SelectField(expr, *expr.args[0], field ? *field : "", true);
      SetType(expr, substitution_.Apply(result, false));
      SetReference(expr, {"", {"select_optional_field"}});
      return;
    }
    // Everything inside the call is exempt from the rule for literals, the operand included.
    const bool is_exempt = expr.operand && expr.name == kMixedLiteralFunction;
    mixed_literals_ += is_exempt;
    CheckCall(expr);
    mixed_literals_ -= is_exempt;
  }

  void CheckCall(Expr& expr) {
    for (const ExprPtr& arg : expr.args) Visit(*arg);
    if (!expr.operand) {
      for (const std::string& candidate : CandidateNames(declarations_.container, expr.name)) {
        if (const Function* function = declarations_.FindFunction(candidate)) {
          expr.name = candidate;
          ResolveOverload(expr, *function, nullptr);
          return;
        }
      }
      ReportUndeclared(expr.id, expr.name);
      SetType(expr, types::Error());
      return;
    }
    // ns.f(x) may be the function ns.f rather than f of ns.
    const std::optional<std::string> prefix = QualifiedName(*expr.operand);
    if (prefix) {
      for (const std::string& candidate :
           CandidateNames(declarations_.container, StrCat(*prefix, ".", expr.name))) {
        if (const Function* function = declarations_.FindFunction(candidate)) {
          expr.name = candidate;
          expr.operand = nullptr;
          ResolveOverload(expr, *function, nullptr);
          return;
        }
      }
    }
    Visit(*expr.operand);
    if (const Function* function = declarations_.FindFunction(expr.name)) {
      ResolveOverload(expr, *function, expr.operand.get());
      return;
    }
    SetType(expr, types::Error());
    ReportUndeclared(expr.id, expr.name);
  }

  void ResolveOverload(const Expr& expr, const Function& function, const Expr* target) {
    std::vector<TypeRef> args;
    if (target) args.push_back(TypeOf(*target));
    for (const ExprPtr& arg : expr.args) args.push_back(TypeOf(*arg));
    if (expr.name == names::kAnd || expr.name == names::kOr) {
      bool ok = true;
      for (std::size_t i = 0; i < args.size(); ++i) {
        if (substitution_.Assignable(args[i], types::Bool())) continue;
        ReportMismatch(expr.args[i]->id, types::Bool(), args[i]);
        ok = false;
      }
      SetType(expr, ok ? types::Bool() : types::Error());
      SetReference(expr, {"", {function.overloads[0].id}});
      return;
    }
    Reference reference;
    TypeRef result;
    for (const Overload& overload : function.overloads) {
      if (overload.is_member != (target != nullptr)) continue;
      Substitution fresh;
      std::vector<TypeRef> parameters = overload.args;
      TypeRef overload_result = overload.result;
      Instantiate(fresh, parameters, overload_result);
      if (!substitution_.AssignableLists(args, parameters)) continue;
      reference.overload_ids.push_back(overload.id);
      overload_result = substitution_.Apply(overload_result, false);
      if (!result) {
        result = overload_result;
      } else if (!result->IsDyn() && !Type::Same(*overload_result, *result)) {
        result = types::Dyn();
      }
    }
    if (!result) {
      ReportNoOverload(expr, args, target != nullptr);
      SetType(expr, types::Error());
      return;
    }
    SetType(expr, result);
    SetReference(expr, std::move(reference));
  }

  static void CollectParameters(const TypeRef& type, std::set<std::string>& parameters) {
    if (type->kind() == TypeKind::kTypeParam) parameters.insert(type->name());
    for (const TypeRef& parameter : type->parameters()) CollectParameters(parameter, parameters);
  }

  void Instantiate(Substitution& fresh, std::vector<TypeRef>& parameters, TypeRef& result) {
    std::set<std::string> variables;
    for (const TypeRef& parameter : parameters) CollectParameters(parameter, variables);
    CollectParameters(result, variables);
    if (variables.empty()) return;
    for (const std::string& variable : variables) fresh.Set(types::Param(variable), NewVariable());
    for (TypeRef& parameter : parameters) parameter = fresh.Apply(parameter, false);
    result = fresh.Apply(result, false);
  }

  void ReportNoOverload(const Expr& expr, const std::vector<TypeRef>& args, bool is_member) {
    std::vector<std::string> texts;
    for (const TypeRef& arg : args)
      texts.push_back(substitution_.Apply(arg, true)->ToErrorString());
    std::string signature;
    if (is_member) {
      signature = texts[0] + ".";
      texts.erase(texts.begin());
    }
    Report(expr.id, StrCat("found no matching overload for '", expr.name, "' applied to '",
                           signature, "(", Join(texts, ", "), ")'"));
  }

  TypeRef JoinTypes(const Expr& expr, const TypeRef& previous, const TypeRef& current) {
    if (!previous) return current;
    if (substitution_.Assignable(previous, current)) return MoreGeneral(previous, current);
    if (!declarations_.homogeneous_literals || mixed_literals_ > 0) return types::Dyn();
    ReportMismatch(expr.id, previous, current);
    return types::Error();
  }

  // The type inside an optional element or entry.
  TypeRef Unwrapped(const Expr& expr, const TypeRef& type) {
    if (type->IsOptional()) return type->parameter(0);
    if (!type->IsDyn()) ReportMismatch(expr.id, types::Optional(type), type);
    return type;
  }

  void VisitList(Expr& expr) {
    TypeRef element;
    const std::set<std::size_t> optionals(expr.optional_indices.begin(),
                                          expr.optional_indices.end());
    for (std::size_t i = 0; i < expr.args.size(); ++i) {
      Visit(*expr.args[i]);
      TypeRef type = TypeOf(*expr.args[i]);
      if (optionals.contains(i)) type = Unwrapped(*expr.args[i], type);
      element = JoinTypes(*expr.args[i], element, type);
    }
    SetType(expr, types::List(element ? element : NewVariable()));
  }

  void VisitMap(Expr& expr) {
    TypeRef key;
    TypeRef value;
    for (const MapEntry& entry : expr.entries) {
      Visit(*entry.key);
      key = JoinTypes(*entry.key, key, TypeOf(*entry.key));
      Visit(*entry.value);
      TypeRef type = TypeOf(*entry.value);
      if (entry.optional) type = Unwrapped(*entry.value, type);
      value = JoinTypes(*entry.value, value, type);
    }
    if (!key) {
      key = NewVariable();
      value = NewVariable();
    }
    SetType(expr, types::Map(key, value));
  }

  void VisitStruct(Expr& expr) {
    TypeRef result = types::Error();
    const TypeRef* type = nullptr;
    for (const std::string& candidate : CandidateNames(declarations_.container, expr.name)) {
      type = declarations_.FindTypeName(candidate);
      if (type) {
        expr.name = candidate;
        break;
      }
    }
    const bool is_object = !type && IsObjectType(declarations_, expr.name);
    const TypeRef object = is_object ? types::Struct(expr.name) : types::Error();
    if (is_object) type = &object;
    if (!type) {
      ReportUndeclared(expr.id, expr.name);
      SetType(expr, types::Error());
      for (const StructField& field : expr.fields) Visit(*field.value);
      return;
    }
    const bool structure = is_object || declarations_.FindStruct(expr.name) != nullptr;
    if (structure) {
      result = *type;
      SetReference(expr, {expr.name, {}, true});
    } else {
      Report(expr.id, StrCat("'", expr.name, "' is not a message type"));
    }
    SetType(expr, result);
    for (const StructField& field : expr.fields) {
      Visit(*field.value);
      if (!structure) continue;
      const TypeRef expected = FieldType(field.id, expr.name, field.name);
      TypeRef actual = TypeOf(*field.value);
      if (field.optional) actual = Unwrapped(*field.value, actual);
      if (!substitution_.Assignable(expected, actual)) {
        Report(field.id,
               StrCat("expected type of field '", field.name, "' is '", expected->ToErrorString(),
                      "' but provided type is '", actual->ToErrorString(), "'"));
      }
    }
  }

  void VisitComprehension(Expr& expr) {
    Comprehension& fold = *expr.comprehension;
    Visit(*fold.iter_range);
    Visit(*fold.accu_init);
    const TypeRef range = substitution_.Apply(TypeOf(*fold.iter_range), false);
    const TypeRef accu = TypeOf(*fold.accu_init);
    const bool two = !fold.iter_var2.empty();
    TypeRef first;
    TypeRef second;
    switch (range->kind()) {
      case TypeKind::kList:
        first = two ? types::Int() : range->parameter(0);
        second = range->parameter(0);
        break;
      case TypeKind::kMap:
        first = range->parameter(0);
        second = range->parameter(1);
        break;
      case TypeKind::kDyn:
      case TypeKind::kError:
      case TypeKind::kTypeParam:
        substitution_.Assignable(types::Dyn(), range);
        first = second = types::Dyn();
        break;
      default:
        Report(fold.iter_range->id,
               StrCat("expression of type '", range->ToErrorString(),
                      "' cannot be range of a comprehension (must be list, map, or dynamic)"));
        first = second = types::Error();
    }
    scopes_.push_back({{fold.accu_var, accu}});
    scopes_.push_back({{fold.iter_var, first}});
    if (two) scopes_.back()[fold.iter_var2] = second;
    Visit(*fold.loop_condition);
    AssertType(*fold.loop_condition, types::Bool());
    Visit(*fold.loop_step);
    AssertType(*fold.loop_step, accu);
    scopes_.pop_back();
    Visit(*fold.result);
    scopes_.pop_back();
    SetType(expr, substitution_.Apply(TypeOf(*fold.result), false));
  }

  void AssertType(const Expr& expr, const TypeRef& expected) {
    if (!substitution_.Assignable(expected, TypeOf(expr)))
      ReportMismatch(expr.id, expected, TypeOf(expr));
  }

  CheckedAst& checked_;
  const Declarations& declarations_;
  std::vector<Issue>& issues_;
  Substitution substitution_;
  std::vector<Scope> scopes_;
  int variables_ = 0;
  int mixed_literals_ = 0;  // calls being visited whose literals may mix types
};

CheckedAst Prepared(Ast ast) {
  CheckedAst checked;
  checked.types.resize(ast.offsets.size());
  checked.references.resize(ast.offsets.size());
  checked.ast = std::move(ast);
  return checked;
}

}  // namespace

CheckedAst Check(Ast ast, const Declarations& declarations, std::vector<Issue>& issues) {
  CheckedAst checked = Prepared(std::move(ast));
  Checker(checked, declarations, issues).Run();
  return checked;
}

CheckedAst ResolveUnchecked(Ast ast, const Declarations& declarations) {
  CheckedAst checked = Prepared(std::move(ast));
  std::vector<Issue> ignored;
  Checker(checked, declarations, ignored).Run();
  for (TypeRef& type : checked.types) {
    if (type && type->kind() == TypeKind::kError) type = types::Dyn();
  }
  return checked;
}

}  // namespace drakkar::cel
