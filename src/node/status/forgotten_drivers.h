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

// On the Node: names of DRA drivers, separated by commas, that will not come back. An administrator
// writes it (`drakkar node forget-driver`), so it holds over restarts and while the node is down.
inline constexpr char kForgottenDriversAnnotation[] = "node.drakkar.io/forgotten-drivers";
// Those of them that this node has told of, so that it does not do so again after a restart.
inline constexpr char kToldForgottenAnnotation[] = "node.drakkar.io/forgotten-drivers-told";

// Follows the annotation of this node, and takes drivers that came back off it. Writes name the
// version they are made for and are tried again, 1 s later, doubling to a minute. Loop-bound.
class ForgottenDrivers {
 public:
  static constexpr std::size_t kMaxDrivers = 256;  // further names are not looked at
  static constexpr Backoff::Options kRetry{.initial = std::chrono::seconds(1),
                                           .max = std::chrono::seconds(60)};

  struct Change {
    std::set<std::string> drivers;  // all that are gone
    std::set<std::string> untold;   // those of them nobody was told of yet
    api::ObjectPtr node;
  };

  // `on_change` is called each time the list is another.
  ForgottenDrivers(EventLoop& loop, Random& random, client::Client& client, std::string node_name,
                   std::function<void(const Change&)> on_change);
  ~ForgottenDrivers();

  void Start() { informer_.Start(); }
  // A driver is back after all: takes it off the list, so that its next absence counts again. It is
  // off for this process at once, and on the Node as soon as that can be read and written.
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
  std::set<std::string> drivers_;   // as on_change_ knows them
  std::set<std::string> told_;      // of those on the list
  std::set<std::string> returned_;  // on the list until they are taken off, or not known to be
  bool writing_ = false;
  TimerHandle retry_;
  Backoff backoff_{kRetry};
  client::Informer informer_;
  Lifetime lifetime_;
};

}  // namespace drakkar::node
