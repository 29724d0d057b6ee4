#include "client/event_recorder.h"

#include <algorithm>
#include <cstdio>

#include "api/meta/time.h"
#include "api/scheme/scheme.h"
#include "api/tree/draft.h"
#include "base/text/text.h"

namespace drakkar::client {
namespace {

constexpr std::string_view kCombined = "(combined from similar events): ";
constexpr std::size_t kMaxMessageBytes = 1'024;  // what the API takes

const api::KindSchema* EventSchema() {
  static const api::KindSchema* const kind = api::FindKind("", "v1", "Event");
  return kind;
}

}  // namespace

template <typename Map>
void EventRecorder::Remember(Map& map, std::deque<std::string>& order) {
  // The order may name keys that are gone already.
  while ((map.size() > kMaxRemembered || order.size() > 2 * kMaxRemembered) && !order.empty()) {
    map.erase(order.front());
    order.pop_front();
  }
}

bool EventRecorder::Allow(About& about) {
  const MonotonicTime now = options_.loop.clock().Monotonic();
  about.tokens = std::min(static_cast<double>(kBurst),
                          about.tokens + std::chrono::duration<double>(now - about.refilled) /
                                             std::chrono::duration<double>(kRefill));
  about.refilled = now;
  if (about.tokens < 1) return false;
  about.tokens -= 1;
  return true;
}

void EventRecorder::Record(const api::ObjectPtr& object, EventKind kind, std::string_view reason,
                           std::string message, std::string_view action) {
  options_.loop.AssertInLoop();
  const std::string uid(object->uid());
  auto [about, is_new] = about_.try_emplace(uid);
  if (is_new) {
    about->second.refilled = options_.loop.clock().Monotonic();
    about_order_.push_back(uid);
  }
  if (!Allow(about->second)) {
    ++dropped_;
    return;
  }
  if (message.size() > kMaxMessageBytes) message.resize(kMaxMessageBytes);
  std::string key = StrCat(uid, "\n", reason, "\n", message);
  auto seen = seen_.find(key);
  if (seen == seen_.end()) {
    int& different = about->second.different[std::string(reason)];
    if (++different > kMostDifferent) {
      key = StrCat(uid, "\n", reason, "\n", kCombined);
      message = StrCat(kCombined, message).substr(0, kMaxMessageBytes);
      seen = seen_.find(key);
    }
  }
  Remember(about_, about_order_);
  if (seen != seen_.end()) {
    ++seen->second.count;
    Raise(key, seen->second);
    return;
  }
  const WallTime now = options_.loop.clock().Now();
  // Names must differ even if the clock does not move.
  last_name_ = std::max(last_name_ + 1, static_cast<std::uint64_t>(now.time_since_epoch().count()));
  char suffix[20];
  std::snprintf(suffix, sizeof(suffix), "%016llx", static_cast<unsigned long long>(last_name_));
  const std::string ns = object->namespace_().empty() ? "default" : std::string(object->namespace_());
  const std::string time = api::FormatTime(now);
  // Member by member: a braced list would copy what is nested in it.
  api::Draft metadata = api::Draft::Object();
  metadata["name"] = StrCat(object->name(), ".", std::string_view(suffix));
  metadata["namespace"] = ns;
  api::Draft involved = api::Draft::Object();
  involved["kind"] = object->kind();
  if (!object->namespace_().empty()) involved["namespace"] = ns;
  involved["name"] = object->name();
  involved["uid"] = uid;
  involved["apiVersion"] = object->api_version();
  involved["resourceVersion"] = std::to_string(object->resource_version());
  api::Draft source = api::Draft::Object();
  source["component"] = options_.component;
  if (!options_.host.empty()) source["host"] = options_.host;
  api::Draft event = api::Draft::Object();
  event["apiVersion"] = "v1";
  event["kind"] = "Event";
  event["metadata"] = std::move(metadata);
  event["involvedObject"] = std::move(involved);
  event["reason"] = reason;
  event["message"] = message;
  event["source"] = std::move(source);
  event["firstTimestamp"] = time;
  event["lastTimestamp"] = time;
  event["count"] = 1;
  event["type"] = kind == EventKind::kNormal ? "Normal" : "Warning";
  event["reportingComponent"] = options_.component;
  event["reportingInstance"] = options_.instance;
  if (!action.empty()) event["action"] = action;
  seen_[key] = Seen{.count = 1, .writing = true};
  seen_order_.push_back(key);
  Remember(seen_, seen_order_);
  Enqueue({std::move(key), event.Freeze(), true});
}

void EventRecorder::Raise(const std::string& key, Seen& seen) {
  if (seen.writing) {
    seen.again = true;
    return;
  }
  seen.again = false;
  seen.writing = true;
  api::Draft event(seen.stored->tree());
  event["count"] = seen.count;
  event["lastTimestamp"] = api::FormatTime(options_.loop.clock().Now());
  event["metadata"].Remove("managedFields");
  Enqueue({key, event.Freeze(), false});
}

void EventRecorder::Enqueue(Write write) {
  queue_.push_back(std::move(write));
  if (queue_.size() > kMaxQueued) {
    seen_.erase(queue_.front().key);
    queue_.pop_front();
    ++dropped_;
  }
  SendNext();
}

void EventRecorder::SendNext() {
  while (in_flight_ < kMaxInFlight && !queue_.empty()) {
    Write write = std::move(queue_.front());
    queue_.pop_front();
    ++in_flight_;
    const api::Value metadata = write.body->root()["metadata"];
    ResourceRef ref{EventSchema(), std::string(metadata["namespace"].str()), "", ""};
    auto done = [this, alive = alive_, key = write.key, is_new = write.is_new](Reply reply) {
      if (*alive) OnAnswer(key, is_new, std::move(reply));
    };
    if (write.is_new) {
      options_.client.Create(std::move(ref), std::move(write.body), {}, std::move(done));
    } else {
      ref.name = std::string(metadata["name"].str());
      options_.client.Update(std::move(ref), std::move(write.body), {}, std::move(done));
    }
  }
}

void EventRecorder::OnAnswer(const std::string& key, bool, Reply reply) {
  --in_flight_;
  const auto seen = seen_.find(key);
  if (seen != seen_.end()) {
    seen->second.writing = false;
    if (!reply.ok()) {
      // It expired, or somebody changed it: the next one starts anew.
      seen_.erase(seen);
      ++dropped_;
    } else {
      seen->second.stored = std::move(reply.object);
      if (seen->second.again) Raise(key, seen->second);
    }
  }
  SendNext();
}

}  // namespace drakkar::client
