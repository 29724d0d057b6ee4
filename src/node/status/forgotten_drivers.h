#pragma once

#include <functional>
#include <memory>
#include <set>
#include <string>

#include "base/env/random.h"
#include "base/exec/event_loop.h"
#include "client/client.h"
#include "client/informer.h"

namespace drakkar::node {

// On the Node: names of DRA drivers, separated by commas, that will not come back. An administrator
// writes it (`drakkar node forget-driver`), so it holds over restarts and while the node is down.
inline constexpr char kForgottenDriversAnnotation[] = "node.drakkar.io/forgotten-drivers";

// Follows the annotation of this node. Loop-bound.
class ForgottenDrivers {
 public:
  static constexpr std::size_t kMaxDrivers = 256;  // further names are not looked at

  // `on_change` gets the whole list, and the node, each time the list is another.
  ForgottenDrivers(EventLoop& loop, Random& random, client::Client& client, std::string node_name,
                   std::function<void(const std::set<std::string>&, const api::ObjectPtr& node)> on_change);
  ~ForgottenDrivers();

  void Start() { informer_.Start(); }
  // A driver is back after all: takes it off the list, so that its next absence counts again.
  // Best effort: while it is registered it is called anyway.
  void Remove(const std::string& driver);

 private:
  void Look(const api::ObjectPtr& node);

  client::Client& client_;
  const std::string node_name_;
  const std::function<void(const std::set<std::string>&, const api::ObjectPtr&)> on_change_;
  std::set<std::string> drivers_;
  client::Informer informer_;
};

}  // namespace drakkar::node
