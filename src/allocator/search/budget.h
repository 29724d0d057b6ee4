#pragma once

#include <cstdint>
#include <functional>

namespace drakkar::allocator {

// Limits one search. A step is one device tried for one request.
struct SearchBudget {
  // Far more than any sensible problem needs, and less than a second of work.
  static constexpr std::uint64_t kDefaultSteps = 4'000'000;
  // Number of steps between two calls of should_stop.
  static constexpr std::uint64_t kPollSteps = 1'024;

  std::uint64_t steps = kDefaultSteps;
  // Returns true to end the search, on a timeout or cancellation. May be empty.
  std::function<bool()> should_stop;
};

}  // namespace drakkar::allocator
