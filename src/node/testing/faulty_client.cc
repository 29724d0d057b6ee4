#include "node/testing/faulty_client.h"

#include "api/scheme/scheme.h"
#include "base/text/text.h"

namespace drakkar::node {

struct FaultyClient::OpenWatch {
  client::WatchCallbacks callbacks;
  std::unique_ptr<client::WatchHandle> real;
};

class FaultyClient::Handle final : public client::WatchHandle {
 public:
  Handle(FaultyClient& owner, std::uint64_t id)
      : owner_(owner), owner_lifetime_(owner.lifetime_.Observe()), id_(id) {}
  ~Handle() override {
    if (owner_lifetime_.alive()) owner_.watches_.erase(id_);
  }

 private:
  FaultyClient& owner_;
  const Lifetime::Observer owner_lifetime_;
  std::uint64_t id_;
};

FaultyClient::FaultyClient(EventLoop& loop, std::unique_ptr<client::Client> real)
    : loop_(loop), real_(std::move(real)) {}

FaultyClient::~FaultyClient() = default;

void FaultyClient::SetDown(bool down) {
  down_ = down;
  if (!down) return;
  for (auto& [id, watch] : watches_) {
    watch->real.reset();
    loop_.Post(lifetime_.Guard([weak = std::weak_ptr<OpenWatch>(watch)] {
      if (auto open = weak.lock()) open->callbacks.on_closed(Unavailable("the server is down"));
    }));
  }
}

std::optional<Error> FaultyClient::Fault(const char* verb, const client::ResourceRef& ref) {
  if (down_) return Unavailable("the server is down");
  if (!fault) return std::nullopt;
  return fault(
      StrCat(verb, " ", ref.kind->plural, ref.subresource.empty() ? "" : "/", ref.subresource));
}

void FaultyClient::Guard(const char* verb, const client::ResourceRef& ref,
                         client::ReplyCallback done,
                         const std::function<void(client::ReplyCallback)>& call) {
  std::optional<Error> error = Fault(verb, ref);
  if (!error) return call(std::move(done));
  if (error->message.starts_with("lost")) {
    return call([done = std::move(done), error](client::Reply) {
      client::Reply reply;
      reply.error = *error;
      done(std::move(reply));
    });
  }
  loop_.Post(lifetime_.Guard([done = std::move(done), error] {
    client::Reply reply;
    reply.error = *error;
    done(std::move(reply));
  }));
}

void FaultyClient::Get(client::ResourceRef ref, client::ReplyCallback done) {
  Guard("get", ref, std::move(done), [&](auto then) {
    if (!instead) return real_->Get(ref, std::move(then));
    real_->Get(ref, [then = std::move(then), change = instead](client::Reply reply) {
      if (reply.ok()) reply.object = change(reply.object);
      then(std::move(reply));
    });
  });
}

void FaultyClient::List(client::ResourceRef ref, client::ListOptions options,
                        std::function<void(client::ListReply)> done) {
  std::optional<Error> error = Fault("list", ref);
  if (!error) return real_->List(std::move(ref), std::move(options), std::move(done));
  loop_.Post(lifetime_.Guard([done = std::move(done), error] {
    client::ListReply reply;
    reply.error = *error;
    done(std::move(reply));
  }));
}

void FaultyClient::Create(client::ResourceRef ref, api::TreePtr body, client::WriteOptions options,
                          client::ReplyCallback done) {
  Guard("create", ref, std::move(done),
        [&](auto then) { real_->Create(ref, body, options, std::move(then)); });
}

void FaultyClient::Update(client::ResourceRef ref, api::TreePtr body, client::WriteOptions options,
                          client::ReplyCallback done) {
  Guard("update", ref, std::move(done),
        [&](auto then) { real_->Update(ref, body, options, std::move(then)); });
}

void FaultyClient::Patch(client::ResourceRef ref, client::PatchType type, std::string body,
                         client::WriteOptions options, client::ReplyCallback done) {
  Guard("patch", ref, std::move(done),
        [&](auto then) { real_->Patch(ref, type, body, options, std::move(then)); });
}

void FaultyClient::Delete(client::ResourceRef ref, client::DeleteOptions options,
                          client::ReplyCallback done) {
  Guard("delete", ref, std::move(done),
        [&](auto then) { real_->Delete(ref, options, std::move(then)); });
}

void FaultyClient::DeleteCollection(client::ResourceRef ref, client::ListOptions list,
                                    client::DeleteOptions options, client::ReplyCallback done) {
  Guard("deletecollection", ref, std::move(done),
        [&](auto then) { real_->DeleteCollection(ref, list, options, std::move(then)); });
}

std::unique_ptr<client::WatchHandle> FaultyClient::Watch(client::ResourceRef ref,
                                                         client::WatchOptions options,
                                                         client::WatchCallbacks callbacks) {
  auto open = std::make_shared<OpenWatch>();
  open->callbacks = std::move(callbacks);
  const std::uint64_t id = next_++;
  watches_[id] = open;
  const std::weak_ptr<OpenWatch> weak = open;
  if (std::optional<Error> error = Fault("watch", ref)) {
    loop_.Post(lifetime_.Guard([weak, error] {
      if (auto each = weak.lock()) each->callbacks.on_closed(*error);
    }));
  } else {
    open->real = real_->Watch(std::move(ref), std::move(options),
                              {.on_events =
                                   [weak](std::vector<client::WatchEvent> events) {
                                     if (auto each = weak.lock())
                                       each->callbacks.on_events(std::move(events));
                                   },
                               .on_closed =
                                   [weak](Error why) {
                                     if (auto each = weak.lock())
                                       each->callbacks.on_closed(std::move(why));
                                   }});
  }
  return std::make_unique<Handle>(*this, id);
}

}  // namespace drakkar::node
