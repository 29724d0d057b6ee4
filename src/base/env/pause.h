#pragma once

#include "base/env/clock.h"

namespace drakkar {

// For programs without a loop that have to wait for something. Everything else uses timers.
class Pause {
 public:
  virtual ~Pause() = default;
  virtual void For(Duration duration) = 0;
};

Pause& RealPause();

}  // namespace drakkar
