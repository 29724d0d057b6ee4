#pragma once

#include <string>

#include "base/env/random.h"
#include "base/exec/event_loop.h"
#include "client/informer.h"
#include "client/scoped_client.h"
#include "client/work_queue.h"

namespace drakkar::controllers {

// Deletes finished Jobs together with their pods once spec.ttlSecondsAfterFinished has passed.
// Loop-bound; one timer per finished Job.
class TtlAfterFinishedController {
 public:
  struct Options {
    EventLoop& loop;
    Random& random;
    client::Client& client;
    client::Informer& jobs;
  };
  // Adds handlers to the informer: construct it before that is started.
  explicit TtlAfterFinishedController(Options options);

 private:
  using Done = client::WorkQueue::Done;
  void OnJob(const api::ObjectPtr& job);
  void Sync(const std::string& key, Done done);

  const Options options_;
  client::ScopedClient client_;
  client::WorkQueue queue_;
};

}  // namespace drakkar::controllers
