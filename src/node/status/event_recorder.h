#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "api/tree/value.h"
#include "base/env/random.h"
#include "base/exec/event_loop.h"
#include "client/client.h"

namespace drakkar::node {

// Writes events about objects, as Kubernetes' recorders do: an event that repeats within ten minutes
// counts up in place. Best effort: a write that fails is logged and dropped. Loop-bound.
// Bounded: kMaxRemembered events are remembered for counting, the oldest go first; kMaxInFlight
// writes at a time, more are dropped with a log line.
class EventRecorder {
 public:
  static constexpr std::size_t kMaxRemembered = 4'096;
  static constexpr std::size_t kMaxInFlight = 256;

  EventRecorder(EventLoop& loop, Random& random, client::Client& client, std::string component,
                std::string host);
  ~EventRecorder();

  void Normal(api::Value object, std::string_view reason, std::string_view message) {
    Record(object, "Normal", reason, message);
  }
  void Warning(api::Value object, std::string_view reason, std::string_view message) {
    Record(object, "Warning", reason, message);
  }

 private:
  struct Remembered {
    std::string name;
    std::string namespace_name;
    int count = 0;
    WallTime last{};
    bool writing = false;
    bool changed = false;  // counted up while a write was under way
  };
  void Record(api::Value object, std::string_view type, std::string_view reason,
              std::string_view message);
  void Write(const std::string& key, api::TreePtr body);
  void CountUp(const std::string& key);
  void OnWritten(const std::string& key, const client::Reply& reply);

  EventLoop& loop_;
  Random& random_;
  client::Client& client_;
  const std::string component_;
  const std::string host_;
  std::map<std::string, Remembered> remembered_;
  std::map<std::uint64_t, std::string> order_;
  std::uint64_t next_ = 0;
  std::size_t in_flight_ = 0;
  std::shared_ptr<int> alive_ = std::make_shared<int>(0);
};

}  // namespace drakkar::node
