#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/env/clock.h"
#include "scheduler/cache/pod_info.h"
#include "scheduler/framework/diagnosis.h"

namespace drakkar::scheduler {

// A pod that has no node yet, and how it has fared.
struct QueuedPod {
  PodInfoPtr info;
  std::uint64_t sequence = 0;  // order of first arrival; breaks ties
  MonotonicTime queued_at{};   // when it last became ready to be tried
  MonotonicTime first_queued_at{};
  // When the first attempt began.
  std::optional<MonotonicTime> first_attempt_at;
  int attempts = 0;
  // For the pauses between attempts: refusals in all, and errors in a row.
  int refusals = 0;
  int errors = 0;
  // The pause under way ends here at the latest: something happened that it is worth trying again
  // for.
  MonotonicTime pause_ends_by = MonotonicTime::max();
  // Plugins that refused it the last time.
  PluginSet rejected_by = 0;
  bool gated = false;  // refused before it entered the queue
};

}  // namespace drakkar::scheduler
