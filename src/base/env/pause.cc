#include "base/env/pause.h"

#include <poll.h>

#include <algorithm>

namespace drakkar {
namespace {

class MachinePause final : public Pause {
 public:
  void For(Duration duration) override {
    const auto milliseconds = std::chrono::ceil<std::chrono::milliseconds>(duration).count();
    // A signal ends it early: callers look at the clock anyway.
    ::poll(nullptr, 0, static_cast<int>(std::clamp<std::int64_t>(milliseconds, 0, 3'600'000)));
  }
};

}  // namespace

Pause& RealPause() {
  static MachinePause pause;
  return pause;
}

}  // namespace drakkar
