#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/env/clock.h"
#include "base/result/result.h"

namespace drakkar::storage {

// The store's logical clock: every transaction that changes something gets the next number. 0 means
// "none". An empty store is at 1, as in etcd, so the revision of a list is never 0.
using Revision = std::int64_t;

using Bytes = std::shared_ptr<const std::string>;

struct Entry {
  std::string key;
  Bytes value;
  Revision create_revision = 0;
  Revision mod_revision = 0;
};

// Holds if the key was last changed at exactly this revision, or, for 0, if it does not exist.
struct Condition {
  std::string key;
  Revision mod_revision = 0;
};

// A value and the object it was encoded from.
struct EncodedValue {
  Bytes bytes;
  std::shared_ptr<const void> object;  // for watchers in the same process; may be null
};

struct Operation {
  std::string key;
  Bytes value;  // null without `encode`: delete the key, which is a no-op if it does not exist
  // Builds the value if it depends on its revision. Called once, before Commit returns and only if
  // the conditions hold, with the revision that the value gets. An engine that does not know it by
  // then (a remote one) passes 0 and calls it whether they hold or not.
  std::function<EncodedValue(Revision)> encode = nullptr;
  // Greater than zero: the engine deletes the key this long after its last change, or somewhat
  // later. Only where expires_keys() says so; elsewhere it is ignored.
  Duration time_to_live = Duration(0);
};

// All or nothing: if every condition holds, all operations happen at one new revision. Each key may
// occur in at most one operation. A transaction that changes nothing succeeds without a new
// revision.
struct Transaction {
  std::vector<Condition> conditions;
  std::vector<Operation> operations;
};

struct TransactionResult {
  bool succeeded = false;
  Revision revision = 0;  // of this transaction, or the current one if it did not succeed
  // If it did not succeed: the current entry for each failed condition (nullopt if the key does not
  // exist), in the order of the conditions. Conditions that held are omitted.
  std::vector<std::pair<std::string, std::optional<Entry>>> failed;
};

struct WatchEvent {
  std::string key;
  Bytes value;           // null: deleted
  Bytes previous_value;  // null: created
  Revision revision = 0;
  Revision create_revision = 0;
  // The object from Operation::encode, if the writer is in this process and the watcher was up to
  // date. It saves the watcher the decoding. Null is always allowed.
  std::shared_ptr<const void> object = nullptr;
  bool is_delete() const { return value == nullptr; }
};

// Which revisions a watcher sees. Components in the same process may build on *applied* revisions:
// the log preserves their order, and such components die with the process. Anything that leaves the
// process waits for *durable*. On etcd both are the same. See
// docs/decisions/applied-and-durable.md.
enum class Mark { kApplied, kDurable };

// Destroying it ends the watch. No callback runs afterwards.
class Watch {
 public:
  virtual ~Watch() = default;
};

struct WatchOptions {
  std::string prefix;
  Revision after = 0;  // events with greater revisions; 0: from when the store receives the watch
  Mark mark = Mark::kDurable;
};

struct WatchCallbacks {
  // Delivers events in order, never splitting a revision; `up_to` is the revision reached. It may
  // advance without events for this watch, and always reaches what ReadRevision returns. With
  // Mark::kApplied it may run inside Commit, and then before that transaction's on_applied.
  std::function<void(const std::vector<WatchEvent>& events, Revision up_to)> on_events;
  // The watch has ended: kExpired if revisions it has not delivered were compacted (start again
  // with a Range), kUnavailable if the store failed or was stopped. A lost connection does not end
  // a watch: the engine resumes it after the last revision it delivered.
  std::function<void(Error)> on_closed = nullptr;
  // Everything up to this revision has been delivered to on_events and can no longer be lost. Only
  // rises.
  std::function<void(Revision up_to)> on_durable = nullptr;
};

struct RangeOptions {
  std::string prefix;
  std::string start_after;      // continue after this key; empty: from the start
  std::size_t limit = 0;        // 0: no limit
  Revision revision = 0;        // 0: the newest applied; kExpired if compacted
  bool count_remaining = true;  // false: `remaining` stays 0, which saves counting
};

// A key whose value is damaged in the store. It can be deleted or overwritten, given its revision.
struct UnreadableEntry {
  std::string key;
  Revision mod_revision = 0;
  std::string reason;
};

struct RangeResult {
  std::vector<Entry> entries;               // sorted by key
  std::vector<UnreadableEntry> unreadable;  // not among `entries`, and not counted by `limit`
  Revision revision = 0;                    // at which the entries were read
  bool more = false;
  std::size_t remaining = 0;  // number of entries after the last one returned
};

// One slice of a check of everything that is stored.
struct VerifyResult {
  std::uint64_t rows = 0;  // read in this slice
  std::uint64_t bytes = 0;
  std::vector<UnreadableEntry> damaged;
  std::string next;  // pass it to the next call; empty: the check is complete
};

struct StoreStatistics {
  std::uint64_t transactions = 0;
  std::uint64_t commits = 0;  // group commits
  std::uint64_t syncs = 0;
  std::uint64_t bytes_written = 0;
  std::uint64_t history_bytes = 0;
  std::uint64_t history_bytes_max = 0;  // 0: the engine has no bound of its own
  std::uint64_t queued_bytes = 0;       // of writes that are not durable yet
  std::uint64_t queued_bytes_max = 0;
  std::string file_system;  // type of file system that holds the data; empty for remote stores
};

// A revisioned key-value store with the semantics of etcd: compare-and-swap transactions, ranges at
// a revision, watches from a revision, compaction.
//
// Guarantees: Revisions only rise. A transaction that was reported durable survives a crash of the
// process and the machine. After a crash, a transaction that was not reported durable is either
// fully present or fully absent, and present only if all earlier ones are. Watchers see every
// revision after `after` exactly once and in order.
//
// Loop-bound: all calls and callbacks run on the loop it was created with. Every engine passes the
// same contract test (store_contract.h).
class Store {
 public:
  virtual ~Store() = default;

  // `on_applied` runs when order and revision are fixed, possibly before Commit returns.
  // `on_durable` (may be null) runs when the transaction can no longer be lost, always after
  // on_applied and only if it succeeded. Both get an Error if the transaction was refused: it is
  // malformed (kInvalidArgument), the disk does not keep up or is full (kResourceExhausted, retry
  // later), or the store has failed or is stopped. If the store fails in between, only on_durable
  // gets the Error. If the disk is too full to save it, on_durable gets kResourceExhausted, and it
  // is saved once there is space, unless the process ends first. If the connection to a remote
  // store is lost, the error is kUnavailable and the transaction may or may not have happened.
  //
  // An embedded store applies transactions in the order of the calls. On a remote one, transactions
  // in flight have no order: state what must come first as a condition, or wait for it.
  virtual void Commit(Transaction transaction,
                      std::function<void(Result<TransactionResult>)> on_applied,
                      std::function<void(Result<Revision>)> on_durable) = 0;

  // `done` may run before Range returns. A revision that does not exist yet is kInvalidArgument.
  virtual void Range(RangeOptions options, std::function<void(Result<RangeResult>)> done) = 0;

  // Callbacks never run inside this call.
  virtual std::unique_ptr<Watch> StartWatch(WatchOptions options, WatchCallbacks callbacks) = 0;

  // Whether others write to the same data through their own stores. If so, a watch may lag behind
  // them, and ReadRevision returns the revision it has to reach.
  virtual bool is_shared() const = 0;
  // Whether Operation::time_to_live is honoured.
  virtual bool expires_keys() const { return false; }
  // Returns a revision at least as new as everything that was announced before the call. Every
  // watch reaches it, even if none of its keys changed. `done` may run inside the call.
  virtual void ReadRevision(std::function<void(Result<Revision>)> done) = 0;

  // The newest revisions this store knows of. A shared store may have newer ones.
  virtual Revision applied_revision() const = 0;
  virtual Revision durable_revision() const = 0;
  virtual Revision compacted_revision() const = 0;

  // Drops versions that were replaced at or before `revision`. The engine also compacts on its own
  // to keep history within its limits.
  virtual void Compact(Revision revision, std::function<void(Result<void>)> done) = 0;

  // Reads the next slice of everything that is stored and checks it. Start with an empty `from`.
  // kUnimplemented if the engine does that by itself.
  virtual void Verify(std::string /*from*/, std::function<void(Result<VerifyResult>)> done) {
    done(Error{ErrorCode::kUnimplemented, "this store has no check of its own"});
  }

  virtual StoreStatistics statistics() const = 0;
  // Why the store accepts nothing until it is restarted; nullopt while it works.
  virtual std::optional<Error> failure() const = 0;
  // Why writes (and, on a remote store, reads) fail at the moment, though they may work again;
  // nullopt while they work.
  virtual std::optional<Error> outage() const { return std::nullopt; }

  // Makes everything committed durable, then closes the store; `done` runs last. Idempotent.
  virtual void Stop(std::function<void()> done) = 0;
};

}  // namespace drakkar::storage
