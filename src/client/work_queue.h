#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "base/env/random.h"
#include "base/exec/event_loop.h"
#include "base/result/result.h"

namespace drakkar::client {

// Keys to be brought in order by a controller. A key waits at most once, is worked on at most once
// at a time, and comes again if it was added meanwhile or if the work failed (with backoff: 5 ms,
// doubling, up to 30 s, plus jitter).
//
// Loop-bound. Bounded by the number of distinct keys, which are those of existing objects.
class WorkQueue {
 public:
  using Done = std::function<void(Result<void>)>;
  // Works on `key` and calls `done` once, at once or later.
  using Process = std::function<void(const std::string& key, Done done)>;

  struct Options {
    std::string name;               // for the log
    std::size_t max_in_flight = 64;
  };
  WorkQueue(EventLoop& loop, Random& random, Options options, Process process);
  ~WorkQueue();
  WorkQueue(const WorkQueue&) = delete;
  WorkQueue& operator=(const WorkQueue&) = delete;

  void Add(const std::string& key);
  void AddAfter(const std::string& key, Duration delay);
  std::size_t size() const { return ready_.size() + in_flight_.size() + delayed_.size(); }
  bool idle() const { return ready_.empty() && in_flight_.empty(); }

 private:
  void Schedule();
  void Run();
  void Finish(const std::string& key, Result<void> result);

  EventLoop& loop_;
  Random& random_;
  const Options options_;
  Process process_;
  std::deque<std::string> ready_;
  std::set<std::string> waiting_;       // what is in ready_
  std::map<std::string, bool> in_flight_;  // true: added again meanwhile
  std::map<std::string, int> failures_;
  std::map<std::string, TimerHandle> delayed_;
  bool scheduled_ = false;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace drakkar::client
