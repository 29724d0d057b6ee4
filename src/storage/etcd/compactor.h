#pragma once

#include "base/exec/event_loop.h"
#include "base/exec/lifetime.h"
#include "storage/etcd/etcd_client.h"
#include "storage/store.h"

namespace drakkar::storage {

// Compacts an etcd cluster that several servers use, once per interval, to the revision of one
// interval ago. The servers coordinate through the key compact_rev_key, as kube-apiservers do, so
// the two kinds may share a cluster: the one that finds the key at the version it last saw writes
// it and compacts, and the others only learn the new version.
//
// Loop-bound.
class EtcdCompactor {
 public:
  // `interval` is greater than zero.
  EtcdCompactor(EventLoop& loop, EtcdClient& client, Duration interval,
                std::function<void(Revision)> on_compacted);

 private:
  void Schedule();
  void Claim();
  void OnClaimed(const EtcdClient::Outcome& outcome);

  EventLoop& loop_;
  EtcdClient& client_;
  const Duration interval_;
  const std::function<void(Revision)> on_compacted_;
  std::int64_t version_ = 0;  // of the key
  Revision revision_ = 0;     // of one interval ago; 0: not known yet
  TimerHandle timer_;
  Lifetime lifetime_;
};

}  // namespace drakkar::storage
