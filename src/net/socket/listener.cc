#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <climits>

#include "base/result/shortage.h"
#include "base/text/text.h"
#include "net/socket/socket_node.h"
#include "net/socket/uv_error.h"

namespace drakkar::net {

namespace {

// A hidden name in the same directory, which plugin watchers skip. If that is too long for a socket
// address, the name itself: such a socket is visible a moment before it accepts.
std::string TemporaryPath(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  const std::size_t name = slash == std::string::npos ? 0 : slash + 1;
  std::string hidden = StrCat(path.substr(0, name), ".", path.substr(name), ".new");
  if (hidden.size() < sizeof(sockaddr_un::sun_path)) return hidden;
  hidden = StrCat(path.substr(0, name), ".", getpid());
  return hidden.size() < sizeof(sockaddr_un::sun_path) ? hidden : path;
}

long DescriptorLimit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur > LONG_MAX) return LONG_MAX;
  return static_cast<long>(limit.rlim_cur);
}

}  // namespace

struct Listener::Node {
  union {
    uv_handle_t handle;
    uv_stream_t stream;
    uv_tcp_t tcp;
    uv_pipe_t pipe;
  };
  bool is_tcp = false;
  AcceptCallback on_accept;
  std::string bound_path;  // of a unix socket, until it is published
  std::string unix_path;   // after it is published

  Node() {}   // NOLINT: the union is initialised by libuv
  ~Node() {}  // NOLINT

  void Close() {
    on_accept = nullptr;
    // libuv removes only the name that it bound.
    if (!unix_path.empty()) unlink(unix_path.c_str());
    uv_close(&handle, [](uv_handle_t* closed) { delete static_cast<Node*>(closed->data); });
  }

  static void OnConnection(uv_stream_t* server, int status) {
    auto* self = static_cast<Node*>(server->data);
    // A failed accept (out of descriptors, peer already gone) affects only that connection.
    if (status < 0) return ReportShortage(-status);
    Socket::Node* node = Socket::Node::Create(server->loop, self->is_tcp);
    if (uv_accept(server, &node->stream) != 0 || !self->on_accept) {
      node->Close();
      return;
    }
    node->Tune();
    uv_os_fd_t descriptor = -1;
    // At the limit itself libuv closes connections silently.
    if (uv_fileno(&node->handle, &descriptor) == 0 && descriptor >= DescriptorLimit() - 4) {
      ReportShortage(EMFILE);
    }
    self->on_accept(std::unique_ptr<Socket>(new Socket(node)));
  }

  int BindTcp(uv_loop_t* loop, const Options& options) {
    sockaddr_storage address{};
    const std::string host = options.address.host.empty() ? "0.0.0.0" : options.address.host;
    if (!ParseIp(host == "localhost" ? "127.0.0.1" : host, options.address.port, &address)) {
      return UV_EINVAL;
    }
    int code = uv_tcp_init_ex(loop, &tcp, address.ss_family);
    CHECK(code == 0);
    is_tcp = true;
    handle.data = this;
    uv_os_fd_t descriptor = -1;
    if (options.reuse_port && uv_fileno(&handle, &descriptor) == 0) {
      const int on = 1;
      if (setsockopt(descriptor, SOL_SOCKET, SO_REUSEPORT, &on, sizeof(on)) != 0) return -errno;
    }
    if (options.may_be_absent && uv_fileno(&handle, &descriptor) == 0) {
      const int on = 1;
      if (setsockopt(descriptor, IPPROTO_IP, IP_FREEBIND, &on, sizeof(on)) != 0) return -errno;
    }
    return uv_tcp_bind(&tcp, reinterpret_cast<sockaddr*>(&address), 0);
  }

  int BindUnix(uv_loop_t* loop, const std::string& path) {
    CHECK(uv_pipe_init(loop, &pipe, 0) == 0);
    handle.data = this;
    if (path.size() >= sizeof(sockaddr_un::sun_path)) return UV_ENAMETOOLONG;
    struct stat info;
    if (lstat(path.c_str(), &info) == 0 && !S_ISSOCK(info.st_mode)) return UV_EADDRINUSE;
    bound_path = TemporaryPath(path);
    unlink(bound_path.c_str());
    // The file must never be accessible to others, not even between bind and chmod.
    const mode_t old_mask = umask(0177);
    const int code = uv_pipe_bind(&pipe, bound_path.c_str());
    umask(old_mask);
    return code;
  }

  // Renames the socket into place now that it accepts connections, so that watchers of the
  // directory can connect immediately. Replaces an existing socket.
  int Publish(const std::string& path) {
    if (bound_path != path && rename(bound_path.c_str(), path.c_str()) != 0) return -errno;
    unix_path = path;
    return 0;
  }
};

Listener::Listener(Node* node) : node_(node) {}

Listener::~Listener() {
  node_->Close();
}

Result<std::unique_ptr<Listener>> Listener::Create(UvLoop& loop, const Options& options,
                                                   AcceptCallback on_accept) {
  loop.AssertInLoop();
  auto* node = new Node;
  int code = options.address.unix_path.empty()
                 ? node->BindTcp(loop.native(), options)
                 : node->BindUnix(loop.native(), options.address.unix_path);
  if (code == UV_EINVAL && !node->is_tcp && options.address.unix_path.empty()) {
    delete node;
    return InvalidArgument(StrCat("listen on ", options.address.ToText(), ": not an IP address"));
  }
  std::unique_ptr<Listener> listener(new Listener(node));
  if (code == 0) code = uv_listen(&node->stream, options.backlog, &Node::OnConnection);
  if (code == 0 && !node->is_tcp) code = node->Publish(options.address.unix_path);
  if (code != 0) return UvError(code, StrCat("listen on ", options.address.ToText()));
  node->on_accept = std::move(on_accept);
  return listener;
}

std::uint16_t Listener::port() const {
  if (!node_->is_tcp) return 0;
  sockaddr_storage address{};
  int length = sizeof(address);
  if (uv_tcp_getsockname(&node_->tcp, reinterpret_cast<sockaddr*>(&address), &length) != 0) {
    return 0;
  }
  return ntohs(address.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6*>(&address)->sin6_port
                                             : reinterpret_cast<sockaddr_in*>(&address)->sin_port);
}

}  // namespace drakkar::net
