#pragma once

#include <string>

#include "base/env/random.h"
#include "base/exec/event_loop.h"
#include "client/informer.h"
#include "client/scoped_client.h"
#include "client/work_queue.h"

namespace drakkar::controllers {

// Deletes CertificateSigningRequests that are no longer needed (see DeletionTime). Loop-bound; one
// timer per request.
class CertificateCleaner {
 public:
  struct Options {
    EventLoop& loop;
    Random& random;
    client::Client& client;
    client::Informer& requests;
  };
  // Adds handlers to the informer: construct it before that is started.
  explicit CertificateCleaner(Options options);

 private:
  using Done = client::WorkQueue::Done;
  void Sync(const std::string& name, Done done);

  const Options options_;
  client::ScopedClient client_;
  client::WorkQueue queue_;
};

}  // namespace drakkar::controllers
