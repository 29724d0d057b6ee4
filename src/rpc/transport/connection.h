#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>

#include "base/exec/uv_loop.h"
#include "base/result/result.h"
#include "net/socket/socket.h"
#include "net/transport/transport.h"

namespace drakkar::rpc {

// Private to rpc/transport.

// How long a connection of a stopped server gives its peer to read the last answers.
constexpr Duration kStopGrace = std::chrono::seconds(1);

class Connection;

// Shared by all channels and servers of one transport.
struct LoopContext {
  explicit LoopContext(UvLoop& on_loop) : loop(on_loop), flush_queue(on_loop) {}

  UvLoop& loop;
  net::FlushQueue flush_queue;
  // Connections of stopped servers whose peers have not read everything, for kStopGrace.
  struct Lingering {
    std::shared_ptr<Connection> connection;
    TimerHandle timer;
  };
  std::unordered_map<const Connection*, Lingering> lingering;
  bool may_linger = true;  // until the transport is gone
};

// A socket, with or without TLS, and a gRPC session on it: the part that client and server share.
// Received bytes go to the session. Its output is sent in one write per loop iteration, limited to
// what the kernel accepts. Lives on the loop; create it as a shared_ptr.
class Connection : public net::Flushable,
                   public std::enable_shared_from_this<Connection>,
                   private net::Transport::Handler {
 public:
  // `tls` may be null.
  Connection(std::shared_ptr<LoopContext> context, std::unique_ptr<net::Socket> socket,
             std::unique_ptr<net::TlsFilter> tls);
  ~Connection() override;
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  void Start();
  void ScheduleFlush();
  void FlushOutput() override;
  bool IsOpen() const { return transport_ != nullptr; }
  // Closes immediately, without OnLost.
  void Close();
  // Closes once the peer has read everything, or after kStopGrace.
  void CloseGently();

 protected:
  // The session, see rpc/grpc.
  virtual Result<void> Receive(std::string_view bytes) = 0;
  virtual void Send(std::string& out, std::size_t limit) = 0;
  virtual bool IsFinished() const = 0;
  // Acts on the session's events. May close this connection and drop references to it.
  virtual void Dispatch() = 0;
  // The connection is gone: the peer closed it, it broke, or the session finished. `why` may be
  // empty. Not after Close.
  virtual void OnLost(const std::string& why) = 0;

  // Closes immediately, with OnLost.
  void Lose(std::string why);

 private:
  void OnTransportReady() override;
  void OnTransportData(std::string_view bytes) override;
  void OnTransportClosed(const Error* error) override;
  void OnTransportDrained() override { ScheduleFlush(); }

  // Null once closed, as is the transport: a flush that is still queued must not keep the queue
  // alive.
  std::shared_ptr<LoopContext> context_;
  std::unique_ptr<net::Transport> transport_;
  std::string out_;
  bool ready_ = false;  // with TLS: the handshake is done
  bool flush_scheduled_ = false;
};

}  // namespace drakkar::rpc
