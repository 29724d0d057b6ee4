#pragma once

#include <map>
#include <string>

#include "base/env/random.h"
#include "base/exec/event_loop.h"
#include "client/event_recorder.h"
#include "client/scoped_client.h"
#include "client/work_queue.h"
#include "controllers/endpoints/planner.h"
#include "controllers/workload/dependent_writer.h"
#include "controllers/workload/owned_index.h"
#include "controllers/workload/selector_index.h"

namespace drakkar::controllers {

// Finds the Services affected by a change of a Service, pod or node, and the pods that a Service
// selects. Shared by the two controllers below. Loop-bound.
class ServiceFollower {
 public:
  struct Options {
    EventLoop& loop;
    client::Informer& services;
    client::Informer& pods;
    client::Informer& nodes;
  };
  // Adds handlers to the informers. `changed` is called with the name of a Service.
  ServiceFollower(Options options, std::function<void(const std::string& service)> changed);

  bool has_synced() const;
  ServiceState StateOf(const api::Object& service) const;

  // Many pods often change at the same time. Returns how long a Service has to wait before it is
  // processed; zero if it may be processed now, which counts as done.
  Duration UntilTurn(const std::string& service);
  void Forget(const std::string& service) { processed_.erase(service); }

 private:
  static constexpr Duration kInterval = std::chrono::milliseconds(500);

  void OnPod(const api::ObjectPtr& before, const api::ObjectPtr& pod);

  const Options options_;
  SelectorIndex selectors_;
  std::function<void(const std::string&)> changed_;
  std::map<std::string, MonotonicTime> processed_;  // by Service
};

// Keeps the Endpoints of Services that select pods. Loop-bound; the informers must outlive it.
class EndpointsController {
 public:
  struct Options {
    EventLoop& loop;
    Random& random;
    client::Client& client;
    client::EventRecorder& events;
    client::Informer& services;
    client::Informer& pods;
    client::Informer& nodes;
    client::Informer& endpoints;
  };
  // Adds handlers to the informers: construct it before they are started.
  explicit EndpointsController(Options options);

 private:
  using Done = client::WorkQueue::Done;
  void Sync(const std::string& key, Done done);

  const Options options_;
  client::ScopedClient client_;
  client::WorkQueue queue_;
  ServiceFollower follower_;
};

// Keeps the EndpointSlices of Services that select pods. Loop-bound; the informers must outlive it.
class EndpointSliceController {
 public:
  struct Options {
    EventLoop& loop;
    Random& random;
    client::Client& client;
    client::EventRecorder& events;
    client::Informer& services;
    client::Informer& pods;
    client::Informer& nodes;
    OwnedIndex& slices;
  };
  // Adds handlers to the informers: construct it before they are started.
  explicit EndpointSliceController(Options options);

 private:
  using Done = client::WorkQueue::Done;
  struct Work;
  void Sync(const std::string& key, Done done);

  const Options options_;
  client::ScopedClient client_;
  DependentWriter writer_;
  client::WorkQueue queue_;
  ServiceFollower follower_;
};

}  // namespace drakkar::controllers
