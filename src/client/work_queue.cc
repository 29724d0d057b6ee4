#include "client/work_queue.h"

#include <utility>

#include "telemetry/log/log.h"

namespace drakkar::client {
namespace {

constexpr Logger kLog("work-queue");
constexpr Backoff::Options kRetry{
    .initial = std::chrono::milliseconds(5), .max = std::chrono::seconds(30), .jitter = 0.25};

}  // namespace

WorkQueue::WorkQueue(EventLoop& loop, Random& random, Options options, Process process)
    : loop_(loop), random_(random), options_(std::move(options)), process_(std::move(process)) {}

void WorkQueue::Add(const std::string& key) {
  loop_.AssertInLoop();
  const auto at = keys_.try_emplace(key).first;
  Key& state = at->second;
  switch (state.place) {
    case Place::kReady:
      return;
    case Place::kInFlight:
      state.again = true;
      return;
    case Place::kDelayed:
      state.timer.reset();
      break;
    case Place::kNowhere:
      break;
  }
  state.place = Place::kReady;
  ready_.push_back(&*at);
  Schedule();
}

void WorkQueue::AddAfter(const std::string& key, Duration delay) {
  Key& state = keys_[key];
  if (state.place == Place::kReady || state.place == Place::kInFlight) return;
  Delay(key, state, delay);
}

void WorkQueue::Delay(const std::string& key, Key& state, Duration delay) {
  state.place = Place::kDelayed;
  // The task may destroy the timer: it was moved out of it.
  state.timer = loop_.RunAfter(delay, [this, key] { Add(key); });
}

void WorkQueue::Schedule() {
  if (scheduled_) return;
  scheduled_ = true;
  loop_.Post(lifetime_.Guard([this] { Run(); }));
}

void WorkQueue::Run() {
  scheduled_ = false;
  while (!ready_.empty() && in_flight_ < options_.max_in_flight) {
    ready_.front()->second.place = Place::kInFlight;
    // A copy: the key may be finished and erased before process_ returns.
    const std::string key = ready_.front()->first;
    ready_.pop_front();
    ++in_flight_;
    process_(key,
             lifetime_.Guard([this, key](Result<void> result) { Finish(key, std::move(result)); }));
  }
}

void WorkQueue::Finish(const std::string& key, Result<void> result) {
  const auto found = keys_.find(key);
  if (found == keys_.end() || found->second.place != Place::kInFlight) return;
  Key& state = found->second;
  --in_flight_;
  state.place = Place::kNowhere;
  const bool again = std::exchange(state.again, false);
  if (!result.ok()) {
    // A conflict is normal: the newer state is on its way.
    if (result.error().code != ErrorCode::kConflict) {
      kLog.Warning("processing failed; retrying",
                   {{"queue", options_.name}, {"key", key}, {"error", result.error().message}});
    }
    if (state.backoff == nullptr) state.backoff = std::make_unique<Backoff>(kRetry, &random_);
    Delay(key, state, state.backoff->Next());
  } else if (again) {
    state.backoff.reset();
    Add(key);
  } else {
    keys_.erase(found);
  }
  if (!ready_.empty()) Schedule();
}

}  // namespace drakkar::client
