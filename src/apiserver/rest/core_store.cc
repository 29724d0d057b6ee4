// How the core loads, follows and writes the store, and what is applied and durable.
#include <algorithm>
#include <iterator>
#include <set>

#include "api/json/reader.h"
#include "apiserver/conversion/versions.h"
#include "apiserver/registry/service_strategy.h"
#include "apiserver/rest/core_resource.h"
#include "base/exec/work_budget.h"

namespace drakkar::apiserver {
namespace {

// Delay before a failed reload is retried.
constexpr Duration kReloadInterval = std::chrono::seconds(1);
constexpr std::size_t kMaxServiceGuards = 100;

bool IsService(const api::KindSchema& kind) {
  return kind.group.empty() && kind.kind == "Service";
}

// What the change of a Service takes or gives back. More than fits into a transaction of etcd,
// which may have 128 operations, is not guarded.
std::vector<DeviceArbiter::Guard> GuardsOfService(api::Value before, api::Value after) {
  const std::set<std::string> old = ServiceStrategy::HeldBy(before);
  const std::set<std::string> now = ServiceStrategy::HeldBy(after);
  std::vector<DeviceArbiter::Guard> guards;
  for (const std::string& name : old) {
    if (!now.contains(name)) guards.push_back({name, false});
  }
  for (const std::string& name : now) {
    if (!old.contains(name)) guards.push_back({name, true});
  }
  if (guards.size() > kMaxServiceGuards) guards.resize(kMaxServiceGuards);
  return guards;
}

Failure StoreUnavailable(const Error& why) {
  return api::StatusServiceUnavailable(why.message);
}

}  // namespace

struct Core::Contents {
  std::unordered_map<Resource*, std::vector<WatchCache::Loaded>> objects;
};

Core::Resource* Core::FindResourceOfKey(std::string_view key) const {
  // "/registry/<plural>/<key>" or "/registry/<group>/<plural>/<key>"
  std::size_t end = options_.layout.root.size();
  for (int part = 0; part < 2; ++part) {
    end = key.find('/', end + 1);
    if (end == std::string_view::npos) return nullptr;
    const auto found = by_prefix_.find(key.substr(0, end + 1));
    if (found != by_prefix_.end()) return found->second;
  }
  return nullptr;
}

Result<api::ObjectPtr> Core::Decode(std::string_view bytes, storage::Revision revision) const {
  return ReadStored(bytes, revision,
                    options_.layout.is_kubernetes ? Writer::kAnyServer : Writer::kThisServer);
}

Core::Contents Core::ReadContents(const storage::RangeResult& range) {
  Contents contents;
  unreadable_.clear();
  guards_.clear();
  for (const auto& step : options_.admission) step->OnDecidedElsewhere({});
  for (const storage::UnreadableEntry& entry : range.unreadable) {
    SetUnreadable(entry.key, entry.mod_revision, {ErrorCode::kDataLoss, entry.reason});
  }
  // Definitions first: they say which other keys are objects.
  custom_.is_loading = true;
  std::set<std::string> present;
  for (const storage::Entry& entry : range.entries) {
    if (!entry.key.starts_with(definitions_->prefix)) continue;
    Result<api::ObjectPtr> object = ReadStored(*entry.value, entry.mod_revision);
    if (!object.ok()) continue;
    present.emplace((*object)->name());
    SeeDefinition(*object, false);
  }
  ForgetDefinitionsExcept(present);
  custom_.is_loading = false;
  PublishCustomKinds();
  for (const storage::Entry& entry : range.entries) {
    Resource* resource = FindResourceOfKey(entry.key);
    if (resource == nullptr) {  // a kind of a newer release: leave it alone
      if (entry.key.starts_with(guard_prefix_)) guards_[entry.key] = entry.mod_revision;
      continue;
    }
    Result<api::ObjectPtr> object = Decode(*entry.value, entry.mod_revision);
    if (!object.ok()) {
      SetUnreadable(entry.key, entry.mod_revision, object.error());
      continue;
    }
    contents.objects[resource].push_back({entry.key.substr(resource->prefix.size()),
                                          WithStoredDefaults(*object, *resource->kind),
                                          entry.value});
  }
  return contents;
}

void Core::Start(std::function<void(Result<void>)> ready) {
  options_.loop.AssertInLoop();
  options_.store.Range(
      {.prefix = RootPrefix(options_.layout)},
      lifetime_.Guard([this, ready = std::move(ready)](Result<storage::RangeResult> range) {
        if (!range.ok()) return ready(range.error().Prefixed("read the store"));
        Contents contents = ReadContents(*range);
        for (auto& [resource, objects] : contents.objects) {
          for (auto& [key, object, bytes] : objects) {
            resource->cache.Load(key, std::move(object), bytes);
          }
        }
        for (auto& [name, resource] : resources_) {
          resource->cache.FinishLoad(range->revision);
        }
        reached_ = range->revision;
        durable_seen_ = std::min(reached_, options_.store.durable_revision());
        Follow();
        ready(Ok());
      }));
}

void Core::Follow() {
  storage::WatchCallbacks callbacks;
  callbacks.on_events = [this](const std::vector<storage::WatchEvent>& events,
                               storage::Revision up_to) { OnEvents(events, up_to); };
  callbacks.on_durable = [this](storage::Revision up_to) { OnDurable(up_to); };
  callbacks.on_closed = [this](const Error& why) { OnWatchClosed(why); };
  watch_ = options_.store.StartWatch(
      {.prefix = RootPrefix(options_.layout), .after = reached_, .mark = storage::Mark::kApplied},
      std::move(callbacks));
}

void Core::OnEvents(const std::vector<storage::WatchEvent>& events, storage::Revision up_to) {
  const Lifetime::Observer self = lifetime_.Observe();
  for (std::size_t i = 0; i < events.size(); ++i) {
    // A transaction becomes visible to lists as a whole.
    const bool whole = i + 1 == events.size() || events[i + 1].revision != events[i].revision;
    ApplyEvent(events[i], whole ? events[i].revision : 0);
    if (!self.alive()) return;
  }
  reached_ = std::max(reached_, up_to);
  RunReached();
}

void Core::ApplyEvent(const storage::WatchEvent& event, storage::Revision reached) {
  if (Resource* resource = FindResourceOfKey(event.key)) {
    const std::string key = event.key.substr(resource->prefix.size());
    Change change;
    change.revision = event.revision;
    change.previous = resource->cache.Find(key);
    const storage::Bytes& bytes = event.is_delete() ? event.previous_value : event.value;
    if (bytes != nullptr) change.size_bytes = bytes->size();
    if (event.is_delete()) {
      change.type = ChangeType::kDeleted;
      if (change.previous != nullptr) {
        change.object = Numbered(change.previous->tree(), event.revision);
      }
    } else {
      change.type = change.previous == nullptr ? ChangeType::kAdded : ChangeType::kModified;
      if (event.object != nullptr) {
        change.object = std::static_pointer_cast<const api::Object>(event.object);
      } else {
        Result<api::ObjectPtr> object = Decode(*event.value, event.revision);
        if (object.ok()) change.object = *std::move(object);
        if (!object.ok() && options_.on_unreadable) {
          options_.on_unreadable(event.key, object.error());
        }
      }
    }
    if (!unreadable_.empty() && (event.is_delete() || change.object != nullptr)) {
      unreadable_.erase(event.key);
    }
    // Before watchers are notified, because they may ask for the revision.
    if (reached != 0) reached_ = reached;
    if (change.object == nullptr) return;
    const bool appeared = change.type == ChangeType::kAdded;
    const Lifetime::Observer self = lifetime_.Observe();
    if (resource == definitions_) {
      // Before watchers are notified: a client that sees the definition can use its kinds.
      const api::ObjectPtr definition = change.object;
      const bool is_deleted = change.type == ChangeType::kDeleted;
      SeeDefinition(definition, is_deleted);
      if (!self.alive()) return;
    }
    resource->cache.Apply(key, std::move(change));
    if (appeared && self.alive() && !waiting_.empty()) WakeWaiting(event.key);
    return;
  }
  if (event.key.starts_with(guard_prefix_)) OnGuardChanged(event);
  if (reached != 0) reached_ = reached;
}

void Core::OnGuardChanged(const storage::WatchEvent& event) {
  if (event.is_delete()) {
    guards_.erase(event.key);
  } else {
    guards_[event.key] = event.revision;
  }
  if (event.value != nullptr && *event.value == *own_id_) return;
  const std::string_view name = std::string_view(event.key).substr(guard_prefix_.size());
  for (const auto& step : options_.admission) step->OnDecidedElsewhere(name);
}

void Core::WhenReached(storage::Revision revision, Waiter then) {
  if (revision <= reached_) return then(std::nullopt);
  if (store_failure_) return then(store_failure_);
  reached_waiters_.emplace(revision, std::move(then));
}

void Core::RunReached() {
  const Lifetime::Observer self = lifetime_.Observe();
  while (self.alive() && !reached_waiters_.empty() && reached_waiters_.begin()->first <= reached_) {
    const Waiter then = std::move(reached_waiters_.begin()->second);
    reached_waiters_.erase(reached_waiters_.begin());
    then(std::nullopt);
  }
}

void Core::WhenFresh(Waiter then) {
  if (!is_shared_) return then(std::nullopt);
  // A query in flight may have been sent before this call, so wait for the next one.
  fresh_waiters_.push_back(std::move(then));
  if (!asking_revision_) AskRevision();
}

void Core::AskRevision() {
  asking_revision_ = true;
  auto waiters = std::make_shared<std::vector<Waiter>>(std::move(fresh_waiters_));
  fresh_waiters_.clear();
  const auto run = [self = lifetime_.Observe(), waiters](const std::optional<Failure>& failure) {
    for (const Waiter& then : *waiters) {
      if (self.alive()) then(failure);
    }
  };
  options_.store.ReadRevision(lifetime_.Guard([this, run](Result<storage::Revision> newest) {
    asking_revision_ = false;
    if (!fresh_waiters_.empty()) AskRevision();
    if (!newest.ok()) return run(StoreUnavailable(newest.error()));
    WhenReached(*newest, run);
  }));
}

void Core::CommitObject(
    Resource& resource, const std::string& key, api::Draft* object, const api::ObjectPtr& before,
    const WriteTerms& terms,
    std::function<void(Result<storage::Revision>, api::ObjectPtr stored)> done) {
  // From here on, the work budget must not cut anything short.
  const WorkBudget unlimited(WorkBudget::kUnlimited);
  if (terms.dry_run) {
    if (object == nullptr) return done(before->resource_version(), before);
    if (before != nullptr) {
      (*object)["metadata"]["resourceVersion"] = std::to_string(before->resource_version());
    }
    return done(revision(), std::make_shared<const api::Object>(object->Freeze()));
  }
  if (options_.on_write) options_.on_write();
  const std::string_view operation = object == nullptr   ? "delete"
                                     : before == nullptr ? "create"
                                                         : "update";
  const std::string stored_key = resource.prefix + key;
  auto stored = std::make_shared<api::ObjectPtr>();
  storage::Transaction transaction;
  transaction.conditions.push_back(
      {stored_key, before == nullptr ? 0 : before->resource_version()});
  transaction.operations.push_back({stored_key, nullptr});
  if (object != nullptr) {
    // The object contains its own version, so that the stored bytes are the bytes served. If the
    // version is only known afterwards, the stored bytes have none.
    transaction.operations.back().time_to_live = resource.time_to_live;
    transaction.operations.back().encode = [this, object,
                                            made = stored.get()](storage::Revision number) {
      if (number != 0) {
        (*object)["metadata"]["resourceVersion"] = std::to_string(number);
      } else {
        (*object)["metadata"].Remove("resourceVersion");
      }
      *made = std::make_shared<const api::Object>(object->Freeze());
      return storage::EncodedValue{EncodeStored(options_.layout, **made), *made};
    };
  }
  if (!terms.fence.empty()) {
    if (std::optional<Error> refused = AddFence(terms.fence, stored_key, transaction)) {
      return done(std::move(*refused), nullptr);
    }
  }
  std::vector<std::string> guards;
  if (is_shared_) guards = AddGuards(resource, key, object, before, transaction);
  for (const auto& [record, known] : terms.decisions) {
    transaction.conditions.push_back({record, known});
    transaction.operations.push_back({record, own_id_});
    guards.push_back(record);
    busy_guards_.try_emplace(record);
  }
  if (!guards.empty()) {
    done = [this, self = lifetime_.Observe(), guards = std::move(guards), done = std::move(done)](
               Result<storage::Revision> result, api::ObjectPtr made) {
      // First: `done` may write again.
      if (self.alive()) ReleaseGuards(guards);
      done(std::move(result), std::move(made));
    };
  }
  options_.store.Commit(
      std::move(transaction),
      lifetime_.Guard([this, stored,
                       done = std::move(done)](Result<storage::TransactionResult> result) mutable {
        if (!result.ok()) return done(result.error(), nullptr);
        if (told_full_) {
          told_full_ = false;
          if (options_.on_store_full) options_.on_store_full(std::nullopt);
        }
        if (!result->succeeded) {
          auto lost = [done = std::move(done)](const std::optional<Failure>& failure) {
            done(failure ? Unavailable(failure->message)
                         : Error{ErrorCode::kConflict, "the object has been modified"},
                 nullptr);
          };
          if (is_shared_) return WhenFresh(std::move(lost));
          return WhenReached(result->revision, std::move(lost));
        }
        const storage::Revision revision = result->revision;
        if (*stored != nullptr && (*stored)->resource_version() != revision) {
          *stored = Numbered((*stored)->tree(), revision);
        }
        if (revision <= reached_) return done(revision, std::move(*stored));
        WhenReached(revision, [revision, stored,
                               done = std::move(done)](const std::optional<Failure>& failure) {
          if (failure) return done(Unavailable(failure->message), nullptr);
          done(revision, std::move(*stored));
        });
      }),
      lifetime_.Guard([this, &resource, operation, begun = options_.loop.clock().Monotonic()](
                          const Result<storage::Revision>& durable) {
        if (durable.ok()) return CountStoreCall(resource, operation, begun);
        if (durable.error().code == ErrorCode::kResourceExhausted) OnStalled(durable.error());
      }));
}

std::optional<Error> Core::AddFence(const std::string& fence, const std::string& stored_key,
                                    storage::Transaction& transaction) const {
  const std::size_t space = std::min(fence.find(' '), fence.size());
  const std::string lease_key = fence.substr(0, space);
  const Resource& leases = *resources_.find(ByName::Views("coordination.k8s.io", "leases"))->second;
  const std::string stored_lease = leases.prefix + lease_key;
  if (stored_lease == stored_key) return std::nullopt;
  const api::ObjectPtr lease = leases.cache.Find(lease_key);
  const std::string_view holder =
      lease == nullptr ? std::string_view() : (*lease)["spec"]["holderIdentity"].str();
  if (holder.empty() ||
      holder != std::string_view(fence).substr(std::min(space + 1, fence.size()))) {
    return Error{ErrorCode::kCancelled, StrCat("the sender no longer holds the lease ", lease_key)};
  }
  // On an embedded store nothing can happen in between.
  if (is_shared_) transaction.conditions.push_back({stored_lease, lease->resource_version()});
  return std::nullopt;
}

std::vector<std::string> Core::AddGuards(const Resource& resource, const std::string& key,
                                         const api::Draft* object, const api::ObjectPtr& before,
                                         storage::Transaction& transaction) {
  const api::KindSchema& kind = *resource.kind;
  const bool are_quotas = kind.group.empty() && kind.kind == "ResourceQuota";
  if (&resource != claims_ && !IsService(kind) && !are_quotas) return {};
  std::vector<std::string> added;
  if (are_quotas) {
    // What was decided about a quota is removed with it.
    const std::string record = StrCat(guard_prefix_, "quotas/", key);
    const auto known = guards_.find(record);
    if (object == nullptr && known != guards_.end()) {
      transaction.conditions.push_back({record, known->second});
      transaction.operations.push_back({record, nullptr});
    }
    return added;
  }
  const api::TreePtr tree = object == nullptr ? nullptr : object->Freeze();
  const api::Value old = before == nullptr ? api::Value() : before->root();
  const api::Value after = tree == nullptr ? api::Value() : tree->root();
  const auto holder = std::make_shared<const std::string>(resource.prefix + key);
  for (const DeviceArbiter::Guard& guard :
       &resource == claims_ ? arbiter_->GuardsOf(old, after) : GuardsOfService(old, after)) {
    const std::string record = guard_prefix_ + guard.name;
    const auto known = guards_.find(record);
    if (!guard.stays && known == guards_.end()) continue;
    transaction.conditions.push_back({record, known == guards_.end() ? 0 : known->second});
    transaction.operations.push_back({record, guard.stays ? holder : nullptr});
    added.push_back(record);
    busy_guards_.try_emplace(record);
  }
  return added;
}

std::optional<std::string> Core::FindBusyGuard(const Resource& resource, api::Value before,
                                               api::Value after) {
  if (!is_shared_ || &resource != claims_ || busy_guards_.empty()) return std::nullopt;
  for (const DeviceArbiter::Guard& guard : arbiter_->GuardsOf(before, after)) {
    std::string record = guard_prefix_ + guard.name;
    if (busy_guards_.contains(record)) return record;
  }
  return std::nullopt;
}

void Core::ReleaseGuards(const std::vector<std::string>& keys) {
  for (const std::string& key : keys) {
    const auto busy = busy_guards_.find(key);
    if (busy == busy_guards_.end()) continue;
    std::deque<std::function<void()>> waiting = std::move(busy->second);
    busy_guards_.erase(busy);
    if (!waiting.empty()) WakeNext(key, std::move(waiting));
  }
}

void Core::WakeNext(const std::string& key, std::deque<std::function<void()>> waiting) {
  options_.loop.Post(lifetime_.Guard([this, key, waiting = std::move(waiting)]() mutable {
    const std::function<void()> first = std::move(waiting.front());
    waiting.pop_front();
    const Lifetime::Observer self = lifetime_.Observe();
    first();
    if (!self.alive() || waiting.empty()) return;
    const auto busy = busy_guards_.find(key);
    if (busy == busy_guards_.end()) return WakeNext(key, std::move(waiting));
    std::ranges::move(waiting, std::back_inserter(busy->second));
  }));
}

void Core::CountStoreCall(const Resource& resource, std::string_view operation,
                          MonotonicTime begun) {
  if (!options_.on_store_call) return;
  options_.on_store_call(*resource.kind, operation, options_.loop.clock().Monotonic() - begun);
}

void Core::OnDurable(storage::Revision revision) {
  if (revision <= durable_seen_) return;
  const Lifetime::Observer self = lifetime_.Observe();
  durable_seen_ = revision;
  stalled_.reset();
  for (auto& [name, resource] : resources_) {
    resource->cache.AdvanceDurable(revision);
    if (!self.alive()) return;
  }
  while (self.alive() && !durable_waiters_.empty() &&
         durable_waiters_.begin()->first <= durable_seen_) {
    const Waiter done = std::move(durable_waiters_.begin()->second);
    durable_waiters_.erase(durable_waiters_.begin());
    done(std::nullopt);
  }
}

void Core::OnWatchClosed(const Error& why) {
  if (why.code == ErrorCode::kExpired) return Reload();
  // Stopping is not a failure: by then everything is durable and has been delivered.
  if (const std::optional<Error> failure = options_.store.failure()) OnStoreFailed(*failure);
}

void Core::Reload() {
  options_.store.Range(
      {.prefix = RootPrefix(options_.layout)},
      lifetime_.Guard([this](Result<storage::RangeResult> range) {
        if (!range.ok()) {
          // The store is not connected. Until it is, it reports that to every caller.
          reload_timer_ = options_.loop.RunAfter(kReloadInterval, [this] { Reload(); });
          return;
        }
        Contents contents = ReadContents(*range);
        reached_ = range->revision;
        Follow();
        for (auto& [name, resource] : resources_) {
          resource->cache.Replace(std::move(contents.objects[resource.get()]), reached_);
        }
        const Error why{ErrorCode::kExpired, "changes were compacted; list again"};
        const Lifetime::Observer self = lifetime_.Observe();
        for (auto& [name, resource] : resources_) {
          resource->cache.CloseAll(why);
          if (!self.alive()) return;
        }
        RunReached();
        if (self.alive()) OnDurable(std::min(range->revision, options_.store.durable_revision()));
      }));
}

void Core::OnStoreFailed(const Error& why) {
  if (store_failure_) return;
  const Lifetime::Observer self = lifetime_.Observe();
  store_failure_ = api::StatusInternalError(StrCat("the store failed: ", why.message));
  if (options_.on_store_failed) options_.on_store_failed(why);
  for (auto* waiting : {&reached_waiters_, &durable_waiters_}) {
    const std::multimap<storage::Revision, Waiter> waiters = std::move(*waiting);
    waiting->clear();
    for (const auto& [revision, done] : waiters) {
      if (self.alive()) done(store_failure_);
    }
    if (!self.alive()) return;
  }
  for (auto& [name, resource] : resources_) {
    if (!self.alive()) return;
    resource->cache.CloseDurable(why);
  }
}

void Core::WhenDurable(storage::Revision revision, Waiter done) {
  if (revision <= durable_seen_) return done(std::nullopt);
  if (store_failure_) return done(store_failure_);
  if (stalled_) return done(stalled_);
  durable_waiters_.emplace(revision, std::move(done));
}

}  // namespace drakkar::apiserver
