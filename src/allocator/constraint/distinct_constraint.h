#pragma once

#include <vector>

#include "allocator/constraint/value_table.h"

namespace drakkar::allocator {

// No two devices have a value in common.
class DistinctConstraint {
 public:
  explicit DistinctConstraint(const ValueTable& values) : values_(&values) {}

  // Adds a device with this value. Returns false and changes nothing if it overlaps with another.
  bool Add(std::int32_t value) {
    if (value < 0) return false;
    for (const std::int32_t other : added_) {
      if (!AreDisjoint(values_->set(value), values_->set(other))) return false;
    }
    added_.push_back(value);
    return true;
  }
  // Undoes the last successful Add.
  void Undo() { added_.pop_back(); }

 private:
  const ValueTable* values_;
  std::vector<std::int32_t> added_;
};

}  // namespace drakkar::allocator
