#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result/result.h"

namespace drakkar::storage {

// The store's logical clock: every transaction that changes something gets the next number. 0 means
// "none"; an empty store is at 1, as in etcd, so the revision of a list is never 0.
using Revision = std::int64_t;

using Bytes = std::shared_ptr<const std::string>;

struct Entry {
  std::string key;
  Bytes value;
  Revision create_revision = 0;
  Revision mod_revision = 0;
};

// Holds when the key's last change has exactly this revision; 0: the key does not exist.
struct Condition {
  std::string key;
  Revision mod_revision = 0;
};

// A value, and what it was encoded from.
struct EncodedValue {
  Bytes bytes;
  std::shared_ptr<const void> object;  // for watchers in the same process; may be null
};

struct Operation {
  std::string key;
  Bytes value;  // null, and no `encode`: delete the key; deleting an absent key changes nothing
  // Makes the value when it may depend on its revision. Called once, before Commit returns and only
  // if the conditions hold, with the revision the value gets; an engine that does not know it by
  // then (a remote one) calls it with 0 whether they hold or not.
  std::function<EncodedValue(Revision)> encode = nullptr;
};

// All or nothing: if every condition holds, all operations happen at one new revision. An operation
// names each key at most once. Without an effect there is no new revision, and it succeeds.
struct Transaction {
  std::vector<Condition> conditions;
  std::vector<Operation> operations;
};

struct TransactionResult {
  bool succeeded = false;
  Revision revision = 0;  // of this transaction, or the current one when it did not succeed
  // When it did not succeed: for each condition that failed, the entry as it is now (no value: the
  // key does not exist), in the order of the conditions; those that held are left out.
  std::vector<std::pair<std::string, std::optional<Entry>>> failed;
};

struct WatchEvent {
  std::string key;
  Bytes value;           // null: deleted
  Bytes previous_value;  // null: created
  Revision revision = 0;
  Revision create_revision = 0;
  // What Operation::encode gave beside the bytes, if the writer is in this process and the watcher
  // was up to date: saves it the decoding. Null is always allowed.
  std::shared_ptr<const void> object = nullptr;
  bool is_delete() const { return value == nullptr; }
};

// Which revisions a watcher sees. In the same process parts may build on *applied* revisions (the
// log order makes that safe: they die with the process); what leaves the process waits for
// *durable*. On etcd both are the same. See docs/decisions/applied-and-durable.md.
enum class Mark { kApplied, kDurable };

// Destroying it ends the watch; no callback runs afterwards.
class Watch {
 public:
  virtual ~Watch() = default;
};

struct WatchOptions {
  std::string prefix;
  Revision after = 0;  // events with greater revisions; 0: from when the store hears of the watch
  Mark mark = Mark::kDurable;
};

struct WatchCallbacks {
  // Events of whole revisions in order; `up_to` is the revision reached. It may rise without events
  // of this watch, and does so up to whatever ReadRevision answers. With Mark::kApplied it may run
  // inside Commit, and then before that transaction's on_applied.
  std::function<void(const std::vector<WatchEvent>& events, Revision up_to)> on_events;
  // The watch has ended: kExpired if revisions it has not delivered were compacted (start again
  // with a Range), kUnavailable if the store failed or was stopped. A lost connection does not end
  // a watch: the engine resumes it after the last revision it delivered.
  std::function<void(Error)> on_closed = nullptr;
  // Everything up to this revision, which on_events has told already, cannot be lost any more.
  // Only rises.
  std::function<void(Revision up_to)> on_durable = nullptr;
};

struct RangeOptions {
  std::string prefix;
  std::string start_after;  // continue behind this key; empty: from the start
  std::size_t limit = 0;    // 0: no limit
  Revision revision = 0;    // 0: the newest applied; kExpired when compacted
};

struct RangeResult {
  std::vector<Entry> entries;  // sorted by key
  Revision revision = 0;       // the state they are from
  bool more = false;
  std::size_t remaining = 0;  // how many behind the last one returned
};

struct StoreStatistics {
  std::uint64_t transactions = 0;
  std::uint64_t commits = 0;  // group commits
  std::uint64_t syncs = 0;
  std::uint64_t bytes_written = 0;
  std::uint64_t history_bytes = 0;
  std::string file_system;  // what the data lies on; empty for remote stores
};

// A revisioned key-value store with the semantics of etcd: compare-and-swap transactions, ranges at
// a revision, watches from a revision, compaction.
//
// Guarantees: revisions only rise; a transaction reported durable survives a crash of process and
// machine; one not reported durable is there whole or not at all, and never before an earlier one.
// Watchers see every revision after `after` exactly once and in order.
//
// Loop-bound: all calls and callbacks on the loop it was created with. One contract test
// (store_contract.h) holds for every engine.
class Store {
 public:
  virtual ~Store() = default;

  // `on_applied` runs when order and revision are fixed (possibly before Commit returns);
  // `on_durable` (may be null) after the transaction cannot be lost any more, always after
  // on_applied and only if it succeeded. Both get an Error when the transaction was refused: it is
  // malformed (kInvalidArgument), the disk does not keep up (kResourceExhausted, retry later), the
  // store has failed or is stopped. Only on_durable gets it when the store failed in between. When
  // the connection to a remote store was lost, kUnavailable leaves open whether it happened.
  virtual void Commit(Transaction transaction,
                      std::function<void(Result<TransactionResult>)> on_applied,
                      std::function<void(Result<Revision>)> on_durable) = 0;

  // `done` may run before Range returns. A revision that does not exist yet is kInvalidArgument.
  virtual void Range(RangeOptions options, std::function<void(Result<RangeResult>)> done) = 0;

  // Callbacks never run inside this call.
  virtual std::unique_ptr<Watch> StartWatch(WatchOptions options, WatchCallbacks callbacks) = 0;

  // Whether others write to the same data over stores of their own. If so, whoever follows by a
  // watch may be behind, and ReadRevision says how far it has to come.
  virtual bool is_shared() const = 0;
  // A revision at least as new as everything that was announced before the call. Every watch
  // reaches it, even if none of its keys changed. `done` may run inside.
  virtual void ReadRevision(std::function<void(Result<Revision>)> done) = 0;

  // The newest revisions this store knows of; of a shared one there may be newer.
  virtual Revision applied_revision() const = 0;
  virtual Revision durable_revision() const = 0;
  virtual Revision compacted_revision() const = 0;

  // Forgets versions that were replaced at or before `revision`. Also happens by itself, within the
  // engine's bounds on history.
  virtual void Compact(Revision revision, std::function<void(Result<void>)> done) = 0;

  virtual StoreStatistics statistics() const = 0;
  // Why nothing more is accepted until a restart; nullopt while it works.
  virtual std::optional<Error> failure() const = 0;

  // Makes everything committed durable, then closes; `done` runs last. Idempotent.
  virtual void Stop(std::function<void()> done) = 0;
};

}  // namespace drakkar::storage
