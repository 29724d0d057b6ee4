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

// The attributes that an expression may read. Driver, capacity and allowMultipleAllocations are
// always assumed to be read. Devices equal in these get the same answer.
struct Reads {
  bool everything = false;              // it may read any attribute, or all of them
  std::vector<std::string> attributes;  // "domain/id"
};

// A compiled selector or derived attribute. Immutable; evaluation does not change it.
class Expression {
 public:
  virtual ~Expression() = default;

  // Set if the text does not compile; then only reads() may be called.
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

// Compiles expressions. An interface, so that the search can be tested without CEL.
class ExpressionCompiler {
 public:
  virtual ~ExpressionCompiler() = default;
  virtual std::shared_ptr<const Expression> CompileSelector(std::string_view text) = 0;
  virtual std::shared_ptr<const Expression> CompileDerived(std::string_view text) = 0;
};

}  // namespace drakkar::device
