#include "storage/etcd/transaction_codec.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "base/text/text.h"

namespace drakkar::storage {
namespace {

namespace etcd = rpc::etcd;

Entry ToEntry(const etcd::KeyValue& kv) {
  return {.key = kv.key,
          .value = std::make_shared<const std::string>(kv.value),
          .create_revision = kv.create_revision,
          .mod_revision = kv.mod_revision};
}

// What the failure branch read for each condition; null if the response is not of this transaction.
const etcd::RangeResponse* FindRange(const etcd::TxnResponse& response, std::size_t index) {
  if (index >= response.responses.size()) return nullptr;
  return std::get_if<etcd::RangeResponse>(&response.responses[index]);
}

}  // namespace

Result<CompiledTransaction> CompileTransaction(Transaction transaction) {
  CompiledTransaction compiled;
  compiled.conditions = std::move(transaction.conditions);
  if (std::max(compiled.conditions.size(), transaction.operations.size()) >
      kMaxTransactionOperations) {
    return InvalidArgument(
        StrCat("a transaction has more than ", kMaxTransactionOperations, " operations"));
  }
  std::set<std::string_view> guarded;
  for (const Condition& condition : compiled.conditions) {
    guarded.insert(condition.key);
    compiled.request.compare.push_back(
        {condition.key, etcd::Compare::Target::kModRevision, condition.mod_revision});
    compiled.request.failure.push_back(etcd::RangeRequest{.key = condition.key});
  }
  std::set<std::string_view> written;
  compiled.is_resolvable = !transaction.operations.empty();
  for (Operation& operation : transaction.operations) {
    if (operation.key.empty()) return InvalidArgument("a transaction has an empty key");
    if (!written.insert(operation.key).second) {
      return InvalidArgument(
          StrCat("a transaction names the key ", Quote(operation.key), " twice"));
    }
    if (!guarded.contains(operation.key)) compiled.is_resolvable = false;
    const Bytes value =
        operation.encode ? std::exchange(operation.encode, nullptr)(0).bytes : operation.value;
    if (value == nullptr) {
      compiled.request.success.push_back(etcd::DeleteRequest{operation.key, ""});
    } else {
      compiled.value_bytes += value->size();
      if (operation.time_to_live > Duration(0)) {
        compiled.expiring.emplace_back(compiled.request.success.size(), operation.time_to_live);
      }
      compiled.request.success.push_back(etcd::PutRequest{operation.key, *value});
    }
  }
  return compiled;
}

Result<TransactionResult> ReadTransactionResult(const CompiledTransaction& transaction,
                                                const etcd::TxnResponse& response) {
  TransactionResult result;
  result.succeeded = response.succeeded;
  result.revision = response.header.revision;
  if (response.succeeded) return result;
  for (std::size_t i = 0; i < transaction.conditions.size(); ++i) {
    const Condition& condition = transaction.conditions[i];
    const etcd::RangeResponse* range = FindRange(response, i);
    if (range == nullptr) return Unavailable("etcd: malformed response to a transaction");
    std::optional<Entry> now;
    if (!range->kvs.empty()) now = ToEntry(range->kvs[0]);
    if ((now ? now->mod_revision : 0) == condition.mod_revision) continue;
    result.failed.emplace_back(condition.key, std::move(now));
  }
  return result;
}

std::optional<Revision> FindOwnWrite(const CompiledTransaction& transaction,
                                     const etcd::TxnResponse& response) {
  std::map<std::string_view, const etcd::KeyValue*> now;
  for (std::size_t i = 0; i < transaction.conditions.size(); ++i) {
    const etcd::RangeResponse* range = FindRange(response, i);
    if (range == nullptr) return std::nullopt;
    now[transaction.conditions[i].key] = range->kvs.empty() ? nullptr : &range->kvs[0];
  }
  Revision revision = 0;
  for (const etcd::RequestOp& operation : transaction.request.success) {
    if (const auto* put = std::get_if<etcd::PutRequest>(&operation)) {
      const etcd::KeyValue* kv = now[put->key];
      if (kv == nullptr || kv->value != put->value) return std::nullopt;
      if (revision != 0 && kv->mod_revision != revision) return std::nullopt;
      revision = kv->mod_revision;
    } else if (now[std::get<etcd::DeleteRequest>(operation).key] != nullptr) {
      return std::nullopt;
    }
  }
  if (revision == 0) return std::nullopt;
  return revision;
}

}  // namespace drakkar::storage
