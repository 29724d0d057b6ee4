#include "apiserver/validation/resource_rules.h"
#include "device/device_cel.h"
#include "features/gates/feature_gates.h"

namespace drakkar::apiserver {
namespace {

// What compiling costs, in steps of the work budget.
constexpr std::size_t kStepsPerExpression = 20'000;
constexpr std::size_t kStepsPerExpressionByte = 500;

// One compiler per combination of features, for the life of the process: creating one is expensive.
const device::DeviceCompiler& CompilerFor(const FeatureGates& gates) {
  const bool capacity = gates.Enabled(Gate::kDRAConsumableCapacity);
  const bool lists = gates.Enabled(Gate::kDRAListTypeAttributes);
  auto make = [](bool consumable_capacity, bool list_type_attributes) {
    return new device::DeviceCompiler(
        {.consumable_capacity = consumable_capacity, .list_type_attributes = list_type_attributes});
  };
  if (capacity && lists) {
    static const device::DeviceCompiler& both = *make(true, true);
    return both;
  }
  if (capacity) {
    static const device::DeviceCompiler& with_capacity = *make(true, false);
    return with_capacity;
  }
  if (lists) {
    static const device::DeviceCompiler& with_lists = *make(false, true);
    return with_lists;
  }
  static const device::DeviceCompiler& plain = *make(false, false);
  return plain;
}

}  // namespace

void CheckExpression(Findings& out, const api::FieldPath& path, std::string_view expression,
                     const FeatureGates& gates, ExpressionCost* derived) {
  if (expression.size() > device::kMaxSelectorBytes) {
    out.Add(api::FieldError::TooLong(path, device::kMaxSelectorBytes));
    return;
  }
  WorkBudget::Charge(kStepsPerExpression + kStepsPerExpressionByte * expression.size());
  if (Findings::IsFull()) return;
  const device::DeviceCompiler& compiler = CompilerFor(gates);
  const device::DeviceCompiler::Outcome outcome =
      derived == nullptr
          ? compiler.CompileSelector(expression, device::ExpressionSet::kNew)
          : compiler.CompileDerivedAttribute(expression, device::ExpressionSet::kNew);
  if (outcome.expression == nullptr) {
    out.Add(outcome.failure.internal
                ? api::FieldError::Internal(path, outcome.failure.message)
                : api::FieldError::Invalid(path, expression, outcome.failure.message));
    return;
  }
  const std::uint64_t cost = outcome.expression->EstimateCost().max;
  if (cost > device::kMaxSelectorCost) {
    out.Add(api::FieldError::Forbidden(path, "too complex, exceeds cost limit"));
  }
  if (derived != nullptr) {
    const bool overflow = cost > ~std::uint64_t{0} - derived->derived;
    derived->derived = overflow ? ~std::uint64_t{0} : derived->derived + cost;
  }
}

}  // namespace drakkar::apiserver
