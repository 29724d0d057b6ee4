#include "storage/etcd/range_pager.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "rpc/etcd/etcd_codec.h"

namespace drakkar::storage {
namespace {

namespace etcd = rpc::etcd;

constexpr std::size_t kFirstPageKeys = 500;
constexpr std::size_t kMaxPageKeys = 10'000;
// Pages aim at this size: large enough to keep round trips few, small enough for one message.
constexpr std::size_t kPageBytes = 4u << 20;

struct Reading {
  RangeOptions options;
  std::function<void(Result<RangeResult>)> done;
  RangeResult result;
  std::size_t page_keys = kFirstPageKeys;
};

void ReadNext(EtcdClient& client, const std::shared_ptr<Reading>& reading);

void OnPage(EtcdClient& client, const std::shared_ptr<Reading>& reading, std::size_t asked,
            EtcdClient::Outcome outcome) {
  if (!outcome.response.ok()) {
    const Error& error = outcome.response.error();
    // The page does not fit into a message.
    if (IsTooLarge(error) && asked > 1) {
      reading->page_keys = asked / 2;
      return ReadNext(client, reading);
    }
    return reading->done(ToStoreError(error));
  }
  const std::size_t bytes = outcome.response->size();
  Result<etcd::RangeResponse> page = etcd::DecodeRangeResponse(*outcome.response);
  if (!page.ok()) return reading->done(Unavailable(page.error().message));
  RangeResult& result = reading->result;
  if (result.revision == 0) {
    result.revision =
        reading->options.revision != 0 ? reading->options.revision : page->header.revision;
  }
  for (etcd::KeyValue& kv : page->kvs) {
    Entry& entry = result.entries.emplace_back();
    entry.key = std::move(kv.key);
    entry.value = std::make_shared<const std::string>(std::move(kv.value));
    entry.create_revision = kv.create_revision;
    entry.mod_revision = kv.mod_revision;
  }
  const auto total = static_cast<std::size_t>(std::max<std::int64_t>(page->count, 0));
  const std::size_t left = total > page->kvs.size() ? total - page->kvs.size() : 0;
  const std::size_t limit = reading->options.limit;
  const bool enough = limit != 0 && result.entries.size() >= limit;
  if (!page->more || page->kvs.empty() || enough) {
    result.more = left > 0;
    result.remaining = left;
    return reading->done(std::move(result));
  }
  reading->page_keys = NextPageKeys(page->kvs.size(), bytes);
  ReadNext(client, reading);
}

void ReadNext(EtcdClient& client, const std::shared_ptr<Reading>& reading) {
  const RangeOptions& options = reading->options;
  etcd::RangeRequest request;
  const std::string& last =
      reading->result.entries.empty() ? options.start_after : reading->result.entries.back().key;
  request.key = options.prefix.empty() ? std::string(1, '\0') : options.prefix;
  if (!last.empty() && last >= options.prefix) request.key = last + '\0';
  request.range_end = etcd::PrefixEnd(options.prefix);
  std::size_t keys = reading->page_keys;
  if (options.limit != 0) keys = std::min(keys, options.limit - reading->result.entries.size());
  request.limit = static_cast<std::int64_t>(keys);
  request.revision = reading->result.revision != 0 ? reading->result.revision : options.revision;
  client.Call(etcd::kRangeMethod, etcd::Encode(request), EtcdClient::Safety::kRepeatable,
              [&client, reading, keys](EtcdClient::Outcome outcome) {
                OnPage(client, reading, keys, std::move(outcome));
              });
}

}  // namespace

std::size_t NextPageKeys(std::size_t keys, std::size_t bytes) {
  const std::size_t each = std::max<std::size_t>(1, bytes / std::max<std::size_t>(1, keys));
  return std::clamp<std::size_t>(kPageBytes / each, 1, std::min(kMaxPageKeys, 2 * keys));
}

void ReadPages(EtcdClient& client, RangeOptions options,
               std::function<void(Result<RangeResult>)> done) {
  auto reading = std::make_shared<Reading>();
  reading->options = std::move(options);
  reading->done = std::move(done);
  ReadNext(client, reading);
}

}  // namespace drakkar::storage
