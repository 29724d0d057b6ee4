#pragma once

#include <functional>
#include <memory>

#include "base/env/random.h"
#include "base/exec/event_loop.h"
#include "client/client.h"

namespace drakkar {
class Metrics;
}

namespace drakkar::controllers {

// All controllers with the informers they share, on one loop. The list is in controllers.cc.
class Controllers {
 public:
  struct Options {
    EventLoop& loop;
    Random& random;
    client::Client& client;
    Metrics& metrics;
    // Tells the user about an object, as an event of type Warning.
    std::function<void(const api::ObjectPtr& object, std::string_view reason, std::string message)>
        warn;
    // The authority's certificate for every namespace's kube-root-ca.crt; empty: none is made.
    std::string ca_pem = {};
  };
  explicit Controllers(Options options);
  ~Controllers();

  void Start();
  // True once every shared informer has its first list.
  bool has_synced() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace drakkar::controllers
