#pragma once

#include <vector>

#include "allocator/view/pool_view.h"

namespace drakkar::allocator {

// The remaining counters of one pool.
class CounterLedger {
 public:
  // `available` may be negative where devices were allocated before their pool shrank.
  CounterLedger(std::vector<api::Quantity> available, bool overcommitted)
      : available_(std::move(available)), overcommitted_(overcommitted) {}

  // Takes all amounts, or none and returns false if one is not available. As in Kubernetes, an
  // overcommitted counter blocks every consumer of its pool.
  bool Take(const std::vector<CounterNeed::Amount>& amounts) {
    if (overcommitted_) return false;
    for (std::size_t i = 0; i < amounts.size(); ++i) {
      api::Quantity& left = available_[amounts[i].counter];
      left.Subtract(*amounts[i].value);
      if (left.Sign() >= 0) continue;
      GiveBack(amounts, i + 1);
      return false;
    }
    return true;
  }
  void GiveBack(const std::vector<CounterNeed::Amount>& amounts) {
    GiveBack(amounts, amounts.size());
  }
  const api::Quantity& available(std::uint32_t counter) const { return available_[counter]; }

 private:
  void GiveBack(const std::vector<CounterNeed::Amount>& amounts, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) available_[amounts[i].counter].Add(*amounts[i].value);
  }

  std::vector<api::Quantity> available_;
  bool overcommitted_;
};

}  // namespace drakkar::allocator
