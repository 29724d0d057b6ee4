#include "apiserver/watch/watch_cache.h"

#include <algorithm>

#include "api/tree/draft.h"
#include "apiserver/watch/stored_object.h"
#include "base/result/check.h"

namespace drakkar::apiserver {
namespace {

void AppendSeen(const CacheWatchOptions& options, const Change& change, std::vector<Change>& seen) {
  const std::optional<ChangeType> type = WatchCache::TypeFor(options, change);
  if (!type) return;
  seen.push_back(change);
  seen.back().type = *type;
  if (WatchCache::IsLeaving(*type, change)) seen.back().object = WatchCache::LeavingObject(change);
}

// Whether a watcher sees this change and all later ones unchanged.
bool SeesAll(const CacheWatchOptions& options, const Change& first) {
  return options.namespace_.empty() && options.name.empty() && !options.selection &&
         first.revision > options.after;
}

}  // namespace

struct WatchCache::WatcherState {
  CacheWatchOptions options;
  CacheWatchCallbacks callbacks;
  std::shared_ptr<const std::size_t> readers;  // null counts as one
  bool ended = false;
  bool closed = false;  // on_closed has been called
};

// Marks the state; the list node is freed once no delivery can be using it.
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

WatchCache::WatchCache(Holds holds)
    : holds_(holds), watchers_(std::make_shared<std::list<WatcherState>>()) {}
WatchCache::~WatchCache() = default;

api::ObjectPtr WatchCache::Find(const std::string& key) const {
  if (holds_ == Holds::kBytes) {
    const Encoded* encoded = FindEncoded(key);
    if (encoded == nullptr) return nullptr;
    Result<api::ObjectPtr> object = ReadStored(*encoded->bytes, encoded->revision);
    return object.ok() ? *std::move(object) : nullptr;
  }
  const api::ObjectPtr* found = objects_.Find(key);
  return found == nullptr ? nullptr : *found;
}

const WatchCache::Encoded* WatchCache::FindEncoded(const std::string& key) const {
  const auto found = encoded_.find(key);
  return found == encoded_.end() ? nullptr : &found->second;
}

void WatchCache::Put(const std::string& key, api::ObjectPtr object, storage::Bytes bytes) {
  if (holds_ == Holds::kObjects) {
    objects_[key] = std::move(object);
    return;
  }
  Encoded& encoded = encoded_[key];
  if (encoded.bytes != nullptr) encoded_bytes_ -= encoded.bytes->size();
  encoded_bytes_ += bytes->size();
  encoded = {std::move(bytes), object->resource_version()};
}

void WatchCache::Erase(const std::string& key) {
  if (holds_ == Holds::kObjects) {
    objects_.Erase(key);
    return;
  }
  const auto found = encoded_.find(key);
  if (found == encoded_.end()) return;
  encoded_bytes_ -= found->second.bytes->size();
  encoded_.erase(found);
}

void WatchCache::Load(const std::string& key, api::ObjectPtr object, const storage::Bytes& bytes) {
  Put(key, std::move(object), bytes);
}

void WatchCache::FinishLoad(storage::Revision revision) {
  forgotten_up_to_ = revision;
}

void WatchCache::Apply(const std::string& key, Change change) {
  if (change.type == ChangeType::kDeleted) {
    Erase(key);
  } else {
    Put(key, change.object, holds_ == Holds::kBytes ? change.object->json() : nullptr);
  }
  change_bytes_ += change.size_bytes;
  changes_.push_back(std::move(change));
  const std::size_t at = changes_.size() - 1;
  Deliver(storage::Mark::kApplied, at, at + 1);
  // Drop only changes that durable watchers have seen, so that a slow sync costs them none.
  while ((changes_.size() > kMaxChanges || change_bytes_ > change_bytes_max()) &&
         first_index_ < durable_index_) {
    forgotten_up_to_ = changes_.front().revision;
    change_bytes_ -= changes_.front().size_bytes;
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

std::optional<ChangeType> WatchCache::TypeFor(const CacheWatchOptions& options,
                                              const Change& change) {
  if (change.revision <= options.after) return std::nullopt;
  if (!options.namespace_.empty() && change.object->namespace_() != options.namespace_) {
    return std::nullopt;
  }
  if (!options.name.empty() && change.object->name() != options.name) return std::nullopt;
  if (!options.selection) return change.type;
  const bool was = change.previous != nullptr && options.selection(*change.previous);
  const bool is = change.type != ChangeType::kDeleted && options.selection(*change.object);
  if (!was && !is) return std::nullopt;
  return !was ? ChangeType::kAdded : is ? ChangeType::kModified : ChangeType::kDeleted;
}

api::ObjectPtr WatchCache::LeavingObject(const Change& change) {
  api::Draft last(change.previous->tree());
  last["metadata"]["resourceVersion"] = std::to_string(change.revision);
  return std::make_shared<const api::Object>(last.Freeze());
}

void WatchCache::Replace(std::vector<Loaded> objects, storage::Revision revision) {
  objects_.Clear();
  encoded_.clear();
  encoded_bytes_ = 0;
  for (Loaded& each : objects) Put(each.key, std::move(each.object), std::move(each.bytes));
  first_index_ += changes_.size();
  durable_index_ = first_index_;
  changes_.clear();
  change_bytes_ = 0;
  forgotten_up_to_ = revision;
}

void WatchCache::CloseDurable(const Error& why) {
  Close(why, false);
}

void WatchCache::CloseAll(const Error& why) {
  Close(why, true);
}

void WatchCache::Close(const Error& why, bool applied_too) {
  std::shared_ptr<std::list<WatcherState>> watchers = watchers_;
  ++delivering_;
  std::size_t count = watchers->size();
  for (auto it = watchers->begin(); count > 0; ++it, --count) {
    if (it->ended || it->closed) continue;
    if (it->options.mark != storage::Mark::kDurable && !applied_too) continue;
    it->closed = true;
    if (it->callbacks.on_closed) it->callbacks.on_closed(why);
  }
  if (--delivering_ == 0) watchers->remove_if([](const WatcherState& w) { return w.ended; });
}

void WatchCache::Deliver(storage::Mark mark, std::size_t first, std::size_t last) {
  if (watchers_->empty()) return;
  // A callback may end or start any watch. New ones are appended and see later changes only.
  std::shared_ptr<std::list<WatcherState>> watchers = watchers_;
  ++delivering_;
  std::size_t count = watchers->size();
  std::vector<Change> all;  // shared by watchers that see every change unchanged
  for (auto it = watchers->begin(); count > 0; ++it, --count) {
    if (it->ended || it->closed || it->options.mark != mark) continue;
    if (SeesAll(it->options, changes_[first])) {
      if (all.empty()) {
        all.assign(changes_.begin() + static_cast<std::ptrdiff_t>(first),
                   changes_.begin() + static_cast<std::ptrdiff_t>(last));
      }
      it->callbacks.on_changes(all);
      continue;
    }
    std::vector<Change> seen;
    for (std::size_t i = first; i < last; ++i) {
      AppendSeen(it->options, changes_[i], seen);
    }
    if (!seen.empty()) it->callbacks.on_changes(seen);
  }
  if (--delivering_ == 0) watchers->remove_if([](const WatcherState& w) { return w.ended; });
}

std::unique_ptr<WatchCache::Watcher> WatchCache::StartWatch(CacheWatchOptions options,
                                                            CacheWatchCallbacks callbacks) {
  if (options.after != 0 && options.after < forgotten_up_to_) return nullptr;
  const bool from_now = options.after == 0;
  watchers_->push_back(WatcherState{std::move(options), std::move(callbacks), nullptr});
  auto state = std::prev(watchers_->end());
  auto handle = std::make_unique<WatcherHandle>(watchers_, state, delivering_);
  if (from_now) {
    state->options.after = changes_.empty() ? forgotten_up_to_ : changes_.back().revision;
    return handle;
  }
  const std::vector<Change> backlog = Backlog(state->options);
  if (!backlog.empty()) state->callbacks.on_changes(backlog);
  return handle;
}

std::unique_ptr<WatchCache::Watcher> WatchCache::StartFeed(
    std::shared_ptr<const std::size_t> readers, storage::Mark mark,
    CacheWatchCallbacks callbacks) const {
  CacheWatchOptions options;
  options.mark = mark;
  watchers_->push_back(WatcherState{std::move(options), std::move(callbacks), std::move(readers)});
  return std::make_unique<WatcherHandle>(watchers_, std::prev(watchers_->end()), delivering_);
}

std::vector<Change> WatchCache::Backlog(const CacheWatchOptions& options) const {
  // Up to where the other watchers of this mark are.
  const auto end =
      changes_.begin() + static_cast<std::ptrdiff_t>(options.mark == storage::Mark::kApplied
                                                         ? changes_.size()
                                                         : durable_index_ - first_index_);
  // Revisions only rise.
  auto next = std::upper_bound(
      changes_.begin(), end, options.after,
      [](storage::Revision after, const Change& change) { return after < change.revision; });
  std::vector<Change> backlog;
  for (; next != end; ++next) AppendSeen(options, *next, backlog);
  return backlog;
}

std::size_t WatchCache::watcher_count() const {
  std::size_t count = 0;
  for (const WatcherState& watcher : *watchers_) {
    count += watcher.readers == nullptr ? 1 : *watcher.readers;
  }
  return count;
}

}  // namespace drakkar::apiserver
