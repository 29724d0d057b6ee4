#pragma once

#include <functional>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "answers/counts/counts.h"
#include "base/exec/event_loop.h"
#include "base/exec/lifetime.h"
#include "base/exec/worker_pool.h"
#include "scheduler/scheduler.h"
#include "telemetry/metrics/metrics.h"

namespace drakkar::answers {

// The device and claim gauges among the scheduler's metrics, computed on request and at most every
// kFresh. The count runs on a worker thread over a copy of the scheduler's state.
//
// Lives on the scheduler's loop. At most kMaxReaders wait for a count; others get the last one.
class ClusterGauges {
 public:
  static constexpr Duration kFresh = std::chrono::seconds(5);
  static constexpr std::size_t kMaxReaders = 64;

  struct Options {
    EventLoop& loop;
    Metrics& metrics;
    const scheduler::Scheduler& scheduler;
    // Runs the count; false if it cannot. Empty: on a worker thread.
    std::function<bool(Task)> run = {};
  };
  explicit ClusterGauges(Options options);
  ~ClusterGauges();
  ClusterGauges(const ClusterGauges&) = delete;
  ClusterGauges& operator=(const ClusterGauges&) = delete;

  // `done` runs when the gauges are current, possibly before this returns.
  void Refresh(std::function<void()> done);

 private:
  void Take(const ClusterCounts& counts);
  void End();

  const Options options_;
  MonotonicTime last_{};
  bool has_counted_ = false;
  std::vector<std::function<void()>> readers_;           // while a count is in progress
  std::set<std::pair<std::string, std::string>> shown_;  // class and state
  Lifetime lifetime_;
  std::unique_ptr<WorkerPool> workers_;  // last, so that its thread ends first
};

}  // namespace drakkar::answers
