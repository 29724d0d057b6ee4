#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>

namespace drakkar {

// Limits the work that the current thread does for one request. Code whose cost depends on what a
// client sent charges steps, each about a nanosecond; once the budget is exceeded it returns early,
// with any result, because the request is rejected then. Whoever opened the budget checks
// IsExceeded before it uses a result.
//
// Outside of a budget nothing is ever exceeded. Budgets nest: the inner one counts on its own.
class WorkBudget {
 public:
  static constexpr std::int64_t kUnlimited = std::numeric_limits<std::int64_t>::max();

  explicit WorkBudget(std::int64_t steps) : outer_(left_), steps_(steps) { left_ = steps; }
  ~WorkBudget() {
    last_used_ = used();
    left_ = outer_;
  }
  WorkBudget(const WorkBudget&) = delete;
  WorkBudget& operator=(const WorkBudget&) = delete;

  static void Charge(std::size_t steps) { left_ -= static_cast<std::int64_t>(steps); }
  static bool IsExceeded() { return left_ < 0; }
  // Steps charged since this budget, the innermost one, was opened.
  std::int64_t used() const { return steps_ - left_; }
  // What the budget of this thread that ended last was charged; for tests.
  static std::int64_t last_used() { return last_used_; }

 private:
  static inline constinit thread_local std::int64_t left_ = kUnlimited;
  static inline constinit thread_local std::int64_t last_used_ = 0;
  const std::int64_t outer_;
  const std::int64_t steps_;
};

}  // namespace drakkar
