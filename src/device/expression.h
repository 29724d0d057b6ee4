#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result/result.h"
#include "device/attribute.h"
#include "device/slice.h"

namespace drakkar::device {

// Which attributes of a device an expression can look at; driver, capacity and
// allowMultipleAllocations are always assumed. Two devices equal in these give equal answers.
struct Reads {
  bool everything = false;              // it may look at any attribute, or at all of them
  std::vector<std::string> attributes;  // "domain/id"
};

// A compiled selector or derived attribute. Immutable; evaluation does not change it.
class Expression {
 public:
  virtual ~Expression() = default;

  // Set if the text does not compile; then nothing below may be called but reads().
  const std::optional<std::string>& compile_error() const { return compile_error_; }
  const Reads& reads() const { return reads_; }

  // A selector's answer; the error text is the expression language's own.
  virtual Result<bool> Matches(std::string_view driver, const Device& device) const = 0;
  // A derived attribute's value.
  virtual Result<AttributeValue> Derive(std::string_view driver, const Device& device) const = 0;

 protected:
  std::optional<std::string> compile_error_;
  Reads reads_;
};

// Compiles texts. Behind an interface so that the search can be tested with predicates of its own.
class ExpressionCompiler {
 public:
  virtual ~ExpressionCompiler() = default;
  virtual std::shared_ptr<const Expression> CompileSelector(std::string_view text) = 0;
  virtual std::shared_ptr<const Expression> CompileDerived(std::string_view text) = 0;
};

}  // namespace drakkar::device
