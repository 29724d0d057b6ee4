#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cel/ast/expr.h"
#include "cel/ast/source.h"

namespace drakkar::cel {

// Creates nodes with fresh ids and records their positions. Shared by parser and macros.
class Builder {
 public:
  Builder() { offsets_.push_back(0); }

  std::int64_t NewId(std::int32_t offset) {
    offsets_.push_back(offset);
    return static_cast<std::int64_t>(offsets_.size()) - 1;
  }
  std::int32_t OffsetOf(const Expr& expr) const {
    return offsets_[static_cast<std::size_t>(expr.id)];
  }

  ExprPtr New(ExprKind kind, std::int32_t offset) {
    auto expr = std::make_unique<Expr>();
    expr->id = NewId(offset);
    expr->kind = kind;
    return expr;
  }
  ExprPtr NewLiteral(Literal value, std::int32_t offset) {
    ExprPtr expr = New(ExprKind::kLiteral, offset);
    expr->literal = std::move(value);
    return expr;
  }
  ExprPtr NewIdent(std::string name, std::int32_t offset) {
    ExprPtr expr = New(ExprKind::kIdent, offset);
    expr->name = std::move(name);
    return expr;
  }
  template <typename... Args>
  ExprPtr NewCall(std::string function, std::int32_t offset, Args... args) {
    ExprPtr expr = New(ExprKind::kCall, offset);
    expr->name = std::move(function);
    (expr->args.push_back(std::move(args)), ...);
    return expr;
  }
  template <typename... Args>
  ExprPtr NewMemberCall(std::string function, std::int32_t offset, ExprPtr target, Args... args) {
    ExprPtr expr = NewCall(std::move(function), offset, std::move(args)...);
    expr->operand = std::move(target);
    return expr;
  }

  // A deep copy with fresh ids at the same positions.
  ExprPtr Copy(const Expr& expr);

  void Report(std::int32_t offset, std::string message) {
    issues_.push_back({offset, std::move(message)});
  }
  std::vector<Issue>& issues() { return issues_; }
  std::vector<std::int32_t>& offsets() { return offsets_; }

 private:
  std::vector<std::int32_t> offsets_;
  std::vector<Issue> issues_;
};

}  // namespace drakkar::cel
