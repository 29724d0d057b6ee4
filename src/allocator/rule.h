#pragma once

#include <cstdint>
#include <string_view>

namespace drakkar::allocator {

// The rules that can reject a device, in the order in which they are checked.
enum class Rule : std::uint8_t {
  kInUse,   // another claim holds it
  kPicked,  // this pod has already taken it
  kBindingConditionsDisabled,
  kClassSelector,
  kRequestSelector,
  kNodeSelection,  // its slice selects nodes per device, but not this one
  kCapacity,
  kSkipDisabled,    // its slice skips node operations, but the gate is off
  kSkipUndeclared,  // its slice skips node operations, but the node does not declare that
  kCountersDisabled,
  kCompatibilityGroups,
  kCounters,
  kTaint,
  kConstraint,
};
inline constexpr std::size_t kRuleCount = static_cast<std::size_t>(Rule::kConstraint) + 1;

std::string_view RuleName(Rule rule);      // a stable identifier: "in-use"
std::string_view RuleSentence(Rule rule);  // "held by another claim"

}  // namespace drakkar::allocator
