#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cel/ast/expr.h"
#include "cel/ast/source.h"
#include "cel/checker/declarations.h"

namespace drakkar::cel {

// What a name or call was resolved to.
struct Reference {
  std::string name;                       // variable or type name
  std::vector<std::string> overload_ids;  // of a call: those that may apply
  bool is_type = false;
  std::optional<std::int64_t> constant;
};

// The tree with names resolved, and the type of every expression by id. Variables that stay free
// are dyn.
struct CheckedAst {
  Ast ast;
  std::vector<TypeRef> types;
  std::vector<std::optional<Reference>> references;

  const TypeRef& TypeOf(const Expr& expr) const { return types[static_cast<std::size_t>(expr.id)]; }
  const Reference* ReferenceOf(const Expr& expr) const {
    const auto& reference = references[static_cast<std::size_t>(expr.id)];
    return reference ? &*reference : nullptr;
  }
};

// Resolves names and overloads. The result counts only if `issues` stays empty.
CheckedAst Check(Ast ast, const Declarations& declarations, std::vector<Issue>& issues);

// No types: names are resolved to what is declared and everything is dyn.
CheckedAst ResolveUnchecked(Ast ast, const Declarations& declarations);

}  // namespace drakkar::cel
