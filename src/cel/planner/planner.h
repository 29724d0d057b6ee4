#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/result/result.h"
#include "cel/checker/checker.h"
#include "cel/planner/program.h"

namespace drakkar::cel {

// Compiles a checked expression into a program. `variables` is the order in which evaluations bind
// them. Conversions of constants run now, so that a bad one is an error here.
Result<std::unique_ptr<Program>> Plan(const CheckedAst& checked, const Declarations& declarations,
                                      const std::vector<std::string>& variables);

}  // namespace drakkar::cel
