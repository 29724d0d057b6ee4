#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "base/exec/event_loop.h"
#include "base/exec/lifetime.h"
#include "storage/local/version_index.h"

namespace drakkar::storage {

// Brings history to the watchers: each has a revision it has reached, and gets what lies between
// that and its mark, in bounded portions, once.
//
// Callbacks run from tasks of the loop, never inside a call to the hub but Publish, AdvanceDurable
// and Close, where they may destroy it. A watcher whose next revision has been compacted is closed
// with kExpired.
class WatchHub {
 public:
  // Reads values back that are not resident.
  using Loader =
      std::function<void(std::vector<RowId>, std::function<void(Result<std::vector<Bytes>>)>)>;

  WatchHub(EventLoop& loop, const VersionIndex& index, Loader loader);
  ~WatchHub();

  std::unique_ptr<Watch> Start(WatchOptions options, WatchCallbacks callbacks);

  // Where the marks are at the start.
  void Begin(Revision applied, Revision durable);
  bool has_watchers() const { return !watchers_.empty(); }
  // A transaction was applied: hands its events, as they are, to the watchers that have everything
  // before it and do not wait for durable; the others get theirs from the index.
  void Publish(const std::vector<WatchEvent>& events, Revision revision);
  void AdvanceDurable(Revision durable);
  // Watchers behind this are closed.
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
