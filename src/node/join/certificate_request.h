#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/env/random.h"
#include "base/exec/backoff.h"
#include "base/exec/event_loop.h"
#include "base/exec/lifetime.h"
#include "client/client.h"
#include "net/tls/certificates.h"

namespace drakkar::node {

// Requests one certificate from the cluster: creates a key and a CertificateSigningRequest and
// waits until it is issued, denied or failed, at most kMaxWait. The key never leaves the process.
//
// Loop-bound. Destroying it cancels the wait; the request stays in the cluster until it is cleaned
// up.
class CertificateRequest {
 public:
  // As long as a kubelet waits before it requests again.
  static constexpr Duration kMaxWait = std::chrono::minutes(15);

  struct Options {
    EventLoop& loop;
    Random& random;
    client::Client& client;
    std::string signer;
    net::CertificateSubject subject;
    std::vector<std::string> usages;
  };
  using Done = std::function<void(Result<net::CertificateAndKey>)>;
  // Calls `done` once, never inside this call.
  CertificateRequest(Options options, Done done);

 private:
  void Create();
  void Ask();
  void OnAnswer(const client::Reply& reply);
  void Finish(Result<net::CertificateAndKey> result);

  const Options options_;
  Done done_;
  const MonotonicTime deadline_;
  std::string key_pem_;
  std::string name_;
  Backoff backoff_;
  TimerHandle timer_;
  Lifetime lifetime_;
};

}  // namespace drakkar::node
