#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "apiserver/http/crossing.h"
#include "apiserver/http/device_usage.h"
#include "apiserver/rest/core.h"

namespace drakkar::apiserver {

// A watch, as the feed sees it. Everything is called on the HTTP loop.
class WatchReader {
 public:
  // Ends the reading when destroyed, on the HTTP loop.
  class Subscription {
   public:
    virtual ~Subscription() = default;
  };
  struct Beginning {
    Core::WatchPlan plan;                 // `cache` is the core's
    std::vector<api::ObjectPtr> initial;  // the state of initial_revision, if asked for
    storage::Revision initial_revision = 0;
    std::vector<Change> backlog;  // already seen through plan.options
    std::shared_ptr<const DeviceUsage> usage;
  };

  virtual ~WatchReader() = default;
  virtual void Refuse(const Failure& failure) = 0;
  // Without `subscription` kept, nothing follows.
  virtual void Begin(Beginning beginning, std::unique_ptr<Subscription> subscription) = 0;
  // Every durable change of the resource that is not in the backlog, once and in order: the reader
  // looks at them through plan.options.
  virtual void OnChanges(const std::vector<Change>& changes,
                         const std::shared_ptr<const DeviceUsage>& usage) = 0;
  // Nothing follows: the loop fell too far behind the core or the core behind the store (410), or
  // the store failed (500).
  virtual void OnClosed(const Failure& why) = 0;
};

// Durable changes on their way from the core to the watches of one HTTP loop. A change is handed
// over once, however many watch there; a resource nobody watches costs nothing. The order is that
// of the loops: what the core has handed over before a watch begins is in the watch's backlog, what
// comes later follows its beginning.
class ChangeFeed {
 public:
  // Changes of one resource that the HTTP loop has not looked at; beyond, its watches of that
  // resource end (410) as if each had been too slow.
  static constexpr std::uint64_t kMaxAhead = 50'000;

  // `usage` is asked on the core's loop. Destroy it like the crossing.
  ChangeFeed(Core& core, const Crossing& crossing,
             std::function<std::shared_ptr<const DeviceUsage>()> usage);
  ~ChangeFeed();

  struct Opening {
    Request request;
    bool list_first = false;  // begin with the state of now
    bool wants_usage = false;
  };
  // On the HTTP loop. Refuse or Begin follows, perhaps at once.
  void Open(Opening opening, std::shared_ptr<WatchReader> reader);
  // `done` gets, on the HTTP loop, a revision up to which every reader has been given everything.
  void AskRevision(std::function<void(storage::Revision)> done);

 private:
  struct Tap;
  struct Pending;
  class Reading;

  // On the core's loop.
  void Prepare(std::shared_ptr<Pending> pending);
  void Begin(std::shared_ptr<Pending> pending);
  std::shared_ptr<Tap> FindTap(WatchCache& cache);
  void HandOver(const std::shared_ptr<Tap>& tap, const std::vector<Change>& changes);
  // Whoever comes next gets a tap of its own; the readers of this one leave it in time.
  void Shut(const std::shared_ptr<Tap>& tap, Failure why);
  void Leave(Tap& tap, bool wanted_usage);
  // On the HTTP loop.
  void Attach(Pending& pending);
  template <typename Function>
  static void ForEachReader(Tap& tap, Function tell);
  static void Deliver(Tap& tap, const std::vector<Change>& changes,
                      const std::shared_ptr<const DeviceUsage>& usage);

  Core& core_;
  const Crossing& crossing_;
  const std::function<std::shared_ptr<const DeviceUsage>()> usage_;
  std::map<WatchCache*, std::shared_ptr<Tap>> taps_;  // the core's loop
};

}  // namespace drakkar::apiserver
