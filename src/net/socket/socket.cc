#include "net/socket/socket.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/text/text.h"
#include "net/socket/socket_node.h"
#include "net/socket/uv_error.h"

namespace drakkar::net {
namespace {

constexpr std::size_t kReadBytes = 64 * 1024;

// One buffer per loop thread: libuv fills it, and the read callback consumes it before the next
// read.
void Allocate(uv_handle_t*, std::size_t, uv_buf_t* buffer) {
  thread_local std::unique_ptr<char[]> bytes = std::make_unique<char[]>(kReadBytes);
  *buffer = uv_buf_init(bytes.get(), static_cast<unsigned int>(kReadBytes));
}

void OnRead(uv_stream_t* stream, ssize_t count, const uv_buf_t* buffer) {
  auto* node = static_cast<Socket::Node*>(stream->data);
  if (count > 0) {
    if (node->handler) {
      node->handler->OnSocketData(std::string_view(buffer->base, static_cast<std::size_t>(count)));
    }
  } else if (count < 0) {
    node->Report(static_cast<int>(count));
  }
}

struct WriteRequest {
  uv_write_t request;
  std::string bytes;

  static void OnDone(uv_write_t* request, int status) {
    std::unique_ptr<WriteRequest> self(static_cast<WriteRequest*>(request->data));
    auto* node = static_cast<Socket::Node*>(request->handle->data);
    if (status == UV_ECANCELED) return;
    if (status < 0) {
      node->Report(status);
    } else if (node->stream.write_queue_size == 0 && node->handler) {
      node->handler->OnSocketDrained();
    }
  }
};

}  // namespace

std::string Address::ToText() const {
  if (!unix_path.empty()) return StrCat("unix:", unix_path);
  if (host.find(':') != std::string::npos) return StrCat("[", host, "]:", port);
  return StrCat(host, ":", port);
}

std::string SockaddrText(const sockaddr* address) {
  char name[INET6_ADDRSTRLEN] = {};
  if (address->sa_family == AF_INET) {
    const auto* ip4 = reinterpret_cast<const sockaddr_in*>(address);
    uv_ip4_name(ip4, name, sizeof(name));
    return StrCat(name, ":", ntohs(ip4->sin_port));
  }
  if (address->sa_family == AF_INET6) {
    const auto* ip6 = reinterpret_cast<const sockaddr_in6*>(address);
    uv_ip6_name(ip6, name, sizeof(name));
    return StrCat("[", name, "]:", ntohs(ip6->sin6_port));
  }
  return "@";
}

bool ParseIp(const std::string& host, std::uint16_t port, sockaddr_storage* out) {
  return uv_ip4_addr(host.c_str(), port, reinterpret_cast<sockaddr_in*>(out)) == 0 ||
         uv_ip6_addr(host.c_str(), port, reinterpret_cast<sockaddr_in6*>(out)) == 0;
}

void Socket::Node::Report(int code) {
  if (closed_reported) return;
  closed_reported = true;
  want_read = false;
  UpdateReading();
  if (!handler) return;
  Handler* told = handler;
  handler = nullptr;
  if (code == UV_EOF) {
    told->OnSocketClosed(nullptr);
  } else {
    const Error error = UvError(code, "");
    told->OnSocketClosed(&error);
  }
}

void Socket::Node::UpdateReading() {
  if (want_read == reading || uv_is_closing(&handle)) return;
  reading = want_read;
  if (reading) {
    uv_read_start(&stream, &Allocate, &OnRead);
  } else {
    uv_read_stop(&stream);
  }
}

Socket::Socket(Node* node) : node_(node), peer_("@") {
  if (!node->is_tcp) return;
  sockaddr_storage address;
  int length = sizeof(address);
  if (uv_tcp_getpeername(&node->tcp, reinterpret_cast<sockaddr*>(&address), &length) == 0) {
    peer_ = SockaddrText(reinterpret_cast<sockaddr*>(&address));
  }
}

DetachedSocket::DetachedSocket(DetachedSocket&& other) noexcept
    : fd(std::exchange(other.fd, -1)), is_tcp(other.is_tcp) {}

DetachedSocket::~DetachedSocket() {
  if (fd >= 0) close(fd);
}

Result<DetachedSocket> Socket::Detach(std::unique_ptr<Socket> socket) {
  uv_os_fd_t own = -1;
  if (const int code = uv_fileno(&socket->node_->handle, &own); code != 0) return UvError(code, "");
  // libuv closes the descriptor with the handle, so duplicate it.
  DetachedSocket detached(fcntl(own, F_DUPFD_CLOEXEC, 0), socket->node_->is_tcp);
  if (detached.fd < 0) return UvError(-errno, "");
  return detached;
}

Result<std::unique_ptr<Socket>> Socket::Attach(UvLoop& loop, DetachedSocket detached) {
  loop.AssertInLoop();
  Node* node = Node::Create(loop.native(), detached.is_tcp);
  // The handle takes ownership of the descriptor.
  const int fd = detached.fd;
  const int code = detached.is_tcp ? uv_tcp_open(&node->tcp, fd) : uv_pipe_open(&node->pipe, fd);
  if (code != 0) {
    node->Close();
    return UvError(code, "");
  }
  detached.fd = -1;
  return std::unique_ptr<Socket>(new Socket(node));
}

Socket::~Socket() {
  node_->Close();
}

void Socket::Start(Handler& handler) {
  node_->handler = &handler;
  ResumeReading();
}

void Socket::Write(std::string& bytes) {
  if (bytes.empty()) return;
  if (node_->closed_reported || node_->shutting_down) {
    bytes.clear();
    return;
  }
  node_->submitted += bytes.size();
  std::size_t written = 0;
  if (node_->stream.write_queue_size == 0) {
    uv_buf_t buffer = uv_buf_init(bytes.data(), static_cast<unsigned int>(bytes.size()));
    const int code = uv_try_write(&node_->stream, &buffer, 1);
    if (code > 0) written = static_cast<std::size_t>(code);
  }
  if (written < bytes.size()) {
    // An error of the attempt above occurs again here and is reported on the loop.
    auto* request = new WriteRequest;
    request->request.data = request;
    request->bytes = std::move(bytes);
    uv_buf_t buffer = uv_buf_init(request->bytes.data() + written,
                                  static_cast<unsigned int>(request->bytes.size() - written));
    if (uv_write(&request->request, &node_->stream, &buffer, 1, &WriteRequest::OnDone) != 0) {
      delete request;
    }
  }
  bytes.clear();
}

std::size_t Socket::pending_bytes() const {
  return node_->stream.write_queue_size;
}

std::uint64_t Socket::total_written() const {
  return node_->submitted - node_->stream.write_queue_size;
}

void Socket::LimitUnacknowledged(Duration limit) {
  int own = -1;
  if (!node_->is_tcp || uv_fileno(&node_->handle, &own) != 0) return;
  const auto milliseconds = static_cast<unsigned int>(
      std::chrono::duration_cast<std::chrono::milliseconds>(limit).count());
  // If the kernel refuses, connections break later, as they do without it.
  (void)setsockopt(own, IPPROTO_TCP, TCP_USER_TIMEOUT, &milliseconds, sizeof(milliseconds));
}

void Socket::PauseReading() {
  node_->want_read = false;
  node_->UpdateReading();
}

void Socket::ResumeReading() {
  if (node_->closed_reported) return;
  node_->want_read = true;
  node_->UpdateReading();
}

void Socket::ShutdownWrites() {
  if (node_->shutting_down || node_->closed_reported) return;
  node_->shutting_down = true;
  uv_shutdown(&node_->shutdown, &node_->stream, [](uv_shutdown_t*, int) {});
}

}  // namespace drakkar::net
