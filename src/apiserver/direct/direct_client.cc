#include "apiserver/direct/direct_client.h"

#include "apiserver/custom/definition.h"

#include "api/scheme/scheme.h"
#include "api/tree/draft.h"
#include "apiserver/rest/decode.h"
#include "base/exec/lifetime.h"

namespace drakkar::apiserver {
namespace {

client::Reply ToReply(Response response) {
  client::Reply reply;
  reply.http_status = response.http_status;
  reply.warnings = std::move(response.warnings);
  if (response.failure) {
    reply.error = api::ErrorFromStatus(*response.failure);
    reply.object = std::make_shared<const api::Object>(response.failure->ToTree());
    if (response.failure->retry_after_seconds > 0) {
      reply.retry_after_seconds = response.failure->retry_after_seconds;
    }
  } else {
    reply.object = std::move(response.object);
  }
  return reply;
}

client::EventType ToEventType(ChangeType type) {
  switch (type) {
    case ChangeType::kAdded:
      return client::EventType::kAdded;
    case ChangeType::kModified:
      return client::EventType::kModified;
    case ChangeType::kDeleted:
      return client::EventType::kDeleted;
    case ChangeType::kBookmark:
      return client::EventType::kBookmark;
  }
  return client::EventType::kBookmark;
}

// The user agent of a component over HTTP: "kube-scheduler" for system:kube-scheduler.
std::string AgentOf(const UserInfo& user) {
  if (user.name.starts_with("system:node:")) return "kubelet";
  return user.name.substr(user.name.rfind(':') + 1);
}

// Shared by the client and the server side of a watch. Each side touches only its own part, on its
// own loop; `cancelled` tells the client not to deliver anything more.
struct WatchState {
  bool cancelled = false;                        // client's loop
  client::WatchCallbacks callbacks;              // client's loop
  std::unique_ptr<WatchCache::Watcher> watcher;  // core's loop
  bool closed = false;                           // core's loop: do not start
};

// Batches what the core sends to one client: the replies and events of one turn of the core's loop
// cross over together, in order. Waking another thread costs a good part of a write, and a turn
// under load produces many. Bound to the core's loop.
class Outbox : public std::enable_shared_from_this<Outbox> {
 public:
  // Whatever is left when the client is destroyed is dropped.
  Outbox(EventLoop& core_loop, EventLoop& client_loop, Lifetime::Observer client)
      : core_loop_(core_loop), client_loop_(client_loop), client_(std::move(client)) {}

  void AddTask(Task task) { Add().task = std::move(task); }

  void AddEvents(const std::shared_ptr<WatchState>& watch, const std::vector<Change>& changes) {
    Item& item = items_.empty() || items_.back().watch != watch ? Add() : items_.back();
    item.watch = watch;
    for (const Change& change : changes) {
      item.events.push_back({ToEventType(change.type), change.object});
    }
  }

 private:
  struct Item {
    Task task;  // or:
    std::shared_ptr<WatchState> watch;
    std::vector<client::WatchEvent> events;
  };

  Item& Add() {
    if (items_.empty()) core_loop_.Post([self = shared_from_this()] { self->Flush(); });
    return items_.emplace_back();
  }

  void Flush() {
    std::vector<Item> items = std::move(items_);
    items_.clear();
    if (!client_.alive()) return;  // and its loop may be gone, too
    client_loop_.Post([client = client_, items = std::move(items)]() mutable {
      for (Item& item : items) {
        if (!client.alive()) return;
        if (item.watch == nullptr) {
          item.task();
        } else if (!item.watch->cancelled) {
          item.watch->callbacks.on_events(std::move(item.events));
        }
      }
    });
  }

  EventLoop& core_loop_;
  EventLoop& client_loop_;
  const Lifetime::Observer client_;
  std::vector<Item> items_;
};

class DirectWatch final : public client::WatchHandle {
 public:
  DirectWatch(EventLoop& core_loop, std::shared_ptr<WatchState> state)
      : core_loop_(core_loop), state_(std::move(state)) {}
  ~DirectWatch() override {
    state_->cancelled = true;
    core_loop_.Post([state = state_] {
      state->closed = true;
      state->watcher.reset();
    });
  }

 private:
  EventLoop& core_loop_;
  std::shared_ptr<WatchState> state_;
};

class DirectClient final : public client::Client {
 public:
  DirectClient(EventLoop& loop, Core& core, UserInfo user, storage::Mark mark)
      : loop_(loop),
        core_(core),
        user_(std::move(user)),
        agent_(AgentOf(user_)),
        mark_(mark),
        outbox_(std::make_shared<Outbox>(core.loop(), loop_, lifetime_.Observe())) {}

  void Discover(std::function<void(Result<client::ServedKinds>)> done) override {
    client::ServedKinds served;
    served.fixed = false;  // definitions add kinds
    for (const api::KindSchema& kind : api::AllKinds()) {
      if (kind.storage_version) served.kinds.push_back(&kind);
    }
    for (const api::KindSchema* kind : core_.custom_kinds().current()->served()) {
      if (kind->storage_version) served.kinds.push_back(kind);
    }
    done(std::move(served));
  }

  void Get(client::ResourceRef ref, client::ReplyCallback done) override {
    Send(MakeRequest(ref, Verb::kGet), std::move(done));
  }

  void List(client::ResourceRef ref, client::ListOptions options,
            std::function<void(client::ListReply)> done) override {
    Request request = MakeRequest(ref, Verb::kList);
    SetListOptions(request, options);
    Run(std::move(request), [done = std::move(done)](Response response) {
      client::ListReply reply;
      if (response.failure) {
        reply.error = api::ErrorFromStatus(*response.failure);
      } else {
        reply.items = std::move(response.items);
        reply.resource_version = response.revision;
        reply.continue_token = std::move(response.continue_token);
      }
      done(std::move(reply));
    });
  }

  void Create(client::ResourceRef ref, api::TreePtr body, client::WriteOptions options,
              client::ReplyCallback done) override {
    SendWrite(MakeRequest(ref, Verb::kCreate), std::move(body), options, std::move(done));
  }

  void Update(client::ResourceRef ref, api::TreePtr body, client::WriteOptions options,
              client::ReplyCallback done) override {
    SendWrite(MakeRequest(ref, Verb::kUpdate), std::move(body), options, std::move(done));
  }

  void Patch(client::ResourceRef ref, client::PatchType type, std::string body,
             client::WriteOptions options, client::ReplyCallback done) override {
    Request request = MakeRequest(ref, Verb::kPatch);
    request.text = std::move(body);
    switch (type) {
      case client::PatchType::kJson:
        request.patch = PatchKind::kJson;
        break;
      case client::PatchType::kMerge:
        request.patch = PatchKind::kMerge;
        break;
      case client::PatchType::kStrategicMerge:
        request.patch = PatchKind::kStrategicMerge;
        break;
      case client::PatchType::kApply:
        request.patch = PatchKind::kApply;
        break;
    }
    SendWrite(std::move(request), nullptr, options, std::move(done));
  }

  void Delete(client::ResourceRef ref, client::DeleteOptions options,
              client::ReplyCallback done) override {
    Request request = MakeRequest(ref, Verb::kDelete);
    SetDeleteOptions(request, options);
    Send(std::move(request), std::move(done));
  }

  void DeleteCollection(client::ResourceRef ref, client::ListOptions list,
                        client::DeleteOptions options, client::ReplyCallback done) override {
    Request request = MakeRequest(ref, Verb::kDeleteCollection);
    SetListOptions(request, list);
    SetDeleteOptions(request, options);
    Send(std::move(request), std::move(done));
  }

  std::unique_ptr<client::WatchHandle> Watch(client::ResourceRef ref, client::WatchOptions options,
                                             client::WatchCallbacks callbacks) override {
    loop_.AssertInLoop();
    auto state = std::make_shared<WatchState>();
    state->callbacks = std::move(callbacks);
    Request request = MakeRequest(ref, Verb::kWatch);
    request.label_selector = options.label_selector;
    request.field_selector = options.field_selector;
    request.resource_version = std::to_string(options.resource_version);
    core_.loop().Post([core = &core_, outbox = outbox_, state, mark = mark_,
                       request = std::move(request)]() mutable {
      // The version it starts from may come from another server.
      core->WhenFresh([core, outbox, state, mark,
                       request = std::move(request)](const std::optional<Failure>& failure) {
        if (state->closed) return;
        if (failure) return Close(*outbox, state, api::ErrorFromStatus(*failure));
        StartWatch(*core, outbox, state, mark, request);
      });
    });
    return std::make_unique<DirectWatch>(core_.loop(), std::move(state));
  }

 private:
  // On the core's loop.
  static void StartWatch(Core& core, const std::shared_ptr<Outbox>& outbox,
                         const std::shared_ptr<WatchState>& state, storage::Mark mark,
                         const Request& request) {
    Core::WatchStart start = core.StartWatch(
        request, mark,
        // Weak, because the state owns the watcher that owns this.
        [outbox, weak = std::weak_ptr(state)](const std::vector<Change>& changes) {
          if (std::shared_ptr<WatchState> watched = weak.lock()) {
            outbox->AddEvents(watched, changes);
          }
        },
        [outbox, weak = std::weak_ptr(state)](const Error& why) {
          const std::shared_ptr<WatchState> watched = weak.lock();
          if (watched == nullptr) return;
          Close(*outbox, watched, why.code == ErrorCode::kExpired ? why : Unavailable(why.message));
        });
    if (start.failure) return Close(*outbox, state, api::ErrorFromStatus(*start.failure));
    state->watcher = std::move(start.watcher);
  }

  static void Close(Outbox& outbox, const std::shared_ptr<WatchState>& state, Error why) {
    outbox.AddTask([state, why = std::move(why)] {
      if (!state->cancelled) state->callbacks.on_closed(why);
    });
  }

  Request MakeRequest(const client::ResourceRef& ref, Verb verb) const {
    Request request;
    request.user = user_;
    request.verb = verb;
    request.kind = ref.kind;
    request.namespace_ = ref.namespace_;
    request.name = ref.name;
    request.subresource = ref.subresource;
    request.user_agent = agent_;
    return request;
  }

  static void SetListOptions(Request& request, const client::ListOptions& options) {
    request.label_selector = options.label_selector;
    request.field_selector = options.field_selector;
    request.limit = options.limit;
    request.continue_token = options.continue_token;
  }

  static void SetDeleteOptions(Request& request, const client::DeleteOptions& options) {
    request.grace_period_seconds = options.grace_period_seconds;
    request.propagation_policy = options.propagation_policy;
    request.precondition_uid = options.precondition_uid;
    request.precondition_resource_version = options.precondition_resource_version;
  }

  void SendWrite(Request request, api::TreePtr body, const client::WriteOptions& options,
                 client::ReplyCallback done) {
    request.object = std::move(body);
    request.dry_run = options.dry_run;
    request.force = options.force;
    request.field_manager = options.field_manager;
    // The core's loop is shared: do as much as possible here.
    DecodeEarly(request);
    Send(std::move(request), std::move(done));
  }

  void Send(Request request, client::ReplyCallback done) {
    Run(std::move(request),
        [done = std::move(done)](Response response) { done(ToReply(std::move(response))); });
  }

  // To the core's loop and back to ours; nothing runs inside the caller's call.
  void Run(Request request, std::function<void(Response)> done) {
    loop_.AssertInLoop();
    core_.loop().Post([core = &core_, outbox = outbox_, mark = mark_, request = std::move(request),
                       done = std::move(done)]() mutable {
      core->Handle(std::move(request), [core, outbox, mark,
                                        done = std::move(done)](Response response) mutable {
        const storage::Revision revision = response.revision;
        // Runs once.
        auto answer = [outbox, done = std::move(done),
                       response = std::move(response)](std::optional<Failure> failure) mutable {
          if (failure) response = Response::Failed(std::move(*failure));
          outbox->AddTask([done = std::move(done), response = std::move(response)]() mutable {
            done(std::move(response));
          });
        };
        if (mark == storage::Mark::kApplied) return answer(std::nullopt);
        core->WhenDurable(revision, std::move(answer));
      });
    });
  }

  EventLoop& loop_;
  Core& core_;
  const UserInfo user_;
  const std::string agent_;
  const storage::Mark mark_;
  Lifetime lifetime_;               // before outbox_, which observes it
  std::shared_ptr<Outbox> outbox_;  // used on the core's loop
};

}  // namespace

std::unique_ptr<client::Client> MakeDirectClient(EventLoop& loop, Core& core, UserInfo user,
                                                 storage::Mark mark) {
  return std::make_unique<DirectClient>(loop, core, std::move(user), mark);
}

}  // namespace drakkar::apiserver
