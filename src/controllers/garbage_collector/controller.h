#pragma once

#include <map>
#include <memory>
#include <set>
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
class GarbageCollector {
 public:
  GarbageCollector(EventLoop& loop, Random& random, client::Client& client);
  ~GarbageCollector();
  void Start();

 private:
  using Done = client::WorkQueue::Done;
  void Sync(const std::string& uid, Done done);
  void ConfirmOwner(const std::string& uid, const std::string& owner_uid, Done done);
  void OnObject(const api::KindSchema& kind, const api::ObjectPtr& object);
  void OnGone(const api::ObjectPtr& object);
  void RemoveFinalizer(const OwnerGraph::Item& item, std::string_view finalizer, Done done);
  void DropOwners(const OwnerGraph::Item& item, const std::vector<std::string>& owners, Done done);
  void Delete(const OwnerGraph::Item& item, Done done);
  bool AllSynced() const;

  EventLoop& loop_;
  client::Client& client_;
  client::WorkQueue queue_;
  std::vector<std::unique_ptr<client::Informer>> informers_;
  OwnerGraph graph_;
  // Bounded; forgetting one costs a question to the server.
  std::set<std::string> gone_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace drakkar::controllers
