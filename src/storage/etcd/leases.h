#pragma once

#include <functional>
#include <map>
#include <vector>

#include "base/exec/event_loop.h"
#include "base/exec/lifetime.h"
#include "storage/etcd/etcd_client.h"

namespace drakkar::storage {

// Leases for keys that expire. Keys share a recent lease, because a lease per key would load etcd
// more than the keys do: a key lives between its time to live and kReuse longer.
//
// Loop-bound. Callbacks never run inside Get; none after destruction.
class EtcdLeases {
 public:
  // A lease takes new keys for a twentieth of their time to live, but no longer than kMaxReuse, and
  // at most kMaxKeys of them: when it expires, etcd deletes them all in one transaction.
  static constexpr int kReuseFraction = 20;
  static constexpr Duration kMaxReuse = std::chrono::minutes(1);
  static constexpr std::size_t kMaxKeys = 1'000;
  // Maximum number of different times to live with a lease; beyond it, the oldest is dropped.
  static constexpr std::size_t kMaxLeases = 16;

  EtcdLeases(EventLoop& loop, EtcdClient& client) : loop_(loop), client_(client) {}

  // A lease for one more key that is to live for `time_to_live`, at least a second.
  void Get(Duration time_to_live, std::function<void(Result<std::int64_t>)> done);
  // The lease is gone.
  void Forget(std::int64_t lease);

 private:
  struct Lease {
    std::int64_t id = 0;
    MonotonicTime reusable_until{};
    std::size_t keys = 0;
  };
  struct Waiting {
    std::vector<std::function<void(Result<std::int64_t>)>> waiters;
  };

  void Grant(std::int64_t seconds);
  void OnGranted(std::int64_t seconds, const EtcdClient::Outcome& outcome);

  EventLoop& loop_;
  EtcdClient& client_;
  std::map<std::int64_t, Lease> leases_;      // by time to live in seconds
  std::map<std::int64_t, Waiting> granting_;  // likewise
  Lifetime lifetime_;
};

}  // namespace drakkar::storage
