#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "apiserver/registry/strategy.h"
#include "apiserver/request/request.h"
#include "apiserver/rest/answerer.h"
#include "apiserver/watch/watch_cache.h"
#include "base/exec/event_loop.h"
#include "base/exec/lifetime.h"
#include "storage/store.h"

namespace drakkar {
class FeatureGates;
}

namespace drakkar::apiserver {

// A step between the request and the store that does one of two things: Admit, before validation,
// may change the object or refuse the request; Check, after validation, may refuse it or add
// warnings. `before` is absent on create; `object` is absent on delete. Listed in order in
// admission/admission.cc.
class AdmissionStep {
 public:
  virtual ~AdmissionStep() = default;
  virtual std::string_view name() const = 0;
  // False: the step would let the request pass whatever it says. Then it is neither asked nor
  // measured.
  virtual bool Concerns(const Request&) const { return true; }
  virtual bool comes_after_validation() const { return false; }  // true: Check, false: Admit
  virtual std::optional<Failure> Admit(const Request&, api::Draft* /*object*/,
                                       api::Value /*before*/, const StrategyContext&) {
    return std::nullopt;
  }
  virtual std::optional<Failure> Check(const Request&, api::Value /*object*/, api::Value /*before*/,
                                       const StrategyContext&,
                                       std::vector<std::string>& /*warnings*/) {
    return std::nullopt;
  }
  // Asked when it refused a creation: an object that is about to appear and would change its mind.
  // The request waits for it, for Core::kMaxWait at most.
  struct Awaited {
    std::string_view group;
    std::string_view plural;
    std::string key;
  };
  virtual std::optional<Awaited> Awaits(const Request&, api::Draft& /*object*/,
                                        const StrategyContext&) const {
    return std::nullopt;
  }
};

// Says whether a user may do something. RBAC and the node authorizer implement it.
class Authorizer {
 public:
  virtual ~Authorizer() = default;
  struct Attributes {
    const UserInfo& user;
    std::string_view verb;
    std::string_view group;
    std::string_view resource;
    std::string_view subresource;
    std::string_view namespace_;
    std::string_view name;
    std::string_view field_selector;
  };
  virtual Decision Check(const Attributes& attributes) = 0;
};

// The verbs, once for all kinds, over the store and the watch caches. Transport-independent:
// HTTP and the direct client both end here.
//
// The caches follow the store's watch, whoever writes: a write of ours is answered when they have
// come to its revision (with an embedded engine, inside the commit), and one that lost a race is
// tried again with what they show then. On a store that others write to as well, every request is
// handled at a revision no older than the request.
//
// Loop-bound. `done` may run inside Handle. A response built on `response.revision` may be used
// within the process at once and must not leave it before WhenDurable says so.
class Core {
 public:
  // How long a creation waits for what an admission step awaits, and how many may wait; beyond,
  // they are refused at once.
  static constexpr Duration kMaxWait = std::chrono::milliseconds(1500);
  static constexpr std::size_t kMaxWaiting = 1'000;

  struct Options {
    EventLoop& loop;
    Random& random;
    storage::Store& store;
    const FeatureGates& gates;
    Authorizer* authorizer = nullptr;  // null: everything is allowed (tests)
    std::vector<std::unique_ptr<AdmissionStep>> admission;
    Answerer* answerer = nullptr;  // null: nothing is answered that is not stored
    // Told how long the store took: "create", "update" and "delete" until durable, "list" of an
    // older revision. May be null.
    std::function<void(const api::KindSchema& kind, std::string_view operation, Duration took)>
        on_store_call;
    // Told of every write as it begins. May be null.
    std::function<void()> on_write = {};
    // Told once, when the store failed: nothing is written or read anew until a restart. May be
    // null.
    std::function<void(const Error& why)> on_store_failed = {};
    // Told of an object that another writer stored and nobody can read: its last readable state
    // stays in the cache. May be null.
    std::function<void(std::string_view key, const Error& why)> on_unreadable = {};
  };
  explicit Core(Options options);
  ~Core();
  Core(const Core&) = delete;
  Core& operator=(const Core&) = delete;

  // Reads the store into the caches, then follows it; everything else only after `ready` got no
  // error.
  void Start(std::function<void(Result<void>)> ready);

  void Handle(Request request, std::function<void(Response)> done);
  // The state a watch begins with: whoever may watch gets it, without the right to list.
  void ListForWatch(Request watch, std::function<void(Response)> done);

  struct WatchStart {
    std::optional<Failure> failure;
    std::unique_ptr<WatchCache::Watcher> watcher;
  };
  // Starts delivering to `on_changes` from the request's resourceVersion; the first call may come
  // before StartWatch returns. Bookmarks are the frontend's business. `on_closed` is told when
  // nothing can follow: the store failed, or (kExpired) the caches lost its track and were read
  // anew. May be null. On a shared store ask WhenFresh first: the version may be another server's.
  WatchStart StartWatch(const Request& request, storage::Mark mark,
                        std::function<void(const std::vector<Change>&)> on_changes,
                        std::function<void(const Error& why)> on_closed = {});

  // What StartWatch would start, for whoever feeds many watchers from one (WatchCache::StartFeed).
  struct WatchPlan {
    WatchCache* cache = nullptr;
    CacheWatchOptions options;                 // `after` is a revision, never 0 for "now"
    const api::KindSchema* version = nullptr;  // what objects are converted to; null: as stored
  };
  std::optional<Failure> PlanWatch(const Request& request, storage::Mark mark, WatchPlan& plan);

  bool IsDurable(storage::Revision revision) const { return revision <= durable_seen_; }
  // Runs `done` once `revision` cannot be lost (at once if so already), or with the reason why
  // nobody will ever know.
  void WhenDurable(storage::Revision revision, std::function<void(std::optional<Failure>)> done);

  // Runs `then` when the caches have everything that anybody was told before the call: at once if
  // nobody else writes to the store. With a failure if that cannot be known.
  void WhenFresh(std::function<void(std::optional<Failure>)> then);
  // Whether others write to the store, so that only WhenFresh makes a read fresh.
  bool is_shared() const { return is_shared_; }

  // The revision the caches show, for lists and bookmarks, and the part of it that cannot be lost.
  storage::Revision revision() const { return reached_; }
  storage::Revision durable_revision() const { return durable_seen_; }
  EventLoop& loop() { return options_.loop; }
  const FeatureGates& gates() const { return options_.gates; }

  // The current object, for admission, authorization and the node's proxies; null if none.
  api::ObjectPtr Find(std::string_view group, std::string_view plural,
                      const std::string& key) const;
  const WatchCache* FindCache(std::string_view group, std::string_view plural) const;
  // The admission steps, in the order they run.
  std::vector<std::string_view> AdmissionNames() const;
  // Every resource that is stored, for metrics.
  void ForEachCache(
      const std::function<void(const api::KindSchema&, const WatchCache&)>& each) const;

  Decision Authorize(const Authorizer::Attributes& attributes);
  // The 403 of a request its user may not make.
  std::optional<Failure> CheckAuthorized(const Request& request);

 private:
  struct Resource;

  Resource* FindResource(const api::KindSchema& kind);
  StrategyContext ContextFor(const Request& request);
  // The admission steps before and after validation.
  std::optional<Failure> Admit(const Request& request, api::Draft* object, api::Value before);
  std::optional<Failure> CheckAdmission(const Request& request, api::Value object,
                                        api::Value before, std::vector<std::string>& warnings);

  Response Get(Resource& resource, const Request& request);
  void List(Resource& resource, Request&& request, std::function<void(Response)> done);
  // Handle and ListForWatch, once the caches are fresh.
  void HandleFresh(Request request, std::function<void(Response)> done);
  void ListFresh(Request watch, std::function<void(Response)> done);
  void Create(Resource& resource, Request&& request, std::function<void(Response)> done,
              bool may_wait = true, int attempt = 0);
  // The key in the store of what a refused creation may wait for, or nothing.
  std::optional<std::string> AwaitedBy(const Request& request, api::Draft& object,
                                       const StrategyContext& context);
  void CreateLater(Resource& resource, Request&& request, std::string awaited,
                   std::function<void(Response)> done);
  void WakeWaiting(const std::string& appeared);
  void CreateByApply(Resource& resource, Request&& request, std::function<void(Response)> done);
  void Update(Resource& resource, Request&& request, std::function<void(Response)> done,
              int attempt = 0);
  void Delete(Resource& resource, Request&& request, std::function<void(Response)> done,
              int attempt = 0);
  void DeleteCollection(Resource& resource, Request&& request, std::function<void(Response)> done);
  void Bind(Resource& resource, Request&& request, std::function<void(Response)> done,
            int attempt = 0);
  // POST bindings: the older way to say pods/NAME/binding.
  void BindNamed(Request&& request, std::function<void(Response)> done);
  void Rescale(Resource& resource, Request&& request, std::function<void(Response)> done);
  void Evict(Resource& resource, Request&& request, std::function<void(Response)> done);

  // What is to be said about an object that is accepted.
  static void AddWarnings(const Resource& resource, api::Value object, api::Value before,
                          const StrategyContext& context, std::vector<std::string>& warnings);
  // What a client sent in its version: with that version's defaults, then as it is stored.
  static api::Draft ToStored(const Resource& resource, const Request& request,
                             const api::TreePtr& asked, const StrategyContext& context);

  // Writes `object` with the version it gets (null: deletes) if the key is still at `before`, and
  // tells `done` when the caches show it. kConflict: the race was lost, and they show to whom. A
  // dry run keeps the version of now, or none.
  void CommitObject(Resource& resource, const std::string& key, api::Draft* object,
                    const api::ObjectPtr& before, bool dry_run,
                    std::function<void(Result<storage::Revision>, api::ObjectPtr stored)> done);

  // The store's watch.
  void Follow();
  void OnEvents(const std::vector<storage::WatchEvent>& events, storage::Revision up_to);
  // Brings one event into its cache; `reached` is what the caches show with it, 0: as before.
  void ApplyEvent(const storage::WatchEvent& event, storage::Revision reached);
  void OnDurable(storage::Revision revision);
  void OnWatchClosed(const Error& why);
  // The caches have lost track of the store: reads it anew and ends all watches.
  void Reload();
  void OnStoreFailed(const Error& why);
  // What is in the store, by resource.
  struct Contents;
  Result<Contents> ReadContents(const storage::RangeResult& range) const;
  Resource* FindResourceOfKey(std::string_view key) const;

  // Runs `then` once the caches have come to `revision`, or with the reason why they never will.
  void WhenReached(storage::Revision revision, std::function<void(std::optional<Failure>)> then);
  void RunReached();
  void AskRevision();

  static std::function<void(Response)> InVersionOf(const api::KindSchema* kind,
                                                   std::function<void(Response)> done);
  void CountStoreCall(const Resource& resource, std::string_view operation, MonotonicTime begun);

  Options options_;
  // By group and plural; asked with views.
  struct ByName {
    using is_transparent = void;
    using Views = std::pair<std::string_view, std::string_view>;
    bool operator()(const Views& a, const Views& b) const { return a < b; }
  };
  std::map<std::pair<std::string, std::string>, std::unique_ptr<Resource>, ByName> resources_;
  std::unordered_map<const api::KindSchema*, Resource*> by_kind_;  // all versions
  std::unordered_map<std::string_view, Resource*> by_prefix_;      // of their keys
  const bool is_shared_;
  // Requests that wait, each at most once in one of these.
  using Waiter = std::function<void(std::optional<Failure>)>;
  std::multimap<storage::Revision, Waiter> reached_waiters_;
  std::multimap<storage::Revision, Waiter> durable_waiters_;
  std::vector<Waiter> fresh_waiters_;  // for the next question to the store
  bool asking_revision_ = false;
  struct Waiting {
    std::string awaited;
    std::function<void()> go_on;
    TimerHandle timeout;
  };
  std::map<std::uint64_t, Waiting> waiting_;  // in the order they came
  std::uint64_t next_waiting_ = 1;
  std::optional<Failure> store_failure_;  // what nothing can be durable for any more
  storage::Revision reached_ = 0;
  storage::Revision durable_seen_ = 0;
  std::unique_ptr<storage::Watch> watch_;
  TimerHandle reload_timer_;
  Lifetime lifetime_;
};

}  // namespace drakkar::apiserver
