#pragma once

#include <memory>
#include <string>
#include <unordered_map>

#include "base/env/random.h"
#include "base/exec/event_loop.h"
#include "client/event_recorder.h"
#include "client/scoped_client.h"
#include "client/work_queue.h"
#include "controllers/job/planner.h"
#include "controllers/workload/dependent_writer.h"
#include "controllers/workload/owned_index.h"
#include "controllers/workload/selector_index.h"

namespace drakkar::controllers {

// Runs the pods of a Job to completion and counts each finished pod exactly once.
//
// Driven by events. A Job is not processed while our informer does not show pods that the
// controller wrote. Jobs that name another controller in spec.managedBy are ignored. Loop-bound.
// The given informers and index are shared and must outlive it.
class JobController {
 public:
  struct Options {
    EventLoop& loop;
    Random& random;
    client::Client& client;
    client::EventRecorder& events;
    client::Informer& jobs;
    OwnedIndex& pods;
  };
  // Adds handlers to the informers: construct it before they are started.
  explicit JobController(Options options);

 private:
  using Done = client::WorkQueue::Done;
  struct Work;

  void OnPod(const api::ObjectPtr& before, const api::ObjectPtr& pod);
  void QueueOwner(const api::Object& pod);
  void Sync(const std::string& key, Done done);
  void SyncOrphan(const std::string& key, Done done);
  void Discard(const std::shared_ptr<Work>& work);
  void Untrack(const std::shared_ptr<Work>& work);
  void WriteStatus(const std::shared_ptr<Work>& work);
  void RemoveFinalizer(const api::ObjectPtr& pod, client::ReplyCallback done);

  const Options options_;
  client::ScopedClient client_;
  SelectorIndex selectors_;
  DependentWriter writer_;
  client::WorkQueue queue_;
  client::WorkQueue orphans_;  // pods whose Job no longer exists
  std::unordered_map<std::string, JobBackoff>
      backoff_;  // by uid of unfinished Jobs; never iterated
};

}  // namespace drakkar::controllers
