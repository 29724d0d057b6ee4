#pragma once

#include <cstddef>
#include <string_view>

#include "api/tree/draft.h"
#include "base/result/result.h"
#include "cel/value/value.h"

namespace drakkar::apiserver {

// Values of expressions share parts, so a small expression can stand for a large tree. Larger ones
// are errors.
inline constexpr std::size_t kMaxCelTreeNodes = 50'000;
inline constexpr std::size_t kMaxCelTreeBytes = std::size_t{3} << 20;

// The result of an expression as a tree. The names of constructed types must spell the path of
// their fields: Object.spec.template for the value of template in that of spec.
Result<api::Draft> CelTree(const cel::Value& value);

}  // namespace drakkar::apiserver
