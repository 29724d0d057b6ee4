#pragma once

#include <string>

#include "base/env/random.h"
#include "base/exec/event_loop.h"
#include "client/informer.h"
#include "client/scoped_client.h"
#include "client/work_queue.h"
#include "net/tls/certificates.h"

namespace drakkar::controllers {

// The CA of the signers of kubernetes.io, and the maximum lifetime of a certificate.
struct SigningAuthority {
  net::CertificateAndKey ca;
  Duration max_lifetime = std::chrono::hours(24 * 365);
};

// Issues the certificates of approved requests (see PlanSigning). A request that breaks its
// signer's rules gets the condition Failed. Loop-bound; signing takes about 100 µs.
class CertificateSigner {
 public:
  struct Options {
    EventLoop& loop;
    Random& random;
    client::Client& client;
    client::Informer& requests;
    SigningAuthority authority;
  };
  // Adds handlers to the informer: construct it before that is started.
  explicit CertificateSigner(Options options);

 private:
  using Done = client::WorkQueue::Done;
  void Sync(const std::string& name, Done done);

  const Options options_;
  const Result<net::CertificateInfo> ca_;
  client::ScopedClient client_;
  client::WorkQueue queue_;
};

}  // namespace drakkar::controllers
