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
// watches every kind that the server serves, including kinds that are added later. Before it
// deletes the dependents of an owner it has never seen, it looks the owner up on the server.
//
// Loop-bound. Uses the given informers for their kinds and creates its own for all others. The
// given informers must outlive it and are started by their owner.
class GarbageCollector {
 public:
  // Adds handlers to the shared informers: construct it before they are started.
  GarbageCollector(EventLoop& loop, Random& random, client::Client& client,
                   std::vector<client::Informer*> shared);
  void Start();

 private:
  using Done = client::WorkQueue::Done;
  struct Confirmation;
  void Discover();
  void OnDiscovered(client::ServedKinds served);
  void Watch(const api::KindSchema& kind, client::Informer& informer);
  // The kind of an owner reference, in the preferred version; null if the server does not serve it.
  const api::KindSchema* FindServed(std::string_view api_version, std::string_view kind) const;
  void Sync(const std::string& uid, Done done);
  // Looks `owners` up on the server one after another, then queues their dependent again.
  void ConfirmOwners(const std::string& uid, std::vector<std::string> owners, Done done);
  void ConfirmNext(const std::shared_ptr<Confirmation>& confirmation);
  void OnObject(const api::KindSchema& kind, const api::ObjectPtr& before,
                const api::ObjectPtr& object);
  void OnGone(const api::ObjectPtr& object);
  void QueueDyingOwners(const api::Object& dependent);
  void RemoveFinalizer(const OwnerGraph::Item& item, std::string_view finalizer, Done done);
  void DropOwners(const OwnerGraph::Item& item, const std::vector<std::string>& owners, Done done);
  void Delete(const OwnerGraph::Item& item, std::string_view propagation, Done done);
  // Takes back blockOwnerDeletion from the object's references.
  void UnblockOwners(const OwnerGraph::Item& item, Done done);
  bool AllSynced();
  void SweepOnce();

  EventLoop& loop_;
  Random& random_;
  client::Client& client_;
  client::WorkQueue queue_;
  const std::vector<client::Informer*> shared_;
  std::vector<std::unique_ptr<client::Informer>> own_;
  std::vector<const api::KindSchema*> served_;  // empty until discovery succeeds
  TimerHandle next_discovery_;
  bool all_synced_ = false;
  bool swept_ = false;
  OwnerGraph graph_;
  // Bounded; a dropped entry costs one request to the server.
  OwnerGraph::Uids gone_;
  Lifetime lifetime_;
};

}  // namespace drakkar::controllers
