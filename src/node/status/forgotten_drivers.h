#pragma once

#include <functional>
#include <memory>
#include <set>
#include <string>

#include "base/env/random.h"
#include "base/exec/backoff.h"
#include "base/exec/event_loop.h"
#include "base/exec/lifetime.h"
#include "client/client.h"
#include "client/informer.h"

namespace drakkar::node {

// Node annotation: comma-separated names of DRA drivers that will not come back. An administrator
// sets it (`drakkar node forget-driver`), so it persists across restarts and while the node is
// down.
inline constexpr char kForgottenDriversAnnotation[] = "node.drakkar.io/forgotten-drivers";
// The drivers of that list that this node has already reported, so that a restart does not report
// them again.
inline constexpr char kToldForgottenAnnotation[] = "node.drakkar.io/forgotten-drivers-told";

// Watches the annotation of this node and removes drivers that came back. Writes are conditional on
// the resource version and retried after 1 s, doubling to a minute. Loop-bound.
class ForgottenDrivers {
 public:
  static constexpr std::size_t kMaxDrivers = 256;  // further names are ignored
  static constexpr Backoff::Options kRetry{.initial = std::chrono::seconds(1),
                                           .max = std::chrono::seconds(60)};

  struct Change {
    std::set<std::string> drivers;  // all drivers declared gone
    std::set<std::string> untold;   // those not reported yet
    api::ObjectPtr node;
  };

  // `on_change` is called whenever the list changes.
  ForgottenDrivers(EventLoop& loop, Random& random, client::Client& client, std::string node_name,
                   std::function<void(const Change&)> on_change);
  ~ForgottenDrivers();

  void Start() { informer_.Start(); }
  // A driver is back: removes it from the list, so that its next absence counts again. This takes
  // effect at once in this process, and on the Node as soon as it can be read and written.
  void Remove(const std::string& driver);

 private:
  void Look(const api::ObjectPtr& node);
  void Tell();
  void Write();
  void RetryLater();

  EventLoop& loop_;
  client::Client& client_;
  const std::string node_name_;
  const std::function<void(const Change&)> on_change_;
  api::ObjectPtr node_;             // the newest version seen
  std::set<std::string> drivers_;   // as last passed to on_change_
  std::set<std::string> told_;      // already reported
  std::set<std::string> returned_;  // came back; to be removed from the list
  bool writing_ = false;
  TimerHandle retry_;
  Backoff backoff_{kRetry};
  client::Informer informer_;
  Lifetime lifetime_;
};

}  // namespace drakkar::node
