#include "storage/testing/linked_store.h"

#include <algorithm>
#include <utility>

namespace drakkar::storage {
namespace {

Error LinkLost() {
  return Unavailable("the connection to the store was lost");
}

}  // namespace

struct LinkedStore::Watcher {
  WatchOptions options;
  WatchCallbacks callbacks;
  Revision reached = 0;  // last revision received
  bool begun = false;    // `reached` is known, so the watch can resume there
  // At the server: the revision reached, the revision last sent, and the revision requested.
  Revision server_reached = 0;
  Revision server_told = 0;
  Revision asked = 0;
  bool open = true;  // until it is closed or its handle is destroyed
  std::unique_ptr<Watch> at_server;
};

class LinkedStore::Handle final : public Watch {
 public:
  Handle(LinkedStore& store, std::shared_ptr<Watcher> watcher)
      : store_(store), store_lifetime_(store.lifetime_.Observe()), watcher_(std::move(watcher)) {}
  ~Handle() override {
    watcher_->open = false;
    watcher_->at_server.reset();
    if (store_lifetime_.alive()) std::erase(store_.watchers_, watcher_);
  }

 private:
  LinkedStore& store_;
  const Lifetime::Observer store_lifetime_;
  std::shared_ptr<Watcher> watcher_;
};

LinkedStore::LinkedStore(EventLoop& loop, Store& server, Duration delay, Duration event_delay)
    : loop_(loop), server_(server), there_{delay}, back_{delay}, events_{event_delay} {}

LinkedStore::~LinkedStore() {
  for (const auto& watcher : watchers_) {
    watcher->open = false;
    watcher->at_server.reset();
  }
}

void LinkedStore::Send(Lane& lane, Task task) {
  if (!connected_) return;
  lane.messages.push_back(std::move(task));
  const std::uint64_t id = ++next_timer_;
  lane.timers.emplace(id, loop_.RunAfter(lane.delay, [&lane, id] {
    const TimerHandle done = std::move(lane.timers.extract(id).mapped());
    Task next = std::move(lane.messages.front());
    lane.messages.pop_front();
    next();
  }));
}

void LinkedStore::Request(std::function<void(Answered answer)> ask, Fail fail) {
  loop_.AssertInLoop();
  const auto fail_soon = [&](Error why) {
    loop_.Post(lifetime_.Guard([fail = std::move(fail), why = std::move(why)] { fail(why); }));
  };
  if (stopping_) return fail_soon(Unavailable("the store is stopped"));
  if (!connected_) return fail_soon(LinkLost());
  Ask(std::move(ask), std::move(fail), back_);
}

void LinkedStore::Ask(std::function<void(Answered answer)> ask, Fail fail, Lane& back) {
  const std::uint64_t id = ++next_request_;
  under_way_.emplace(id, std::move(fail));
  Send(there_, [this, id, &back, ask = std::move(ask)] {
    ask(lifetime_.Guard([this, id, &back](Task answer) {
      if (!under_way_.contains(id)) return;
      Send(back, [this, id, answer = std::move(answer)]() mutable {
        const Lifetime::Observer self = lifetime_.Observe();
        under_way_.erase(id);
        answer();
        if (self.alive() && stopping_) FinishStop();
      });
    }));
  });
}

void LinkedStore::Know(Revision revision) {
  known_ = std::max(known_, revision);
}

void LinkedStore::Cut() {
  connected_ = false;
  for (Lane* lane : {&there_, &back_, &events_}) {
    lane->messages.clear();
    lane->timers.clear();
  }
  for (const auto& watcher : watchers_) watcher->at_server.reset();
  const Lifetime::Observer self = lifetime_.Observe();
  const std::map<std::uint64_t, Fail> lost = std::exchange(under_way_, {});
  for (const auto& [id, fail] : lost) {
    if (!self.alive()) return;
    fail(LinkLost());
  }
  if (self.alive() && stopping_) FinishStop();
}

void LinkedStore::Restore() {
  connected_ = true;
  const std::vector<std::shared_ptr<Watcher>> watchers = watchers_;
  for (const auto& watcher : watchers) Open(watcher);
}

void LinkedStore::Commit(Transaction transaction,
                         std::function<void(Result<TransactionResult>)> on_applied,
                         std::function<void(Result<Revision>)> on_durable) {
  for (Operation& operation : transaction.operations) {
    if (operation.encode) operation.value = std::exchange(operation.encode, nullptr)(0).bytes;
  }
  const auto tell = [this, on_applied = std::move(on_applied),
                     on_durable = std::move(on_durable)](const Result<TransactionResult>& result) {
    const Lifetime::Observer self = lifetime_.Observe();
    const bool refused = !result.ok();
    const bool succeeded = result.ok() && result->succeeded;
    const Revision revision = result.ok() ? result->revision : 0;
    if (!refused) Know(revision);
    if (on_applied) on_applied(result);
    if (!self.alive() || !on_durable) return;
    if (refused) on_durable(result.error());
    if (succeeded) on_durable(revision);
  };
  Request(
      [this, transaction = std::move(transaction), tell](const Answered& answer) mutable {
        auto outcome = std::make_shared<TransactionResult>();
        server_.Commit(
            std::move(transaction),
            [outcome, tell, answer](Result<TransactionResult> result) {
              if (result.ok()) *outcome = *result;
              if (!result.ok() || !result->succeeded) {
                answer([tell, result = std::move(result)] { tell(result); });
              }
            },
            [outcome, tell, answer](const Result<Revision>& durable) {
              if (!durable.ok()) return;  // no answer: the caller learns when the link is cut
              answer([tell, outcome] { tell(*outcome); });
            });
      },
      [tell](const Error& why) { tell(why); });
}

void LinkedStore::Range(RangeOptions options, std::function<void(Result<RangeResult>)> done) {
  Request(
      [this, options = std::move(options), done](const Answered& answer) {
        server_.Range(options, [this, done, answer](Result<RangeResult> result) {
          answer([this, done, result = std::move(result)]() mutable {
            if (result.ok()) Know(result->revision);
            done(std::move(result));
          });
        });
      },
      [done](const Error& why) { done(why); });
}

void LinkedStore::Compact(Revision revision, std::function<void(Result<void>)> done) {
  Request(
      [this, revision, done](const Answered& answer) {
        server_.Compact(revision, [this, done, answer](Result<void> result) {
          answer([this, done, result, compacted = server_.compacted_revision()] {
            compacted_ = std::max(compacted_, compacted);
            done(result);
          });
        });
      },
      [done](const Error& why) { done(why); });
}

void LinkedStore::ReadRevision(std::function<void(Result<Revision>)> done) {
  Request([this, done](const Answered& answer) { AnswerRevision(done, answer); },
          [done](const Error& why) { done(why); });
}

// Runs at the server.
void LinkedStore::AnswerRevision(const std::function<void(Result<Revision>)>& done,
                                 const Answered& answer) {
  const Revision newest = server_.durable_revision();
  for (const auto& watcher : watchers_) {
    watcher->asked = std::max(watcher->asked, newest);
    Forward(watcher, {});
  }
  // Answer after the events that the server's watches are about to deliver.
  loop_.Post(lifetime_.Guard([this, done, answer, newest] {
    answer([this, done, newest] {
      Know(newest);
      done(newest);
    });
  }));
}

// Runs at the server. Sends events, or only the revision reached if that was requested.
void LinkedStore::Forward(const std::shared_ptr<Watcher>& watcher, std::vector<WatchEvent> events) {
  const bool wanted = watcher->server_told < std::min(watcher->asked, watcher->server_reached);
  if (events.empty() && !wanted) return;
  watcher->server_told = watcher->server_reached;
  for (WatchEvent& each : events) each.object = nullptr;
  Send(events_, [this, watcher, events = std::move(events), up_to = watcher->server_reached] {
    Tell(watcher, events, up_to);
  });
}

std::unique_ptr<Watch> LinkedStore::StartWatch(WatchOptions options, WatchCallbacks callbacks) {
  auto watcher = std::make_shared<Watcher>();
  watcher->reached = options.after;
  watcher->begun = options.after != 0;
  watcher->options = std::move(options);
  watcher->callbacks = std::move(callbacks);
  watchers_.push_back(watcher);
  Open(watcher);
  return std::make_unique<Handle>(*this, std::move(watcher));
}

void LinkedStore::Open(const std::shared_ptr<Watcher>& watcher) {
  Send(there_, [this, watcher] {
    if (!watcher->open) return;
    const Revision after = watcher->begun ? watcher->reached : server_.durable_revision();
    watcher->server_reached = watcher->server_told = after;
    if (!watcher->begun) {
      Send(events_, [watcher, after] {
        watcher->reached = after;
        watcher->begun = true;
      });
    }
    watcher->at_server = server_.StartWatch(
        {.prefix = watcher->options.prefix, .after = after},
        {.on_events =
             [this, watcher](const std::vector<WatchEvent>& events, Revision up_to) {
               watcher->server_reached = up_to;
               Forward(watcher, events);
             },
         .on_closed =
             [this, watcher](Error why) {
               Send(events_, [this, watcher, why] { Close(watcher, why); });
             }});
  });
}

void LinkedStore::Tell(const std::shared_ptr<Watcher>& watcher,
                       const std::vector<WatchEvent>& events, Revision up_to) {
  if (!watcher->open || up_to <= watcher->reached) return;
  const Lifetime::Observer self = lifetime_.Observe();
  watcher->reached = up_to;
  Know(up_to);
  watcher->callbacks.on_events(events, up_to);
  if (!self.alive() || !watcher->open) return;
  if (watcher->callbacks.on_durable) watcher->callbacks.on_durable(up_to);
}

void LinkedStore::Close(const std::shared_ptr<Watcher>& watcher, Error why) {
  if (!watcher->open) return;
  watcher->open = false;
  watcher->at_server.reset();
  std::erase(watchers_, watcher);
  if (watcher->callbacks.on_closed) watcher->callbacks.on_closed(std::move(why));
}

void LinkedStore::Stop(std::function<void()> done) {
  if (stopped_) {
    if (done) loop_.Post([done = std::move(done)] { done(); });
    return;
  }
  if (done) stop_waiters_.push_back(std::move(done));
  if (stopping_) return;
  stopping_ = true;
  if (!under_way_.empty()) return;  // the last answer calls FinishStop
  loop_.Post(lifetime_.Guard([this] { FinishStop(); }));
}

void LinkedStore::FinishStop() {
  if (stopped_ || !under_way_.empty()) return;
  if (connected_ && !flushed_) {
    // Make one more round trip after the events, so that watchers receive what was in flight.
    flushed_ = true;
    return Ask(
        [this](const Answered& answer) { AnswerRevision([](const Result<Revision>&) {}, answer); },
        [this](const Error&) { FinishStop(); }, events_);
  }
  stopped_ = true;
  const Lifetime::Observer self = lifetime_.Observe();
  const std::vector<std::shared_ptr<Watcher>> watchers = watchers_;
  for (const auto& watcher : watchers) {
    if (!self.alive()) return;
    Close(watcher, Unavailable("the store is stopped"));
  }
  if (!self.alive()) return;
  const std::vector<std::function<void()>> waiters = std::move(stop_waiters_);
  for (const auto& waiter : waiters) waiter();
}

}  // namespace drakkar::storage
