#pragma once

#include <vector>

#include "allocator/constraint/value_table.h"

namespace drakkar::allocator {

// All devices have a value in common; if each has one value, they are equal.
class MatchConstraint {
 public:
  explicit MatchConstraint(const ValueTable& values) : values_(&values) {}

  // Adds a device with this value. Returns false and changes nothing if it has none in common with
  // the others.
  bool Add(std::int32_t value) {
    if (value < 0) return false;
    if (common_.empty()) {
      common_.push_back(values_->set(value));
      return true;
    }
    ValueTable::Set both = Intersect(common_.back(), values_->set(value));
    if (both.empty()) return false;
    common_.push_back(std::move(both));
    return true;
  }
  // Undoes the last successful Add.
  void Undo() { common_.pop_back(); }

 private:
  const ValueTable* values_;
  std::vector<ValueTable::Set> common_;  // what the first n devices have in common, for each n
};

}  // namespace drakkar::allocator
