#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>

#include "base/env/random.h"
#include "base/exec/backoff.h"
#include "base/exec/event_loop.h"
#include "base/exec/lifetime.h"
#include "base/result/result.h"

namespace drakkar::client {

// The keys that a controller has to reconcile. A key is queued at most once and processed at most
// once at a time. It is processed again if it was added meanwhile, or if processing failed (with
// backoff: 5 ms, doubling to 30 s, plus jitter).
//
// Loop-bound. Bounded by the number of distinct keys, which are those of existing objects.
class WorkQueue {
 public:
  using Done = std::function<void(Result<void>)>;
  // Processes `key` and calls `done` once, immediately or later.
  using Process = std::function<void(const std::string& key, Done done)>;

  struct Options {
    std::string name;  // for the log
    std::size_t max_in_flight = 64;
  };
  WorkQueue(EventLoop& loop, Random& random, Options options, Process process);
  WorkQueue(const WorkQueue&) = delete;
  WorkQueue& operator=(const WorkQueue&) = delete;

  void Add(const std::string& key);
  void AddAfter(const std::string& key, Duration delay);
  std::size_t size() const { return keys_.size(); }
  bool idle() const { return ready_.empty() && in_flight_ == 0; }

 private:
  enum class Place { kNowhere, kReady, kInFlight, kDelayed };
  struct Key {
    Place place = Place::kNowhere;
    bool again = false;                // added while in flight
    std::unique_ptr<Backoff> backoff;  // null if the last attempt succeeded
    TimerHandle timer;                 // while delayed
  };
  void Delay(const std::string& key, Key& state, Duration delay);
  void Schedule();
  void Run();
  void Finish(const std::string& key, Result<void> result);

  EventLoop& loop_;
  Random& random_;
  const Options options_;
  Process process_;
  using Keys = std::unordered_map<std::string, Key>;
  Keys keys_;                            // never iterated
  std::deque<Keys::value_type*> ready_;  // entries stay in place until they are erased
  std::size_t in_flight_ = 0;
  bool scheduled_ = false;
  Lifetime lifetime_;
};

}  // namespace drakkar::client
