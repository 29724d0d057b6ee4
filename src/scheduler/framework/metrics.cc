#include "scheduler/framework/metrics.h"

#include <algorithm>

#include "base/text/text.h"

namespace drakkar::scheduler {
namespace {

double Seconds(Duration duration) {
  return std::chrono::duration<double>(duration).count();
}

constexpr std::string_view kResults[] = {"scheduled", "unschedulable", "error"};
// Kubernetes uses one label for 15 attempts or more.
constexpr int kMostAttemptsLabelled = 15;

}  // namespace

SchedulerMetrics::SchedulerMetrics(Metrics& metrics, std::string profile)
    : metrics_(metrics), profile_(std::move(profile)) {
  auto pending = [&](const char* queue) {
    return &metrics.GetGauge("scheduler_pending_pods", "Number of pending pods, by the queue type.",
                             {{"queue", queue}});
  };
  pending_active = pending("active");
  pending_backoff = pending("backoff");
  pending_unschedulable = pending("unschedulable");
  pending_gated = pending("gated");
  for (const std::string_view result : kResults) {
    const MetricLabels labels = {{"profile", profile_}, {"result", std::string(result)}};
    attempts_.push_back(&metrics.GetCounter("scheduler_schedule_attempts_total",
                                            "Number of attempts to schedule pods, by the result.",
                                            labels));
    attempt_seconds_.push_back(&metrics.GetHistogram(
        "scheduler_scheduling_attempt_duration_seconds",
        "Scheduling attempt latency in seconds (scheduling algorithm + binding)", labels,
        ExponentialBounds(0.001, 2, 15)));
  }
  for (int attempts = 1; attempts <= kMostAttemptsLabelled; ++attempts) {
    sli_seconds_.push_back(&metrics.GetHistogram(
        "scheduler_pod_scheduling_sli_duration_seconds",
        "E2e latency for a pod being scheduled, from the time the pod enters the scheduling queue.",
        {{"attempts", attempts < kMostAttemptsLabelled ? std::to_string(attempts) : "15+"}},
        ExponentialBounds(0.01, 2, 20)));
  }
  pod_attempts_ = &metrics.GetHistogram("scheduler_pod_scheduling_attempts",
                                        "Number of attempts to successfully schedule a pod.", {},
                                        ExponentialBounds(1, 2, 5));
  algorithm_seconds_ = &metrics.GetHistogram("scheduler_scheduling_algorithm_duration_seconds",
                                             "Scheduling algorithm latency in seconds", {},
                                             ExponentialBounds(0.001, 2, 15));
  for (const char* type : {"nodes", "pods", "assumed_pods"}) {
    cache_size_.push_back(
        &metrics.GetGauge("scheduler_cache_size",
                          "Number of nodes, pods, and assumed (bound) pods in the scheduler cache.",
                          {{"type", type}}));
  }
}

void SchedulerMetrics::ObserveAlgorithm(Duration took) {
  algorithm_seconds_->Observe(Seconds(took));
}

void SchedulerMetrics::CountRefused(const std::string& reason, std::size_t nodes) {
  metrics_
      .GetCounter(
          "drakkar_scheduler_refused_nodes_total",
          "Nodes rejected in attempts that found no node, by reason as in FailedScheduling.",
          {{"profile", profile_}, {"reason", reason}})
      .Add(static_cast<double>(nodes));
}

void SchedulerMetrics::SetCacheSize(std::size_t nodes, std::size_t pods, std::size_t assumed_pods) {
  cache_size_[0]->Set(static_cast<double>(nodes));
  cache_size_[1]->Set(static_cast<double>(pods));
  cache_size_[2]->Set(static_cast<double>(assumed_pods));
}

void SchedulerMetrics::CountUnschedulable(std::string_view plugin, int by) {
  auto found = unschedulable_.find(plugin);
  if (found == unschedulable_.end()) {
    Gauge& gauge = metrics_.GetGauge(
        "scheduler_unschedulable_pods",
        "The number of unschedulable pods broken down by plugin name. A pod will increment the "
        "gauge "
        "for all plugins that caused it to not schedule and so this metric have meaning only when "
        "broken down by plugin.",
        {{"plugin", std::string(plugin)}, {"profile", profile_}});
    found = unschedulable_.emplace(std::string(plugin), &gauge).first;
  }
  found->second->Add(by);
}

void SchedulerMetrics::ObservePoint(std::string_view point, std::string_view status,
                                    Duration took) {
  const std::string id = StrCat(point, "/", status);
  auto found = point_seconds_.find(id);
  if (found == point_seconds_.end()) {
    Histogram& histogram =
        metrics_.GetHistogram("scheduler_framework_extension_point_duration_seconds",
                              "Latency for running all plugins of a specific extension point.",
                              {{"extension_point", std::string(point)},
                               {"profile", profile_},
                               {"status", std::string(status)}},
                              ExponentialBounds(0.0001, 2, 12));
    found = point_seconds_.emplace(id, &histogram).first;
  }
  found->second->Observe(Seconds(took));
}

void SchedulerMetrics::ObserveAttempt(Result result, Duration took) {
  attempts_[static_cast<std::size_t>(result)]->Add();
  attempt_seconds_[static_cast<std::size_t>(result)]->Observe(Seconds(took));
}

void SchedulerMetrics::ObserveScheduled(int attempts, Duration since_first_attempt) {
  const int label = std::clamp(attempts, 1, kMostAttemptsLabelled);
  sli_seconds_[static_cast<std::size_t>(label - 1)]->Observe(Seconds(since_first_attempt));
  pod_attempts_->Observe(attempts);
}

void SchedulerMetrics::CountIncoming(std::string_view queue, std::string_view event) {
  auto found = incoming_.find(std::pair(queue, event));
  if (found == incoming_.end()) {
    Counter& counter =
        metrics_.GetCounter("scheduler_queue_incoming_pods_total",
                            "Number of pods added to scheduling queues by event and queue type.",
                            {{"event", std::string(event)}, {"queue", std::string(queue)}});
    found = incoming_.emplace(std::pair(queue, event), &counter).first;
  }
  found->second->Add();
}

void SchedulerMetrics::ObservePlugin(std::string_view plugin, std::string_view point,
                                     std::string_view status, Duration took) {
  const std::string id = StrCat(plugin, "/", point, "/", status);
  auto found = plugin_seconds_.find(id);
  if (found == plugin_seconds_.end()) {
    Histogram& histogram =
        metrics_.GetHistogram("scheduler_plugin_execution_duration_seconds",
                              "Duration for running a plugin at a specific extension point.",
                              {{"extension_point", std::string(point)},
                               {"plugin", std::string(plugin)},
                               {"status", std::string(status)}},
                              ExponentialBounds(0.00001, 1.5, 20));
    found = plugin_seconds_.emplace(id, &histogram).first;
  }
  found->second->Observe(Seconds(took));
}

void SchedulerMetrics::CountBindingConditions(std::string_view status) {
  metrics_
      .GetCounter("scheduler_dra_bindingconditions_allocations_total",
                  "Number of PreBind executions that needed binding conditions, by outcome.",
                  {{"status", std::string(status)}})
      .Add();
}

void SchedulerMetrics::ObserveDraPreBind(std::string_view status, bool had_conditions,
                                         Duration took) {
  const std::pair labels(std::string(status), had_conditions);
  auto found = pre_bind_seconds_.find(labels);
  if (found == pre_bind_seconds_.end()) {
    Histogram& histogram =
        metrics_.GetHistogram("scheduler_dra_bindingconditions_prebind_duration_seconds",
                              "Duration of the PreBind step of pods with resource claims.",
                              {{"status", labels.first},
                               {"requires_bindingconditions", had_conditions ? "true" : "false"}},
                              ExponentialBounds(0.001, 2, 21));
    found = pre_bind_seconds_.emplace(labels, &histogram).first;
  }
  found->second->Observe(Seconds(took));
}

void SchedulerMetrics::ObserveConditionWait(std::string_view driver, std::string_view status,
                                            Duration took) {
  metrics_
      .GetHistogram(
          "scheduler_dra_bindingconditions_wait_duration_seconds",
          "How long pods waited for the binding conditions of devices.",
          {{"profile", profile_}, {"driver", std::string(driver)}, {"status", std::string(status)}},
          ExponentialBounds(0.1, 2, 14))
      .Observe(Seconds(took));
}

}  // namespace drakkar::scheduler
