#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "answers/cluster/snapshot.h"
#include "answers/cluster/snapshot_reader.h"
#include "base/env/random.h"
#include "base/exec/event_loop.h"
#include "client/informer.h"

namespace drakkar::answers {

// Snapshots of a cluster that is followed with watches, for views that stay open. Each kind is
// current, but kinds may be at different resource versions: objects that were written together may
// appear one after the other.
//
// Loop-bound. Its size is that of the collections it follows.
class LiveCluster {
 public:
  // Follows the kinds that the caller may read according to `first`, in the same namespaces.
  LiveCluster(EventLoop& loop, Random& random, client::Client& client, const Snapshot& first,
              std::uint32_t kinds);

  // Call it before Start. Runs after every change of an object of that kind.
  void OnChange(std::function<void(SnapshotKind)> callback) { on_change_ = std::move(callback); }
  void Start();

  // True once every kind has been listed. Until then Take returns the first snapshot.
  bool has_synced() const;
  // Incremented with every change.
  std::uint64_t changes() const { return changes_; }
  Snapshot Take(WallTime now) const;

 private:
  struct Kind {
    Objects Snapshot::*into;
    std::unique_ptr<client::Informer> informer;
  };
  void Changed(SnapshotKind kind);

  Snapshot first_;  // without objects once they have been listed
  std::vector<Kind> kinds_;
  std::function<void(SnapshotKind)> on_change_;
  std::uint64_t changes_ = 0;
};

}  // namespace drakkar::answers
