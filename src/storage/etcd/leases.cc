#include "storage/etcd/leases.h"

#include <algorithm>
#include <utility>

#include "base/text/text.h"
#include "rpc/etcd/etcd_codec.h"

namespace drakkar::storage {
namespace {

namespace etcd = rpc::etcd;

Duration ReuseOf(std::int64_t seconds) {
  const Duration part = std::chrono::seconds(seconds) / EtcdLeases::kReuseFraction;
  return std::min<Duration>(part, EtcdLeases::kMaxReuse);
}

// Rounded up, because no key may expire early.
std::int64_t SecondsOf(Duration duration) {
  return std::max<std::int64_t>(std::chrono::ceil<std::chrono::seconds>(duration).count(), 1);
}

}  // namespace

void EtcdLeases::Get(Duration time_to_live, std::function<void(Result<std::int64_t>)> done) {
  const std::int64_t seconds = SecondsOf(time_to_live);
  const auto found = leases_.find(seconds);
  if (found != leases_.end() && found->second.keys < kMaxKeys &&
      loop_.clock().Monotonic() < found->second.reusable_until) {
    ++found->second.keys;
    loop_.Post(lifetime_.Guard([done = std::move(done), id = found->second.id] { done(id); }));
    return;
  }
  std::vector<std::function<void(Result<std::int64_t>)>>& waiters = granting_[seconds].waiters;
  waiters.push_back(std::move(done));
  if (waiters.size() == 1) Grant(seconds);
}

void EtcdLeases::Grant(std::int64_t seconds) {
  // If the answer of a grant is lost, its lease has no keys and expires.
  client_.Call(
      etcd::kLeaseGrantMethod,
      etcd::Encode(etcd::LeaseGrantRequest{.ttl_seconds = seconds + SecondsOf(ReuseOf(seconds))}),
      EtcdClient::Safety::kRepeatable,
      lifetime_.Guard(
          [this, seconds](const EtcdClient::Outcome& outcome) { OnGranted(seconds, outcome); }));
}

void EtcdLeases::OnGranted(std::int64_t seconds, const EtcdClient::Outcome& outcome) {
  Result<etcd::LeaseGrantResponse> granted =
      outcome.response.ok()
          ? etcd::DecodeLeaseGrantResponse(*outcome.response)
          : Result<etcd::LeaseGrantResponse>(ToStoreError(outcome.response.error()));
  std::vector<std::function<void(Result<std::int64_t>)>> waiters =
      std::move(granting_[seconds].waiters);
  granting_.erase(seconds);
  std::vector<std::function<void(Result<std::int64_t>)>> later;
  if (granted.ok()) {
    if (leases_.size() >= kMaxLeases && !leases_.contains(seconds)) leases_.erase(leases_.begin());
    if (waiters.size() > kMaxKeys) {
      const auto rest = waiters.begin() + static_cast<std::ptrdiff_t>(kMaxKeys);
      later.assign(std::make_move_iterator(rest), std::make_move_iterator(waiters.end()));
      waiters.erase(rest, waiters.end());
    }
    leases_[seconds] = {granted->id, loop_.clock().Monotonic() + ReuseOf(seconds), waiters.size()};
  }
  const Lifetime::Observer self = lifetime_.Observe();
  for (const auto& done : waiters) {
    done(granted.ok() ? Result<std::int64_t>(granted->id) : Result<std::int64_t>(granted.error()));
    if (!self.alive()) return;
  }
  for (auto& done : later) Get(std::chrono::seconds(seconds), std::move(done));
}

void EtcdLeases::Forget(std::int64_t lease) {
  std::erase_if(leases_, [lease](const auto& each) { return each.second.id == lease; });
}

}  // namespace drakkar::storage
