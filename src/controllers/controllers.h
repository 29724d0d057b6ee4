#pragma once

#include <functional>
#include <memory>

#include "base/env/random.h"
#include "base/exec/event_loop.h"
#include "client/client.h"
#include "controllers/selection.h"

namespace drakkar {
class Metrics;
}

namespace drakkar::controllers {

// All controllers and the informers they share, on one loop. controllers.cc lists them.
class Controllers {
 public:
  struct Options {
    EventLoop& loop;
    Random& random;
    // The shared informers' client, and the controllers' own if `client_for` is null.
    client::Client& client;
    Metrics& metrics;
    // Makes the client of a service account of kube-system; called once for each account.
    std::function<std::unique_ptr<client::Client>(std::string_view account)> client_for = nullptr;
    // Receives the warnings about claims; null: they become events, as everything else does.
    std::function<void(const api::ObjectPtr& object, std::string_view reason, std::string message)>
        warn = nullptr;
    // The authority's certificate for every namespace's kube-root-ca.crt; empty: none is made.
    std::string ca_pem = {};
    Selection selection = {};
  };
  explicit Controllers(Options options);
  ~Controllers();

  void Start();
  // True once every shared informer has synced.
  bool has_synced() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace drakkar::controllers
