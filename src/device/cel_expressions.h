#pragma once

#include <memory>
#include <string_view>

#include "device/device_cel.h"
#include "device/expression.h"

namespace drakkar::device {

// Compiles expressions as the scheduler uses them: as stored expressions, which may use everything
// that was ever allowed, without a cost estimate. Not shared between threads.
class CelExpressions final : public ExpressionCompiler {
 public:
  CelExpressions();
  ~CelExpressions() override;

  std::shared_ptr<const Expression> CompileSelector(std::string_view text) override;
  std::shared_ptr<const Expression> CompileDerived(std::string_view text) override;

 private:
  DeviceCompiler compiler_;
  std::shared_ptr<cel::Evaluator> evaluator_;  // shared with the expressions
};

}  // namespace drakkar::device
