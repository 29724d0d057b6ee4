#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "api/meta/object.h"
#include "base/env/random.h"
#include "base/exec/event_loop.h"
#include "base/exec/lifetime.h"
#include "client/client.h"

namespace drakkar::client {

enum class EventKind { kNormal, kWarning };

// Writes Events (core/v1) about objects, best effort: nobody waits for them, and losing one does no
// harm.
//
// A repeated event raises the count of the first. More than kMostDifferent messages with the same
// reason about one object are aggregated into one event. An object gets a burst of kBurst events
// and one more per kRefill. The kMaxRemembered newest objects are tracked. At most kMaxInFlight
// writes are in flight and kMaxQueued wait; beyond that the oldest waiting one is dropped.
// Loop-bound.
class EventRecorder {
 public:
  static constexpr std::size_t kMaxInFlight = 256;
  static constexpr std::size_t kMaxQueued = 16'384;
  static constexpr std::size_t kMaxRemembered = 4'096;
  static constexpr int kMostDifferent = 10;
  static constexpr int kBurst = 25;
  static constexpr Duration kRefill = std::chrono::minutes(5);

  struct Options {
    EventLoop& loop;
    Client& client;
    std::string component;  // "default-scheduler"
    std::string instance;   // of the component, e.g. "default-scheduler-host1"
    std::string host = {};  // the node it runs on; may be empty
  };
  explicit EventRecorder(Options options);
  EventRecorder(const EventRecorder&) = delete;
  EventRecorder& operator=(const EventRecorder&) = delete;

  void Record(const api::ObjectPtr& about, EventKind kind, std::string_view reason,
              std::string message, std::string_view action = {});
  void Normal(const api::ObjectPtr& about, std::string_view reason, std::string message) {
    Record(about, EventKind::kNormal, reason, std::move(message));
  }
  void Warning(const api::ObjectPtr& about, std::string_view reason, std::string message) {
    Record(about, EventKind::kWarning, reason, std::move(message));
  }

  std::uint64_t dropped() const { return dropped_; }

 private:
  struct Seen {  // one message about one object
    std::string reason;
    std::string message;
    api::ObjectPtr stored;  // null until the API has answered
    std::int64_t count = 0;
    bool writing = false;
    bool again = false;  // raised while it was being written
    bool lost = false;   // the write failed: the next event is a new one
  };
  using SeenPtr = std::shared_ptr<Seen>;
  struct About {                // one object
    std::vector<SeenPtr> seen;  // at most kMostDifferent + 1 per reason; reasons are constants
    double tokens = kBurst;
    MonotonicTime refilled{};
  };
  struct Write {
    SeenPtr seen;
    api::TreePtr body;
    bool is_new;
  };

  About& Remember(std::string_view uid);
  bool Allow(About& about);
  static SeenPtr Find(const About& about, std::string_view reason, std::string_view message);
  api::TreePtr MakeEvent(const api::Object& object, EventKind kind, std::string_view reason,
                         std::string message, std::string_view action);
  void Enqueue(Write write);
  void SendNext();
  void OnAnswer(const SeenPtr& seen, Reply reply);
  void Raise(const SeenPtr& seen);
  const std::string& FormatSecond(WallTime now);

  const Options options_;
  const api::TreePtr same_in_all_;                // the members that every event has
  std::unordered_map<std::string, About> about_;  // by UID; never iterated
  std::deque<const std::string*> about_order_;    // its keys, oldest first
  std::deque<Write> queue_;
  std::size_t in_flight_ = 0;
  std::uint64_t dropped_ = 0;
  std::uint64_t last_name_ = 0;
  WallTime formatted_{};
  std::string formatted_text_;  // of that second
  Lifetime lifetime_;
};

}  // namespace drakkar::client
