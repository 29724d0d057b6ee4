#pragma once

#include <cstdint>
#include <functional>

namespace drakkar::allocator {

// How long one search may take. A step is one device tried for one request.
struct SearchBudget {
  // Far more than any sensible problem needs, and still less than a second.
  static constexpr std::uint64_t kDefaultSteps = 4'000'000;
  // How many steps pass between two calls of should_stop.
  static constexpr std::uint64_t kPollSteps = 1'024;

  std::uint64_t steps = kDefaultSteps;
  // True ends the search; the caller's clock and cancellation come in here. May be empty.
  std::function<bool()> should_stop;
};

}  // namespace drakkar::allocator
