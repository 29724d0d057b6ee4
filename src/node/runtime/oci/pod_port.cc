#include "node/runtime/oci/pod_port.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "base/env/descriptor.h"
#include "base/exec/lifetime.h"
#include "base/result/check.h"
#include "base/result/error.h"
#include "base/text/text.h"
#include "net/socket/socket.h"

namespace drakkar::node {
namespace {

Result<net::DetachedSocket> ConnectTo(const sockaddr* address, socklen_t length, int family,
                                      const std::string& what) {
  net::DetachedSocket socket(::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0), true);
  if (socket.fd < 0) return ErrnoError(errno, "socket");
  const timeval timeout{
      .tv_sec = std::chrono::duration_cast<std::chrono::seconds>(kPortConnectTimeout).count(),
      .tv_usec = 0};
  ::setsockopt(socket.fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof(timeout));
  if (::connect(socket.fd, address, length) != 0) {
    // A connect that times out returns EINPROGRESS.
    return ErrnoError(errno == EINPROGRESS ? ETIMEDOUT : errno, what);
  }
  return socket;
}

Result<net::DetachedSocket> ConnectHere(std::uint16_t port) {
  sockaddr_in v4{};
  v4.sin_family = AF_INET;
  v4.sin_port = htons(port);
  v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  auto connected = ConnectTo(reinterpret_cast<const sockaddr*>(&v4), sizeof(v4), AF_INET,
                             StrCat("connect to 127.0.0.1:", port));
  if (connected.ok()) return connected;
  sockaddr_in6 v6{};
  v6.sin6_family = AF_INET6;
  v6.sin6_port = htons(port);
  v6.sin6_addr = in6addr_loopback;
  auto second = ConnectTo(reinterpret_cast<const sockaddr*>(&v6), sizeof(v6), AF_INET6, "");
  return second.ok() ? std::move(second) : std::move(connected);
}

// Runs on a worker thread.
Result<net::DetachedSocket> ConnectIn(const std::string& network_namespace, std::uint16_t port) {
  if (network_namespace.empty()) return ConnectHere(port);
  const Descriptor own(::open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC));
  if (!own.ok()) return ErrnoError(errno, "open the thread's network namespace");
  const Descriptor target(::open(network_namespace.c_str(), O_RDONLY | O_CLOEXEC));
  if (!target.ok()) return ErrnoError(errno, StrCat("open ", network_namespace));
  if (::setns(target.get(), CLONE_NEWNET) != 0) {
    return ErrnoError(errno, StrCat("enter ", network_namespace));
  }
  auto connected = ConnectHere(port);
  // A thread that stayed there would run later work in the wrong network.
  CHECK(::setns(own.get(), CLONE_NEWNET) == 0);
  return connected;
}

class PodPort final : public PortConnection, private net::Socket::Handler {
 public:
  PodPort(UvLoop& loop, Events& events) : loop_(loop), events_(events) {}

  void Start(WorkerPool& workers, std::string network_namespace, std::uint16_t port) {
    auto arrived = lifetime_.Guard(
        [this](std::shared_ptr<Result<net::DetachedSocket>> socket) { OnConnected(*socket); });
    const bool accepted =
        workers.Run([&loop = loop_, arrived, space = std::move(network_namespace), port] {
          auto socket = std::make_shared<Result<net::DetachedSocket>>(ConnectIn(space, port));
          loop.Post([arrived, socket]() mutable { arrived(std::move(socket)); });
        });
    if (!accepted) {
      loop_.Post(lifetime_.Guard([this] {
        events_.OnPortEnd(Error{ErrorCode::kResourceExhausted, "too many operations in flight"});
      }));
    }
  }

  void Write(std::string_view bytes) override {
    if (finished_) return;
    std::string copy(bytes);
    if (socket_) {
      socket_->Write(copy);
    } else {
      early_ += copy;
    }
  }
  std::size_t pending_bytes() const override {
    return early_.size() + (socket_ ? socket_->pending_bytes() : 0);
  }
  void FinishWriting() override {
    if (std::exchange(finished_, true) || !socket_) return;
    socket_->ShutdownWrites();
  }
  void SetReading(bool reading) override {
    reading_ = reading;
    if (!socket_) return;
    if (reading) {
      socket_->ResumeReading();
    } else {
      socket_->PauseReading();
    }
  }

 private:
  void OnConnected(Result<net::DetachedSocket>& detached) {
    if (!detached.ok()) return events_.OnPortEnd(detached.error());
    auto attached = net::Socket::Attach(loop_, *std::move(detached));
    if (!attached.ok()) return events_.OnPortEnd(attached.error());
    socket_ = *std::move(attached);
    socket_->Start(*this);
    if (!reading_) socket_->PauseReading();
    if (!early_.empty()) socket_->Write(early_);
    early_.clear();
    if (finished_) socket_->ShutdownWrites();
    if (socket_->pending_bytes() == 0) events_.OnPortDrained();
  }
  void OnSocketData(std::string_view bytes) override { events_.OnPortData(bytes); }
  void OnSocketClosed(const Error* error) override {
    if (error != nullptr) return events_.OnPortEnd(*error);
    events_.OnPortEnd(Ok());
  }
  void OnSocketDrained() override { events_.OnPortDrained(); }

  UvLoop& loop_;
  Events& events_;
  std::unique_ptr<net::Socket> socket_;
  std::string early_;
  bool finished_ = false;
  bool reading_ = true;
  Lifetime lifetime_;
};

}  // namespace

std::unique_ptr<PortConnection> ConnectPodPort(UvLoop& loop, WorkerPool& workers,
                                               std::string network_namespace, std::uint16_t port,
                                               PortConnection::Events& events) {
  auto connection = std::make_unique<PodPort>(loop, events);
  connection->Start(workers, std::move(network_namespace), port);
  return connection;
}

}  // namespace drakkar::node
