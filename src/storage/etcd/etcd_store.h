#pragma once

#include <memory>
#include <vector>

#include "base/env/random.h"
#include "base/exec/event_loop.h"
#include "rpc/transport/transport.h"
#include "storage/etcd/etcd_client.h"
#include "storage/store.h"

namespace drakkar::storage {

struct EtcdStoreOptions {
  EtcdClientOptions client;
  // How long Stop waits for transactions in flight and for watches to catch up with them.
  Duration stop_patience = std::chrono::seconds(3);
  // History is kept for one to two of these intervals (compactor.h); 0: another process compacts.
  Duration compaction_interval = Duration(0);
};

// A store on an etcd v3 cluster (3.4 or newer), which other processes may use at the same time.
//
// Reads are linearizable. A transaction is answered when etcd has committed it, so applied and
// durable coincide. A transaction whose connection breaks is sent again only if no member can have
// acted on it, or if it is a compare-and-swap: then the keys show whether the first attempt was
// applied. If they do not, kUnavailable leaves it open. ReadRevision queries the cluster, and
// watches without events advance through progress requests (docs/decisions/etcd-freshness.md).
//
// It fails permanently (failure()) if the cluster's revision goes back or the cluster is another
// one: its data was replaced, and everything derived from it is wrong.
//
// Loop-bound; `transport` is on the same loop and outlives it.
std::unique_ptr<Store> OpenEtcdStore(EventLoop& loop, Random& random, rpc::Transport& transport,
                                     EtcdStoreOptions options);
// The same with its own transport.
std::unique_ptr<Store> OpenEtcdStore(EventLoop& loop, Random& random,
                                     std::unique_ptr<rpc::Transport> transport,
                                     EtcdStoreOptions options);

}  // namespace drakkar::storage
