#pragma once

#include <vector>

#include "cel/ast/source.h"
#include "cel/checker/checker.h"

namespace drakkar::cel {

// Finds constant arguments that can never work: durations, timestamps, patterns and formats.
void CheckLiterals(const CheckedAst& checked, std::vector<Issue>& issues);

}  // namespace drakkar::cel
