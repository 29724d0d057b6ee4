#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result/result.h"
#include "cel/cost/estimate.h"
#include "cel/planner/program.h"
#include "cel/types/type.h"
#include "device/device_input.h"

namespace drakkar::cel {
class Environment;
struct Compiled;
}  // namespace drakkar::cel

// Device selectors and derived attributes: the CEL environment with the variable `device`.
namespace drakkar::device {

inline constexpr std::uint64_t kMaxSelectorCost = 1'000'000;
inline constexpr std::size_t kMaxSelectorBytes = 10 * 1'024;

// kNew limits expressions to what new ones may use; kStored allows everything that stored
// expressions ever could use.
enum class ExpressionSet { kNew, kStored };

struct CelFeatures {
  bool consumable_capacity = false;
  bool list_type_attributes = false;
  // New expressions may use only what this release knew, which is the one before the server's.
  int compatibility_minor = 36;
};

// A device converted for evaluation, once for all expressions. Not movable: values point into it.
class CelDevice {
 public:
  // Fails if an attribute has no value or has a version that does not parse. Every expression on
  // the device then fails with this error.
  static Result<std::unique_ptr<const CelDevice>> Create(const DeviceInput& input);
  ~CelDevice();

  std::span<const cel::Value> variables() const;

 private:
  struct State;
  explicit CelDevice(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// The inputs that an expression can depend on. Devices equal in these get the same answer.
struct ReadSet {
  struct Key {
    std::string domain;
    std::string name;
    auto operator<=>(const Key&) const = default;
  };
  bool all = false;  // anything, including which attributes exist
  bool driver = false;
  bool allow_multiple_allocations = false;
  std::vector<Key> attributes;  // sorted, unique
  std::vector<Key> capacity;
  std::vector<std::string> attribute_domains;  // read as a whole
  std::vector<std::string> capacity_domains;
};

// A compiled selector or derived attribute. Immutable, shareable between threads.
class DeviceExpression {
 public:
  struct Answer {
    bool matches = false;
    std::optional<std::string> error;  // why there is no answer
    std::uint64_t cost = 0;
  };
  struct Derived {
    AttributeValue value;
    std::optional<std::string> error;
    std::uint64_t cost = 0;
  };

  ~DeviceExpression();
  Answer Matches(const CelDevice& device, cel::Evaluator& evaluator,
                 std::uint64_t cost_limit = kMaxSelectorCost) const;
  Derived Derive(const CelDevice& device, cel::Evaluator& evaluator,
                 std::uint64_t cost_limit = kMaxSelectorCost) const;

  const cel::TypeRef& output_type() const;
  const ReadSet& read_set() const { return read_set_; }
  // The worst case, which API validation compares with the limit.
  cel::Estimate EstimateCost() const;

 private:
  friend class DeviceCompiler;
  explicit DeviceExpression(std::unique_ptr<cel::Compiled> compiled);

  std::unique_ptr<cel::Compiled> compiled_;
  ReadSet read_set_;
};

// Compiles expressions for a set of features. Immutable after construction.
class DeviceCompiler {
 public:
  explicit DeviceCompiler(const CelFeatures& features);
  ~DeviceCompiler();

  struct Failure {
    std::string message;
    bool internal = false;
  };
  struct Outcome {
    std::unique_ptr<const DeviceExpression> expression;  // null on failure
    Failure failure;
  };
  Outcome CompileSelector(std::string_view source, ExpressionSet set) const;
  Outcome CompileDerivedAttribute(std::string_view source, ExpressionSet set) const;

 private:
  Outcome Compile(std::string_view source, ExpressionSet set, bool derived) const;

  CelFeatures features_;
  std::unique_ptr<cel::Environment> new_;
  std::unique_ptr<cel::Environment> stored_;
};

// What the scheduler appends to errors about missing attributes.
std::string WithHint(std::string_view error);

}  // namespace drakkar::device
