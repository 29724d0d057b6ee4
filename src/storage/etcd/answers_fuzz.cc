// Answers of etcd, as bytes. Whatever they say, a watch only moves forward, and a transaction gets
// a result or an error. The first byte chooses what is answered.
#include <cstddef>
#include <cstdint>
#include <string>

#include "base/result/check.h"
#include "base/text/text.h"
#include "rpc/etcd/etcd_codec.h"
#include "storage/etcd/endpoint.h"
#include "storage/etcd/server_version.h"
#include "storage/etcd/transaction_codec.h"
#include "storage/etcd/watch_cursor.h"

namespace drakkar::storage {
namespace {

// Messages, each behind its length in one byte.
void FollowWatch(std::string_view bytes) {
  WatchCursor cursor("/registry/pods/", 7);
  Revision reached = cursor.reached();
  while (!bytes.empty()) {
    const std::size_t length = static_cast<unsigned char>(bytes.front());
    const std::string message(bytes.substr(1, length));
    bytes.remove_prefix(1 + message.size());
    auto response = rpc::etcd::DecodeWatchResponse(message);
    if (!response.ok()) continue;
    const WatchCursor::Step step = cursor.On(*std::move(response));
    Revision last = reached;
    for (const WatchEvent& event : step.events) {
      CHECK(event.key.starts_with("/registry/pods/"));
      CHECK(event.revision >= last && event.revision > reached);
      last = event.revision;
    }
    CHECK(step.up_to == 0 || step.up_to > reached);
    CHECK(last <= cursor.reached());
    reached = cursor.reached();
    if (step.closed || step.lost) {
      CHECK(cursor.Resume(false).start_revision == reached + 1);
    }
  }
}

void ReadTransaction(const std::string& bytes) {
  const auto response = rpc::etcd::DecodeTxnResponse(bytes);
  if (!response.ok()) return;
  Transaction transaction;
  transaction.conditions = {{"a", 1}, {"b", 0}};
  transaction.operations.push_back({"a", std::make_shared<const std::string>("x")});
  transaction.operations.push_back({"b", nullptr});
  const auto compiled = CompileTransaction(std::move(transaction));
  CHECK(compiled.ok());
  const auto result = ReadTransactionResult(*compiled, *response);
  if (result.ok()) CHECK(result->failed.size() <= 2 && result->succeeded == response->succeeded);
  if (const auto own = FindOwnWrite(*compiled, *response)) CHECK(*own != 0);
}

}  // namespace
}  // namespace drakkar::storage

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace drakkar;
  if (size == 0) return 0;
  const std::string text(reinterpret_cast<const char*>(data + 1), size - 1);
  switch (data[0] % 3) {
    case 0:
      storage::FollowWatch(text);
      break;
    case 1:
      storage::ReadTransaction(text);
      break;
    default:
      static_cast<void>(storage::HasReliableProgress(text));
  }
  return 0;
}
