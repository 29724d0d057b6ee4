#pragma once

#include <map>
#include <string>

#include "base/env/random.h"
#include "base/exec/event_loop.h"
#include "client/informer.h"
#include "client/scoped_client.h"
#include "client/work_queue.h"

namespace drakkar::controllers {

// Answers ResourcePoolStatusRequests, once each, and deletes old ones. Waits for a pool that its
// driver has not published completely, at most kMaxAttempts times. Loop-bound; the informers must
// outlive it.
class PoolStatusController {
 public:
  static constexpr int kMaxAttempts = 5;
  static constexpr Duration kRetryAfter = std::chrono::seconds(2);

  struct Options {
    EventLoop& loop;
    Random& random;
    client::Client& client;
    client::Informer& requests;
    client::Informer& slices;
    client::Informer& claims;
    client::Informer& rules;
  };
  // Adds handlers to the informers: construct it before they are started.
  explicit PoolStatusController(Options options);

 private:
  using Done = client::WorkQueue::Done;
  void Sync(const std::string& name, Done done);
  void DeleteIfOld(const api::ObjectPtr& request, Done done);

  const Options options_;
  client::ScopedClient client_;
  std::map<std::string, int> attempts_;  // by request
  client::WorkQueue queue_;
};

}  // namespace drakkar::controllers
