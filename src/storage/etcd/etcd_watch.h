#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/exec/backoff.h"
#include "base/exec/lifetime.h"
#include "storage/etcd/etcd_client.h"
#include "storage/etcd/watch_cursor.h"
#include "storage/store.h"

namespace drakkar::storage {

// One store watch on an etcd cluster: opens a stream at a member, and another one, on another
// member if possible, whenever it is lost. Before each, it queries the member's version and whether
// the revision to resume from has been compacted.
//
// Loop-bound. Callbacks run on the loop, never inside a call; none after destruction. They may
// destroy the watch.
class EtcdWatch {
 public:
  struct Callbacks {
    std::function<void(const std::vector<WatchEvent>& events, Revision up_to)> on_events;
    std::function<void(Error)> on_closed;  // the watch has ended, kExpired
    // The history up to this revision has been compacted.
    std::function<void(Revision compacted)> on_compacted;
  };

  EtcdWatch(EventLoop& loop, Random& random, EtcdClient& client, std::string prefix, Revision after,
            Callbacks callbacks);
  EtcdWatch(const EtcdWatch&) = delete;
  EtcdWatch& operator=(const EtcdWatch&) = delete;

  void Start();
  // Ensures that the watch reaches `revision`, which the cluster has, even without events.
  void WantProgress(Revision revision);
  Revision reached() const { return cursor_.reached(); }

 private:
  void Open();
  void CheckHistory(std::size_t endpoint);
  void OpenStream(std::size_t endpoint);
  void OnMessage(std::string message);
  void OnLost(const Error& why);
  void AskProgress();
  void Close(Error why);

  EventLoop& loop_;
  EtcdClient& client_;
  const std::shared_ptr<const Callbacks> callbacks_;  // may be running when this is destroyed
  WatchCursor cursor_;
  std::optional<std::size_t> endpoint_;  // of the stream, or where it is being opened
  bool whole_keyspace_ = false;
  bool created_ = false;  // the stream's watch is accepted
  Revision wanted_ = 0;
  Revision asked_ = 0;  // the wanted revision of the last progress request
  Backoff backoff_;
  std::uint64_t attempt_ = 0;  // what belongs to an earlier attempt is ignored
  TimerHandle timer_;          // the next attempt
  TimerHandle progress_timer_;
  std::unique_ptr<EtcdClient::Waiter> waiter_;
  std::unique_ptr<rpc::ClientStream> stream_;
  Lifetime lifetime_;
};

}  // namespace drakkar::storage
