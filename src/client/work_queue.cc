#include "client/work_queue.h"

#include <algorithm>

#include "telemetry/log/log.h"

namespace drakkar::client {
namespace {

constexpr Logger kLog("work-queue");
constexpr Duration kFirstBackoff = std::chrono::milliseconds(5);
constexpr Duration kLongestBackoff = std::chrono::seconds(30);

}  // namespace

WorkQueue::WorkQueue(EventLoop& loop, Random& random, Options options, Process process)
    : loop_(loop), random_(random), options_(std::move(options)), process_(std::move(process)) {}

WorkQueue::~WorkQueue() {
  *alive_ = false;
}

void WorkQueue::Add(const std::string& key) {
  loop_.AssertInLoop();
  if (auto running = in_flight_.find(key); running != in_flight_.end()) {
    running->second = true;
    return;
  }
  delayed_.erase(key);
  if (!waiting_.insert(key).second) return;
  ready_.push_back(key);
  Schedule();
}

void WorkQueue::AddAfter(const std::string& key, Duration delay) {
  if (waiting_.contains(key) || in_flight_.contains(key)) return;
  delayed_[key] = loop_.RunAfter(delay, [this, key] {
    // Erasing the timer from within its task is fine: the task was moved out of it.
    delayed_.erase(key);
    Add(key);
  });
}

void WorkQueue::Schedule() {
  if (scheduled_) return;
  scheduled_ = true;
  loop_.Post([this, alive = alive_] {
    if (*alive) Run();
  });
}

void WorkQueue::Run() {
  scheduled_ = false;
  while (!ready_.empty() && in_flight_.size() < options_.max_in_flight) {
    std::string key = std::move(ready_.front());
    ready_.pop_front();
    waiting_.erase(key);
    in_flight_.emplace(key, false);
    process_(key, [this, alive = alive_, key](Result<void> result) {
      if (*alive) Finish(key, std::move(result));
    });
  }
}

void WorkQueue::Finish(const std::string& key, Result<void> result) {
  auto running = in_flight_.find(key);
  if (running == in_flight_.end()) return;
  const bool again = running->second;
  in_flight_.erase(running);
  if (!result.ok()) {
    const int failures = failures_[key]++;
    // A lost race is the normal course of things: the newer state is on its way.
    if (result.error().code != ErrorCode::kConflict) {
      kLog.Warning("failed, trying again",
                   {{"queue", options_.name}, {"key", key}, {"error", result.error().message}});
    }
    Duration delay = std::min(kFirstBackoff * (1 << std::min(failures, 12)), kLongestBackoff);
    delay += Duration(
        static_cast<std::int64_t>(random_.Fraction() * static_cast<double>(delay.count()) / 4));
    AddAfter(key, delay);
  } else {
    failures_.erase(key);
    if (again) Add(key);
  }
  if (!ready_.empty()) Schedule();
}

}  // namespace drakkar::client
