#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>

#include "base/exec/uv_loop.h"
#include "base/result/result.h"
#include "net/socket/socket.h"

namespace drakkar::rpc {

// Private to rpc/transport.

// How long a connection of a stopped server lets its peer take the last answers.
constexpr Duration kStopGrace = std::chrono::seconds(1);

class Connection;

// What all channels and servers of one transport share.
struct LoopContext {
  explicit LoopContext(UvLoop& on_loop) : loop(on_loop), flush_queue(on_loop) {}

  UvLoop& loop;
  net::FlushQueue flush_queue;
  // Connections of stopped servers whose peers have not taken everything, for kStopGrace.
  struct Lingering {
    std::shared_ptr<Connection> connection;
    TimerHandle timer;
  };
  std::unordered_map<const Connection*, Lingering> lingering;
  bool may_linger = true;  // until the transport is gone
};

// A socket with a gRPC session on it, the half that both sides share: what is read goes to the
// session, what it has to send leaves in one write when the loop has run the events at hand, and no
// more than the kernel takes is asked from it. Lives on the loop; made as a shared_ptr.
class Connection : public net::Flushable,
                   public std::enable_shared_from_this<Connection>,
                   private net::Socket::Handler {
 public:
  Connection(std::shared_ptr<LoopContext> context, std::unique_ptr<net::Socket> socket);
  ~Connection() override;
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  void Start();
  void ScheduleFlush();
  void FlushOutput() override;
  bool IsOpen() const { return socket_ != nullptr; }
  // At once, without OnLost.
  void Close();
  // Closes once the peer has taken everything, or after kStopGrace.
  void CloseGently();

 protected:
  // The session, see rpc/grpc.
  virtual Result<void> Receive(std::string_view bytes) = 0;
  virtual void Send(std::string& out, std::size_t limit) = 0;
  virtual bool IsFinished() const = 0;
  // Acts on the session's events. It may close this connection and drop references to it.
  virtual void Dispatch() = 0;
  // The connection is gone, by the peer or because the session was finished. Not after Close.
  virtual void OnLost() = 0;

 private:
  void OnSocketData(std::string_view bytes) override;
  void OnSocketClosed(const Error* error) override;
  void OnSocketDrained() override { ScheduleFlush(); }
  void Lose();

  // Null once closed, as the socket is: a flush that is still queued must not keep the queue alive.
  std::shared_ptr<LoopContext> context_;
  std::unique_ptr<net::Socket> socket_;
  std::string out_;
  bool flush_scheduled_ = false;
};

}  // namespace drakkar::rpc
