#pragma once

#include <cstdint>
#include <string_view>

namespace drakkar::allocator {

// The rules that can refuse a device, in the order in which they are asked.
enum class Rule : std::uint8_t {
  kInUse,   // another claim holds it
  kPicked,  // this pod took it already
  kBindingConditionsDisabled,
  kClassSelector,
  kRequestSelector,
  kNodeSelection,  // its slice selects nodes per device, and not this one
  kCapacity,
  kSkipDisabled,    // its slice skips node operations, the gate is off
  kSkipUndeclared,  // its slice skips node operations, the node does not declare that
  kCountersDisabled,
  kCompatibilityGroups,
  kCounters,
  kTaint,
  kConstraint,
};
inline constexpr std::size_t kRuleCount = static_cast<std::size_t>(Rule::kConstraint) + 1;

// A set of rules that are not asked: "what if".
using RuleSet = std::uint32_t;
constexpr RuleSet Only(Rule rule) {
  return RuleSet{1} << static_cast<unsigned>(rule);
}
constexpr bool Has(RuleSet rules, Rule rule) {
  return (rules & Only(rule)) != 0;
}

std::string_view RuleName(Rule rule);      // a stable identifier: "in-use"
std::string_view RuleSentence(Rule rule);  // "held by another claim"

}  // namespace drakkar::allocator
