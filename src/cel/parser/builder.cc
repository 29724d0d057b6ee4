#include "cel/parser/builder.h"

namespace drakkar::cel {

ExprPtr Builder::Copy(const Expr& expr) {
  ExprPtr copy = New(expr.kind, OffsetOf(expr));
  copy->literal = expr.literal;
  copy->name = expr.name;
  copy->test_only = expr.test_only;
  copy->optional_indices = expr.optional_indices;
  if (expr.operand) copy->operand = Copy(*expr.operand);
  for (const ExprPtr& arg : expr.args) copy->args.push_back(Copy(*arg));
  for (const MapEntry& entry : expr.entries) {
    copy->entries.push_back({Copy(*entry.key), Copy(*entry.value), entry.optional});
  }
  for (const StructField& field : expr.fields) {
    copy->fields.push_back({NewId(offsets_[static_cast<std::size_t>(field.id)]), field.name,
                            Copy(*field.value), field.optional});
  }
  if (expr.comprehension) {
    const Comprehension& from = *expr.comprehension;
    copy->comprehension = std::make_unique<Comprehension>(Comprehension{
        Copy(*from.iter_range), from.iter_var, from.iter_var2, from.accu_var, Copy(*from.accu_init),
        Copy(*from.loop_condition), Copy(*from.loop_step), Copy(*from.result)});
  }
  return copy;
}

}  // namespace drakkar::cel
