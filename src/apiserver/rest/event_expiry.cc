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

EventExpiry::EventExpiry(Core& core, Duration ttl, UserInfo user)
    : core_(core),
      ttl_(ttl),
      interval_(std::max<Duration>(ttl / kMarks, std::chrono::seconds(1))),
      user_(std::move(user)),
      kind_(*api::FindKind("", "v1", "Event")) {}

void EventExpiry::Start() {
  start_revision_ = core_.revision();
  start_time_ = core_.loop().clock().Now();
  Tick();
}

void EventExpiry::Schedule() {
  timer_ = core_.loop().RunAfter(interval_, [this] { Tick(); });
}

void EventExpiry::Tick() {
  Schedule();
  const MonotonicTime now = core_.loop().clock().Monotonic();
  marks_.push_back({now, core_.revision()});
  while (marks_.front().time + ttl_ <= now) {
    expired_ = marks_.front().revision;
    marks_.pop_front();
  }
  if (sweeping_) return;
  sweeping_ = true;
  cursor_.clear();
  Step();
}

bool EventExpiry::IsExpired(const api::Object& event) const {
  const storage::Revision revision = event.resource_version();
  if (revision <= expired_) return true;
  if (revision > start_revision_) return false;
  // A time in the future does not keep an event from before the start.
  return std::min(LastTime(event), start_time_) + ttl_ <= core_.loop().clock().Now();
}

void EventExpiry::Step() {
  const auto& events = core_.FindCache(kind_.group, kind_.plural)->objects();
  std::vector<Request> deletions;
  std::size_t looked_at = 0;
  auto next = cursor_.empty() ? events.begin() : events.upper_bound(cursor_);
  for (; next != events.end() && looked_at < kMaxLookedAt && deletions.size() < kMaxDeleted;
       ++next, ++looked_at) {
    const auto& [key, event] = *next;
    cursor_ = key;
    if (!IsExpired(*event)) continue;
    Request request;
    request.user = user_;
    request.verb = Verb::kDelete;
    request.kind = &kind_;
    request.namespace_ = event->namespace_();
    request.name = event->name();
    request.grace_period_seconds = 0;
    // An event that is written meanwhile is kept.
    request.precondition_resource_version = std::to_string(event->resource_version());
    deletions.push_back(std::move(request));
  }
  const bool more = next != events.end();
  struct Progress {
    std::size_t waiting = 1;
    std::function<void()> done;
    void Finish() {
      if (--waiting == 0) done();
    }
  };
  auto progress = std::make_shared<Progress>();
  progress->done = lifetime_.Guard([this, more] {
    if (!more) {
      sweeping_ = false;
      return;
    }
    core_.loop().Post(lifetime_.Guard([this] { Step(); }));
  });
  for (Request& request : deletions) {
    ++progress->waiting;
    // If an event cannot be deleted now, the next sweep tries again.
    core_.Handle(std::move(request), [progress](Response) { progress->Finish(); });
  }
  progress->Finish();
}

}  // namespace drakkar::apiserver
