#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/exec/event_loop.h"
#include "base/exec/lifetime.h"
#include "client/client.h"
#include "client/informer.h"
#include "client/work_queue.h"
#include "controllers/garbage_collector/graph.h"

namespace drakkar::controllers {

// Deletes objects whose owners are all gone, and carries out foreground deletion and orphaning. It
// watches every kind the server serves, also such as come later. An owner it has never seen is
// looked up on the server before anything is deleted for its sake.
//
// Loop-bound. Uses the informers it is given for their kinds, which must outlive it and be started
// by their owner, and makes its own for the others.
class GarbageCollector {
 public:
  // Adds its handlers: construct before the shared informers are started.
  GarbageCollector(EventLoop& loop, Random& random, client::Client& client,
                   std::vector<client::Informer*> shared);
  void Start();

 private:
  using Done = client::WorkQueue::Done;
  void Discover();
  void OnDiscovered(client::ServedKinds served);
  void Watch(const api::KindSchema& kind, client::Informer& informer);
  // The kind an owner reference names, in the version the server prefers; null if it serves none.
  const api::KindSchema* FindServed(std::string_view api_version, std::string_view kind) const;
  void Sync(const std::string& uid, Done done);
  void ConfirmOwner(const std::string& uid, const std::string& owner_uid, Done done);
  void OnObject(const api::KindSchema& kind, const api::ObjectPtr& before,
                const api::ObjectPtr& object);
  void OnGone(const api::ObjectPtr& object);
  void RemoveFinalizer(const OwnerGraph::Item& item, std::string_view finalizer, Done done);
  void DropOwners(const OwnerGraph::Item& item, const std::vector<std::string>& owners, Done done);
  void Delete(const OwnerGraph::Item& item, Done done);
  bool AllSynced();
  void SweepOnce();

  EventLoop& loop_;
  Random& random_;
  client::Client& client_;
  client::WorkQueue queue_;
  const std::vector<client::Informer*> shared_;
  std::vector<std::unique_ptr<client::Informer>> own_;
  std::vector<const api::KindSchema*> served_;  // empty until the server has said
  TimerHandle next_discovery_;
  bool all_synced_ = false;
  bool swept_ = false;
  OwnerGraph graph_;
  // Bounded; forgetting one costs a question to the server.
  OwnerGraph::Uids gone_;
  Lifetime lifetime_;
};

}  // namespace drakkar::controllers
