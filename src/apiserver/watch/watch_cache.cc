#include "apiserver/watch/watch_cache.h"

#include "base/result/check.h"

namespace drakkar::apiserver {

struct WatchCache::WatcherState {
  CacheWatchOptions options;
  CacheWatchCallbacks callbacks;
  bool ended = false;
};

// Marks the state; the list node is freed when no delivery can be looking at it.
class WatchCache::WatcherHandle final : public WatchCache::Watcher {
 public:
  WatcherHandle(std::weak_ptr<std::list<WatcherState>> watchers,
                std::list<WatcherState>::iterator state, const int& delivering)
      : watchers_(std::move(watchers)), state_(state), delivering_(delivering) {}
  ~WatcherHandle() override {
    std::shared_ptr<std::list<WatcherState>> watchers = watchers_.lock();
    if (watchers == nullptr) return;
    state_->ended = true;
    if (delivering_ == 0) watchers->erase(state_);
  }

 private:
  std::weak_ptr<std::list<WatcherState>> watchers_;
  std::list<WatcherState>::iterator state_;
  const int& delivering_;
};

WatchCache::WatchCache() : watchers_(std::make_shared<std::list<WatcherState>>()) {}
WatchCache::~WatchCache() = default;

api::ObjectPtr WatchCache::Find(const std::string& key) const {
  const api::ObjectPtr* found = objects_.Find(key);
  return found == nullptr ? nullptr : *found;
}

void WatchCache::Load(const std::string& key, api::ObjectPtr object) {
  objects_[key] = std::move(object);
}

void WatchCache::FinishLoad(storage::Revision revision) {
  forgotten_up_to_ = revision;
}

void WatchCache::Apply(const std::string& key, Change change) {
  if (change.type == ChangeType::kDeleted) {
    objects_.Erase(key);
  } else {
    objects_[key] = change.object;
  }
  changes_.push_back(std::move(change));
  const std::size_t at = changes_.size() - 1;
  Deliver(storage::Mark::kApplied, at, at + 1);
  // Forget only what durable watchers have seen: they never miss one for being slow to sync.
  while (changes_.size() > kMaxChanges && first_index_ < durable_index_) {
    forgotten_up_to_ = changes_.front().revision;
    changes_.pop_front();
    ++first_index_;
  }
}

void WatchCache::AdvanceDurable(storage::Revision revision) {
  std::size_t first = static_cast<std::size_t>(durable_index_ - first_index_);
  std::size_t last = first;
  while (last < changes_.size() && changes_[last].revision <= revision) ++last;
  if (first == last) return;
  durable_index_ = first_index_ + last;
  Deliver(storage::Mark::kDurable, first, last);
}

std::optional<Change> WatchCache::Filter(const WatcherState& watcher, const Change& change) {
  const CacheWatchOptions& options = watcher.options;
  if (change.revision <= options.after) return std::nullopt;
  if (!options.namespace_.empty() && change.object->namespace_() != options.namespace_) {
    return std::nullopt;
  }
  if (!options.name.empty() && change.object->name() != options.name) return std::nullopt;
  if (!options.selection) return change;
  const bool was = change.previous != nullptr && options.selection(*change.previous);
  const bool is = change.type != ChangeType::kDeleted && options.selection(*change.object);
  if (!was && !is) return std::nullopt;
  Change seen = change;
  seen.type = !was ? ChangeType::kAdded : is ? ChangeType::kModified : ChangeType::kDeleted;
  return seen;
}

void WatchCache::Deliver(storage::Mark mark, std::size_t first, std::size_t last) {
  if (watchers_->empty()) return;
  // A callback may end this or any other watch, or start one: new ones join at the end and only
  // see later changes.
  std::shared_ptr<std::list<WatcherState>> watchers = watchers_;
  ++delivering_;
  std::size_t count = watchers->size();
  for (auto it = watchers->begin(); count > 0; ++it, --count) {
    if (it->ended || it->options.mark != mark) continue;
    std::vector<Change> seen;
    for (std::size_t i = first; i < last; ++i) {
      if (std::optional<Change> change = Filter(*it, changes_[i])) {
        seen.push_back(std::move(*change));
      }
    }
    if (!seen.empty()) it->callbacks.on_changes(seen);
  }
  if (--delivering_ == 0) watchers->remove_if([](const WatcherState& w) { return w.ended; });
}

std::unique_ptr<WatchCache::Watcher> WatchCache::StartWatch(CacheWatchOptions options,
                                                            CacheWatchCallbacks callbacks) {
  if (options.after != 0 && options.after < forgotten_up_to_) return nullptr;
  const bool from_now = options.after == 0;
  watchers_->push_back(WatcherState{std::move(options), std::move(callbacks), false});
  auto state = std::prev(watchers_->end());
  auto handle = std::make_unique<WatcherHandle>(watchers_, state, delivering_);
  if (from_now) {
    state->options.after = changes_.empty() ? forgotten_up_to_ : changes_.back().revision;
    return handle;
  }
  // The backlog up to where the other watchers of this mark are.
  const std::size_t end = state->options.mark == storage::Mark::kApplied
                              ? changes_.size()
                              : static_cast<std::size_t>(durable_index_ - first_index_);
  std::vector<Change> backlog;
  for (std::size_t i = 0; i < end; ++i) {
    if (std::optional<Change> change = Filter(*state, changes_[i])) {
      backlog.push_back(std::move(*change));
    }
  }
  if (!backlog.empty()) state->callbacks.on_changes(backlog);
  return handle;
}

std::size_t WatchCache::watcher_count() const {
  return watchers_->size();
}

}  // namespace drakkar::apiserver
