#include "storage/local/local_store.h"

#include <algorithm>
#include <limits>
#include <set>
#include <utility>

#include "base/text/text.h"

namespace drakkar::storage {
namespace {

// Number of old versions that one commit drops. This is more than a commit adds on average, so
// compaction keeps up, and few enough that no commit becomes slow.
constexpr std::size_t kTrimPerCommit = 64;
// The same for one compaction step while nobody writes.
constexpr std::size_t kTrimPerStep = 1'024;
// Granularity of the age limit.
constexpr Duration kAgeMarkInterval = std::chrono::seconds(1);
constexpr Duration kTickInterval = std::chrono::seconds(10);

// How much is checked at a time: a few milliseconds, during which no commit starts.
constexpr std::size_t kVerifySliceBytes = std::size_t{1} << 20;

Error Expired(Revision revision, Revision compacted) {
  return {ErrorCode::kExpired, "revision " + std::to_string(revision) +
                                   " has been compacted; the oldest available is " +
                                   std::to_string(compacted)};
}

Error Future(Revision revision, Revision newest) {
  return InvalidArgument("revision " + std::to_string(revision) +
                         " is in the future; the newest is " + std::to_string(newest));
}

Entry ToEntry(const Version& version) {
  return {version.key->key, version.value, version.create_revision, version.revision()};
}

}  // namespace

LocalStore::LocalStore(EventLoop& loop, LocalStoreLimits limits, LoadedRows rows,
                       std::unique_ptr<RowLog> log)
    : loop_(loop),
      limits_(limits),
      index_(std::move(rows.index)),
      log_(std::move(log)),
      hub_(loop, index_,
           [this](std::vector<RowId> ids, std::function<void(Result<std::vector<Bytes>>)> done) {
             log_->Read(std::move(ids), std::move(done));
           }) {
  applied_ = std::max({Revision{1}, rows.newest, rows.compacted});
  durable_ = applied_;
  compacted_ = rows.compacted;
  compacted_logged_ = rows.compacted;
  hub_.Begin(applied_, durable_);
  hub_.SetCompacted(compacted_);
  log_->Start({.on_durable = [this](Revision up_to) { OnDurable(up_to); },
               .on_failed = [this](Error error) { OnFailed(std::move(error)); },
               .on_space = [this](std::optional<Error> full,
                                  bool stalled) { OnSpace(std::move(full), stalled); }});
  // A crash may have happened after the compacted revision was logged and before its rows were
  // removed.
  RowBatch leftovers;
  index_.Trim(compacted_, std::numeric_limits<std::size_t>::max(), &leftovers.removed);
  if (!leftovers.removed.empty()) log_->Append(std::move(leftovers));
  // Loaded history counts as written now, so a watcher that reconnects after a restart still finds
  // it.
  if (index_.history_versions() > 0) {
    MarkAge();
    ScheduleTick();
  }
}

LocalStore::~LocalStore() = default;

std::optional<Error> LocalStore::Refusal() const {
  switch (state_) {
    case State::kOpen:
      return std::nullopt;
    case State::kFailed:
      return failure_;
    case State::kStopping:
    case State::kStopped:
      break;
  }
  return Unavailable("the store is stopped");
}

Result<void> LocalStore::Validate(const Transaction& transaction) const {
  if (transaction.operations.size() > kMaxOperationsPerTransaction) {
    return InvalidArgument("a transaction has at most " +
                           std::to_string(kMaxOperationsPerTransaction) + " operations, not " +
                           std::to_string(transaction.operations.size()));
  }
  std::set<std::string_view> keys;
  for (const Operation& operation : transaction.operations) {
    if (operation.key.empty()) return InvalidArgument("a key must not be empty");
    if (transaction.operations.size() > 1 && !keys.insert(operation.key).second) {
      return InvalidArgument("the key " + operation.key + " appears twice in one transaction");
    }
  }
  return Ok();
}

std::vector<Row> LocalStore::MakeRows(std::vector<Operation> operations, Revision revision,
                                      std::vector<WatchEvent>* events) const {
  const bool watched = hub_.has_watchers();
  std::vector<Row> rows;
  rows.reserve(operations.size());
  if (watched) events->reserve(operations.size());
  for (Operation& operation : operations) {
    EncodedValue value{std::move(operation.value), nullptr};
    if (operation.encode) value = operation.encode(revision);
    const Version* now = index_.Find(operation.key);
    if (now == nullptr && value.bytes == nullptr) continue;
    const Revision created = now == nullptr ? revision : now->create_revision;
    if (watched) {
      events->push_back({operation.key, value.bytes, now == nullptr ? nullptr : now->value,
                         revision, created, std::move(value.object)});
    }
    rows.push_back({MakeRowId(revision, rows.size()), created, std::move(operation.key),
                    std::move(value.bytes)});
  }
  return rows;
}

void LocalStore::Commit(Transaction transaction,
                        std::function<void(Result<TransactionResult>)> on_applied,
                        std::function<void(Result<Revision>)> on_durable) {
  loop_.AssertInLoop();
  std::optional<Error> refusal = Refusal();
  if (!refusal.has_value()) {
    if (Result<void> valid = Validate(transaction); !valid.ok()) refusal = valid.error();
  }
  if (!refusal.has_value()) refusal = full_;
  if (!refusal.has_value() && log_->queued_bytes() > limits_.queued_bytes_max) {
    refusal = Error{ErrorCode::kResourceExhausted,
                    "the disk cannot keep up with the writes; retry later"};
  }
  if (refusal.has_value()) {
    if (on_applied) on_applied(*refusal);
    if (on_durable) on_durable(*std::move(refusal));
    return;
  }
  ++transactions_;

  TransactionResult result;
  result.succeeded = true;
  for (const Condition& condition : transaction.conditions) {
    const Version* now = index_.Find(condition.key);
    if ((now == nullptr ? 0 : now->revision()) == condition.mod_revision) continue;
    result.succeeded = false;
    result.failed.emplace_back(condition.key,
                               now == nullptr ? std::nullopt : std::optional(ToEntry(*now)));
  }
  result.revision = applied_;
  Unpublished transacted;
  if (result.succeeded) {
    RowBatch batch;
    batch.rows = MakeRows(std::move(transaction.operations), applied_ + 1, &transacted.events);
    if (!batch.rows.empty()) {
      transacted.revision = result.revision = ++applied_;
      for (const Row& row : batch.rows) index_.Apply(row);
      MarkAge();
      CompactByBounds();
      FlushCompaction(kTrimPerCommit, &batch);
      log_->Append(std::move(batch));
      ScheduleTick();
    }
    if (on_durable) WaitForDurable(applied_, std::move(on_durable));
  }
  if (transacted.revision == 0) {
    if (on_applied) on_applied(std::move(result));
    return;
  }
  transacted.result = std::move(result);
  transacted.on_applied = std::move(on_applied);
  if (publishing_ || !unpublished_.empty()) {
    unpublished_.push_back(std::move(transacted));
    return;
  }
  const Lifetime::Observer self = lifetime_.Observe();
  Publish(std::move(transacted));
  while (self.alive() && !publishing_ && !unpublished_.empty()) {
    Unpublished next = std::move(unpublished_.front());
    unpublished_.pop_front();
    Publish(std::move(next));
  }
}

void LocalStore::Publish(Unpublished transaction) {
  const Lifetime::Observer self = lifetime_.Observe();
  publishing_ = true;
  hub_.Publish(transaction.events, transaction.revision);
  if (!self.alive()) return;
  publishing_ = false;
  if (transaction.on_applied) transaction.on_applied(std::move(transaction.result));
}

void LocalStore::ReadRevision(std::function<void(Result<Revision>)> done) {
  loop_.AssertInLoop();
  if (auto refusal = Refusal()) return done(*std::move(refusal));
  done(applied_);
}

void LocalStore::WaitForDurable(Revision revision,
                                std::function<void(Result<Revision>)> on_durable) {
  if (revision > durable_) {
    waiting_.push_back({revision, std::move(on_durable)});
    return;
  }
  loop_.Post(lifetime_.Guard([revision, done = std::move(on_durable)] { done(revision); }));
}

void LocalStore::Range(RangeOptions options, std::function<void(Result<RangeResult>)> done) {
  loop_.AssertInLoop();
  if (auto refusal = Refusal()) return done(*std::move(refusal));
  const Revision revision = options.revision == 0 ? applied_ : options.revision;
  if (revision > applied_) return done(Future(revision, applied_));
  if (revision < compacted_) return done(Expired(revision, compacted_));

  auto result = std::make_shared<RangeResult>();
  auto missing = std::make_shared<std::vector<VersionIndex::Missing>>();
  index_.Range(options, revision, result.get(), missing.get());
  if (missing->empty()) return done(std::move(*result));
  std::vector<RowId> rows;
  rows.reserve(missing->size());
  for (const auto& one : *missing) rows.push_back(one.row);
  log_->Read(std::move(rows),
             [result, missing, done = std::move(done)](Result<std::vector<Bytes>> values) {
               if (!values.ok()) return done(std::move(values).error());
               for (std::size_t i = 0; i < missing->size(); ++i) {
                 *(*missing)[i].place = std::move((*values)[i]);
               }
               done(std::move(*result));
             });
}

std::unique_ptr<Watch> LocalStore::StartWatch(WatchOptions options, WatchCallbacks callbacks) {
  loop_.AssertInLoop();
  return hub_.Start(std::move(options), std::move(callbacks));
}

void LocalStore::OnDurable(Revision up_to) {
  if (up_to <= durable_) return;
  durable_ = up_to;
  index_.EvictSuperseded(limits_.history_resident_bytes_max, durable_);
  const Lifetime::Observer self = lifetime_.Observe();
  hub_.AdvanceDurable(durable_);
  while (self.alive() && !waiting_.empty() && waiting_.front().revision <= durable_) {
    Waiting waiting = std::move(waiting_.front());
    waiting_.pop_front();
    waiting.on_durable(waiting.revision);
  }
}

void LocalStore::OnFailed(Error error) {
  const Lifetime::Observer self = lifetime_.Observe();
  if (state_ == State::kFailed) return;
  error.message += "; nothing more is accepted: free or repair the disk, then restart";
  failure_ = error;
  if (state_ == State::kOpen) state_ = State::kFailed;
  tick_.reset();
  FailWaiting(error);
  if (self.alive()) hub_.Close(Unavailable(error.message));
}

// What has been applied stays applied: it becomes durable when there is space. Notify waiting
// callers now, because that may take long.
void LocalStore::OnSpace(std::optional<Error> full, bool stalled) {
  full_ = std::move(full);
  if (!stalled) return;
  const Error error = *full_;
  FailWaiting({error.code, error.message + "; the change is saved once there is space"});
}

void LocalStore::FailWaiting(const Error& error) {
  const Lifetime::Observer self = lifetime_.Observe();
  while (self.alive() && !waiting_.empty()) {
    Waiting waiting = std::move(waiting_.front());
    waiting_.pop_front();
    waiting.on_durable(error);
  }
}

void LocalStore::MarkAge() {
  const MonotonicTime now = loop_.clock().Monotonic();
  if (ages_.empty() || now - ages_.back().time >= kAgeMarkInterval) {
    ages_.push_back({now, applied_});
  } else {
    ages_.back().revision = applied_;
  }
}

// A mark covers revisions up to kAgeMarkInterval younger than its time. At worst those are dropped
// that much too early, so history never exceeds its age limit by more than one tick.
void LocalStore::CompactByBounds() {
  const MonotonicTime now = loop_.clock().Monotonic();
  Revision target = 0;
  while (!ages_.empty() && now - ages_.front().time > limits_.history_age_max) {
    if (ages_.front().revision > durable_) break;
    target = ages_.front().revision;
    ages_.pop_front();
  }
  if (index_.history_bytes() > limits_.history_bytes_max) {
    target = std::max(target, index_.RevisionOverBytes(limits_.history_bytes_max));
  }
  AdvanceCompacted(std::min(target, durable_));
}

void LocalStore::AdvanceCompacted(Revision revision) {
  if (revision <= compacted_) return;
  compacted_ = revision;
  hub_.SetCompacted(compacted_);
}

void LocalStore::FlushCompaction(std::size_t max_versions, RowBatch* batch) {
  if (index_.Trim(compacted_, max_versions, &batch->removed)) ScheduleTrim();
  if (compacted_ == compacted_logged_) return;
  batch->compacted = compacted_;
  compacted_logged_ = compacted_;
}

// Commits do the compaction while there are writes. This does the rest when there are none.
void LocalStore::ScheduleTrim() {
  if (trim_scheduled_) return;
  trim_scheduled_ = true;
  loop_.Post(lifetime_.Guard([this] {
    trim_scheduled_ = false;
    if (state_ != State::kOpen || full_) return;
    RowBatch batch;
    FlushCompaction(kTrimPerStep, &batch);
    if (!batch.removed.empty() || batch.compacted != 0) log_->Append(std::move(batch));
  }));
}

void LocalStore::ScheduleTick() {
  if (tick_ != nullptr || state_ != State::kOpen) return;
  tick_ = loop_.RunAfter(kTickInterval, [this] { Tick(); });
}

void LocalStore::Tick() {
  tick_.reset();
  if (state_ != State::kOpen) return;
  CompactByBounds();
  if (!full_) ScheduleTrim();
  if (index_.history_versions() > 0) ScheduleTick();
}

void LocalStore::Compact(Revision revision, std::function<void(Result<void>)> done) {
  loop_.AssertInLoop();
  if (auto refusal = Refusal()) return done(*std::move(refusal));
  if (revision > applied_) return done(Future(revision, applied_));
  WaitForDurable(revision, [this, revision, done = std::move(done)](Result<Revision> durable) {
    if (!durable.ok()) return done(std::move(durable).error());
    if (auto refusal = Refusal()) return done(*std::move(refusal));
    AdvanceCompacted(revision);
    ScheduleTrim();
    done(Ok());
  });
}

void LocalStore::Verify(std::string from, std::function<void(Result<VerifyResult>)> done) {
  loop_.AssertInLoop();
  if (auto refusal = Refusal()) return done(*std::move(refusal));
  const std::optional<std::int64_t> after = from.empty() ? 0 : ParseInt64(from);
  if (!after) return done(InvalidArgument("a check cannot go on from " + from));
  log_->Verify(*after, kVerifySliceBytes, [done = std::move(done)](Result<RowLog::Slice> slice) {
    if (!slice.ok()) return done(std::move(slice).error());
    VerifyResult result{slice->rows, slice->bytes, std::move(slice->damaged), {}};
    if (slice->last != 0) result.next = std::to_string(slice->last);
    done(std::move(result));
  });
}

StoreStatistics LocalStore::statistics() const {
  RowLogStatistics log = log_->statistics();
  StoreStatistics statistics;
  statistics.transactions = transactions_;
  statistics.commits = log.commits;
  statistics.syncs = log.syncs;
  statistics.bytes_written = log.bytes_written;
  statistics.history_bytes = index_.history_bytes();
  statistics.history_bytes_max = limits_.history_bytes_max;
  statistics.queued_bytes = log_->queued_bytes();
  statistics.queued_bytes_max = limits_.queued_bytes_max;
  statistics.file_system = std::move(log.file_system);
  return statistics;
}

void LocalStore::Stop(std::function<void()> done) {
  loop_.AssertInLoop();
  if (state_ == State::kStopped) {
    if (done) loop_.Post([done = std::move(done)] { done(); });
    return;
  }
  if (done) stop_waiters_.push_back(std::move(done));
  if (state_ == State::kStopping) return;
  state_ = State::kStopping;
  tick_.reset();
  log_->Close([this] {
    state_ = State::kStopped;
    const Lifetime::Observer self = lifetime_.Observe();
    FailWaiting(failure_.value_or(Unavailable("the store is stopped")));
    if (self.alive()) hub_.Close(Unavailable("the store is stopped"));
    if (!self.alive()) return;
    const std::vector<std::function<void()>> waiters = std::move(stop_waiters_);
    for (const auto& waiter : waiters) waiter();
  });
}

}  // namespace drakkar::storage
