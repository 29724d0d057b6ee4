#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "allocator/view/interner.h"
#include "device/attribute.h"

namespace drakkar::allocator {

// Interns attribute values as sorted sets of numbered elements, so that constraints compare
// numbers. Elements of different types have different numbers: 1, "1" and version 1.
class ValueTable {
 public:
  using Set = std::vector<std::uint32_t>;

  // Used instead of a value.
  static constexpr std::int32_t kUnknown = -1;  // not looked up yet
  static constexpr std::int32_t kNone = -2;     // no usable value: never satisfies a constraint
  static constexpr std::int32_t kError = -3;    // a derived attribute that could not be evaluated

  // The number of the value's set, or kNone. Lists are usable only with `lists`.
  std::int32_t Intern(const device::AttributeValue& value, bool lists);

  const Set& set(std::int32_t number) const { return sets_[static_cast<std::size_t>(number)]; }

 private:
  Interner elements_;
  Interner set_ids_;
  std::vector<Set> sets_;
};

bool AreDisjoint(const ValueTable::Set& a, const ValueTable::Set& b);
ValueTable::Set Intersect(const ValueTable::Set& a, const ValueTable::Set& b);

}  // namespace drakkar::allocator
