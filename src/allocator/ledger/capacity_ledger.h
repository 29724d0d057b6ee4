#pragma once

#include <cstdint>
#include <vector>

#include "allocator/ledger/capacity_policy.h"
#include "device/allocated_state.h"

namespace drakkar::allocator {

// Shares of devices taken in one attempt, on top of those already allocated.
class CapacityLedger {
 public:
  explicit CapacityLedger(std::size_t device_count) : slots_(device_count, kNone) {}

  // Whether the need fits in addition to what `allocated` (null: nothing) and this attempt consume.
  bool Fits(std::uint32_t device, const std::vector<device::Capacity>& capacities,
            const CapacityNeed& need, const device::DeviceUse* allocated) const {
    if (need.kind != CapacityNeed::Kind::kFits) return false;
    const Shares* shares = slots_[device] == kNone ? nullptr : &shares_[slots_[device]];
    if (allocated == nullptr && (shares == nullptr || shares->count == 0)) return true;
    for (std::size_t i = 0; i < capacities.size(); ++i) {
      api::Quantity total = need.amounts[i];
      if (shares != nullptr) total.Add(shares->consumed[i]);
      if (allocated != nullptr) {
        const auto found = allocated->consumed.find(capacities[i].name);
        if (found != allocated->consumed.end()) total.Add(found->second);
      }
      if (total > capacities[i].value) return false;
    }
    return true;
  }

  void Take(std::uint32_t device, const CapacityNeed& need) {
    if (slots_[device] == kNone) {
      slots_[device] = static_cast<std::uint32_t>(shares_.size());
      shares_.push_back({0, std::vector<api::Quantity>(need.amounts.size())});
    }
    Shares& shares = shares_[slots_[device]];
    ++shares.count;
    for (std::size_t i = 0; i < need.amounts.size(); ++i) shares.consumed[i].Add(need.amounts[i]);
  }
  void GiveBack(std::uint32_t device, const CapacityNeed& need) {
    Shares& shares = shares_[slots_[device]];
    --shares.count;
    for (std::size_t i = 0; i < need.amounts.size(); ++i) {
      shares.consumed[i].Subtract(need.amounts[i]);
    }
  }
  int shares(std::uint32_t device) const {
    return slots_[device] == kNone ? 0 : shares_[slots_[device]].count;
  }

 private:
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};
  struct Shares {
    int count;
    std::vector<api::Quantity> consumed;
  };
  std::vector<std::uint32_t> slots_;  // per device: index into shares_
  std::vector<Shares> shares_;
};

}  // namespace drakkar::allocator
