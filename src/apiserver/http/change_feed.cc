#include "apiserver/http/change_feed.h"

#include <atomic>

namespace drakkar::apiserver {

// The changes of one resource for one HTTP loop.
struct ChangeFeed::Tap {
  // Used on the core's loop.
  WatchCache* cache = nullptr;
  std::unique_ptr<WatchCache::Watcher> watcher;  // null once there are no readers
  const std::shared_ptr<std::size_t> readers = std::make_shared<std::size_t>(0);
  std::size_t usage_readers = 0;
  std::uint64_t handed = 0;
  // Written on the HTTP loop.
  std::atomic<std::uint64_t> taken{0};
  // Used on the HTTP loop.
  std::vector<WatchReader*> attached;  // null: unsubscribed during a delivery
  int delivering = 0;                  // nesting depth
};

// A watch that is being opened, on its way to the core and back.
struct ChangeFeed::Pending {
  Opening opening;
  std::shared_ptr<WatchReader> reader;  // used on the HTTP loop only
  std::optional<Failure> failure;
  WatchReader::Beginning beginning;
  std::shared_ptr<Tap> tap;
};

class ChangeFeed::Reading final : public WatchReader::Subscription {
 public:
  Reading(ChangeFeed& feed, std::shared_ptr<Tap> tap, WatchReader& reader, bool wants_usage)
      : feed_(feed),
        bridge_(feed.bridge_.Observe()),
        tap_(std::move(tap)),
        reader_(reader),
        wants_usage_(wants_usage) {
    tap_->attached.push_back(&reader);
  }
  ~Reading() override {
    for (WatchReader*& each : tap_->attached) {
      if (each == &reader_) each = nullptr;
    }
    if (tap_->delivering == 0) std::erase(tap_->attached, nullptr);
    if (!bridge_.alive()) return;
    feed_.bridge_.ToCore([feed = &feed_, tap = std::move(tap_), wanted = wants_usage_] {
      feed->Leave(*tap, wanted);
    });
  }

 private:
  ChangeFeed& feed_;  // while bridge_ is alive
  const Lifetime::Observer bridge_;
  std::shared_ptr<Tap> tap_;
  WatchReader& reader_;
  const bool wants_usage_;
};

ChangeFeed::ChangeFeed(Core& core, const LoopBridge& bridge,
                       std::function<std::shared_ptr<const DeviceUsage>()> usage)
    : core_(core), bridge_(bridge), usage_(std::move(usage)) {}

ChangeFeed::~ChangeFeed() {
  for (auto& [cache, tap] : taps_) tap->watcher.reset();
}

void ChangeFeed::Open(Opening opening, std::shared_ptr<WatchReader> reader) {
  auto pending = std::make_unique<Pending>();
  pending->opening = std::move(opening);
  pending->reader = std::move(reader);
  bridge_.ToCore(
      [this, shared = bridge_.Share(std::move(pending))]() mutable { Prepare(std::move(shared)); });
}

void ChangeFeed::AskRevision(std::function<void(storage::Revision)> done) {
  bridge_.ToCore([this, done = std::move(done)]() mutable {
    bridge_.ToHttp(
        [done = std::move(done), revision = core_.durable_revision()] { done(revision); });
  });
}

void ChangeFeed::Convert(api::ObjectPtr object, const api::KindSchema& to,
                         std::function<void(std::optional<Failure>)> done) {
  bridge_.ToCore([this, object = std::move(object), &to, done = std::move(done)]() mutable {
    core_.ConvertForWatch(
        object, to,
        bridge_.Guard([this, done = std::move(done)](std::optional<Failure> failure) mutable {
          bridge_.ToHttp([done = std::move(done), failure = std::move(failure)]() mutable {
            done(std::move(failure));
          });
        }));
  });
}

void ChangeFeed::Prepare(std::shared_ptr<Pending> pending) {
  if (!pending->opening.list_first) {
    // The version it starts from may come from another server.
    return core_.WhenFresh(
        bridge_.Guard([this, pending = std::move(pending)](std::optional<Failure> failure) mutable {
          pending->failure = std::move(failure);
          Begin(std::move(pending));
        }));
  }
  Request list = pending->opening.request;
  list.limit = 0;
  list.continue_token.clear();
  list.resource_version.clear();
  list.resource_version_match.clear();
  core_.ListForWatch(std::move(list),
                     bridge_.Guard([this, pending = std::move(pending)](Response response) mutable {
                       if (response.failure) {
                         pending->failure = std::move(response.failure);
                         return Begin(std::move(pending));
                       }
                       const storage::Revision revision = response.revision;
                       pending->opening.request.resource_version = std::to_string(revision);
                       pending->beginning.initial = std::move(response.items);
                       pending->beginning.initial_revision = revision;
                       // Watchers see only what is durable.
                       core_.WhenDurable(revision,
                                         bridge_.Guard([this, pending = std::move(pending)](
                                                           std::optional<Failure> failure) mutable {
                                           pending->failure = std::move(failure);
                                           Begin(std::move(pending));
                                         }));
                     }));
}

void ChangeFeed::Begin(std::shared_ptr<Pending> pending) {
  WatchReader::Beginning& beginning = pending->beginning;
  if (!pending->failure) {
    pending->failure =
        core_.PlanWatch(pending->opening.request, storage::Mark::kDurable, beginning.plan);
  }
  if (!pending->failure) {
    beginning.backlog = beginning.plan.cache->Backlog(beginning.plan.options);
    if (pending->opening.wants_usage) beginning.usage = usage_();
    pending->tap = FindTap(*beginning.plan.cache);
    ++*pending->tap->readers;
    if (pending->opening.wants_usage) ++pending->tap->usage_readers;
  }
  bridge_.ToHttp([this, pending = std::move(pending)] { Attach(*pending); });
}

void ChangeFeed::Attach(Pending& pending) {
  const std::shared_ptr<WatchReader> reader = std::move(pending.reader);
  if (pending.failure) return reader->Refuse(*pending.failure);
  auto reading = std::make_unique<Reading>(*this, std::move(pending.tap), *reader,
                                           pending.opening.wants_usage);
  reader->Begin(std::move(pending.beginning), std::move(reading));
}

std::shared_ptr<ChangeFeed::Tap> ChangeFeed::FindTap(WatchCache& cache) {
  std::shared_ptr<Tap>& tap = taps_[&cache];
  if (tap == nullptr) {
    tap = std::make_shared<Tap>();
    tap->cache = &cache;
    auto hand_over = [this, weak = std::weak_ptr(tap)](const std::vector<Change>& changes) {
      if (const std::shared_ptr<Tap> read = weak.lock()) HandOver(read, changes);
    };
    auto shut = [this, weak = std::weak_ptr(tap)](const Error& why) {
      if (const std::shared_ptr<Tap> read = weak.lock()) {
        Shut(read, why.code == ErrorCode::kExpired
                       ? api::StatusExpired(why.message)
                       : api::StatusInternalError("the store failed: " + why.message));
      }
    };
    tap->watcher = cache.StartFeed(tap->readers, storage::Mark::kDurable,
                                   {std::move(hand_over), std::move(shut)});
  }
  return tap;
}

template <typename Function>
void ChangeFeed::ForEachReader(Tap& tap, Function tell) {
  ++tap.delivering;
  // A reader that joins meanwhile has the current changes in its backlog.
  const std::size_t count = tap.attached.size();
  for (std::size_t i = 0; i < count; ++i) {
    if (WatchReader* reader = tap.attached[i]) tell(*reader);
  }
  if (--tap.delivering == 0) std::erase(tap.attached, nullptr);
}

void ChangeFeed::Shut(const std::shared_ptr<Tap>& tap, Failure why) {
  tap->watcher.reset();
  taps_.erase(tap->cache);
  bridge_.ToHttp([tap, why = std::move(why)] {
    ForEachReader(*tap, [&](WatchReader& reader) { reader.OnClosed(why); });
  });
}

void ChangeFeed::HandOver(const std::shared_ptr<Tap>& tap, const std::vector<Change>& changes) {
  tap->handed += changes.size();
  if (tap->handed - tap->taken.load(std::memory_order_relaxed) > kMaxAhead) {
    return Shut(tap, FellBehindFailure());
  }
  std::shared_ptr<const DeviceUsage> usage = tap->usage_readers > 0 ? usage_() : nullptr;
  auto shared = std::make_shared<const std::vector<Change>>(changes);
  bridge_.ToHttp([tap, shared = std::move(shared), usage = std::move(usage)] {
    Deliver(*tap, *shared, usage);
  });
}

void ChangeFeed::Deliver(Tap& tap, const std::vector<Change>& changes,
                         const std::shared_ptr<const DeviceUsage>& usage) {
  ForEachReader(tap, [&](WatchReader& reader) { reader.OnChanges(changes, usage); });
  tap.taken.fetch_add(changes.size(), std::memory_order_relaxed);
}

void ChangeFeed::Leave(Tap& tap, bool wanted_usage) {
  if (wanted_usage) --tap.usage_readers;
  if (--*tap.readers > 0) return;
  tap.watcher.reset();
  const auto found = taps_.find(tap.cache);
  if (found != taps_.end() && found->second.get() == &tap) taps_.erase(found);
}

}  // namespace drakkar::apiserver
