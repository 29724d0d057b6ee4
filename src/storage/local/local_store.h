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

// The bounds of an embedded store. Reaching one of the history bounds compacts the oldest
// revisions; reaching the queue bound refuses writes with kResourceExhausted.
struct LocalStoreLimits {
  Duration history_age_max = std::chrono::minutes(5);
  std::size_t history_bytes_max = std::size_t{1} << 30;
  // Superseded values kept in memory; older ones are read back from the log when asked for.
  std::size_t history_resident_bytes_max = std::size_t{16} << 20;
  std::size_t queued_bytes_max = std::size_t{64} << 20;
};

// What a log holds when it is opened, rows in order.
struct LoadedRows {
  VersionIndex index;
  Revision newest = 0;     // of the last row; 0: no rows
  Revision compacted = 0;  // 0: never compacted
};

// A store whose state lives in this process, over a log that makes it durable: conditions, ranges
// and watches work on the index in memory, so that a transaction is applied inside Commit, and
// watchers of applied revisions are notified there, before on_applied.
//
// The first revision of a new store is 2, as in etcd: 1 is the empty store, and 0 is "none".
class LocalStore final : public Store {
 public:
  LocalStore(EventLoop& loop, LocalStoreLimits limits, LoadedRows rows,
             std::unique_ptr<RowLog> log);
  // Callbacks that have not run are dropped. What is durable by then is up to the log.
  ~LocalStore() override;

  void Commit(Transaction transaction, std::function<void(Result<TransactionResult>)> on_applied,
              std::function<void(Result<Revision>)> on_durable) override;
  // `done` runs inside the call unless values have to be read back.
  void Range(RangeOptions options, std::function<void(Result<RangeResult>)> done) override;
  std::unique_ptr<Watch> StartWatch(WatchOptions options, WatchCallbacks callbacks) override;
  bool is_shared() const override { return false; }
  void ReadRevision(std::function<void(Result<Revision>)> done) override;
  Revision applied_revision() const override { return applied_; }
  Revision durable_revision() const override { return durable_; }
  Revision compacted_revision() const override { return compacted_; }
  void Compact(Revision revision, std::function<void(Result<void>)> done) override;
  StoreStatistics statistics() const override;
  std::optional<Error> failure() const override { return failure_; }
  void Stop(std::function<void()> done) override;

 private:
  enum class State { kOpen, kFailed, kStopping, kStopped };
  struct Waiting {
    Revision revision;
    std::function<void(Result<Revision>)> on_durable;
  };
  // A transaction whose order is fixed and that has not been announced yet.
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
  // With the events of the rows, if there is anybody to tell.
  std::vector<Row> MakeRows(std::vector<Operation> operations, Revision revision,
                            std::vector<WatchEvent>* events) const;
  void Publish(Unpublished transaction);
  void WaitForDurable(Revision revision, std::function<void(Result<Revision>)> on_durable);
  void OnDurable(Revision up_to);
  void OnFailed(Error error);
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
  Revision applied_ = 1;
  Revision durable_ = 1;
  Revision compacted_ = 0;
  Revision compacted_logged_ = 0;
  std::uint64_t transactions_ = 0;
  std::deque<Waiting> waiting_;  // by revision
  // What watchers commit while they are being told: told in turn, so that all see one order.
  std::deque<Unpublished> unpublished_;
  bool publishing_ = false;
  std::deque<AgeMark> ages_;  // at most one per kAgeMarkInterval
  std::vector<std::function<void()>> stop_waiters_;
  TimerHandle tick_;
  bool trim_scheduled_ = false;
  Lifetime lifetime_;
};

}  // namespace drakkar::storage
