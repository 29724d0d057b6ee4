#pragma once

#include <map>
#include <string>

#include "base/env/random.h"
#include "base/exec/backoff.h"
#include "base/exec/event_loop.h"
#include "client/event_recorder.h"
#include "client/scoped_client.h"
#include "client/work_queue.h"
#include "controllers/daemon_set/planner.h"
#include "controllers/workload/dependent_writer.h"
#include "controllers/workload/owned_index.h"
#include "controllers/workload/owner_queue.h"
#include "controllers/workload/revision_keeper.h"
#include "controllers/workload/selector_index.h"

namespace drakkar::controllers {

// Keeps one pod of each DaemonSet on every node that the set selects, replaces them when the
// template changes, and keeps the set's status and revisions.
//
// Driven by events. A set is not processed while our informers do not show what the controller
// wrote. Loop-bound. The given informers and indexes are shared and must outlive it. It remembers
// one backoff per node and set whose pod failed.
class DaemonSetController {
 public:
  struct Options {
    EventLoop& loop;
    Random& random;
    client::Client& client;
    client::EventRecorder& events;
    client::Informer& sets;
    client::Informer& nodes;
    OwnedIndex& pods;
    OwnedIndex& revisions;
  };
  // Adds handlers to the informers: construct it before they are started.
  explicit DaemonSetController(Options options);

 private:
  using Done = client::WorkQueue::Done;
  struct Failing {  // pods of one set on one node
    Backoff backoff;
    MonotonicTime until{};
  };

  void OnSet(const api::ObjectPtr& before, const api::ObjectPtr& set);
  void OnNode(const api::ObjectPtr& before, const api::ObjectPtr& node);
  bool IsUpToDate(std::string_view uid);
  void Sync(const std::string& key, Done done);
  void CarryOut(const api::ObjectPtr& set, const DaemonState& state, DaemonPlan plan, Done done);
  std::optional<Duration> TakeEnded(const api::ObjectPtr& set, DaemonPlan& plan);
  Duration UntilReplaced(const api::Object& set, const api::Object& failed_pod);
  void WriteStatus(const api::ObjectPtr& set, const DaemonState& state, Done done);

  const Options options_;
  client::ScopedClient client_;
  SelectorIndex selectors_;
  DependentWriter writer_;
  RevisionKeeper revisions_;
  std::map<std::string, DaemonPlacement, std::less<>> placements_;  // by set
  std::map<std::string, std::map<std::string, Failing>, std::less<>>
      failing_;  // by set's uid, node
  client::WorkQueue queue_;
  OwnerQueue owners_;
};

}  // namespace drakkar::controllers
