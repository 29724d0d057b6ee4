#pragma once

#include <string_view>

#include "cel/library/library.h"

// Regular expressions. RE2 is only used behind these functions.
namespace drakkar::cel::library {

Value MatchesRegex(CallContext& context, Args args);
std::unique_ptr<PreparedCall> PrepareMatches(std::span<const Value* const> constants);

bool IsValidRegex(std::string_view pattern);

}  // namespace drakkar::cel::library
