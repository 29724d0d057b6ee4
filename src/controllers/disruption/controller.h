#pragma once

#include <string>
#include <vector>

#include "base/env/random.h"
#include "base/exec/event_loop.h"
#include "client/event_recorder.h"
#include "client/scoped_client.h"
#include "client/work_queue.h"
#include "controllers/workload/selector_index.h"

namespace drakkar::controllers {

// Keeps the status of PodDisruptionBudgets: how many of their pods may be disrupted. Loop-bound;
// the informers must outlive it.
class DisruptionController {
 public:
  struct Options {
    EventLoop& loop;
    Random& random;
    client::Client& client;
    client::EventRecorder& events;
    client::Informer& budgets;
    client::Informer& pods;
    // Kinds with spec.replicas that own pods, and Deployments, which own ReplicaSets.
    std::vector<client::Informer*> owners;
  };
  // Adds handlers to the informers: construct it before they are started.
  explicit DisruptionController(Options options);

 private:
  using Done = client::WorkQueue::Done;
  void OnPod(const api::ObjectPtr& before, const api::ObjectPtr& pod);
  std::optional<std::int64_t> FindScale(api::Value owner, std::string_view namespace_) const;
  void Sync(const std::string& key, Done done);

  const Options options_;
  client::ScopedClient client_;
  SelectorIndex selectors_;
  client::WorkQueue queue_;
};

}  // namespace drakkar::controllers
