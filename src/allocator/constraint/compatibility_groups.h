#pragma once

#include <span>
#include <vector>

#include "allocator/view/pool_view.h"

namespace drakkar::allocator {

// Which devices may share the counter sets of one pool, given those already allocated.
class CompatibilityGroups {
 public:
  explicit CompatibilityGroups(const std::vector<GroupState>& allocated) : states_(allocated) {}

  // Joins all sets, or none and returns false if one of them does not accept the device.
  bool Add(const std::vector<CounterNeed::Membership>& sets) {
    const std::size_t mark = undo_.size();
    for (const CounterNeed::Membership& member : sets) {
      GroupState& state = states_[member.counter_set];
      undo_.push_back({member.counter_set, state});
      if (JoinGroups(state, *member.groups)) continue;
      Rewind(mark);
      return false;
    }
    marks_.push_back(mark);
    return true;
  }
  // Undoes the last successful Add.
  void Undo() {
    Rewind(marks_.back());
    marks_.pop_back();
  }

 private:
  struct Before {
    std::uint32_t counter_set;
    GroupState state;
  };
  void Rewind(std::size_t mark) {
    while (undo_.size() > mark) {
      states_[undo_.back().counter_set] = std::move(undo_.back().state);
      undo_.pop_back();
    }
  }

  std::vector<GroupState> states_;
  std::vector<Before> undo_;
  std::vector<std::size_t> marks_;
};

}  // namespace drakkar::allocator
