#pragma once

#include <uv.h>

#include <csignal>
#include <string>

#include "net/socket/socket.h"

namespace drakkar::net {

// The libuv part of a Socket. Freed by its close callback, so it may outlive the Socket by one loop
// iteration. Private to net/socket.
struct Socket::Node {
  union {
    uv_handle_t handle;
    uv_stream_t stream;
    uv_tcp_t tcp;
    uv_pipe_t pipe;
  };
  bool is_tcp = false;
  bool reading = false;
  bool want_read = false;
  bool closed_reported = false;
  bool shutting_down = false;
  std::uint64_t submitted = 0;
  uv_shutdown_t shutdown;
  Socket::Handler* handler = nullptr;

  static Node* Create(uv_loop_t* loop, bool tcp) {
    IgnoreBrokenPipes();
    auto* node = new Node;
    node->is_tcp = tcp;
    if (tcp) {
      CHECK(uv_tcp_init(loop, &node->tcp) == 0);
    } else {
      CHECK(uv_pipe_init(loop, &node->pipe, 0) == 0);
    }
    node->handle.data = node;
    return node;
  }

  // libuv writes without MSG_NOSIGNAL; writing to a connection that the peer has closed must not
  // kill the process.
  static void IgnoreBrokenPipes() {
    static const bool kIgnored = std::signal(SIGPIPE, SIG_IGN) != SIG_ERR;
    CHECK(kIgnored);
  }

  void Close() {
    handler = nullptr;
    if (!uv_is_closing(&handle)) {
      uv_close(&handle, [](uv_handle_t* closed) { delete static_cast<Node*>(closed->data); });
    }
  }

  void Tune() {
    if (!is_tcp) return;
    uv_tcp_nodelay(&tcp, 1);
    uv_tcp_keepalive(&tcp, 1, 30);
  }

  void Report(int code);
  void UpdateReading();

 private:
  Node() {}  // NOLINT: the union is initialised by libuv
};

// Formats a socket address as "10.0.0.7:40312".
std::string SockaddrText(const sockaddr* address);
// Fills `out` if `host` is an IP address.
bool ParseIp(const std::string& host, std::uint16_t port, sockaddr_storage* out);

}  // namespace drakkar::net
