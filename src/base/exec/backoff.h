#pragma once

#include <algorithm>
#include <chrono>

#include "base/env/clock.h"
#include "base/env/random.h"
#include "base/result/check.h"

namespace drakkar {

// How long to wait before retrying: `initial` after the first failure, `factor` times as long
// after each further one, at most `max`. Call Reset() after a success.
//
//   retry_ = loop_.RunAfter(backoff_.Next(), [this] { Connect(); });
class Backoff {
 public:
  struct Options {
    Duration initial;
    Duration max;
    double factor = 2;
    // Lengthens every wait, `max` included, by a random part of up to this fraction, so that peers
    // that failed together do not all retry at the same moment.
    double jitter = 0;
  };

  // `random` may be null if there is no jitter.
  explicit Backoff(Options options, Random* random = nullptr) : options_(options), random_(random) {
    CHECK(options.initial > Duration::zero() && options.initial <= options.max);
    CHECK(options.factor >= 1);
    CHECK(options.jitter == 0 || random != nullptr);
  }

  // The wait before the next attempt. Each call counts as one more failure.
  Duration Next() {
    ++failures_;
    const Duration wait = wait_;
    wait_ = std::chrono::duration_cast<Duration>(
        std::min<FloatingDuration>(wait * options_.factor, options_.max));
    if (options_.jitter == 0) return wait;
    return std::chrono::duration_cast<Duration>(wait * (1 + options_.jitter * random_->Fraction()));
  }

  void Reset() {
    failures_ = 0;
    wait_ = options_.initial;
  }

  // Calls of Next() since the last Reset().
  int failures() const { return failures_; }

 private:
  using FloatingDuration = std::chrono::duration<double, Duration::period>;

  Options options_;
  Random* random_;
  Duration wait_ = options_.initial;
  int failures_ = 0;
};

}  // namespace drakkar
