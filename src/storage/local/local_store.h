#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "base/exec/event_loop.h"
#include "base/exec/lifetime.h"
#include "storage/local/row_log.h"
#include "storage/local/version_index.h"
#include "storage/local/watch_hub.h"
#include "storage/store.h"

namespace drakkar::storage {

// Limits of an embedded store. When history exceeds a limit, the oldest revisions are compacted;
// when the queue is full, writes are refused with kResourceExhausted.
struct LocalStoreLimits {
  Duration history_age_max = std::chrono::minutes(5);
  std::size_t history_bytes_max = std::size_t{1} << 30;
  // Superseded values kept in memory. Older ones are read back from the log on demand.
  std::size_t history_resident_bytes_max = std::size_t{16} << 20;
  std::size_t queued_bytes_max = std::size_t{64} << 20;
};

// The contents of a log when it is opened, with its rows in order.
struct LoadedRows {
  VersionIndex index;
  Revision newest = 0;     // of the last row; 0: no rows
  Revision compacted = 0;  // 0: never compacted
};

// A store that keeps its state in this process, over a log that makes it durable. Conditions,
// ranges and watches work on the in-memory index, so Commit applies a transaction before it
// returns. Watchers of applied revisions are notified inside Commit, before on_applied.
//
// The first revision of a new store is 2, as in etcd: 1 is the empty store, and 0 means "none".
class LocalStore final : public Store {
 public:
  LocalStore(EventLoop& loop, LocalStoreLimits limits, LoadedRows rows,
             std::unique_ptr<RowLog> log);
  // Drops callbacks that have not run. The log decides what is durable by then.
  ~LocalStore() override;

  void Commit(Transaction transaction, std::function<void(Result<TransactionResult>)> on_applied,
              std::function<void(Result<Revision>)> on_durable) override;
  // `done` runs inside the call unless values have to be read back from the log.
  void Range(RangeOptions options, std::function<void(Result<RangeResult>)> done) override;
  std::unique_ptr<Watch> StartWatch(WatchOptions options, WatchCallbacks callbacks) override;
  bool is_shared() const override { return false; }
  void ReadRevision(std::function<void(Result<Revision>)> done) override;
  Revision applied_revision() const override { return applied_; }
  Revision durable_revision() const override { return durable_; }
  Revision compacted_revision() const override { return compacted_; }
  void Compact(Revision revision, std::function<void(Result<void>)> done) override;
  void Verify(std::string from, std::function<void(Result<VerifyResult>)> done) override;
  StoreStatistics statistics() const override;
  std::optional<Error> failure() const override { return failure_; }
  std::optional<Error> outage() const override { return full_; }
  void Stop(std::function<void()> done) override;

 private:
  enum class State { kOpen, kFailed, kStopping, kStopped };
  struct Waiting {
    Revision revision;
    std::function<void(Result<Revision>)> on_durable;
  };
  // A transaction whose order is fixed but whose events have not been published yet.
  struct Unpublished {
    std::vector<WatchEvent> events;
    Revision revision = 0;
    TransactionResult result;
    std::function<void(Result<TransactionResult>)> on_applied;
  };
  struct AgeMark {
    MonotonicTime time;
    Revision revision;
  };

  std::optional<Error> Refusal() const;
  Result<void> Validate(const Transaction& transaction) const;
  // Also fills in `events` if there are watchers.
  std::vector<Row> MakeRows(std::vector<Operation> operations, Revision revision,
                            std::vector<WatchEvent>* events) const;
  void Publish(Unpublished transaction);
  void WaitForDurable(Revision revision, std::function<void(Result<Revision>)> on_durable);
  void OnDurable(Revision up_to);
  void OnFailed(Error error);
  void OnSpace(std::optional<Error> full, bool stalled);
  void FailWaiting(const Error& error);
  void AdvanceCompacted(Revision revision);
  void CompactByBounds();
  void MarkAge();
  void FlushCompaction(std::size_t max_versions, RowBatch* batch);
  void ScheduleTick();
  void Tick();
  void ScheduleTrim();

  EventLoop& loop_;
  const LocalStoreLimits limits_;
  VersionIndex index_;
  std::unique_ptr<RowLog> log_;
  WatchHub hub_;
  State state_ = State::kOpen;
  std::optional<Error> failure_;
  std::optional<Error> full_;  // the disk: writes are refused, reads are served
  Revision applied_ = 1;
  Revision durable_ = 1;
  Revision compacted_ = 0;
  Revision compacted_logged_ = 0;
  std::uint64_t transactions_ = 0;
  std::deque<Waiting> waiting_;  // by revision
  // Transactions that watchers commit inside their callbacks. They are published one after the
  // other, so that all watchers see the same order.
  std::deque<Unpublished> unpublished_;
  bool publishing_ = false;
  std::deque<AgeMark> ages_;  // at most one per kAgeMarkInterval
  std::vector<std::function<void()>> stop_waiters_;
  TimerHandle tick_;
  bool trim_scheduled_ = false;
  Lifetime lifetime_;
};

}  // namespace drakkar::storage
