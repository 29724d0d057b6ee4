#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>

#include "base/env/random.h"
#include "base/exec/backoff.h"
#include "base/exec/event_loop.h"
#include "base/exec/lifetime.h"
#include "client/client.h"

namespace drakkar::node {

// Deletes this node's ResourceSlices whose driver is not connected: 30 s after the connection was
// lost, and those left by a previous run of the agent. A driver that reconnects in time keeps its
// slices, because Go drivers take most of a minute to notice a deletion. Failures are retried with
// backoff (1 s doubling to 5 min, 20 % jitter) until the driver is back. Loop-bound; bounded by the
// drivers that have slices on this node.
class SliceWiper {
 public:
  static constexpr Duration kDelay = std::chrono::seconds(30);

  SliceWiper(EventLoop& loop, Random& random, client::Client& client, std::string node_name);
  ~SliceWiper();

  // For drivers that have slices on this node but have neither registered nor connected since the
  // agent started. `at_once`: no driver can still be starting, so there is no need to wait.
  void WipeLeftovers(bool at_once);
  void SetUsable(const std::string& driver, bool usable);

 private:
  struct Wipe {
    explicit Wipe(Random& random);
    TimerHandle timer;
    Backoff backoff;
    std::uint64_t id = 0;
  };
  void WipeAfter(const std::string& driver, Duration delay);
  void Run(const std::string& driver);
  client::ListOptions Select(const std::string& driver) const;  // "": all drivers

  EventLoop& loop_;
  Random& random_;
  client::Client& client_;
  const std::string node_name_;
  std::map<std::string, Wipe> wipes_;  // by driver
  std::set<std::string> usable_;
  Wipe leftovers_;  // while the slices of a previous run are being listed
  std::uint64_t next_id_ = 1;
  Lifetime lifetime_;
};

}  // namespace drakkar::node
