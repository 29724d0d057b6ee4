#include "client/event_recorder.h"

#include <algorithm>

#include "api/meta/time.h"
#include "api/scheme/scheme.h"
#include "api/tree/draft.h"
#include "base/text/text.h"

namespace drakkar::client {

namespace {

constexpr std::string_view kCombined = "(combined from similar events): ";
constexpr std::size_t kMaxMessageBytes = 1'024;  // the limit of the API

const api::KindSchema* EventSchema() {
  static const api::KindSchema* const kind = api::FindKind("", "v1", "Event");
  return kind;
}

api::TreePtr SameInAll(const EventRecorder::Options& options) {
  api::Draft source = api::Draft::Object();
  source["component"] = options.component;
  if (!options.host.empty()) source["host"] = options.host;
  api::Draft event = api::Draft::Object();
  event["apiVersion"] = "v1";
  event["kind"] = "Event";
  event["source"] = std::move(source);
  event["count"] = 1;
  event["reportingComponent"] = options.component;
  event["reportingInstance"] = options.instance;
  return event.Freeze();
}

// 16 digits.
std::string Hex(std::uint64_t number) {
  std::string text(16, '0');
  for (std::size_t i = text.size(); i-- > 0; number >>= 4)
    text[i] = "0123456789abcdef"[number & 15];
  return text;
}

}  // namespace

EventRecorder::EventRecorder(Options options)
    : options_(std::move(options)), same_in_all_(SameInAll(options_)) {}

EventRecorder::About& EventRecorder::Remember(std::string_view uid) {
  const auto [at, is_new] = about_.try_emplace(std::string(uid));
  if (is_new) {
    at->second.refilled = options_.loop.clock().Monotonic();
    about_order_.push_back(&at->first);
    if (about_order_.size() > kMaxRemembered) {
      about_.erase(about_.find(*about_order_.front()));
      about_order_.pop_front();
    }
  }
  return at->second;
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

EventRecorder::SeenPtr EventRecorder::Find(const About& about, std::string_view reason,
                                           std::string_view message) {
  for (const SeenPtr& seen : about.seen) {
    if (seen->reason == reason && seen->message == message) return seen;
  }
  return nullptr;
}

void EventRecorder::Record(const api::ObjectPtr& object, EventKind kind, std::string_view reason,
                           std::string message, std::string_view action) {
  options_.loop.AssertInLoop();
  About& about = Remember(object->uid());
  if (!Allow(about)) {
    ++dropped_;
    return;
  }
  std::erase_if(about.seen, [](const SeenPtr& seen) { return seen->lost; });
  if (message.size() > kMaxMessageBytes) message.resize(kMaxMessageBytes);
  std::string_view same = message;  // messages with the same prefix are the same event
  SeenPtr seen = Find(about, reason, same);
  const auto has_reason = [&](const SeenPtr& each) { return each->reason == reason; };
  if (seen == nullptr &&
      std::count_if(about.seen.begin(), about.seen.end(), has_reason) >= kMostDifferent) {
    message = StrCat(kCombined, message).substr(0, kMaxMessageBytes);
    same = kCombined;
    seen = Find(about, reason, same);
  }
  if (seen != nullptr) {
    ++seen->count;
    Raise(seen);
    return;
  }
  seen = std::make_shared<Seen>(Seen{
      .reason = std::string(reason), .message = std::string(same), .count = 1, .writing = true});
  about.seen.push_back(seen);
  Enqueue({std::move(seen), MakeEvent(*object, kind, reason, std::move(message), action), true});
}

api::TreePtr EventRecorder::MakeEvent(const api::Object& object, EventKind kind,
                                      std::string_view reason, std::string message,
                                      std::string_view action) {
  const WallTime now = options_.loop.clock().Now();
  // Names must be unique even if the clock does not advance.
  last_name_ = std::max(last_name_ + 1, static_cast<std::uint64_t>(now.time_since_epoch().count()));
  const std::string& time = FormatSecond(now);
  const api::Value about = object.root()["metadata"];
  const bool namespaced = !object.namespace_().empty();
  // Set one by one: a braced list would copy nested members. Constant members are shared.
  api::Draft metadata = api::Draft::Object();
  metadata["name"] = StrCat(object.name(), ".", Hex(last_name_));
  if (namespaced) {
    metadata["namespace"] = api::Draft(about["namespace"]);
  } else {
    metadata["namespace"] = "default";
  }
  api::Draft involved = api::Draft::Object();
  involved["kind"] = object.kind();
  if (namespaced) involved["namespace"] = api::Draft(about["namespace"]);
  involved["name"] = api::Draft(about["name"]);
  involved["uid"] = api::Draft(about["uid"]);
  involved["apiVersion"] = object.api_version();
  involved["resourceVersion"] = std::to_string(object.resource_version());
  api::Draft event(same_in_all_->root());
  event["metadata"] = std::move(metadata);
  event["involvedObject"] = std::move(involved);
  event["reason"] = reason;
  event["message"] = std::move(message);
  event["firstTimestamp"] = time;
  event["lastTimestamp"] = time;
  event["type"] = kind == EventKind::kNormal ? "Normal" : "Warning";
  if (!action.empty()) event["action"] = action;
  return event.Freeze();
}

const std::string& EventRecorder::FormatSecond(WallTime now) {
  const WallTime second = std::chrono::floor<std::chrono::seconds>(now);
  if (second != formatted_ || formatted_text_.empty()) {
    formatted_ = second;
    formatted_text_ = api::FormatTime(second);
  }
  return formatted_text_;
}

void EventRecorder::Raise(const SeenPtr& seen) {
  if (seen->writing) {
    seen->again = true;
    return;
  }
  seen->again = false;
  seen->writing = true;
  api::Draft event(seen->stored->tree());
  event["count"] = seen->count;
  event["lastTimestamp"] = FormatSecond(options_.loop.clock().Now());
  event["metadata"].Remove("managedFields");
  Enqueue({seen, event.Freeze(), false});
}

void EventRecorder::Enqueue(Write write) {
  queue_.push_back(std::move(write));
  if (queue_.size() > kMaxQueued) {
    queue_.front().seen->lost = true;
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
    auto done = lifetime_.Guard(
        [this, seen = std::move(write.seen)](Reply reply) { OnAnswer(seen, std::move(reply)); });
    if (write.is_new) {
      options_.client.Create(std::move(ref), std::move(write.body), {}, std::move(done));
    } else {
      ref.name = std::string(metadata["name"].str());
      options_.client.Update(std::move(ref), std::move(write.body), {}, std::move(done));
    }
  }
}

void EventRecorder::OnAnswer(const SeenPtr& seen, Reply reply) {
  --in_flight_;
  seen->writing = false;
  if (!reply.ok()) {
    // It expired or was modified by someone else: the next one creates a new event.
    seen->lost = true;
    ++dropped_;
  } else {
    seen->stored = std::move(reply.object);
    if (seen->again) Raise(seen);
  }
  SendNext();
}

}  // namespace drakkar::client
