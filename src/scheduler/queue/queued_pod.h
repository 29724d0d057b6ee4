#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/env/clock.h"
#include "scheduler/cache/pod_info.h"
#include "scheduler/framework/diagnosis.h"

namespace drakkar::scheduler {

// A pod without a node, and its history in the queue.
struct QueuedPod {
  PodInfoPtr info;
  std::uint64_t sequence = 0;  // order of first arrival; breaks ties
  MonotonicTime queued_at{};   // when it last became ready
  MonotonicTime first_queued_at{};
  // When the first attempt began.
  std::optional<MonotonicTime> first_attempt_at;
  int attempts = 0;
  // For the backoff: total rejections, and consecutive errors.
  int refusals = 0;
  int errors = 0;
  // Ends the current backoff early, because something happened that makes a retry worthwhile.
  MonotonicTime pause_ends_by = MonotonicTime::max();
  // Plugins that rejected it in the last attempt.
  PluginSet rejected_by = 0;
  bool gated = false;  // rejected by PreEnqueue
};

}  // namespace drakkar::scheduler
