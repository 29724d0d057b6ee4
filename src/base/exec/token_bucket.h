#pragma once

#include <algorithm>
#include <chrono>

#include "base/env/clock.h"

namespace drakkar {

// Allows a burst of `burst`, then `per_second`. Starts full. The caller passes the time.
class TokenBucket {
 public:
  TokenBucket(double per_second, double burst)
      : per_second_(per_second), burst_(burst), tokens_(burst) {}

  // Returns false if no token is available. `now` never goes back.
  bool Take(MonotonicTime now) {
    const double seconds = std::chrono::duration<double>(now - filled_at_).count();
    tokens_ = std::min(burst_, tokens_ + seconds * per_second_);
    filled_at_ = now;
    if (tokens_ < 1) return false;
    tokens_ -= 1;
    return true;
  }
  // Time until the next token, as of the last Take.
  Duration Wait() const {
    return std::chrono::duration_cast<Duration>(
        std::chrono::duration<double>(std::max(0.0, 1 - tokens_) / per_second_));
  }

 private:
  const double per_second_;
  const double burst_;
  double tokens_;
  MonotonicTime filled_at_{};
};

}  // namespace drakkar
