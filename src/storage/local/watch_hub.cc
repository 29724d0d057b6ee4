#include "storage/local/watch_hub.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace drakkar::storage {
namespace {

// Events per callback. A watcher far behind catches up in batches, and the loop serves others in
// between.
constexpr std::size_t kMaxEventsPerCallback = 512;

}  // namespace

struct WatchHub::Watcher {
  WatchOptions options;
  WatchCallbacks callbacks;
  Revision reached = 0;
  Revision durable_told = 0;
  bool open = true;      // until it is closed or its handle is destroyed
  bool loading = false;  // a batch is waiting for values from the log
};

struct WatchHub::Portion {
  std::vector<WatchEvent> events;
  std::vector<VersionIndex::Missing> missing;
  Revision up_to = 0;
};

class WatchHub::Handle final : public Watch {
 public:
  Handle(WatchHub& hub, std::shared_ptr<Watcher> watcher)
      : hub_(hub), hub_lifetime_(hub.lifetime_.Observe()), watcher_(std::move(watcher)) {}
  ~Handle() override {
    watcher_->open = false;
    if (hub_lifetime_.alive()) hub_.Remove(watcher_.get());
  }

 private:
  WatchHub& hub_;
  const Lifetime::Observer hub_lifetime_;
  std::shared_ptr<Watcher> watcher_;
};

WatchHub::WatchHub(EventLoop& loop, const VersionIndex& index, Loader loader)
    : loop_(loop), index_(index), loader_(std::move(loader)) {}

WatchHub::~WatchHub() {
  for (const auto& watcher : watchers_) watcher->open = false;
}

std::unique_ptr<Watch> WatchHub::Start(WatchOptions options, WatchCallbacks callbacks) {
  auto watcher = std::make_shared<Watcher>();
  const Revision now = options.mark == Mark::kApplied ? applied_ : durable_;
  watcher->reached = options.after == 0 ? now : options.after;
  // A watcher that starts at a future revision needs no durable mark for the revisions before it.
  watcher->durable_told =
      watcher->reached > applied_ ? watcher->reached : std::min(durable_, watcher->reached);
  watcher->options = std::move(options);
  watcher->callbacks = std::move(callbacks);
  watchers_.push_back(watcher);
  Schedule();
  return std::make_unique<Handle>(*this, std::move(watcher));
}

void WatchHub::Begin(Revision applied, Revision durable) {
  applied_ = applied;
  durable_ = durable;
}

void WatchHub::Publish(const std::vector<WatchEvent>& events, Revision revision) {
  applied_ = revision;
  if (watchers_.empty()) return;
  const Lifetime::Observer self = lifetime_.Observe();
  const std::vector<std::shared_ptr<Watcher>> watchers = watchers_;
  for (const auto& watcher : watchers) {
    if (!self.alive()) return;
    if (!watcher->open || watcher->options.mark != Mark::kApplied) continue;
    if (watcher->reached >= revision) continue;  // it starts at a later revision
    if (watcher->reached + 1 < revision || watcher->loading) {
      Schedule();
      continue;
    }
    const std::string& prefix = watcher->options.prefix;
    const auto concerns = [&](const WatchEvent& event) { return event.key.starts_with(prefix); };
    if (std::all_of(events.begin(), events.end(), concerns)) {
      Tell(watcher, events, revision);
      continue;
    }
    std::vector<WatchEvent> own;
    std::copy_if(events.begin(), events.end(), std::back_inserter(own), concerns);
    Tell(watcher, own, revision);
  }
}

void WatchHub::AdvanceDurable(Revision durable) {
  durable_ = durable;
  const Lifetime::Observer self = lifetime_.Observe();
  const std::vector<std::shared_ptr<Watcher>> watchers = watchers_;
  for (const auto& watcher : watchers) {
    if (!self.alive()) return;
    if (watcher->open) TellDurable(*watcher);
  }
  if (self.alive()) Schedule();
}

void WatchHub::SetCompacted(Revision compacted) {
  compacted_ = compacted;
  const bool someone_behind = std::any_of(
      watchers_.begin(), watchers_.end(),
      [&](const std::shared_ptr<Watcher>& watcher) { return watcher->reached < compacted_; });
  if (someone_behind) Schedule();
}

void WatchHub::Close(Error reason) {
  closed_ = std::move(reason);
  Dispatch();
}

void WatchHub::Schedule() {
  if (scheduled_ || watchers_.empty()) return;
  scheduled_ = true;
  loop_.Post(lifetime_.Guard([this] {
    scheduled_ = false;
    Dispatch();
  }));
}

void WatchHub::Dispatch() {
  // A callback may start and end watches, or destroy the store. So iterate over a copy and check
  // again before each call.
  const Lifetime::Observer self = lifetime_.Observe();
  const std::vector<std::shared_ptr<Watcher>> watchers = watchers_;
  for (const auto& watcher : watchers) {
    if (!self.alive()) return;
    if (!watcher->open || watcher->loading) continue;
    if (watcher->reached < compacted_) {
      End(watcher, Error{ErrorCode::kExpired, "revision " + std::to_string(watcher->reached) +
                                                  " has been compacted; the oldest available is " +
                                                  std::to_string(compacted_)});
      continue;
    }
    Deliver(watcher);
    if (!self.alive()) return;
    if (closed_.has_value() && watcher->open && !watcher->loading) End(watcher, *closed_);
  }
}

void WatchHub::Deliver(const std::shared_ptr<Watcher>& watcher) {
  const Revision target = watcher->options.mark == Mark::kApplied ? applied_ : durable_;
  if (target <= watcher->reached) return;
  auto portion = std::make_shared<Portion>();
  portion->up_to = index_.Events(watcher->options.prefix, watcher->reached, target,
                                 kMaxEventsPerCallback, &portion->events, &portion->missing);
  if (portion->up_to < target) Schedule();
  if (portion->missing.empty()) {
    Tell(watcher, portion->events, portion->up_to);
    return;
  }
  watcher->loading = true;
  std::vector<RowId> rows;
  rows.reserve(portion->missing.size());
  for (const auto& missing : portion->missing) rows.push_back(missing.row);
  loader_(std::move(rows),
          lifetime_.Guard([this, watcher, portion](Result<std::vector<Bytes>> values) {
            if (!watcher->open) return;
            watcher->loading = false;
            if (!values.ok()) {
              // The history is not readable, but the current state may be.
              End(watcher, {ErrorCode::kExpired, values.error().message});
              return;
            }
            for (std::size_t i = 0; i < portion->missing.size(); ++i) {
              *portion->missing[i].place = std::move((*values)[i]);
            }
            Schedule();
            Tell(watcher, portion->events, portion->up_to);
          }));
}

void WatchHub::Tell(const std::shared_ptr<Watcher>& watcher, const std::vector<WatchEvent>& events,
                    Revision up_to) {
  const Lifetime::Observer self = lifetime_.Observe();
  watcher->reached = up_to;
  watcher->callbacks.on_events(events, up_to);
  if (self.alive() && watcher->open) TellDurable(*watcher);
}

void WatchHub::TellDurable(Watcher& watcher) {
  const Revision durable = std::min(durable_, watcher.reached);
  if (durable <= watcher.durable_told) return;
  watcher.durable_told = durable;
  if (watcher.callbacks.on_durable) watcher.callbacks.on_durable(durable);
}

void WatchHub::End(const std::shared_ptr<Watcher>& watcher, Error reason) {
  watcher->open = false;
  Remove(watcher.get());
  if (watcher->callbacks.on_closed) watcher->callbacks.on_closed(std::move(reason));
}

void WatchHub::Remove(const Watcher* watcher) {
  std::erase_if(watchers_, [watcher](const auto& other) { return other.get() == watcher; });
}

}  // namespace drakkar::storage
