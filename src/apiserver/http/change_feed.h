#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "apiserver/http/device_usage.h"
#include "apiserver/http/loop_bridge.h"
#include "apiserver/rest/core.h"

namespace drakkar::apiserver {

// A watch, as seen by the feed. All methods are called on the HTTP loop.
class WatchReader {
 public:
  // Unsubscribes when destroyed, on the HTTP loop.
  class Subscription {
   public:
    virtual ~Subscription() = default;
  };
  struct Beginning {
    Core::WatchPlan plan;                 // `cache` belongs to the core
    std::vector<api::ObjectPtr> initial;  // the state at initial_revision, if requested
    storage::Revision initial_revision = 0;
    std::vector<Change> backlog;  // already filtered by plan.options
    std::shared_ptr<const DeviceUsage> usage;
  };

  virtual ~WatchReader() = default;
  virtual void Refuse(const Failure& failure) = 0;
  // Nothing follows unless `subscription` is kept.
  virtual void Begin(Beginning beginning, std::unique_ptr<Subscription> subscription) = 0;
  // Every durable change of the resource that is not in the backlog, once and in order. The reader
  // filters them by plan.options.
  virtual void OnChanges(const std::vector<Change>& changes,
                         const std::shared_ptr<const DeviceUsage>& usage) = 0;
  // Nothing follows: the loop fell too far behind the core or the core behind the store (410), or
  // the store failed (500).
  virtual void OnClosed(const Failure& why) = 0;
};

// Carries durable changes from the core to the watches of one HTTP loop. Each change is handed over
// once, however many watches there are; a resource without watches costs nothing. Changes that the
// core handed over before a watch starts are in the watch's backlog; later ones follow.
class ChangeFeed {
 public:
  // Limit for changes of one resource that the HTTP loop has not processed. Beyond it, the loop's
  // watches of that resource end (410) as if each had been too slow.
  static constexpr std::uint64_t kMaxAhead = 50'000;

  // `usage` is called on the core's loop. Destroy the feed as you would the bridge.
  ChangeFeed(Core& core, const LoopBridge& bridge,
             std::function<std::shared_ptr<const DeviceUsage>()> usage);
  ~ChangeFeed();

  struct Opening {
    Request request;
    bool list_first = false;  // start with the current state
    bool wants_usage = false;
  };
  // On the HTTP loop. Refuse or Begin follows, perhaps inside the call.
  void Open(Opening opening, std::shared_ptr<WatchReader> reader);
  // Calls `done` on the HTTP loop with a revision up to which every reader has received everything.
  void AskRevision(std::function<void(storage::Revision)> done);
  // Has the webhook of its kind convert an object; calls `done` on the HTTP loop, with the reason
  // if that failed.
  void Convert(api::ObjectPtr object, const api::KindSchema& to,
               std::function<void(std::optional<Failure>)> done);

 private:
  struct Tap;
  struct Pending;
  class Reading;

  // On the core's loop.
  void Prepare(std::shared_ptr<Pending> pending);
  void Begin(std::shared_ptr<Pending> pending);
  std::shared_ptr<Tap> FindTap(WatchCache& cache);
  void HandOver(const std::shared_ptr<Tap>& tap, const std::vector<Change>& changes);
  // The next reader gets a new tap; the readers of this one leave it over time.
  void Shut(const std::shared_ptr<Tap>& tap, Failure why);
  void Leave(Tap& tap, bool wanted_usage);
  // On the HTTP loop.
  void Attach(Pending& pending);
  template <typename Function>
  static void ForEachReader(Tap& tap, Function tell);
  static void Deliver(Tap& tap, const std::vector<Change>& changes,
                      const std::shared_ptr<const DeviceUsage>& usage);

  Core& core_;
  const LoopBridge& bridge_;
  const std::function<std::shared_ptr<const DeviceUsage>()> usage_;
  std::map<WatchCache*, std::shared_ptr<Tap>> taps_;  // the core's loop
};

}  // namespace drakkar::apiserver
