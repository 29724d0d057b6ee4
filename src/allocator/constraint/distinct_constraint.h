#pragma once

#include <vector>

#include "allocator/constraint/value_table.h"

namespace drakkar::allocator {

// No two devices have a value in common.
class DistinctConstraint {
 public:
  explicit DistinctConstraint(const ValueTable& values) : values_(&values) {}

  // Adds a device with this value; false, and nothing is changed, if another has a part of it.
  bool Add(std::int32_t value) {
    if (value < 0) return false;
    for (const std::int32_t other : added_) {
      if (!AreDisjoint(values_->set(value), values_->set(other))) return false;
    }
    added_.push_back(value);
    return true;
  }
  // Takes back the last Add that succeeded.
  void Undo() { added_.pop_back(); }

 private:
  const ValueTable* values_;
  std::vector<std::int32_t> added_;
};

}  // namespace drakkar::allocator
