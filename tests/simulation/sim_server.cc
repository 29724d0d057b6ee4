#include "tests/simulation/sim_server.h"

#include "api/scheme/scheme.h"
#include "api/tree/draft.h"
#include "apiserver/direct/direct_client.h"
#include "base/result/check.h"
#include "base/text/text.h"

namespace drakkar::simulation {

SimServer::SimServer(SeededLoop& loop, FeatureGates gates) : loop_(loop), gates_(gates) {
  Restart();
  loop_.Advance(std::chrono::seconds(1));
  CHECK(is_up_);
}

SimServer::~SimServer() {
  CHECK(clients_.empty());
  if (core_ != nullptr) Crash();
}

void SimServer::Restart() {
  if (core_ != nullptr) return;
  lane_ = &loop_.NewLane();
  disk_.set_sync_delay(std::chrono::milliseconds(loop_.random().Below(20)));
  store_ = storage::OpenMemoryStore(*lane_, disk_);
  core_ = std::make_unique<apiserver::Core>(apiserver::Core::Options{
      .loop = *lane_, .random = loop_.random(), .store = *store_, .gates = gates_});
  if (!arbitrates_) core_->StopArbitration();
  TellReferee();
  core_->Start([this](Result<void> ready) {
    CHECK(ready.ok());
    is_up_ = true;
    CheckAcknowledged();
    for (SimClient* each : clients_) each->Connect();
  });
}

void SimServer::StopArbitration() {
  arbitrates_ = false;
  if (core_ != nullptr) core_->StopArbitration();
}

void SimServer::TellReferee() {
  // Starts from the beginning, and continues after a crash where it ended.
  history_ = store_->StartWatch(
      {.prefix = "/registry/", .after = std::max<storage::Revision>(referee_.up_to(), 1)},
      {.on_events = [this](std::vector<storage::WatchEvent> events,
                           storage::Revision up_to) { referee_.OnStored(events, up_to); },
       .on_closed =
           [this](Error error) {
             CHECK(error.code == ErrorCode::kExpired);
             referee_.Forget(store_->durable_revision());
             lane_->Post([this] { TellReferee(); });
           }});
}

void SimServer::Crash() {
  if (core_ == nullptr) return;
  if (is_up_) {
    must_survive_.clear();
    for (const api::KindSchema& kind : api::AllKinds()) {
      if (!kind.storage_version) continue;
      for (const api::ObjectPtr& object : Objects(kind.group, kind.plural)) {
        const auto found = acknowledged_.find(std::string(object->uid()));
        if (found != acknowledged_.end()) must_survive_.insert(*found);
      }
    }
  }
  is_up_ = false;
  for (SimClient* each : clients_) each->Disconnect();
  loop_.DropLane(*lane_);
  history_.reset();
  core_.reset();
  store_.reset();
}

void SimServer::OnAcknowledged(const api::ObjectPtr& object) {
  if (object == nullptr || object->uid().empty()) return;
  std::int64_t& version = acknowledged_[std::string(object->uid())];
  version = std::max(version, object->resource_version());
}

void SimServer::CheckAcknowledged() {
  std::map<std::string, std::int64_t> have;
  for (const api::KindSchema& kind : api::AllKinds()) {
    if (!kind.storage_version) continue;
    for (const api::ObjectPtr& object : Objects(kind.group, kind.plural)) {
      have[std::string(object->uid())] = object->resource_version();
    }
  }
  for (const auto& [uid, version] : must_survive_) {
    const auto found = have.find(uid);
    if (found == have.end() || found->second < version) {
      violations.push_back(
          StrCat("the acknowledged write ", version, " of ", uid, " is lost after a crash"));
    }
  }
  must_survive_.clear();
}

std::vector<api::ObjectPtr> SimServer::Objects(std::string_view group, std::string_view plural) {
  std::vector<api::ObjectPtr> objects;
  if (core_ == nullptr) return objects;
  const auto* cache = core_->FindCache(group, plural);
  if (cache == nullptr) return objects;
  for (const auto& [key, object] : cache->objects()) objects.push_back(object);
  return objects;
}

api::ObjectPtr SimServer::Find(std::string_view group, std::string_view plural,
                               const std::string& key) {
  return core_ == nullptr ? nullptr : core_->Find(group, plural, key);
}

// ---- The client.

struct SimClient::Stream {
  client::WatchCallbacks callbacks;
  std::unique_ptr<client::WatchHandle> direct;
  const api::KindSchema* kind = nullptr;  // null with selectors, which show only part of the kind
  std::int64_t version = 0;               // of the last event
  std::vector<client::WatchEvent> held;   // delayed events
  TimerHandle lag;
  bool closed = false;
  bool abandoned = false;  // nobody listens any more
};

class SimClient::SimWatch final : public client::WatchHandle {
 public:
  SimWatch(SimClient& client, std::shared_ptr<Stream> stream)
      : client_(client), client_lifetime_(client.lifetime_.Observe()), stream_(std::move(stream)) {}
  ~SimWatch() override {
    stream_->closed = stream_->abandoned = true;
    stream_->direct.reset();
    stream_->lag.reset();
    if (client_lifetime_.alive()) std::erase(client_.streams_, stream_);
  }

 private:
  SimClient& client_;
  const Lifetime::Observer client_lifetime_;
  std::shared_ptr<Stream> stream_;
};

SimClient::SimClient(SeededLoop& loop, EventLoop& lane, SimServer& server, const Faults& faults,
                     std::string user)
    : loop_(loop), lane_(lane), server_(server), faults_(faults), user_(std::move(user)) {
  server_.clients_.push_back(this);
  if (server_.is_up()) Connect();
}

SimClient::~SimClient() {
  lifetime_.End();
  for (const auto& stream : streams_) {
    stream->closed = true;
    stream->direct.reset();
    stream->lag.reset();
  }
  std::erase(server_.clients_, this);
}

void SimClient::Connect() {
  direct_ =
      apiserver::MakeDirectClient(lane_, server_.core(), {.name = user_}, storage::Mark::kDurable);
}

void SimClient::Disconnect() {
  const auto streams = streams_;
  for (const auto& stream : streams) Close(stream, Unavailable("connection closed"));
  direct_.reset();
  delays_.clear();
  std::vector<std::uint64_t> open;
  for (const auto& [id, done] : calls_) open.push_back(id);
  for (const std::uint64_t id : open) {
    client::Reply reply;
    reply.error = Unavailable("connection closed");
    lane_.Post(lifetime_.Guard([this, id, reply] { Answer(id, reply); }));
  }
}

void SimClient::Answer(std::uint64_t id, client::Reply reply) {
  const auto found = calls_.find(id);
  if (found == calls_.end()) return;
  client::ReplyCallback done = std::move(found->second);
  calls_.erase(found);
  delays_.erase(id);
  if (faults_.pretend_attached && reply.object != nullptr) reply.object = Shown(reply.object);
  done(std::move(reply));
}

void SimClient::Call(Deed deed, Send send, client::ReplyCallback done) {
  const std::uint64_t id = next_id_++;
  calls_[id] = std::move(done);
  client::Reply failure;
  if (direct_ == nullptr || Happens(30)) failure.error = Unavailable("connection refused");
  const bool may_conflict = *deed.verb != '\0' && std::string_view(deed.verb) != "create";
  if (may_conflict && Happens(30)) {
    failure.error = Error{ErrorCode::kConflict, "the object has been modified"};
  }
  if (failure.error) {
    lane_.Post(lifetime_.Guard([this, id, failure] { Answer(id, failure); }));
    return;
  }
  if (!Happens(15)) return Transmit(id, deed, std::move(send));
  delays_[id] = lane_.RunAfter(std::chrono::milliseconds(loop_.random().Below(3'000)),
                               [this, id, deed, send = std::move(send)] {
                                 // The timer must not be destroyed inside its own callback.
                                 lane_.Post(lifetime_.Guard([this, id, deed, send] {
                                   if (calls_.contains(id)) Transmit(id, deed, send);
                                 }));
                               });
}

void SimClient::Transmit(std::uint64_t id, const Deed& deed, Send send) {
  if (direct_ == nullptr) {
    client::Reply failure;
    failure.error = Unavailable("connection refused");
    return Answer(id, failure);
  }
  const bool unheard = Happens(30);
  api::ObjectPtr before;
  if (*deed.verb != '\0' && !deed.ref.name.empty()) {
    const client::ResourceRef& ref = deed.ref;
    before =
        server_.Find(ref.kind->group, ref.kind->plural,
                     ref.namespace_.empty() ? ref.name : StrCat(ref.namespace_, "/", ref.name));
  }
  send(*direct_, lifetime_.Guard([this, id, deed, before, unheard](client::Reply reply) {
    if (*deed.verb != '\0' && reply.ok()) {
      server_.referee().OnWritten(user_, deed.verb, deed.ref,
                                  before != nullptr ? before : reply.object, deed.selector);
    }
    if (unheard) {
      reply = {};
      reply.error = Unavailable("connection closed");
    }
    Answer(id, std::move(reply));
  }));
}

void SimClient::Get(client::ResourceRef ref, client::ReplyCallback done) {
  Call(
      {"", ref, ""},
      [ref](client::Client& direct, client::ReplyCallback answer) { direct.Get(ref, answer); },
      std::move(done));
}

void SimClient::List(client::ResourceRef ref, client::ListOptions options,
                     std::function<void(client::ListReply)> done) {
  if (direct_ == nullptr || Happens(20)) {
    lane_.Post(lifetime_.Guard([done = std::move(done)] {
      client::ListReply failure;
      failure.error = Unavailable("connection refused");
      done(std::move(failure));
    }));
    return;
  }
  // A list in flight during a crash is answered by the restarted server.
  const std::uint64_t id = next_id_++;
  calls_[id] = [done](client::Reply reply) {
    client::ListReply failure;
    failure.error = *reply.error;
    done(std::move(failure));
  };
  direct_->List(std::move(ref), std::move(options),
                lifetime_.Guard([this, id, done = std::move(done)](client::ListReply reply) {
                  if (calls_.erase(id) == 0) return;
                  for (api::ObjectPtr& object : reply.items) object = Shown(object);
                  done(std::move(reply));
                }));
}

void SimClient::Create(client::ResourceRef ref, api::TreePtr body, client::WriteOptions options,
                       client::ReplyCallback done) {
  Call(
      {"create", ref, ""},
      [ref, body, options](client::Client& direct, client::ReplyCallback answer) {
        direct.Create(ref, body, options, answer);
      },
      [this, done = std::move(done)](client::Reply reply) {
        if (reply.ok()) server_.OnAcknowledged(reply.object);
        done(std::move(reply));
      });
}

void SimClient::Update(client::ResourceRef ref, api::TreePtr body, client::WriteOptions options,
                       client::ReplyCallback done) {
  Call(
      {"update", ref, ""},
      [ref, body, options](client::Client& direct, client::ReplyCallback answer) {
        direct.Update(ref, body, options, answer);
      },
      [this, done = std::move(done)](client::Reply reply) {
        if (reply.ok()) server_.OnAcknowledged(reply.object);
        done(std::move(reply));
      });
}

void SimClient::Patch(client::ResourceRef ref, client::PatchType type, std::string body,
                      client::WriteOptions options, client::ReplyCallback done) {
  Call(
      {"patch", ref, ""},
      [ref, type, body, options](client::Client& direct, client::ReplyCallback answer) {
        direct.Patch(ref, type, body, options, answer);
      },
      [this, done = std::move(done)](client::Reply reply) {
        if (reply.ok()) server_.OnAcknowledged(reply.object);
        done(std::move(reply));
      });
}

void SimClient::Delete(client::ResourceRef ref, client::DeleteOptions options,
                       client::ReplyCallback done) {
  Call(
      {"delete", ref, ""},
      [ref, options](client::Client& direct, client::ReplyCallback answer) {
        direct.Delete(ref, options, answer);
      },
      std::move(done));
}

void SimClient::DeleteCollection(client::ResourceRef ref, client::ListOptions list,
                                 client::DeleteOptions options, client::ReplyCallback done) {
  Call(
      {"deletecollection", ref, list.field_selector},
      [ref, list, options](client::Client& direct, client::ReplyCallback answer) {
        direct.DeleteCollection(ref, list, options, answer);
      },
      std::move(done));
}

api::ObjectPtr SimClient::Shown(api::ObjectPtr object) const {
  if (!faults_.hide_allocations && !faults_.pretend_attached) return object;
  if (object->kind() != "ResourceClaim") return object;
  api::Draft draft(object->tree());
  if (faults_.hide_allocations) {
    draft["status"].Remove("allocation");
  } else {
    api::Draft devices = api::Draft::Array();
    for (api::Value result :
         object->root()["status"]["allocation"]["devices"]["results"].elements()) {
      if (result["bindingConditions"].empty()) continue;
      api::Draft device{{"driver", result["driver"].str()},
                        {"pool", result["pool"].str()},
                        {"device", result["device"].str()}};
      for (api::Value type : result["bindingConditions"].elements()) {
        device["conditions"].Append({{"type", type.str()}, {"status", "True"}});
      }
      devices.Append(std::move(device));
    }
    draft["status"]["devices"] = std::move(devices);
  }
  return std::make_shared<const api::Object>(draft.Freeze());
}

std::unique_ptr<client::WatchHandle> SimClient::Watch(client::ResourceRef ref,
                                                      client::WatchOptions options,
                                                      client::WatchCallbacks callbacks) {
  auto stream = std::make_shared<Stream>();
  stream->callbacks = std::move(callbacks);
  stream->version = options.resource_version;
  if (options.label_selector.empty() && options.field_selector.empty() && ref.namespace_.empty() &&
      ref.name.empty() && options.resource_version > 0) {
    stream->kind = ref.kind;
  }
  streams_.push_back(stream);
  if (direct_ == nullptr) {
    Close(stream, Unavailable("connection refused"));
  } else {
    stream->direct = direct_->Watch(
        std::move(ref), std::move(options),
        {.on_events =
             [this, stream](std::vector<client::WatchEvent> events) {
               OnEvents(stream, std::move(events));
             },
         .on_closed = [this, stream](Error error) { Close(stream, std::move(error)); }});
  }
  return std::make_unique<SimWatch>(*this, std::move(stream));
}

void SimClient::OnEvents(const std::shared_ptr<Stream>& stream,
                         std::vector<client::WatchEvent> events) {
  if (stream->closed) return;
  const std::int64_t after = stream->version;
  std::vector<std::int64_t> versions;
  for (client::WatchEvent& event : events) {
    const std::int64_t version = event.object->resource_version();
    const bool grows = event.type == client::EventType::kBookmark ? version >= stream->version
                                                                  : version > stream->version;
    if (!grows) {
      server_.violations.push_back(
          StrCat("a watch of ", user_, " went from version ", stream->version, " to ", version));
    }
    stream->version = version;
    if (event.type != client::EventType::kBookmark) versions.push_back(version);
    event.object = Shown(std::move(event.object));
    if (Happens(50)) stream->held.push_back(event);  // duplicated
    stream->held.push_back(std::move(event));
  }
  if (stream->kind != nullptr) {
    server_.referee().OnWatched(user_, *stream->kind, after, std::move(versions), stream->version);
  }
  // The connection breaks and drops what is in flight; the next watch delivers it again.
  if (Happens(60)) return Close(stream, Unavailable("connection closed"));
  if (Happens(300)) return Close(stream, Error{ErrorCode::kExpired, "too old resource version"});
  if (stream->lag != nullptr) return;
  if (!Happens(20)) return Deliver(stream);
  stream->lag =
      lane_.RunAfter(std::chrono::milliseconds(loop_.random().Below(2'000)), [this, stream] {
        lane_.Post(lifetime_.Guard([this, stream] {
          stream->lag.reset();
          Deliver(stream);
        }));
      });
}

void SimClient::Deliver(const std::shared_ptr<Stream>& stream) {
  if (stream->closed || stream->held.empty()) return;
  stream->callbacks.on_events(std::exchange(stream->held, {}));
}

void SimClient::Close(const std::shared_ptr<Stream>& stream, Error error) {
  if (stream->closed) return;
  stream->closed = true;
  stream->direct.reset();
  std::erase(streams_, stream);
  lane_.Post(lifetime_.Guard([stream, error = std::move(error)] {
    stream->lag.reset();
    if (!stream->abandoned) stream->callbacks.on_closed(error);
  }));
}

}  // namespace drakkar::simulation
