#include "cel/environment/literal_checks.h"

#include <functional>

#include "cel/library/regex.h"
#include "cel/library/string_format.h"
#include "cel/library/time.h"

namespace drakkar::cel {
namespace {

class LiteralChecker {
 public:
  LiteralChecker(const CheckedAst& checked, std::vector<Issue>& issues)
      : checked_(checked), issues_(issues) {}

  void Visit(const Expr& expr) {
    if (expr.kind == ExprKind::kCall) CheckCall(expr);
    if (expr.operand) Visit(*expr.operand);
    for (const ExprPtr& arg : expr.args) Visit(*arg);
    for (const MapEntry& entry : expr.entries) {
      Visit(*entry.key);
      Visit(*entry.value);
    }
    for (const StructField& field : expr.fields) Visit(*field.value);
    if (const Comprehension* fold = expr.comprehension.get()) {
      for (const ExprPtr* part : {&fold->iter_range, &fold->accu_init, &fold->loop_condition,
                                  &fold->loop_step, &fold->result}) {
        Visit(**part);
      }
    }
  }

 private:
  static const std::string* Text(const Expr& expr) {
    return expr.kind == ExprKind::kLiteral ? std::get_if<std::string>(&expr.literal) : nullptr;
  }
  void Report(const Expr& expr, std::string message) {
    issues_.push_back(
        {checked_.ast.offsets[static_cast<std::size_t>(expr.id)], std::move(message)});
  }

  void CheckCall(const Expr& expr) {
    if (expr.args.empty()) return;
    const Expr& last = *expr.args.back();
    const std::string* text = Text(last);
    if (expr.name == "duration" && expr.args.size() == 1 && text && !ParseDuration(*text)) {
      Report(last, "invalid duration argument");
    } else if (expr.name == "timestamp" && expr.args.size() == 1 && text &&
               !ParseTimestamp(*text)) {
      Report(last, "invalid timestamp argument");
    } else if (expr.name == "matches" && text && !library::IsValidRegex(*text)) {
      Report(last, "invalid matches argument");
    } else if (expr.name == "format" && expr.operand && last.kind == ExprKind::kList) {
      CheckFormatCall(expr, last);
    }
  }

  void CheckFormatCall(const Expr& expr, const Expr& list) {
    const std::string* format = Text(*expr.operand);
    if (format == nullptr) return;
    const auto kind_of = [&](std::size_t i) -> std::string {
      const TypeRef& type = checked_.TypeOf(*list.args[i]);
      return type->IsDynOrError() || type->kind() == TypeKind::kTypeParam ? "" : type->name();
    };
    if (const auto issue = library::CheckFormat(*format, list.args.size(), kind_of)) {
      Report(issue->argument >= 0 ? *list.args[static_cast<std::size_t>(issue->argument)] : expr,
             issue->message);
    }
  }

  const CheckedAst& checked_;
  std::vector<Issue>& issues_;
};

}  // namespace

void CheckLiterals(const CheckedAst& checked, std::vector<Issue>& issues) {
  LiteralChecker(checked, issues).Visit(*checked.ast.root);
}

}  // namespace drakkar::cel
