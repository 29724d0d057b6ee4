#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "cel/ast/expr.h"
#include "cel/ast/source.h"
#include "cel/parser/macros.h"

namespace drakkar::cel {

struct ParserOptions {
  MacroOptions macros;
  bool optional_syntax = true;       // a.?b, a[?b], [?a], {?k: v}
  bool escaped_identifiers = false;  // a.`b-c`
  std::size_t max_source_bytes = 10 * 1'024;
};

// Expressions nested deeper than this are rejected, so that no later pass can overflow the stack.
inline constexpr int kMaxParseDepth = 250;
// The same limit for chains such as a.b.c or 1 + 1 + 1, which nest without brackets.
inline constexpr int kMaxChainDepth = 1'000;

// Parses and expands macros. On failure root is null and `issues` says why.
Ast Parse(std::string_view source, const ParserOptions& options, std::vector<Issue>& issues);

}  // namespace drakkar::cel
