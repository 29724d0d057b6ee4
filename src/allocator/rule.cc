#include "allocator/rule.h"

#include <array>

namespace drakkar::allocator {
namespace {

struct Texts {
  std::string_view name;
  std::string_view sentence;
};

constexpr std::array<Texts, kRuleCount> kTexts = {{
    {"in-use", "held by another claim"},
    {"picked", "already taken by this pod"},
    {"binding-conditions-disabled", "needs binding conditions, which are disabled"},
    {"class-selector", "not selected by the device class"},
    {"request-selector", "not selected by the request"},
    {"node-selection", "not for this node"},
    {"capacity", "not enough capacity"},
    {"skip-disabled",
     "its slice skips node operations, but the DRAOptionalNodePreparation feature gate is "
     "disabled"},
    {"skip-undeclared", "node(s) did not match node declared features: DraOptionalNodePreparation"},
    {"counters-disabled", "consumes counters, but partitionable devices are disabled"},
    {"compatibility-groups", "not compatible with devices that share its counters"},
    {"counters", "not enough shared counters"},
    {"taint", "has a taint that the request does not tolerate"},
    {"constraint", "a constraint of the claim would not be satisfied"},
}};

}  // namespace

std::string_view RuleName(Rule rule) {
  return kTexts[static_cast<std::size_t>(rule)].name;
}

std::string_view RuleSentence(Rule rule) {
  return kTexts[static_cast<std::size_t>(rule)].sentence;
}

}  // namespace drakkar::allocator
