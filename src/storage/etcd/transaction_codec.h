#pragma once

#include <optional>

#include "rpc/etcd/etcd.h"
#include "storage/store.h"

namespace drakkar::storage {

// etcd's default for --max-txn-ops, which counts the larger branch.
constexpr std::size_t kMaxTransactionOperations = 128;

// A store transaction as one of etcd.
struct CompiledTransaction {
  std::vector<Condition> conditions;
  rpc::etcd::TxnRequest request;
  std::size_t value_bytes = 0;
  // Puts that expire, by their index in request.success. Their leases are to be filled in.
  std::vector<std::pair<std::size_t, Duration>> expiring;
  // Every key it writes has a condition, so that it can happen once at most.
  bool is_resolvable = false;
};

// kInvalidArgument if a key is empty or named twice, or if there are too many operations.
Result<CompiledTransaction> CompileTransaction(Transaction transaction);

Result<TransactionResult> ReadTransactionResult(const CompiledTransaction& transaction,
                                                const rpc::etcd::TxnResponse& response);

// Whether a resolvable transaction whose conditions no longer hold was applied itself: the keys are
// exactly as it leaves them, at one revision. Returns that revision, or nullopt if it is unknown. A
// transaction without a put cannot be resolved.
std::optional<Revision> FindOwnWrite(const CompiledTransaction& transaction,
                                     const rpc::etcd::TxnResponse& response);

}  // namespace drakkar::storage
