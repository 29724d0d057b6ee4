#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

#include "base/result/check.h"

namespace drakkar {

// One row of a state machine's table: in state `from`, `event` leads to state `to`.
template <typename State, typename Event>
struct Transition {
  State from;
  Event event;
  State to;
};

template <typename State, typename Event, std::size_t kRows>
using TransitionTable = std::array<Transition<State, Event>, kRows>;

// Where `event` leads from `from`; nothing if the table has no such row.
template <typename State, typename Event, std::size_t kRows>
constexpr std::optional<State> NextState(const TransitionTable<State, Event, kRows>& table,
                                         State from, Event event) {
  for (const auto& row : table) {
    if (row.from == from && row.event == event) return row.to;
  }
  return std::nullopt;
}

enum class TableFlaw {
  kNone,
  kAmbiguous,       // two rows for one state and event
  kUnreachable,     // no path leads from the initial state to some state
  kDeadEnd,         // a state that is not terminal has no way out
  kLeavesTerminal,  // a terminal state has a way out
};

// Checks a table, at compile time where it is defined:
//   static_assert(FindFlaw(kTable, kAllStates, {kDone}) == TableFlaw::kNone);
// `states` lists all states, the initial one first.
template <typename State, typename Event, std::size_t kRows, std::size_t kStates>
constexpr TableFlaw FindFlaw(const TransitionTable<State, Event, kRows>& table,
                             const std::array<State, kStates>& states,
                             std::initializer_list<State> terminal) {
  auto index = [&](State state) {
    return static_cast<std::size_t>(std::ranges::find(states, state) - states.begin());
  };
  std::array<bool, kStates> reached{};
  reached[0] = true;
  for (std::size_t pass = 0; pass < kStates; ++pass) {
    for (const auto& row : table) {
      if (reached.at(index(row.from))) reached.at(index(row.to)) = true;
    }
  }
  if (std::ranges::find(reached, false) != reached.end()) return TableFlaw::kUnreachable;
  for (std::size_t i = 0; i < kRows; ++i) {
    for (std::size_t j = i + 1; j < kRows; ++j) {
      if (table[i].from == table[j].from && table[i].event == table[j].event) {
        return TableFlaw::kAmbiguous;
      }
    }
  }
  for (const State state : states) {
    bool leaves = false;
    for (const auto& row : table) leaves = leaves || (row.from == state && row.to != state);
    const bool is_terminal = std::ranges::find(terminal, state) != terminal.end();
    if (!leaves && !is_terminal) return TableFlaw::kDeadEnd;
    if (leaves && is_terminal) return TableFlaw::kLeavesTerminal;
  }
  return TableFlaw::kNone;
}

// A state that changes only along the rows of `kTable`.
//
// An event the table has no row for is a bug of the caller and stops the process. Where the outside
// world decides the order of events, ask Accepts first. States and events have names:
// `std::string_view Name(State)` and `Name(Event)` beside their types.
template <const auto& kTable>
class StateMachine {
 public:
  using Row = typename std::remove_cvref_t<decltype(kTable)>::value_type;
  using State = decltype(Row::from);
  using Event = decltype(Row::event);

  constexpr explicit StateMachine(State initial) : state_(initial) {}

  constexpr State state() const { return state_; }
  constexpr bool Accepts(Event event) const { return NextState(kTable, state_, event).has_value(); }

  // Returns the state it has led to.
  State Apply(Event event) {
    const std::optional<State> next = NextState(kTable, state_, event);
    if (!next) {
      const std::string problem = std::string("state ")
                                      .append(Name(state_))
                                      .append(" has no transition for event ")
                                      .append(Name(event));
      internal::CheckFailed(__FILE__, __LINE__, problem.c_str());
    }
    return state_ = *next;
  }

 private:
  State state_;
};

}  // namespace drakkar
