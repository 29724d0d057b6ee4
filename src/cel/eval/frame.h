#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "cel/value/value.h"

namespace drakkar::cel {

// The state of one evaluation.
struct Frame {
  Arena& arena;
  std::span<const Value> variables;  // in the order the environment declares them
  Value* slots;                      // local variables of folds, one each
  bool* slot_ready;                  // whether an accumulator was initialised
  std::uint64_t limit;
  bool strict_presence = false;  // testing a value without fields for a field is an error
  std::uint64_t cost = 0;
  bool cancelled = false;  // the limit was exceeded; the result is not an answer
  std::uint64_t cost_when_cancelled = 0;

  void Charge(std::uint64_t amount) {
    cost += amount;
    if (cost > limit && !cancelled) [[unlikely]] {
      cancelled = true;
      cost_when_cancelled = cost;
    }
  }
};

}  // namespace drakkar::cel
