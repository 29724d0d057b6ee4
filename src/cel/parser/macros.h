#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "cel/parser/builder.h"

namespace drakkar::cel {

// A call that the parser rewrites. `expand` may move target and arguments; it returns null after
// reporting an error, or null without a report to leave the call unchanged.
struct Macro {
  std::string_view name;
  std::size_t argument_count;
  bool is_member;
  ExprPtr (*expand)(Builder& builder, std::int32_t offset, ExprPtr& target,
                    std::vector<ExprPtr>& args);
};

// Which families of macros an environment has.
struct MacroOptions {
  bool standard = true;
  bool optionals = true;
  bool two_variables = true;
  bool bindings = true;
  bool lists = true;   // sortBy
  bool block = false;  // cel.block, cel.index, cel.iterVar, cel.accuVar: for tests of optimisers
  bool math = false;   // math.greatest, math.least
};

const Macro* FindMacro(const MacroOptions& options, std::string_view name,
                       std::size_t argument_count, bool is_member);

}  // namespace drakkar::cel
