#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/exec/event_loop.h"
#include "base/exec/lifetime.h"
#include "client/client.h"
#include "client/informer.h"
#include "client/work_queue.h"
#include "controllers/namespace/conditions.h"

namespace drakkar::controllers {

// Deletes the contents of a namespace that is being deleted, then removes its finalizer. Pods go
// first, and as long as one is left nothing else is deleted: it may still need its volumes, network
// policies and so on (KEP-5080). While something is left, the conditions of the namespace say what.
// Each pass deletes and counts; the next one follows after a second.
class NamespaceController {
 public:
  NamespaceController(EventLoop& loop, Random& random, client::Client& client,
                      client::Informer& namespaces);

 private:
  using Done = client::WorkQueue::Done;
  void Sync(const std::string& name, Done done);
  struct Pass;
  using PassPtr = std::shared_ptr<Pass>;
  // Empties one kind after the other.
  void Continue(const PassPtr& pass);
  void DeleteAll(const PassPtr& pass, const api::KindSchema& kind, Done done);
  void DeleteOneByOne(const std::string& name, const api::KindSchema& kind, Done done);
  void Count(const PassPtr& pass, const api::KindSchema& kind);
  void Finish(const PassPtr& pass);
  // Writes the conditions, then calls `done` with `result`.
  void Report(const std::string& name, const NamespaceObstacles& obstacles, Result<void> result,
              Done done);
  void Finalize(const std::string& name, Done done);

  EventLoop& loop_;
  client::Client& client_;
  client::Informer& namespaces_;
  client::WorkQueue queue_;
  Lifetime lifetime_;
};

}  // namespace drakkar::controllers
