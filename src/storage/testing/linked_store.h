#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "base/exec/event_loop.h"
#include "base/exec/lifetime.h"
#include "storage/store.h"

namespace drakkar::storage {

// A remote engine for tests: a simulated link to a store that other links may share. Requests and
// answers take `delay` each way, events `event_delay`. Messages of one kind keep their order, but
// answers and events may overtake each other. As with etcd, a transaction is answered when it is
// durable, its revision is unknown until then, and applied and durable are the same. A watch
// without events learns how far it has come only when somebody calls ReadRevision.
//
// Cut drops everything in flight: requests fail with kUnavailable, although they may have been
// executed. Watches resume after their last revision once the link is restored.
//
// Loop-bound; `server` is on the same loop and outlives this object.
class LinkedStore final : public Store {
 public:
  LinkedStore(EventLoop& loop, Store& server, Duration delay, Duration event_delay);
  ~LinkedStore() override;

  // Requests fail until Restore.
  void Cut();
  void Restore();

  void Commit(Transaction transaction, std::function<void(Result<TransactionResult>)> on_applied,
              std::function<void(Result<Revision>)> on_durable) override;
  void Range(RangeOptions options, std::function<void(Result<RangeResult>)> done) override;
  std::unique_ptr<Watch> StartWatch(WatchOptions options, WatchCallbacks callbacks) override;
  bool is_shared() const override { return true; }
  void ReadRevision(std::function<void(Result<Revision>)> done) override;
  Revision applied_revision() const override { return known_; }
  Revision durable_revision() const override { return known_; }
  Revision compacted_revision() const override { return compacted_; }
  void Compact(Revision revision, std::function<void(Result<void>)> done) override;
  StoreStatistics statistics() const override { return server_.statistics(); }
  std::optional<Error> failure() const override { return std::nullopt; }
  void Stop(std::function<void()> done) override;

 private:
  // Messages that are delivered in order.
  struct Lane {
    const Duration delay;
    std::deque<Task> messages = {};
    std::map<std::uint64_t, TimerHandle> timers = {};
  };
  struct Watcher;
  class Handle;
  using Fail = std::function<void(const Error&)>;
  using Answered = std::function<void(Task)>;

  void Send(Lane& lane, Task task);
  // Sends `ask` to the server together with a function to answer it. If the link is cut first,
  // `fail` runs instead of the answer.
  void Request(std::function<void(Answered answer)> ask, Fail fail);
  // The same without checking whether requests are allowed. The answer arrives on `back`.
  void Ask(std::function<void(Answered answer)> ask, Fail fail, Lane& back);
  void AnswerRevision(const std::function<void(Result<Revision>)>& done, const Answered& answer);
  void Know(Revision revision);
  // Starts the watch at the server.
  void Open(const std::shared_ptr<Watcher>& watcher);
  void Forward(const std::shared_ptr<Watcher>& watcher, std::vector<WatchEvent> events);
  void Tell(const std::shared_ptr<Watcher>& watcher, const std::vector<WatchEvent>& events,
            Revision up_to);
  void Close(const std::shared_ptr<Watcher>& watcher, Error why);
  void FinishStop();

  EventLoop& loop_;
  Store& server_;
  bool connected_ = true;
  bool stopping_ = false;
  bool flushed_ = false;  // watchers have received all events, so Stop can finish
  bool stopped_ = false;
  Lane there_;
  Lane back_;
  Lane events_;
  std::map<std::uint64_t, Fail> under_way_;
  std::uint64_t next_request_ = 0;
  std::uint64_t next_timer_ = 0;
  std::vector<std::shared_ptr<Watcher>> watchers_;
  std::vector<std::function<void()>> stop_waiters_;
  Revision known_ = 1;
  Revision compacted_ = 0;
  Lifetime lifetime_;
};

}  // namespace drakkar::storage
