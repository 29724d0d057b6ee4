#pragma once

#include <map>
#include <string>

#include "base/env/random.h"
#include "base/exec/event_loop.h"
#include "client/event_recorder.h"
#include "client/scoped_client.h"
#include "client/work_queue.h"
#include "controllers/workload/dependent_writer.h"
#include "controllers/workload/owned_index.h"
#include "controllers/workload/owner_queue.h"
#include "controllers/workload/selector_index.h"

namespace drakkar::controllers {

// Keeps the number of pods that a ReplicaSet requests, and its status. Also used for
// ReplicationControllers.
//
// Driven by events. A set is not processed while our informer does not show pods that the
// controller created or deleted. Loop-bound. The given informers and index are shared and must
// outlive it.
class ReplicaSetController {
 public:
  enum class Kind { kReplicaSet, kReplicationController };
  struct Options {
    EventLoop& loop;
    Random& random;
    client::Client& client;
    client::EventRecorder& events;
    client::Informer& sets;
    OwnedIndex& pods;
    // ReplicaSets by the Deployment that controls them; null if sets have no siblings.
    const OwnedIndex* siblings = nullptr;
    Kind kind = Kind::kReplicaSet;
  };
  // Adds handlers to the informers: construct it before they are started.
  explicit ReplicaSetController(Options options);

 private:
  using Done = client::WorkQueue::Done;

  void Sync(const std::string& key, Done done);
  void Scale(const api::ObjectPtr& set, std::vector<api::ObjectPtr> active, Done done);
  void WriteStatus(const api::ObjectPtr& set, const std::vector<api::ObjectPtr>& active,
                   std::string_view failure_reason, std::optional<Error> failure, Done done);
  std::map<std::string, int, std::less<>> RelatedPodsPerNode(const api::Object& set) const;

  const Options options_;
  client::ScopedClient client_;
  SelectorIndex selectors_;
  DependentWriter writer_;
  client::WorkQueue queue_;
  OwnerQueue owners_;
};

}  // namespace drakkar::controllers
