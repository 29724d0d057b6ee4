#pragma once

#include <optional>
#include <string>
#include <vector>

#include "rpc/etcd/etcd.h"
#include "storage/store.h"

namespace drakkar::storage {

// Turns etcd's watch responses into the events of a store watch. Pure: responses in, events out.
//
// Keeps track of the revision reached, across streams: a new stream resumes behind it, and what
// arrives twice is dropped. Responses may be fragmented; a revision is delivered whole. Holds at
// most the events of one incomplete revision.
class WatchCursor {
 public:
  struct Step {
    std::vector<WatchEvent> events;
    Revision up_to = 0;           // 0: no further than before
    bool created = false;         // the server has accepted the watch
    std::optional<Error> closed;  // the watch has ended: kExpired
    std::optional<Error> lost;    // the server gave up the stream; resume on another one
  };

  WatchCursor(std::string prefix, Revision after) : prefix_(std::move(prefix)), reached_(after) {}

  Revision reached() const { return reached_; }

  // What to send on a new stream. `whole_keyspace`: watch every key and filter here, so that each
  // revision of the store is an event (see docs/decisions/etcd-freshness.md).
  rpc::etcd::WatchCreate Resume(bool whole_keyspace);
  Step On(rpc::etcd::WatchResponse response);

 private:
  std::string prefix_;
  Revision reached_;
  std::vector<WatchEvent> pending_;  // of the revision `pending_revision_`
  Revision pending_revision_ = 0;
};

}  // namespace drakkar::storage
