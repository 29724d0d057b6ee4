#pragma once

#include <memory>
#include <string>

#include "base/env/random.h"
#include "base/exec/event_loop.h"
#include "client/event_recorder.h"
#include "client/scoped_client.h"
#include "client/work_queue.h"
#include "controllers/deployment/planner.h"
#include "controllers/workload/dependent_writer.h"
#include "controllers/workload/owned_index.h"
#include "controllers/workload/selector_index.h"

namespace drakkar::controllers {

// Rolls out the template of a Deployment through ReplicaSets, scales them and keeps the history.
//
// Driven by events. A Deployment is not processed while our informer does not show a ReplicaSet
// that the controller wrote. Loop-bound. The given informers and indexes are shared and must
// outlive it.
class DeploymentController {
 public:
  struct Options {
    EventLoop& loop;
    Random& random;
    client::Client& client;
    client::EventRecorder& events;
    client::Informer& deployments;
    OwnedIndex& sets;  // ReplicaSets
    OwnedIndex& pods;
  };
  // Adds handlers to the informers: construct it before they are started.
  explicit DeploymentController(Options options);

 private:
  using Done = client::WorkQueue::Done;
  struct Work;

  void OnSet(const api::ObjectPtr& before, const api::ObjectPtr& set);
  void QueueOwner(const api::Object& set);
  void OnPodGone(const api::Object& pod);
  void Sync(const std::string& key, Done done);
  void CarryOut(const std::shared_ptr<Work>& work);
  void CreateSet(const std::shared_ptr<Work>& work);
  void UpdateSets(const std::shared_ptr<Work>& work);
  void Finish(const std::shared_ptr<Work>& work);
  void WriteStatus(const api::Object& deployment, api::TreePtr body, Done done);

  const Options options_;
  client::ScopedClient client_;
  SelectorIndex selectors_;
  DependentWriter writer_;
  client::WorkQueue queue_;
};

}  // namespace drakkar::controllers
