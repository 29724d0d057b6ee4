#pragma once

#include <memory>
#include <string>

#include "base/env/random.h"
#include "base/exec/event_loop.h"
#include "client/event_recorder.h"
#include "client/scoped_client.h"
#include "client/work_queue.h"
#include "controllers/stateful_set/planner.h"
#include "controllers/workload/dependent_writer.h"
#include "controllers/workload/owned_index.h"
#include "controllers/workload/owner_queue.h"
#include "controllers/workload/revision_keeper.h"
#include "controllers/workload/selector_index.h"

namespace drakkar::controllers {

// Keeps the numbered pods of StatefulSets and their volume claims, in order, and the sets' status
// and revisions.
//
// Driven by events. A set is not processed while our informers do not show the pods and revisions
// that the controller wrote. Loop-bound. The given informers and indexes are shared and must
// outlive it.
class StatefulSetController {
 public:
  struct Options {
    EventLoop& loop;
    Random& random;
    client::Client& client;
    client::EventRecorder& events;
    client::Informer& sets;
    client::Informer& volume_claims;
    OwnedIndex& pods;
    OwnedIndex& revisions;
  };
  // Adds handlers to the informers: construct it before they are started.
  explicit StatefulSetController(Options options);

 private:
  using Done = client::WorkQueue::Done;
  struct Work;

  bool IsUpToDate(std::string_view uid);
  DependentWriter::Words Words() const;
  void Sync(const std::string& key, Done done);
  // The steps of a plan, in their order. A failure ends the plan after its step.
  void MakeClaims(const std::shared_ptr<Work>& work);
  void ChangeClaims(const std::shared_ptr<Work>& work);
  void ChangePods(const std::shared_ptr<Work>& work);
  void CreateAndDelete(const std::shared_ptr<Work>& work);
  void WriteStatus(const std::shared_ptr<Work>& work);

  const Options options_;
  client::ScopedClient client_;
  SelectorIndex selectors_;
  DependentWriter writer_;
  RevisionKeeper revisions_;
  client::WorkQueue queue_;
  OwnerQueue owners_;
};

}  // namespace drakkar::controllers
