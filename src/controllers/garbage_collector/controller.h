#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/exec/event_loop.h"
#include "client/client.h"
#include "client/informer.h"
#include "client/work_queue.h"
#include "controllers/garbage_collector/graph.h"

namespace drakkar::controllers {

// Deletes objects whose owners are all gone, and carries out foreground deletion and orphaning. It
// watches every kind there is. An owner it has never seen is looked up on the server before
// anything is deleted for its sake.
//
// Loop-bound. Uses the informers it is given for their kinds, which must outlive it and be started
// by their owner, and makes its own for the others.
class GarbageCollector {
 public:
  // Adds its handlers: construct before the shared informers are started.
  GarbageCollector(EventLoop& loop, Random& random, client::Client& client,
                   std::vector<client::Informer*> shared);
  ~GarbageCollector();
  void Start();

 private:
  using Done = client::WorkQueue::Done;
  void Sync(const std::string& uid, Done done);
  void ConfirmOwner(const std::string& uid, const std::string& owner_uid, Done done);
  void OnObject(const api::KindSchema& kind, const api::ObjectPtr& before,
                const api::ObjectPtr& object);
  void OnGone(const api::ObjectPtr& object);
  void RemoveFinalizer(const OwnerGraph::Item& item, std::string_view finalizer, Done done);
  void DropOwners(const OwnerGraph::Item& item, const std::vector<std::string>& owners, Done done);
  void Delete(const OwnerGraph::Item& item, Done done);
  bool AllSynced();

  EventLoop& loop_;
  client::Client& client_;
  client::WorkQueue queue_;
  std::vector<std::unique_ptr<client::Informer>> own_;
  std::vector<client::Informer*> informers_;  // of all kinds
  bool all_synced_ = false;
  OwnerGraph graph_;
  // Bounded; forgetting one costs a question to the server.
  OwnerGraph::Uids gone_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace drakkar::controllers
