#include "apiserver/rest/event_expiry.h"

#include <algorithm>
#include <vector>

#include "api/meta/time.h"
#include "api/scheme/scheme.h"

namespace drakkar::apiserver {
namespace {

constexpr int kMarks = 60;

// When an event was last written, according to its own fields.
WallTime LastTime(const api::Object& event) {
  WallTime last{};
  for (const api::Value text : {event["metadata"]["creationTimestamp"], event["lastTimestamp"],
                                event["eventTime"], event["series"]["lastObservedTime"]}) {
    const Result<WallTime> time = api::ParseTime(text.str());
    if (time.ok()) last = std::max(last, *time);
  }
  return last;
}

}  // namespace

EventExpiry::EventExpiry(Core& core, EventLimits limits)
    : core_(core),
      limits_(limits),
      interval_(std::max<Duration>(limits.ttl / kMarks, std::chrono::seconds(1))),
      kind_(*api::FindKind("", "v1", "Event")),
      events_(*core.FindCache(kind_.group, kind_.plural)) {}

void EventExpiry::Start() {
  start_revision_ = core_.revision();
  start_time_ = core_.loop().clock().Now();
  Follow();
  Tick();
}

void EventExpiry::Follow() {
  written_.clear();
  for (const auto& [key, event] : events_.encoded()) written_.push_back({key, event.revision});
  std::sort(written_.begin(), written_.end(),
            [](const Written& a, const Written& b) { return a.revision < b.revision; });
  // It is not a reader that the metrics should show.
  watcher_ = events_.StartFeed(
      std::make_shared<std::size_t>(0), storage::Mark::kApplied,
      {.on_changes = [this](const std::vector<Change>& changes) { Remember(changes); },
       .on_closed =
           [this](const Error&) { core_.loop().Post(lifetime_.Guard([this] { Follow(); })); }});
}

void EventExpiry::Schedule() {
  timer_ = core_.loop().RunAfter(interval_, [this] { Tick(); });
}

void EventExpiry::Tick() {
  Schedule();
  const MonotonicTime now = core_.loop().clock().Monotonic();
  marks_.push_back({now, core_.revision()});
  while (marks_.front().time + limits_.ttl <= now) {
    expired_ = marks_.front().revision;
    marks_.pop_front();
  }
  Sweep();
}

// Runs inside a commit: only notes what there is to do.
void EventExpiry::Remember(const std::vector<Change>& changes) {
  for (const Change& change : changes) {
    if (change.type == ChangeType::kDeleted) continue;
    written_.push_back({change.object->qualified_name(), change.revision});
  }
  if (written_.size() > 2 * events_.size() + kMaxLookedAt) DropOutdated();
  if (events_.size() > limits_.count_max || events_.encoded_bytes() > limits_.bytes_max) {
    core_.loop().Post(lifetime_.Guard([this] { Sweep(); }));
  }
}

void EventExpiry::DropOutdated() {
  std::erase_if(written_, [this](const Written& written) { return IsOutdated(written); });
}

bool EventExpiry::IsOutdated(const Written& written) const {
  const WatchCache::Encoded* now = events_.FindEncoded(written.key);
  return now == nullptr || now->revision != written.revision;
}

bool EventExpiry::IsExpired(const Written& written) const {
  if (written.revision <= expired_) return true;
  if (written.revision > start_revision_) return false;
  const api::ObjectPtr event = events_.Find(written.key);
  // A time in the future does not keep an event from before the start.
  return event != nullptr &&
         std::min(LastTime(*event), start_time_) + limits_.ttl <= core_.loop().clock().Now();
}

void EventExpiry::Sweep() {
  if (sweeping_) return;
  sweeping_ = true;
  Step();
}

void EventExpiry::Step() {
  std::size_t looked_at = 0;
  while (!written_.empty() && looked_at < kMaxLookedAt && IsOutdated(written_.front())) {
    written_.pop_front();
    ++looked_at;
  }
  std::size_t count = events_.size();
  std::size_t bytes = events_.encoded_bytes();
  std::vector<Written> deletions;
  for (const Written& written : written_) {
    if (looked_at++ >= kMaxLookedAt || deletions.size() == kMaxDeleted) break;
    const WatchCache::Encoded* event = events_.FindEncoded(written.key);
    if (event == nullptr || event->revision != written.revision) continue;
    const bool is_over = count > limits_.count_max || bytes > limits_.bytes_max;
    if (!is_over && !IsExpired(written)) break;
    --count;
    bytes -= event->bytes->size();
    deletions.push_back(written);
  }
  struct Progress {
    std::size_t waiting = 1;
    bool deleted = false;
    std::function<void(bool deleted)> done;
    void Finish() {
      if (--waiting == 0) done(deleted);
    }
  };
  const bool only_outdated = deletions.empty() && looked_at >= kMaxLookedAt;
  auto progress = std::make_shared<Progress>();
  progress->done = lifetime_.Guard([this, only_outdated](bool deleted) {
    // If none could be deleted, the next tick tries again.
    if (!deleted && !only_outdated) {
      sweeping_ = false;
      return;
    }
    core_.loop().Post(lifetime_.Guard([this] { Step(); }));
  });
  for (const Written& written : deletions) {
    ++progress->waiting;
    core_.Expire(kind_, written.key, written.revision, [progress](bool deleted) {
      progress->deleted |= deleted;
      progress->Finish();
    });
  }
  progress->Finish();
}

}  // namespace drakkar::apiserver
