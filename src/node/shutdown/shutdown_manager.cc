#include "node/shutdown/shutdown_manager.h"

#include <algorithm>

#include "api/meta/bounded_seconds.h"
#include "node/resources/pod_amounts.h"
#include "telemetry/log/log.h"

namespace drakkar::node {
namespace {

constexpr Logger kLog("node.shutdown");

std::int64_t PriorityOf(const api::Object& pod) {
  return pod["spec"]["priority"].integer();
}

}  // namespace

std::vector<ShutdownPeriod> PeriodsOf(Duration total, Duration critical) {
  const auto seconds = [](Duration duration) -> std::int64_t {
    return std::chrono::duration_cast<std::chrono::seconds>(duration).count();
  };
  if (total <= Duration::zero() || critical < Duration::zero() || critical > total) return {};
  return {{0, seconds(total - critical)}, {kSystemCriticalPriority, seconds(critical)}};
}

Duration Total(const std::vector<ShutdownPeriod>& periods) {
  Duration sum{};
  for (const ShutdownPeriod& each : periods) sum += api::BoundedSeconds(each.seconds);
  return sum;
}

std::size_t PeriodOf(const std::vector<ShutdownPeriod>& periods, std::int64_t priority) {
  std::size_t chosen = 0;
  for (std::size_t i = 0; i < periods.size(); ++i) {
    if (periods[i].priority <= priority) chosen = i;
  }
  return chosen;
}

void ShutdownManager::Begin() {
  if (is_shutting_down_ || options_.periods.empty()) return;
  is_shutting_down_ = true;
  kLog.Info("machine is shutting down");
  options_.on_changed("Shutdown manager detected shutdown event");
  EndGroup(0);
}

void ShutdownManager::Cancel() {
  if (!is_shutting_down_) return;
  is_shutting_down_ = false;
  waiting_.clear();
  timer_.reset();
  kLog.Info("shutdown of the machine was cancelled");
  options_.on_changed("Shutdown manager detected shutdown cancellation");
}

std::optional<PodVerdict> ShutdownManager::Admit() const {
  if (!is_shutting_down_) return std::nullopt;
  return PodVerdict{.reason = "NodeShutdown",
                    .message = "Pod was rejected as the node is shutting down."};
}

std::optional<std::string> ShutdownManager::WhyNotReady() const {
  if (!is_shutting_down_) return std::nullopt;
  return "node is shutting down";
}

void ShutdownManager::EndGroup(std::size_t index) {
  waiting_.clear();
  if (index == options_.periods.size()) {
    kLog.Info("ended the pods of this machine");
    return options_.on_done();
  }
  const std::int64_t seconds = options_.periods[index].seconds;
  for (const api::ObjectPtr& pod : options_.active_pods()) {
    if (PeriodOf(options_.periods, PriorityOf(*pod)) != index) continue;
    const std::int64_t own = (*pod)["spec"]["terminationGracePeriodSeconds"].integer(30);
    waiting_.emplace_back(pod->uid());
    options_.evict(waiting_.back(),
                   {.reason = "Terminated",
                    .message = "Pod was terminated in response to imminent node shutdown.",
                    .is_disruption = true},
                   api::BoundedSeconds(std::min(own, seconds)));
  }
  WaitForGroup(index, options_.loop.clock().Monotonic() + api::BoundedSeconds(seconds));
}

void ShutdownManager::WaitForGroup(std::size_t index, MonotonicTime deadline) {
  std::erase_if(waiting_, [&](const std::string& uid) { return options_.is_gone(uid); });
  if (!waiting_.empty() && options_.loop.clock().Monotonic() >= deadline) {
    kLog.Warning("pods did not end in time", {{"count", waiting_.size()}});
    waiting_.clear();
  }
  if (waiting_.empty()) return EndGroup(index + 1);
  timer_ = options_.loop.RunAfter(kLookForEnd,
                                  [this, index, deadline] { WaitForGroup(index, deadline); });
}

}  // namespace drakkar::node
