#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/env/clock.h"
#include "telemetry/metrics/metrics.h"

namespace drakkar::scheduler {

// The scheduler's metrics, with the names of kube-scheduler.
struct SchedulerMetrics {
  SchedulerMetrics(Metrics& metrics, std::string profile);

  enum class Result { kScheduled, kUnschedulable, kError };
  void ObserveAttempt(Result result, Duration took);
  // Duration from the first attempt (gated time excluded) until the pod is bound.
  void ObserveScheduled(int attempts, Duration since_first_attempt);
  // Both arguments must be constants.
  void CountIncoming(std::string_view queue, std::string_view event);
  // Duration from the start of an attempt until a node was chosen.
  void ObserveAlgorithm(Duration took);
  // A pod rejected by the plugin started (1) or stopped (-1) waiting.
  void CountUnschedulable(std::string_view plugin, int by);
  // An attempt rejected this many nodes for this reason.
  void CountRefused(const std::string& reason, std::size_t nodes);
  void SetCacheSize(std::size_t nodes, std::size_t pods, std::size_t assumed_pods);
  // The caller does the sampling for both.
  void ObservePoint(std::string_view point, std::string_view status, Duration took);
  void ObservePlugin(std::string_view plugin, std::string_view point, std::string_view status,
                     Duration took);

  // KEP-5007: one count for each PreBind that had to wait for conditions (success, failure,
  // timeout), the duration of every DRA PreBind, and the wait as Kubernetes measures it.
  void CountBindingConditions(std::string_view status);
  void ObserveDraPreBind(std::string_view status, bool had_conditions, Duration took);
  void ObserveConditionWait(std::string_view driver, std::string_view status, Duration took);

  Gauge* pending_active;
  Gauge* pending_backoff;
  Gauge* pending_unschedulable;
  Gauge* pending_gated;

 private:
  Metrics& metrics_;
  const std::string profile_;
  std::vector<Counter*> attempts_;  // by Result
  std::vector<Histogram*> attempt_seconds_;
  std::map<std::pair<std::string_view, std::string_view>, Counter*> incoming_;
  std::map<std::string, Histogram*, std::less<>> plugin_seconds_;
  std::map<std::pair<std::string, bool>, Histogram*, std::less<>> pre_bind_seconds_;
  std::vector<Histogram*> sli_seconds_;  // by number of attempts
  Histogram* pod_attempts_;
  Histogram* algorithm_seconds_;
  std::map<std::string, Histogram*, std::less<>> point_seconds_;
  std::map<std::string, Gauge*, std::less<>> unschedulable_;  // by plugin
  std::vector<Gauge*> cache_size_;                            // nodes, pods, assumed pods
};

}  // namespace drakkar::scheduler
