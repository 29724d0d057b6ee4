#pragma once

#include <memory>
#include <string_view>

#include "device/expression.h"

namespace drakkar::allocator {

// A subset of CEL, enough for allocator tests that should not depend on CEL:
//   device.driver == "d"                          device.allowMultipleAllocations == true
//   device.attributes["d"].a == "x" | 1 | true    device.attributes["d"]["a"]  (a bool, or derived)
//   device.capacity["d"].c.compareTo(quantity("2Gi")) >= 0
//   "text"  (derived)                             ... && ..., ... || ...
// Anything else does not compile. Missing attributes fail as they do in CEL.
class SimpleExpressions final : public device::ExpressionCompiler {
 public:
  std::shared_ptr<const device::Expression> CompileSelector(std::string_view text) override;
  std::shared_ptr<const device::Expression> CompileDerived(std::string_view text) override;
};

}  // namespace drakkar::allocator
