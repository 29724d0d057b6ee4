#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "apiserver/registry/strategy.h"
#include "apiserver/request/request.h"
#include "apiserver/rest/answerer.h"
#include "apiserver/rest/device_arbiter.h"
#include "apiserver/watch/store_layout.h"
#include "apiserver/watch/watch_cache.h"
#include "base/exec/event_loop.h"
#include "base/exec/lifetime.h"
#include "storage/store.h"

namespace drakkar {
class FeatureGates;
}
namespace drakkar::api {
class DraftView;
}

namespace drakkar::apiserver {

class CustomDefinition;
class CustomKindsBoard;
class CustomStrategy;
class RemoteAdmission;
class RemoteConversion;
struct RemoteAnswer;
struct RemoteQuestion;

// An admission step. Admit runs before validation and may change the object or reject the request;
// Check runs after validation and may reject the request or add warnings. `before` is absent on
// create, `object` on delete. admission/admission.cc lists the steps in order.
class AdmissionStep {
 public:
  virtual ~AdmissionStep() = default;
  virtual std::string_view name() const = 0;
  // False if the step would accept the request unseen. Then it is neither run nor measured.
  virtual bool Concerns(const Request&) const { return true; }
  virtual bool comes_after_validation() const { return false; }  // true: Check, false: Admit
  // Check comes after the validating webhooks, immediately before the object is stored.
  virtual bool comes_last() const { return false; }
  virtual std::optional<Failure> Admit(const Request&, api::Draft* /*object*/,
                                       api::Value /*before*/, const StrategyContext&) {
    return std::nullopt;
  }
  virtual std::optional<Failure> Check(const Request&, api::Value /*object*/, api::Value /*before*/,
                                       const StrategyContext&,
                                       std::vector<std::string>& /*warnings*/) {
    return std::nullopt;
  }
  // For a store that several servers share: names of what Check decides about beyond the object,
  // such as a quota. Only one write at a time decides about one, whatever server it comes to.
  virtual std::vector<std::string> DecidesAbout(const Request&, api::Value /*object*/,
                                                api::Value /*before*/,
                                                const StrategyContext&) const {
    return {};
  }
  // Another server has decided about it.
  virtual void OnDecidedElsewhere(std::string_view /*name*/) {}
  // Whether the step also sees what is done to objects by other means than changing them: bindings,
  // evictions, requests for tokens and connections. Those come as a body of their own kind.
  virtual bool SeesActions() const { return false; }
  struct Action {
    const api::KindSchema& body;
    std::string_view operation;  // "CREATE" or "CONNECT"
  };
  // The body is the request's object.
  virtual std::optional<Failure> CheckAction(const Request&, const Action&, const StrategyContext&,
                                             std::vector<std::string>& /*warnings*/) {
    return std::nullopt;
  }
  // Called when the step rejected a create: names an object that is about to appear and would
  // change the decision. The request waits for it, at most for Core::kMaxWait.
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

// Decides whether a user may do something. Implemented by RBAC and the node authorizer.
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

// Implements the verbs once for all kinds, on top of the store and the watch caches. Independent of
// the transport: HTTP and the direct client both end here.
//
// The caches follow the store's watch, whoever writes. A write of ours is answered when the caches
// have reached its revision (with an embedded engine, inside the commit). A write that lost a race
// is retried with what the caches then show. On a shared store every request is handled at a
// revision that is no older than the request.
//
// Loop-bound. `done` may run inside Handle. A response may be used within the process at once; it
// must not leave the process before WhenDurable(response.revision) has run.
class Core {
 public:
  // How many CustomResourceDefinitions one process can serve, including deleted ones, and how much
  // memory former schemas of changed ones may take. Beyond that they are rejected with 429.
  static constexpr std::size_t kMaxDefinitions = 5'000;
  static constexpr std::size_t kMaxRetiredBytes = std::size_t{128} << 20;
  // How long a create waits for what an admission step awaits, and how many may wait. Beyond that
  // they are rejected at once.
  static constexpr Duration kMaxWait = std::chrono::milliseconds(1500);
  static constexpr std::size_t kMaxWaiting = 1'000;
  // How many requests may wait for webhooks. Beyond that they are rejected with 429.
  static constexpr std::size_t kMaxSuspended = 2'000;
  // Work for one turn of the loop, about a millisecond; the rest waits behind other requests.
  static constexpr std::size_t kMaxDecodedBytesPerTurn = std::size_t{256} << 10;
  static constexpr std::size_t kMaxDeletedPerTurn = 100;
  // The work of one request in steps of about a nanosecond; beyond it the request is rejected with
  // 413. No other request waits longer for it.
  static constexpr std::int64_t kMaxSteps = 20'000'000;

  // Reasons of Kubernetes' Status for a stored object that cannot be read, and of ours (507) for a
  // disk that is full.
  static constexpr std::string_view kStoreReadError = "StoreReadError";
  static constexpr std::string_view kInsufficientStorage = "InsufficientStorage";

  struct Options {
    EventLoop& loop;
    Random& random;
    storage::Store& store;
    StoreLayout layout = {};
    // How long an event lives after its last change, in a store that expires keys by itself; 0: for
    // ever.
    Duration event_ttl = Duration(0);
    const FeatureGates& gates;
    Authorizer* authorizer = nullptr;  // null allows everything (tests)
    std::vector<std::unique_ptr<AdmissionStep>> admission;
    RemoteAdmission* webhooks = nullptr;     // null: none are called
    RemoteConversion* conversion = nullptr;  // null: objects that need a webhook cannot be read
    Answerer* answerer = nullptr;            // null: only stored kinds are answered
    // Called with the time the store took: for "create", "update" and "delete" until durable, for
    // "list" of an older revision. May be null.
    std::function<void(const api::KindSchema& kind, std::string_view operation, Duration took)>
        on_store_call;
    // Called when a write starts. May be null.
    std::function<void()> on_write = {};
    // Called once if the store fails: nothing can be written or read from it until a restart. May
    // be null.
    std::function<void(const Error& why)> on_store_failed = {};
    // Called when a write is refused because the disk is full, and when the first one is accepted
    // again (without an error). May be null.
    std::function<void(const std::optional<Error>& why)> on_store_full = {};
    // Called for a stored object that is damaged or cannot be decoded. May be null.
    std::function<void(std::string_view key, const Error& why)> on_unreadable = {};
  };
  explicit Core(Options options);
  ~Core();
  Core(const Core&) = delete;
  Core& operator=(const Core&) = delete;

  // Loads the store into the caches, then follows it. Everything else only after `ready` ran
  // without an error.
  void Start(std::function<void(Result<void>)> ready);

  void Handle(Request request, std::function<void(Response)> done);
  // Stores every allocation, as kube-apiserver does. For tests of what a scheduler does then.
  void StopArbitration() { arbitrates_ = false; }
  // Removes an object that is still at `revision`, as the end of its lease in etcd would: whatever
  // its finalizers, and without admission. `done` gets false if it was not removed.
  void Expire(const api::KindSchema& kind, const std::string& key, storage::Revision revision,
              std::function<void(bool removed)> done);
  // The initial state of a watch. It needs the permission to watch, not to list.
  void ListForWatch(Request watch, std::function<void(Response)> done);

  struct WatchStart {
    std::optional<Failure> failure;
    std::unique_ptr<WatchCache::Watcher> watcher;
  };
  // Delivers changes to `on_changes` from the request's resourceVersion on; the first call may come
  // before StartWatch returns. The frontend adds bookmarks. `on_closed` is called when nothing can
  // follow: the store failed, or the caches missed changes and were reloaded (kExpired). May be
  // null. On a shared store call WhenFresh first: the version may come from another server.
  WatchStart StartWatch(const Request& request, storage::Mark mark,
                        std::function<void(const std::vector<Change>&)> on_changes,
                        std::function<void(const Error& why)> on_closed = {});

  // What StartWatch would start, for a caller that feeds many watchers from one
  // (WatchCache::StartFeed).
  struct WatchPlan {
    WatchCache* cache = nullptr;
    CacheWatchOptions options;  // `after` is a revision, never 0 for "now"
    const api::KindSchema* version =
        nullptr;  // the version objects are converted to; null: as stored
  };
  std::optional<Failure> PlanWatch(const Request& request, storage::Mark mark, WatchPlan& plan);

  bool IsDurable(storage::Revision revision) const { return revision <= durable_seen_; }
  // Stored objects that cannot be read, by their key in the store. Requests for them fail with the
  // reason, and lists leave them out with a warning. One that another server wrote keeps its last
  // readable state.
  struct Unreadable {
    storage::Revision revision = 0;
    std::string reason;
  };
  const std::map<std::string, Unreadable>& unreadable() const { return unreadable_; }
  // Creates that wait for an object of an admission step.
  std::size_t waiting_count() const { return waiting_.size(); }
  // Requests that wait for webhooks.
  std::size_t suspended_count() const { return suspended_; }
  // Runs `done` once `revision` is durable, at once if it already is, or with the reason why it
  // will never be known.
  void WhenDurable(storage::Revision revision, std::function<void(std::optional<Failure>)> done);

  // Runs `then` when the caches show everything that was acknowledged to anyone before the call: at
  // once unless the store is shared. With a failure if that cannot be established.
  void WhenFresh(std::function<void(std::optional<Failure>)> then);
  // Whether others write to the store, so that a fresh read needs WhenFresh.
  bool is_shared() const { return is_shared_; }

  // The revision that the caches show, for lists and bookmarks, and the durable part of it.
  storage::Revision revision() const { return reached_; }
  storage::Revision durable_revision() const { return durable_seen_; }
  EventLoop& loop() { return options_.loop; }
  Random& random() const { return options_.random; }
  const FeatureGates& gates() const { return options_.gates; }

  // The current object, for admission, authorization and the node proxies; null if there is none.
  api::ObjectPtr Find(std::string_view group, std::string_view plural,
                      const std::string& key) const;
  const WatchCache* FindCache(std::string_view group, std::string_view plural) const;
  // The admission steps, in the order they run.
  std::vector<std::string_view> AdmissionNames() const;
  // Every stored resource, for metrics.
  void ForEachCache(
      const std::function<void(const api::KindSchema&, const WatchCache&)>& each) const;

  // The kinds that CustomResourceDefinitions add, for all threads.
  const CustomKindsBoard& custom_kinds() const;
  // Our own kinds and custom ones, by apiVersion and kind; null if there is none.
  const api::KindSchema* FindKind(std::string_view api_version, std::string_view kind) const;

  // Converts an object of a watch, if its kind has a webhook for that; ConvertObjectTo has it then.
  void ConvertForWatch(const api::ObjectPtr& object, const api::KindSchema& to,
                       std::function<void(std::optional<Failure>)> done);
  // Asks webhooks about a connection to a pod, node or service. `options` describes it
  // (PodExecOptions). `done` gets the reason if one rejects it.
  void AdmitConnection(Request request, const api::KindSchema& kind, api::TreePtr options,
                       std::function<void(std::optional<Failure>)> done);

  Decision Authorize(const Authorizer::Attributes& attributes);
  // The 403 for a request that its user may not make.
  std::optional<Failure> CheckAuthorized(const Request& request);

 private:
  struct Resource;
  struct Custom;
  struct Write;
  struct Action;

  Resource* FindResource(const api::KindSchema& kind);
  StrategyContext ContextFor(const Request& request);
  // What a write depends on besides its object.
  struct WriteTerms {
    bool dry_run = false;
    std::string fence;
    // What the admission steps decided about: each with the revision it must still have.
    std::vector<std::pair<std::string, storage::Revision>> decisions;
  };
  // The admission steps before and after validation: core_admission.cc.
  std::optional<Failure> Admit(Write& write);
  std::optional<Failure> RunAdmitSteps(const Request& request, api::Draft* object,
                                       api::Value before, const StrategyContext& context);
  enum class Steps { kBeforeWebhooks, kLast };
  std::optional<Failure> CheckAdmission(Steps steps, const Request& request, api::Value object,
                                        api::Value before, std::vector<std::string>& warnings);
  // Whether the write has to wait for another one that decides about the same as its admission
  // steps; then it was queued, to be built again. Otherwise notes what it decides about.
  bool WaitsForDecision(Write& write, api::Value candidate);
  // The phases of a write. Each calls the next, at once or when webhooks have answered.
  void MutateWrite(Write& write);
  void CheckWrite(Write& write);
  void StoreWrite(Write& write);
  void CheckCreated(Write& write);
  void CheckUpdated(Write& write);
  void CheckDeleted(Write& write);
  void StoreCreated(Write& write);
  void StoreUpdated(Write& write, const api::DraftView& view);
  void StoreDeleted(Write& write);
  // Kinds that a webhook converts: core_conversion.cc. ConvertRemotely keeps the results with the
  // objects, where ConvertObjectTo finds them.
  void ConvertRemotely(const api::KindSchema& to, std::vector<api::ObjectPtr> objects,
                       std::function<void(std::optional<Failure>)> done);
  std::function<void(Response)> InWebhookVersion(const api::KindSchema* kind,
                                                 std::function<void(Response)> done);
  // Sets `current`. True if it has to be converted first; `write` has then been moved away.
  bool NeedsConversion(Write& write);
  void CommitConverted(Write& write, const std::string& key, bool removes, const WriteTerms& terms,
                       std::function<void(Result<storage::Revision>, api::ObjectPtr stored)> done);
  void GetScale(const Request& request, Response response,
                const std::function<void(Response)>& done);
  // Brings the object into shape after policies or webhooks have changed it.
  std::optional<Failure> Settle(Write& write);
  std::optional<Failure> PrepareCreated(Write& write, const StrategyContext& context);
  std::optional<Failure> PrepareUpdated(Write& write, const StrategyContext& context);
  // Whether the namespace takes new objects.
  std::optional<Failure> CheckHome(const Resource& resource, const Request& request,
                                   std::string_view name) const;
  std::optional<Failure> AcceptFrom(const Write& write, const api::TreePtr& changed,
                                    const api::KindSchema& in, api::TreePtr& accepted);
  // Webhooks. Once a write is suspended, or rejected because too many are, it has been moved away.
  bool NeedsWebhooks(bool mutate, const Request& request, api::Value object, api::Value before);
  bool SuspendForMutation(Write& write);
  void SuspendForValidation(Write& write);
  RemoteQuestion QuestionFor(Write& write, bool mutate);
  void AskToMutate(const std::shared_ptr<Write>& write);
  void OnMutated(const std::shared_ptr<Write>& write, RemoteAnswer answer);
  // Whether another request may wait; otherwise fails it.
  bool MaySuspend(const std::function<void(Response)>& done);
  // Asks policies and webhooks about a body that is not an object of the request's kind (Binding,
  // Eviction), and calls `then` with the request they have admitted. Policies see a scale as the
  // update of its object.
  void AdmitAction(Request&& request, const api::KindSchema& body, std::string_view operation,
                   std::function<void(Response)> done,
                   std::function<void(Request&&, std::function<void(Response)>)> then,
                   api::ObjectPtr before = nullptr);
  // The steps that see actions and are concerned with this one.
  std::optional<Failure> CheckAction(const Request& request, const AdmissionStep::Action& action,
                                     std::vector<std::string>& warnings);
  bool HasActionStep(const Request& request) const;
  // Whether there are webhooks for the kind.
  bool IsConcerned(const api::KindSchema& kind) const;

  Response Get(Resource& resource, const Request& request);
  void List(Resource& resource, Request&& request, std::function<void(Response)> done);
  struct StoredList;
  void DecodeList(const std::shared_ptr<StoredList>& list);
  // Handle and ListForWatch, after WhenFresh.
  void HandleFresh(Request request, std::function<void(Response)> done);
  void ListFresh(Request watch, std::function<void(Response)> done);
  void Create(Resource& resource, Request&& request, std::function<void(Response)> done,
              bool may_wait = true, int attempt = 0);
  // The key in the store that a rejected create may wait for, or nothing.
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
  struct CollectionDeletion;
  void DeleteNext(const std::shared_ptr<CollectionDeletion>& deletion);
  void Bind(Resource& resource, Request&& request, std::function<void(Response)> done);
  void BindAdmitted(Resource& resource, Request&& request, Response response,
                    std::function<void(Response)> done, int attempt = 0);
  // POST serviceaccounts/NAME/token, with webhooks.
  void IssueToken(Request&& request, std::function<void(Response)> done);
  // POST bindings: the older form of pods/NAME/binding.
  void BindNamed(Request&& request, std::function<void(Response)> done);
  void Rescale(Resource& resource, Request&& request, std::function<void(Response)> done);
  void Evict(Resource& resource, Request&& request, std::function<void(Response)> done);
  void EvictAdmitted(Resource& resource, Request&& request, std::function<void(Response)> done);
  void DeleteEvicted(Resource& resource, const api::ObjectPtr& pod, Request&& request,
                     std::function<void(Response)> done);

  // Warnings about an object that is accepted.
  static void AddWarnings(const Resource& resource, api::Value object, api::Value before,
                          const StrategyContext& context, std::vector<std::string>& warnings);
  // Applies the defaults of the client's version to an object, then converts it to the storage
  // version.
  static api::Draft ToStored(const Resource& resource, const Request& request,
                             const api::TreePtr& asked, const StrategyContext& context);

  // Writes `object` with its new version (null deletes) if the key is still at `before`, and calls
  // `done` when the caches show it. kConflict: the race was lost, and the caches show the winner. A
  // dry run keeps the current version, or none. kCancelled: the fence does not hold.
  static WriteTerms TermsOf(const Request& request) { return {request.dry_run, request.fence}; }
  void CommitObject(Resource& resource, const std::string& key, api::Draft* object,
                    const api::ObjectPtr& before, const WriteTerms& terms,
                    std::function<void(Result<storage::Revision>, api::ObjectPtr stored)> done);

  // Why a write with this fence must not happen. Adds to the transaction that nobody else gets the
  // Lease before it. The Lease itself is not fenced.
  std::optional<Error> AddFence(const std::string& fence, const std::string& stored_key,
                                storage::Transaction& transaction) const;
  // Adds to the transaction what keeps other servers from deciding about the same devices at the
  // same time (DeviceArbiter::Guard). Only on a shared store. Returns the keys of what it added.
  std::vector<std::string> AddGuards(const Resource& resource, const std::string& key,
                                     const api::Draft* object, const api::ObjectPtr& before,
                                     storage::Transaction& transaction);
  // A key of those that a write of ours in flight has added; this change has to wait for it.
  std::optional<std::string> FindBusyGuard(const Resource& resource, api::Value before,
                                           api::Value after);
  void ReleaseGuards(const std::vector<std::string>& keys);
  // Runs the first of those that wait for a guard; the others wait for it, if it takes the guard.
  void WakeNext(const std::string& key, std::deque<std::function<void()>> waiting);
  void OnGuardChanged(const storage::WatchEvent& event);
  // CustomResourceDefinitions: core_custom.cc.
  void SeeDefinition(const api::ObjectPtr& object, bool is_deleted);
  // Accepts the definitions of a group whose names nobody else has any more.
  void ReviewNames(const std::string& group);
  void ForgetDefinitionsExcept(const std::set<std::string>& present);
  void AddCustomResource(Custom& custom);
  void PublishCustomKinds();
  std::optional<Failure> CheckDefinitionRoom(const Request& request) const;
  static std::optional<Failure> CheckCustomRequest(const Resource& resource,
                                                   const Request& request);
  // Deletes the objects of a definition that is being deleted, then lets it go.
  void CleanUpLater(const std::string& name);
  void CleanUp(const std::string& name);

  // The store's watch.
  void Follow();
  void OnEvents(const std::vector<storage::WatchEvent>& events, storage::Revision up_to);
  // Applies one event to its cache; `reached` is the revision that the caches show with it, 0 if
  // unchanged.
  void ApplyEvent(const storage::WatchEvent& event, storage::Revision reached);
  void OnDurable(storage::Revision revision);
  void OnWatchClosed(const Error& why);
  // The caches missed changes: reloads them from the store and ends all watches.
  void Reload();
  void OnStoreFailed(const Error& why);
  // The contents of the store, by resource.
  struct Contents;
  Contents ReadContents(const storage::RangeResult& range);
  Result<api::ObjectPtr> Decode(std::string_view bytes, storage::Revision revision) const;
  void SetUnreadable(std::string key, storage::Revision revision, const Error& why);
  // The answer to a request for an object that cannot be read.
  std::optional<Failure> FindUnreadable(const Resource& resource, const std::string& key) const;
  void WarnOfUnreadable(const Resource& resource, const Request& request,
                        std::vector<std::string>& warnings) const;
  void DeleteUnreadable(Resource& resource, const Request& request,
                        std::function<void(Response)> done);
  // The answer to a write that the store refused.
  Failure WriteFailure(const Error& error);
  // What has been applied does not become durable for now.
  void OnStalled(const Error& why);
  Resource* FindResourceOfKey(std::string_view key) const;

  // Runs `then` once the caches have reached `revision`, or with the reason why they never will.
  void WhenReached(storage::Revision revision, std::function<void(std::optional<Failure>)> then);
  void RunReached();
  void AskRevision();

  std::function<void(Response)> InVersionOf(const api::KindSchema* kind,
                                            std::function<void(Response)> done);
  void CountStoreCall(const Resource& resource, std::string_view operation, MonotonicTime begun);

  Options options_;
  // By group and plural; looked up by views.
  struct ByName {
    using is_transparent = void;
    using Views = std::pair<std::string_view, std::string_view>;
    bool operator()(const Views& a, const Views& b) const { return a < b; }
  };
  std::map<std::pair<std::string, std::string>, std::unique_ptr<Resource>, ByName> resources_;
  std::unordered_map<const api::KindSchema*, Resource*> by_kind_;  // all versions
  std::unordered_map<std::string_view, Resource*> by_prefix_;      // of their keys
  // What definitions have added. States and former schemas are kept, because requests in flight and
  // watches refer to them.
  struct CustomStates {
    CustomStates();
    ~CustomStates();
    std::unique_ptr<CustomKindsBoard> board;
    std::map<std::string, std::unique_ptr<Custom>> by_name;
    std::vector<std::shared_ptr<const CustomDefinition>> retired_definitions;
    std::vector<std::unique_ptr<const CustomStrategy>> retired_strategies;
    std::size_t retired_bytes = 0;
    bool is_loading = true;
  };
  CustomStates custom_;
  Resource* definitions_ = nullptr;
  const bool is_shared_;
  // Waiting requests, each in at most one of these.
  using Waiter = std::function<void(std::optional<Failure>)>;
  std::multimap<storage::Revision, Waiter> reached_waiters_;
  std::multimap<storage::Revision, Waiter> durable_waiters_;
  std::vector<Waiter> fresh_waiters_;  // wait for the next ReadRevision
  bool asking_revision_ = false;
  struct Waiting {
    std::string awaited;
    std::function<void()> go_on;
    TimerHandle timeout;
  };
  std::map<std::uint64_t, Waiting> waiting_;  // in order of arrival
  std::uint64_t next_waiting_ = 1;
  std::size_t suspended_ = 0;
  std::optional<Failure> store_failure_;  // why nothing can become durable any more
  std::optional<Failure> stalled_;        // why what has been applied is not durable yet
  bool told_full_ = false;
  std::map<std::string, Unreadable> unreadable_;
  std::vector<AdmissionStep*> action_steps_;  // those of options_.admission that see actions
  Resource* claims_ = nullptr;
  std::unique_ptr<DeviceArbiter> arbiter_;
  bool arbitrates_ = true;
  // On a shared store: the revisions of all guards, and what waits for those that are in flight.
  const std::string guard_prefix_;
  std::unordered_map<std::string, storage::Revision> guards_;
  std::map<std::string, std::deque<std::function<void()>>> busy_guards_;
  const storage::Bytes own_id_;  // the value of the guards of decisions
  storage::Revision reached_ = 0;
  storage::Revision durable_seen_ = 0;
  std::unique_ptr<storage::Watch> watch_;
  TimerHandle reload_timer_;
  Lifetime lifetime_;
};

}  // namespace drakkar::apiserver
