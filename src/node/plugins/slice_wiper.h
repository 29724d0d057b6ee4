#pragma once

#include <map>
#include <memory>
#include <string>

#include "base/env/random.h"
#include "base/exec/event_loop.h"
#include "client/client.h"

namespace drakkar::node {

// Removes ResourceSlices that nobody on this node stands for: all of this node's at start, and a
// driver's once it has been unusable for 30 s. A driver that comes back in time keeps its own.
// Failures are tried again with backoff (1 s doubling to 5 min, 20 % jitter) until it works or the
// driver is back. Loop-bound.
class SliceWiper {
 public:
  static constexpr Duration kDelay = std::chrono::seconds(30);

  SliceWiper(EventLoop& loop, Random& random, client::Client& client, std::string node_name);
  ~SliceWiper();

  void WipeAll();
  void SetUsable(const std::string& driver, bool usable);

 private:
  struct Wipe {
    TimerHandle timer;
    Duration backoff = std::chrono::seconds(1);
    std::uint64_t id = 0;
  };
  void Run(const std::string& driver);

  EventLoop& loop_;
  Random& random_;
  client::Client& client_;
  const std::string node_name_;
  std::map<std::string, Wipe> wipes_;  // by driver; "" is all of them
  std::uint64_t next_id_ = 1;
  std::shared_ptr<int> alive_ = std::make_shared<int>(0);
};

}  // namespace drakkar::node
