#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "base/exec/event_loop.h"
#include "base/exec/lifetime.h"
#include "storage/local/version_index.h"

namespace drakkar::storage {

// Delivers history to watchers. Each watcher has reached a revision, and receives the events
// between that revision and its mark exactly once, in bounded batches.
//
// Callbacks run from loop tasks. The only calls that run them directly are Publish, AdvanceDurable
// and Close, where a callback may destroy the hub. A watcher whose next revision has been compacted
// is closed with kExpired.
class WatchHub {
 public:
  // Reads back values that are not resident.
  using Loader =
      std::function<void(std::vector<RowId>, std::function<void(Result<std::vector<Bytes>>)>)>;

  WatchHub(EventLoop& loop, const VersionIndex& index, Loader loader);
  ~WatchHub();

  std::unique_ptr<Watch> Start(WatchOptions options, WatchCallbacks callbacks);

  // Sets the initial revisions.
  void Begin(Revision applied, Revision durable);
  bool has_watchers() const { return !watchers_.empty(); }
  // Called when a transaction was applied. Passes its events on to watchers of applied revisions
  // that are up to date; the others get them from the index.
  void Publish(const std::vector<WatchEvent>& events, Revision revision);
  void AdvanceDurable(Revision durable);
  // Closes watchers that have not reached this revision.
  void SetCompacted(Revision compacted);
  // Delivers the pending events to every watcher and closes it; later watchers are closed at once.
  void Close(Error reason);

  std::size_t watchers() const { return watchers_.size(); }

 private:
  struct Watcher;
  struct Portion;
  class Handle;

  void Schedule();
  void Dispatch();
  void Deliver(const std::shared_ptr<Watcher>& watcher);
  void Tell(const std::shared_ptr<Watcher>& watcher, const std::vector<WatchEvent>& events,
            Revision up_to);
  void TellDurable(Watcher& watcher);
  void End(const std::shared_ptr<Watcher>& watcher, Error reason);
  void Remove(const Watcher* watcher);

  EventLoop& loop_;
  const VersionIndex& index_;
  const Loader loader_;
  std::vector<std::shared_ptr<Watcher>> watchers_;
  Revision applied_ = 0;
  Revision durable_ = 0;
  Revision compacted_ = 0;
  std::optional<Error> closed_;
  bool scheduled_ = false;
  Lifetime lifetime_;
};

}  // namespace drakkar::storage
