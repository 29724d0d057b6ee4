#pragma once

#include <functional>

#include "storage/etcd/etcd_client.h"
#include "storage/store.h"

namespace drakkar::storage {

// Reads a range in pages, all at the revision of the first, so that no response grows with the
// store. `done` runs once, unless `client` is destroyed first.
void ReadPages(EtcdClient& client, RangeOptions options,
               std::function<void(Result<RangeResult>)> done);

// The size of the next page, in keys, after one of `keys` that had `bytes`.
std::size_t NextPageKeys(std::size_t keys, std::size_t bytes);

}  // namespace drakkar::storage
