#include "storage/etcd/etcd_store.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "base/exec/lifetime.h"
#include "base/text/text.h"
#include "rpc/etcd/etcd_codec.h"
#include "storage/etcd/compactor.h"
#include "storage/etcd/etcd_watch.h"
#include "storage/etcd/leases.h"
#include "storage/etcd/range_pager.h"
#include "storage/etcd/transaction_codec.h"

namespace drakkar::storage {
namespace {

namespace etcd = rpc::etcd;
using Safety = EtcdClient::Safety;

// Any key serves to read the revision. This one exists in a cluster that is compacted.
constexpr char kProbeKey[] = "compact_rev_key";
// Delay before a transaction with an unknown outcome is sent again.
constexpr Duration kResolveDelay = std::chrono::milliseconds(100);
// Delay before the cluster's revision is asked for again on behalf of watches.
constexpr Duration kConnectDelay = std::chrono::seconds(1);

class EtcdStore final : public Store {
 public:
  // `owned` may be null.
  EtcdStore(EventLoop& loop, Random& random, rpc::Transport& transport,
            std::unique_ptr<rpc::Transport> owned, EtcdStoreOptions options)
      : loop_(loop),
        random_(random),
        options_(std::move(options)),
        owned_transport_(std::move(owned)),
        client_(std::make_unique<EtcdClient>(loop, random, transport, options_.client)),
        leases_(std::make_unique<EtcdLeases>(loop, *client_)) {
    if (options_.compaction_interval > Duration(0)) {
      compactor_ = std::make_unique<EtcdCompactor>(
          loop, *client_, options_.compaction_interval,
          [this](Revision revision) { compacted_ = std::max(compacted_, revision); });
    }
    Connect();
  }
  ~EtcdStore() override { lifetime_.End(); }

  void Commit(Transaction transaction, std::function<void(Result<TransactionResult>)> on_applied,
              std::function<void(Result<Revision>)> on_durable) override;
  void Range(RangeOptions options, std::function<void(Result<RangeResult>)> done) override;
  std::unique_ptr<Watch> StartWatch(WatchOptions options, WatchCallbacks callbacks) override;
  bool is_shared() const override { return true; }
  bool expires_keys() const override { return true; }
  void ReadRevision(std::function<void(Result<Revision>)> done) override;
  Revision applied_revision() const override { return known_; }
  Revision durable_revision() const override { return known_; }
  Revision compacted_revision() const override { return compacted_; }
  void Compact(Revision revision, std::function<void(Result<void>)> done) override;
  StoreStatistics statistics() const override { return statistics_; }
  std::optional<Error> failure() const override { return failure_; }
  std::optional<Error> outage() const override {
    return client_ == nullptr ? std::nullopt : client_->outage();
  }
  void Stop(std::function<void()> done) override;

 private:
  struct PendingCommit;
  struct Watcher;
  class Handle;
  using CommitPointer = std::shared_ptr<PendingCommit>;
  using WatcherPointer = std::shared_ptr<Watcher>;

  // Reads the cluster's revision; requests made before then wait for it.
  void Connect();
  void ConnectUnlessAsking();
  void RunWaiting(const std::optional<Error>& error);
  // Runs `task` once the cluster's revision is known; with the reason if it cannot be read. Counts
  // as in flight until `Release`.
  void Admit(std::function<void(std::optional<Error>)> task);
  void Release();

  // Records a response's header; false if the store has failed.
  bool Check(const etcd::Header& header);
  void Know(Revision revision) { known_ = std::max(known_, revision); }
  void Fail(Error why);

  // Gets the leases that the transaction needs, then sends it.
  void Prepare(const CommitPointer& commit);
  void SendCommit(const CommitPointer& commit);
  void OnCommitted(const CommitPointer& commit, EtcdClient::Outcome outcome);
  void FinishCommit(const CommitPointer& commit, Result<TransactionResult> result);

  void OpenWatch(const WatcherPointer& watcher);
  void OpenWatchOnceConnected(const WatcherPointer& watcher);
  void CloseWatch(const WatcherPointer& watcher, Error why);
  void ContinueStop();
  void FinishStop();

  EventLoop& loop_;
  Random& random_;
  const EtcdStoreOptions options_;
  const std::unique_ptr<rpc::Transport> owned_transport_;
  std::unique_ptr<EtcdClient> client_;  // null once stopped, as are the next two
  std::unique_ptr<EtcdLeases> leases_;
  std::unique_ptr<EtcdCompactor> compactor_;                        // null: somebody else compacts
  bool ready_ = false;                                              // known_ is the cluster's
  bool asking_ = false;                                             // for it
  std::vector<std::function<void(std::optional<Error>)>> waiting_;  // for that
  TimerHandle connect_timer_;                                       // asks for it again
  std::size_t in_flight_ = 0;
  Revision known_ = 1;
  Revision compacted_ = 0;
  std::uint64_t cluster_id_ = 0;
  std::optional<Error> failure_;
  StoreStatistics statistics_;
  std::vector<WatcherPointer> watchers_;
  bool stopping_ = false;
  bool stopped_ = false;
  TimerHandle stop_timer_;
  std::vector<std::function<void()>> stop_waiters_;
  Lifetime lifetime_;
};

struct EtcdStore::PendingCommit {
  CompiledTransaction compiled;
  std::string request;
  std::function<void(Result<TransactionResult>)> on_applied;
  std::function<void(Result<Revision>)> on_durable;
  std::size_t leased = 0;         // of compiled.expiring
  bool has_lost_a_lease = false;  // one was gone before it could be used
  bool may_have_run = false;      // an earlier attempt had an unknown fate
  MonotonicTime deadline{};
  TimerHandle timer;
};

struct EtcdStore::Watcher {
  WatchOptions options;
  WatchCallbacks callbacks;
  std::unique_ptr<EtcdWatch> watch;  // once the revision to start from is known
  bool open = true;
};

class EtcdStore::Handle final : public Watch {
 public:
  Handle(EtcdStore& store, WatcherPointer watcher)
      : store_(store), owner_(store.lifetime_.Observe()), watcher_(std::move(watcher)) {}
  ~Handle() override {
    watcher_->open = false;
    watcher_->watch.reset();
    if (!owner_.alive()) return;
    std::erase(store_.watchers_, watcher_);
    if (store_.stopping_) store_.ContinueStop();
  }

 private:
  EtcdStore& store_;
  const Lifetime::Observer owner_;
  const WatcherPointer watcher_;
};

void EtcdStore::Connect() {
  asking_ = true;
  client_->Call(
      etcd::kRangeMethod, etcd::Encode(etcd::RangeRequest{.key = kProbeKey, .count_only = true}),
      Safety::kRepeatable, lifetime_.Guard([this](const EtcdClient::Outcome& outcome) {
        asking_ = false;
        if (!outcome.response.ok()) return RunWaiting(ToStoreError(outcome.response.error()));
        const Result<etcd::RangeResponse> range = etcd::DecodeRangeResponse(*outcome.response);
        if (!range.ok()) return RunWaiting(Unavailable(range.error().message));
        known_ = range->header.revision;
        cluster_id_ = range->header.cluster_id;
        ready_ = true;
        RunWaiting(std::nullopt);
      }));
}

void EtcdStore::RunWaiting(const std::optional<Error>& error) {
  const Lifetime::Observer self = lifetime_.Observe();
  for (const auto& task : std::exchange(waiting_, {})) {
    task(error);
    if (!self.alive()) return;
  }
  // After an error only watches still wait. The next request asks again, or else this timer.
  if (waiting_.empty()) return;
  connect_timer_ = loop_.RunAfter(kConnectDelay, [this] { ConnectUnlessAsking(); });
}

void EtcdStore::ConnectUnlessAsking() {
  if (!ready_ && !asking_) Connect();
}

void EtcdStore::Admit(std::function<void(std::optional<Error>)> task) {
  loop_.AssertInLoop();
  const std::optional<Error> refused = stopping_ ? Unavailable("the store is stopped") : failure_;
  ++in_flight_;
  if (refused) {
    loop_.Post(lifetime_.Guard([refused, task = std::move(task)] { task(refused); }));
    return;
  }
  if (ready_) return task(std::nullopt);
  waiting_.push_back(std::move(task));
  ConnectUnlessAsking();
}

void EtcdStore::Release() {
  --in_flight_;
  if (stopping_) ContinueStop();
}

bool EtcdStore::Check(const etcd::Header& header) {
  if (failure_) return false;
  if (header.cluster_id != cluster_id_) {
    Fail(Error{ErrorCode::kDataLoss,
               "etcd is a different cluster than before; check --etcd-servers and restart"});
    return false;
  }
  return true;
}

void EtcdStore::Fail(Error why) {
  if (failure_) return;
  failure_ = why;
  const Lifetime::Observer self = lifetime_.Observe();
  const std::vector<WatcherPointer> watchers = watchers_;
  for (const WatcherPointer& watcher : watchers) {
    CloseWatch(watcher, Unavailable(why.message));
    if (!self.alive()) return;
  }
}

void EtcdStore::ReadRevision(std::function<void(Result<Revision>)> done) {
  Admit([this, done = std::move(done)](const std::optional<Error>& refused) {
    const auto finish = lifetime_.Guard([this, done](Result<Revision> result) {
      const Lifetime::Observer self = lifetime_.Observe();
      done(std::move(result));
      if (self.alive()) Release();
    });
    if (refused) return finish(*refused);
    client_->Call(
        etcd::kRangeMethod, etcd::Encode(etcd::RangeRequest{.key = kProbeKey, .count_only = true}),
        Safety::kRepeatable,
        lifetime_.Guard([this, finish, at_least = known_](const EtcdClient::Outcome& outcome) {
          if (!outcome.response.ok()) return finish(ToStoreError(outcome.response.error()));
          const Result<etcd::RangeResponse> range = etcd::DecodeRangeResponse(*outcome.response);
          if (!range.ok()) return finish(Unavailable(range.error().message));
          const Revision newest = range->header.revision;
          if (Check(range->header) && newest < at_least) {
            Fail(Error{ErrorCode::kDataLoss,
                       StrCat("etcd's revision went back from ", at_least, " to ", newest,
                              ": its data was replaced; restart this process")});
          }
          if (failure_) return finish(*failure_);
          Know(newest);
          const std::vector<WatcherPointer> watchers = watchers_;
          for (const WatcherPointer& watcher : watchers) {
            if (watcher->watch != nullptr) watcher->watch->WantProgress(newest);
          }
          finish(newest);
        }));
  });
}

void EtcdStore::Range(RangeOptions options, std::function<void(Result<RangeResult>)> done) {
  Admit([this, options = std::move(options),
         done = std::move(done)](const std::optional<Error>& refused) {
    const auto finish = lifetime_.Guard([this, done](Result<RangeResult> result) {
      const Lifetime::Observer self = lifetime_.Observe();
      if (result.ok()) Know(result->revision);
      done(std::move(result));
      if (self.alive()) Release();
    });
    if (refused) return finish(*refused);
    ReadPages(*client_, options, finish);
  });
}

void EtcdStore::Compact(Revision revision, std::function<void(Result<void>)> done) {
  Admit([this, revision, done = std::move(done)](const std::optional<Error>& refused) {
    const auto finish = lifetime_.Guard([this, done](Result<void> result) {
      const Lifetime::Observer self = lifetime_.Observe();
      done(std::move(result));
      if (self.alive()) Release();
    });
    if (refused) return finish(*refused);
    client_->Call(etcd::kCompactMethod,
                  etcd::Encode(etcd::CompactRequest{.revision = revision, .physical = true}),
                  Safety::kRepeatable,
                  lifetime_.Guard([this, revision, finish](const EtcdClient::Outcome& outcome) {
                    if (!outcome.response.ok()) {
                      const Error error = ToStoreError(outcome.response.error());
                      // Another writer, or an earlier attempt, was faster.
                      if (error.code == ErrorCode::kExpired) return finish(Ok());
                      return finish(error);
                    }
                    compacted_ = std::max(compacted_, revision);
                    finish(Ok());
                  }));
  });
}

void EtcdStore::Commit(Transaction transaction,
                       std::function<void(Result<TransactionResult>)> on_applied,
                       std::function<void(Result<Revision>)> on_durable) {
  auto commit = std::make_shared<PendingCommit>();
  commit->on_applied = std::move(on_applied);
  commit->on_durable = std::move(on_durable);
  Result<CompiledTransaction> compiled = CompileTransaction(std::move(transaction));
  if (compiled.ok()) {
    commit->compiled = *std::move(compiled);
  }
  Admit([this, commit, malformed = compiled.ok() ? std::nullopt : std::optional(compiled.error())](
            const std::optional<Error>& refused) {
    if (refused || malformed) {
      return FinishCommit(commit, refused ? *refused : *malformed);
    }
    commit->deadline = loop_.clock().Monotonic() + options_.client.total_timeout;
    Prepare(commit);
  });
}

void EtcdStore::Prepare(const CommitPointer& commit) {
  if (commit->leased == commit->compiled.expiring.size()) {
    commit->request = etcd::Encode(commit->compiled.request);
    return SendCommit(commit);
  }
  const auto [index, time_to_live] = commit->compiled.expiring[commit->leased];
  leases_->Get(time_to_live,
               lifetime_.Guard([this, commit, index = index](const Result<std::int64_t>& lease) {
                 if (!lease.ok()) return FinishCommit(commit, lease.error());
                 auto& put = std::get<etcd::PutRequest>(commit->compiled.request.success[index]);
                 put.lease = *lease;
                 ++commit->leased;
                 Prepare(commit);
               }));
}

void EtcdStore::SendCommit(const CommitPointer& commit) {
  client_->Call(etcd::kTxnMethod, commit->request, Safety::kOnce,
                lifetime_.Guard([this, commit](EtcdClient::Outcome outcome) {
                  OnCommitted(commit, std::move(outcome));
                }));
}

void EtcdStore::OnCommitted(const CommitPointer& commit, EtcdClient::Outcome outcome) {
  if (!outcome.response.ok()) {
    const Error error = ToStoreError(outcome.response.error());
    // A lease that expired before its time: etcd was down, or somebody revoked it.
    if (error.code == ErrorCode::kNotFound && !commit->compiled.expiring.empty() &&
        !commit->may_have_run && !std::exchange(commit->has_lost_a_lease, true)) {
      for (const auto& [index, time_to_live] : commit->compiled.expiring) {
        leases_->Forget(std::get<etcd::PutRequest>(commit->compiled.request.success[index]).lease);
      }
      commit->leased = 0;
      return Prepare(commit);
    }
    if (outcome.fate == Fate::kUnknown) commit->may_have_run = true;
    const bool in_time = loop_.clock().Monotonic() + kResolveDelay < commit->deadline;
    if (commit->may_have_run && commit->compiled.is_resolvable && in_time && !failure_) {
      commit->timer = loop_.RunAfter(kResolveDelay, [this, commit] { SendCommit(commit); });
      return;
    }
    if (!commit->may_have_run) return FinishCommit(commit, error);
    return FinishCommit(
        commit, Unavailable(StrCat("it is unknown whether the write happened: ", error.message)));
  }
  Result<etcd::TxnResponse> response = etcd::DecodeTxnResponse(*outcome.response);
  if (response.ok() && !Check(response->header)) return FinishCommit(commit, *failure_);
  if (response.ok()) {
    Know(response->header.revision);
    Result<TransactionResult> result = ReadTransactionResult(commit->compiled, *response);
    if (result.ok() && !result->succeeded && commit->may_have_run) {
      // Either the earlier attempt changed the keys, or another writer did.
      const std::optional<Revision> ours = FindOwnWrite(commit->compiled, *response);
      if (!ours) {
        return FinishCommit(
            commit, Unavailable("it is unknown whether the write happened: the connection broke, "
                                "and the object has changed since"));
      }
      result = TransactionResult{.succeeded = true, .revision = *ours, .failed = {}};
    }
    return FinishCommit(commit, std::move(result));
  }
  FinishCommit(commit, Unavailable(response.error().message));
}

void EtcdStore::FinishCommit(const CommitPointer& commit, Result<TransactionResult> result) {
  const Lifetime::Observer self = lifetime_.Observe();
  commit->timer.reset();
  std::optional<Result<Revision>> durable;
  if (!result.ok()) {
    durable = result.error();
  } else {
    ++statistics_.transactions;
    if (result->succeeded) {
      durable = result->revision;
      ++statistics_.commits;
      ++statistics_.syncs;
      statistics_.bytes_written += commit->compiled.value_bytes;
    }
  }
  if (commit->on_applied) commit->on_applied(std::move(result));
  if (!self.alive()) return;
  if (durable && commit->on_durable) commit->on_durable(*std::move(durable));
  if (self.alive()) Release();
}

std::unique_ptr<Watch> EtcdStore::StartWatch(WatchOptions options, WatchCallbacks callbacks) {
  loop_.AssertInLoop();
  auto watcher = std::make_shared<Watcher>();
  watcher->options = std::move(options);
  watcher->callbacks = std::move(callbacks);
  watchers_.push_back(watcher);
  auto handle = std::make_unique<Handle>(*this, watcher);
  if (failure_ || stopping_) {
    loop_.Post(lifetime_.Guard([this, watcher] {
      CloseWatch(watcher,
                 failure_ ? Unavailable(failure_->message) : Unavailable("the store is stopped"));
    }));
    return handle;
  }
  // A transaction that is asked for after this is seen: it waits for the revision, too, or comes
  // after the one that is known.
  if (ready_) {
    OpenWatch(watcher);
  } else {
    OpenWatchOnceConnected(watcher);
    ConnectUnlessAsking();
  }
  return handle;
}

// A watch survives an outage, also at its start.
void EtcdStore::OpenWatchOnceConnected(const WatcherPointer& watcher) {
  waiting_.emplace_back([this, watcher](const std::optional<Error>& error) {
    if (!watcher->open) return;
    if (error) return OpenWatchOnceConnected(watcher);
    OpenWatch(watcher);
  });
}

void EtcdStore::OpenWatch(const WatcherPointer& watcher) {
  const Revision after = watcher->options.after == 0 ? known_ : watcher->options.after;
  EtcdWatch::Callbacks callbacks;
  callbacks.on_events = [this, watcher](const std::vector<WatchEvent>& events, Revision up_to) {
    const Lifetime::Observer self = lifetime_.Observe();
    Know(up_to);
    watcher->callbacks.on_events(events, up_to);
    if (!self.alive() || !watcher->open) return;
    if (watcher->callbacks.on_durable) watcher->callbacks.on_durable(up_to);
    if (self.alive() && stopping_) ContinueStop();
  };
  callbacks.on_closed = [this, watcher](Error why) { CloseWatch(watcher, std::move(why)); };
  callbacks.on_compacted = [this](Revision revision) {
    compacted_ = std::max(compacted_, revision);
  };
  watcher->watch = std::make_unique<EtcdWatch>(loop_, random_, *client_, watcher->options.prefix,
                                               after, std::move(callbacks));
  watcher->watch->Start();
}

void EtcdStore::CloseWatch(const WatcherPointer& held, Error why) {
  const WatcherPointer watcher = held;
  if (!watcher->open) return;
  watcher->open = false;
  std::erase(watchers_, watcher);
  // This may run inside its callback.
  loop_.Post([gone = std::move(watcher->watch)]() mutable { gone.reset(); });
  const std::function<void(Error)> on_closed = watcher->callbacks.on_closed;
  if (on_closed) on_closed(std::move(why));
}

void EtcdStore::Stop(std::function<void()> done) {
  loop_.AssertInLoop();
  if (stopped_) {
    if (done) loop_.Post([done = std::move(done)] { done(); });
    return;
  }
  if (done) stop_waiters_.push_back(std::move(done));
  if (stopping_) return;
  stopping_ = true;
  stop_timer_ = loop_.RunAfter(options_.stop_patience, [this] { FinishStop(); });
  loop_.Post(lifetime_.Guard([this] { ContinueStop(); }));
}

// Runs once the transactions in flight are answered and the watches have delivered them, or when
// time is up.
void EtcdStore::ContinueStop() {
  if (stopped_ || in_flight_ > 0) return;
  for (const WatcherPointer& watcher : watchers_) {
    if (failure_ || outage()) break;
    if (watcher->watch == nullptr || watcher->watch->reached() >= known_) continue;
    watcher->watch->WantProgress(known_);
    return;
  }
  loop_.Post(lifetime_.Guard([this] { FinishStop(); }));
}

void EtcdStore::FinishStop() {
  if (stopped_) return;
  stopped_ = true;
  stop_timer_.reset();
  connect_timer_.reset();
  const Lifetime::Observer self = lifetime_.Observe();
  const std::vector<WatcherPointer> watchers = watchers_;
  for (const WatcherPointer& watcher : watchers) {
    CloseWatch(watcher, Unavailable("the store is stopped"));
    if (!self.alive()) return;
  }
  compactor_.reset();
  // This may run inside one of their callbacks.
  loop_.Post([client = std::move(client_), leases = std::move(leases_)]() mutable {
    leases.reset();
    client.reset();
  });
  const std::vector<std::function<void()>> waiters = std::move(stop_waiters_);
  for (const auto& waiter : waiters) waiter();
}

}  // namespace

std::unique_ptr<Store> OpenEtcdStore(EventLoop& loop, Random& random, rpc::Transport& transport,
                                     EtcdStoreOptions options) {
  return std::make_unique<EtcdStore>(loop, random, transport, nullptr, std::move(options));
}

std::unique_ptr<Store> OpenEtcdStore(EventLoop& loop, Random& random,
                                     std::unique_ptr<rpc::Transport> transport,
                                     EtcdStoreOptions options) {
  rpc::Transport& used = *transport;
  return std::make_unique<EtcdStore>(loop, random, used, std::move(transport), std::move(options));
}

}  // namespace drakkar::storage
