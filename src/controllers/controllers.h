#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "base/env/random.h"
#include "base/exec/event_loop.h"
#include "client/client.h"
#include "controllers/certificates/signer.h"
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
    // Used by the shared informers, and by the controllers if `client_for` is null.
    client::Client& client;
    Metrics& metrics;
    // Creates the client for a service account in kube-system. Called once per account.
    std::function<std::unique_ptr<client::Client>(std::string_view account)> client_for = nullptr;
    // Receives the warnings about claims. If null, they become events like all others.
    std::function<void(const api::ObjectPtr& object, std::string_view reason, std::string message)>
        warn = nullptr;
    // CA certificate for the ConfigMap kube-root-ca.crt of every namespace; empty: none is created.
    std::string ca_pem = {};
    // The CA that signs certificates; without it none are signed.
    std::optional<SigningAuthority> signing = {};
    Selection selection = {};
    // Whether the pods of a PodGroup share its claims (gate DRAWorkloadResourceClaims).
    bool pod_group_claims = false;
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
