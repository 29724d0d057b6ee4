#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/exec/uv_loop.h"
#include "base/result/result.h"

namespace drakkar::net {

// Where to listen or connect: a host (IP address or, for connecting, a name) and port, or the path
// of a unix socket.
struct Address {
  std::string host;
  std::uint16_t port = 0;
  std::string unix_path;

  std::string ToText() const;  // "127.0.0.1:6443", "[::1]:6443", "unix:/path"
};

// A connection that is moved from one loop to another and belongs to none. Destroying it closes the
// connection.
struct DetachedSocket {
  DetachedSocket(int descriptor, bool tcp) : fd(descriptor), is_tcp(tcp) {}
  DetachedSocket(DetachedSocket&& other) noexcept;
  ~DetachedSocket();

  int fd;  // -1 if moved from
  bool is_tcp;
};

// A connected stream socket. Bound to its loop; destroying it closes it immediately, and no event
// follows.
class Socket {
 public:
  class Handler {
   public:
    virtual ~Handler() = default;
    virtual void OnSocketData(std::string_view bytes) = 0;
    // The peer closed (null) or the connection broke. The last event.
    virtual void OnSocketClosed(const Error* error) = 0;
    // The kernel has accepted everything written, after it had been queued.
    virtual void OnSocketDrained() = 0;
  };

  struct Node;  // private to net/socket

  // Removes a connection from its loop. Only before Start.
  static Result<DetachedSocket> Detach(std::unique_ptr<Socket> socket);
  // Adds it to `loop`; call it on that loop.
  static Result<std::unique_ptr<Socket>> Attach(UvLoop& loop, DetachedSocket detached);

  ~Socket();
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;

  // Starts reading. Events are delivered from the loop, never from within a call.
  void Start(Handler& handler);
  // Writes as many bytes as the kernel accepts and queues the rest. `bytes` is empty afterwards
  // (its capacity is kept if possible). The caller bounds the queue using pending_bytes.
  void Write(std::string& bytes);
  std::size_t pending_bytes() const;
  std::uint64_t total_written() const;  // bytes that the kernel has accepted so far
  void PauseReading();
  void ResumeReading();
  // Writes what is queued, then closes our side. OnSocketClosed follows when the peer closes its
  // own.
  void ShutdownWrites();
  // Breaks a TCP connection whose peer has not acknowledged for this long what was sent: its
  // machine is gone or cannot be reached. Without it the kernel tries for about 15 minutes.
  void LimitUnacknowledged(Duration limit);
  const std::string& peer() const { return peer_; }  // "10.0.0.7:40312", or "@" for a unix socket

 private:
  friend class Listener;
  friend class Connector;
  explicit Socket(Node* node);
  Node* node_;  // freed by its close callback
  std::string peer_;
};

class Listener {
 public:
  struct Options {
    Address address;
    bool reuse_port = false;     // several listeners, one per loop, share the port
    bool may_be_absent = false;  // the host may not have this IPv4 address yet
    int backlog = 1024;
  };
  using AcceptCallback = std::function<void(std::unique_ptr<Socket>)>;

  // A unix socket has mode 0600, accepts connections as soon as its name appears, and replaces an
  // existing socket.
  static Result<std::unique_ptr<Listener>> Create(UvLoop& loop, const Options& options,
                                                  AcceptCallback on_accept);
  ~Listener();  // also removes a unix socket's file
  std::uint16_t port() const;

 private:
  struct Node;
  explicit Listener(Node* node);
  Node* node_;
};

// Tries to connect to all addresses of a name in turn. Destroying it cancels.
class Connector {
 public:
  using Callback = std::function<void(Result<std::unique_ptr<Socket>>)>;
  // The callback runs on the loop, never from within this call.
  static std::unique_ptr<Connector> Start(UvLoop& loop, const Address& address, Callback callback);
  ~Connector();

 private:
  struct Attempt;
  explicit Connector(std::shared_ptr<Attempt> attempt);
  std::shared_ptr<Attempt> attempt_;
};

// Calls FlushOutput of every added object once per loop iteration, before the loop waits, so that
// all output of one iteration is sent in one write.
class Flushable {
 public:
  virtual ~Flushable() = default;
  virtual void FlushOutput() = 0;
};

class FlushQueue {
 public:
  explicit FlushQueue(UvLoop& loop);
  ~FlushQueue();
  void Add(std::shared_ptr<Flushable> item);

 private:
  struct Node;
  Node* node_;
};

}  // namespace drakkar::net
