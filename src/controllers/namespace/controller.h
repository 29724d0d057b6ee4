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

// Deletes the contents of a namespace that is being deleted, then removes its finalizer. While
// something is left, the conditions of the namespace say what.
class NamespaceController {
 public:
  NamespaceController(EventLoop& loop, Random& random, client::Client& client,
                      client::Informer& namespaces);

 private:
  using Done = client::WorkQueue::Done;
  void Sync(const std::string& name, Done done);
  // The namespaced kinds of the server. Rediscovered for each deletion.
  using Kinds = std::shared_ptr<const std::vector<const api::KindSchema*>>;
  // Deletes all objects of the kinds from `index` on, then checks that none are left.
  void DeleteContent(const std::string& name, const Kinds& kinds, std::size_t index, Done done);
  void DeleteOneByOne(const std::string& name, const api::KindSchema& kind, Done done);
  using Obstacles = std::shared_ptr<NamespaceObstacles>;
  void CheckEmpty(const std::string& name, const Kinds& kinds, std::size_t index,
                  const Obstacles& found, Done done);
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
