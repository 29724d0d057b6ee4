#include "storage/etcd/compactor.h"

#include <utility>

#include "base/text/text.h"
#include "rpc/etcd/etcd_codec.h"

namespace drakkar::storage {
namespace {

namespace etcd = rpc::etcd;

constexpr char kKey[] = "compact_rev_key";

}  // namespace

EtcdCompactor::EtcdCompactor(EventLoop& loop, EtcdClient& client, Duration interval,
                             std::function<void(Revision)> on_compacted)
    : loop_(loop), client_(client), interval_(interval), on_compacted_(std::move(on_compacted)) {
  Schedule();
}

void EtcdCompactor::Schedule() {
  timer_ = loop_.RunAfter(interval_, [this] { Claim(); });
}

void EtcdCompactor::Claim() {
  Schedule();
  const etcd::TxnRequest claim{{{kKey, etcd::Compare::Target::kVersion, version_}},
                               {etcd::PutRequest{kKey, std::to_string(revision_)}},
                               {etcd::RangeRequest{.key = kKey}}};
  // If the outcome of a claim is unknown, skip this interval.
  client_.Call(etcd::kTxnMethod, etcd::Encode(claim), EtcdClient::Safety::kOnce,
               lifetime_.Guard([this](const EtcdClient::Outcome& outcome) { OnClaimed(outcome); }));
}

void EtcdCompactor::OnClaimed(const EtcdClient::Outcome& outcome) {
  if (!outcome.response.ok()) return;
  const Result<etcd::TxnResponse> response = etcd::DecodeTxnResponse(*outcome.response);
  if (!response.ok()) return;
  const Revision target = std::exchange(revision_, response->header.revision);
  if (!response->succeeded) {
    const auto* range = response->responses.empty()
                            ? nullptr
                            : std::get_if<etcd::RangeResponse>(&response->responses[0]);
    version_ = range == nullptr || range->kvs.empty() ? 0 : range->kvs[0].version;
    return;
  }
  ++version_;
  if (target == 0) return;
  client_.Call(etcd::kCompactMethod, etcd::Encode(etcd::CompactRequest{.revision = target}),
               EtcdClient::Safety::kRepeatable,
               lifetime_.Guard([this, target](const EtcdClient::Outcome& compacted) {
                 if (compacted.response.ok()) on_compacted_(target);
               }));
}

}  // namespace drakkar::storage
