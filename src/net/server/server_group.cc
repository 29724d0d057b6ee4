#include "net/server/server_group.h"

#include <atomic>

namespace drakkar::net {
namespace {

// Connections of one member: incremented where they are accepted, decremented where they close.
using Count = std::atomic<std::size_t>;

// Held by a connection as long as it is open.
class Place {
 public:
  explicit Place(std::shared_ptr<Count> open) : open_(std::move(open)) {
    open_->fetch_add(1, std::memory_order_relaxed);
  }
  ~Place() { open_->fetch_sub(1, std::memory_order_relaxed); }
  Place(const Place&) = delete;
  Place& operator=(const Place&) = delete;

 private:
  const std::shared_ptr<Count> open_;
};

struct Served {
  Served(UvLoop& own_loop, RequestHandler& own_handler) : loop(own_loop), handler(own_handler) {}

  UvLoop& loop;
  RequestHandler& handler;
  const std::shared_ptr<Count> open = std::make_shared<Count>(0);
  std::unique_ptr<HttpServer> server;  // lives on `loop`
};

}  // namespace

struct ServerGroup::Impl : std::enable_shared_from_this<ServerGroup::Impl> {
  Impl(UvLoop& own_loop, HttpServerOptions own_options, const std::vector<Member>& own_members)
      : loop(own_loop), options(std::move(own_options)) {
    for (const Member& member : own_members) {
      members.push_back(std::make_unique<Served>(member.loop, member.handler));
    }
  }

  // Runs `task` on a member's loop; directly if that is ours.
  void On(Served& member, Task task) {
    if (&member.loop == &loop) return task();
    member.loop.Post([self = shared_from_this(), task = std::move(task)]() mutable { task(); });
  }

  void Accept(std::unique_ptr<Socket> socket) {
    Served* chosen = nullptr;
    std::size_t total = 0;
    std::size_t fewest = 0;
    for (std::size_t i = 0; i < members.size(); ++i) {
      Served& member = *members[(next + i) % members.size()];
      const std::size_t open = member.open->load(std::memory_order_relaxed);
      total += open;
      if (chosen != nullptr && open >= fewest) continue;
      chosen = &member;
      fewest = open;
    }
    if (total >= options.max_connections) return;
    next = (next + 1) % members.size();
    Result<DetachedSocket> detached = Socket::Detach(std::move(socket));
    if (!detached.ok()) return;
    auto place = std::make_shared<const Place>(chosen->open);
    On(*chosen, [chosen, detached = std::move(*detached), place = std::move(place)]() mutable {
      if (chosen->server != nullptr) chosen->server->Adopt(std::move(detached), std::move(place));
    });
  }

  void MemberStopped() {
    if (--stopping > 0) return;
    for (auto& call : std::exchange(on_stopped, {})) call();
  }

  UvLoop& loop;
  const HttpServerOptions options;
  std::vector<std::unique_ptr<Served>> members;
  std::unique_ptr<Listener> listener;
  std::unique_ptr<Listener> second_listener;
  std::size_t next = 0;      // where the search for the least loaded member starts
  std::size_t stopping = 0;  // members that have not finished stopping
  std::vector<std::function<void()>> on_stopped;
};

ServerGroup::ServerGroup(UvLoop& loop, HttpServerOptions options, std::vector<Member> members)
    : impl_(std::make_shared<Impl>(loop, std::move(options), members)) {}

ServerGroup::~ServerGroup() {
  impl_->loop.AssertInLoop();
  impl_->listener.reset();
  impl_->second_listener.reset();
  impl_->on_stopped.clear();
  for (auto& member : impl_->members) {
    impl_->On(*member, [served = member.get()] { served->server.reset(); });
  }
}

Result<void> ServerGroup::Start() {
  impl_->loop.AssertInLoop();
  Listener::Options listen;
  listen.address = impl_->options.address;
  listen.reuse_port = impl_->options.reuse_port;
  auto accept = [impl = impl_.get()](std::unique_ptr<Socket> socket) {
    impl->Accept(std::move(socket));
  };
  ASSIGN_OR_RETURN(impl_->listener, Listener::Create(impl_->loop, listen, accept));
  if (!impl_->options.second_host.empty()) {
    listen.address = {.host = impl_->options.second_host, .port = impl_->listener->port()};
    listen.may_be_absent = true;
    ASSIGN_OR_RETURN(impl_->second_listener, Listener::Create(impl_->loop, listen, accept));
  }
  for (auto& member : impl_->members) {
    impl_->On(*member, [impl = impl_.get(), served = member.get()] {
      served->server = std::make_unique<HttpServer>(served->loop, impl->options, served->handler);
      served->server->StartAdopting();
    });
  }
  return Ok();
}

std::uint16_t ServerGroup::port() const {
  return impl_->listener ? impl_->listener->port() : 0;
}

void ServerGroup::Stop(std::function<void()> done) {
  Impl& impl = *impl_;
  impl.loop.AssertInLoop();
  impl.listener.reset();
  impl.second_listener.reset();
  if (done) impl.on_stopped.push_back(std::move(done));
  if (impl.stopping > 0) return;
  impl.stopping = impl.members.size();
  for (auto& member : impl.members) {
    impl.On(*member, [self = impl_, served = member.get()] {
      auto stopped = [self] { self->loop.Post([self] { self->MemberStopped(); }); };
      if (served->server == nullptr) return stopped();
      served->server->Stop(stopped);
    });
  }
}

}  // namespace drakkar::net
