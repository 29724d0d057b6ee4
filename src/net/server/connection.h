#pragma once

#include <memory>
#include <string>
#include <unordered_map>

#include "net/server/http_server.h"
#include "net/transport/transport.h"

namespace drakkar::net::server {

class Writer;

// What a connection needs from its server.
class ConnectionOwner {
 public:
  virtual ~ConnectionOwner() = default;
  virtual RequestHandler& handler() = 0;
  virtual FlushQueue& flush_queue() = 0;
  virtual const std::string& DateText() = 0;
  virtual void OnConnectionClosed(std::uint64_t id) = 0;
  virtual void CountRequest() = 0;
};

// One accepted connection: transport, protocol session and the writers of its open requests.
class Connection final : public std::enable_shared_from_this<Connection>,
                         public Flushable,
                         public RawEndpoint,
                         private Transport::Handler,
                         private ServerSession::Events {
 public:
  Connection(UvLoop& loop, const HttpServerOptions& options, ConnectionOwner& owner,
             std::uint64_t id, std::unique_ptr<Socket> socket);
  ~Connection() override;

  void Start();
  // Accepts no new requests, and closes when the open ones are answered.
  void Shutdown();
  // Closes immediately and notifies the writers.
  void Close();
  // Closes if a timeout has expired. Called several times per timeout.
  void CheckTimeouts(MonotonicTime now);

  // For Writer.
  void Respond(StreamId stream, int status, const Headers& headers, Body body, bool final);
  void Write(StreamId stream, Segment bytes);
  void Finish(StreamId stream);
  void Reset(StreamId stream);
  std::size_t PendingBytes(StreamId stream) const;
  std::unique_ptr<RawStream> Upgrade(StreamId stream, const Headers& headers);
  void Forget(StreamId stream) { writers_.erase(stream); }
  void AwaitDrain(StreamId stream) { draining_.push_back(stream); }

  void FlushOutput() override;
  void RawWrite(std::string_view bytes) override;
  std::size_t RawPendingBytes() const override;
  void RawSetReading(bool reading) override;
  void RawClose() override;

 private:
  void OnTransportReady() override;
  void OnTransportData(std::string_view bytes) override;
  void OnTransportClosed(const Error* error) override;
  void OnTransportDrained() override;
  void OnRequest(StreamId stream, Request request) override;
  bool OnLargeBody(StreamId stream, const Request& head) override;
  bool IsStranger() const override;
  void OnStreamClosed(StreamId stream, bool completed) override;
  void OnRawData(std::string_view bytes) override;

  void MakeSession(bool http2);
  void ScheduleFlush();
  void TellDrained();
  void ReleaseIdleBuffers();

  UvLoop& loop_;
  const HttpServerOptions& options_;
  ConnectionOwner* owner_;  // null once closed
  const std::uint64_t id_;
  std::unique_ptr<Transport> transport_;  // null once closed
  std::unique_ptr<ServerSession> session_;
  std::shared_ptr<ConnectionInfo> info_;
  std::unordered_map<StreamId, Writer*> writers_;
  std::vector<StreamId> draining_;  // streams whose writers wait for pending bytes to drain
  RawStreamEnd* raw_ = nullptr;
  bool raw_closing_ = false;
  std::string first_bytes_;  // without TLS, until the protocol is known
  std::string out_;
  bool active_ = false;  // read or wrote something since the last check
  bool flush_scheduled_ = false;
  bool shutting_down_ = false;
  bool closing_ = false;  // our side is closed; waiting for the peer's

  // For CheckTimeouts.
  MonotonicTime since_{};  // when the phase below started
  enum class Phase { kHandshake, kIdle, kReceiving, kBusy, kClosing } phase_ = Phase::kHandshake;
  StreamId receiving_ = 0;
  MonotonicTime stalled_since_{};
  std::uint64_t written_before_ = 0;
};

class Writer final : public ResponseWriter {
 public:
  Writer(std::weak_ptr<Connection> connection, StreamId stream, UvLoop& loop)
      : connection_(std::move(connection)), stream_(stream), loop_(loop) {}
  ~Writer() override;

  using ResponseWriter::Send;
  void Send(int status, const Headers& headers, Body body) override;
  void StartStream(int status, const Headers& headers) override;
  void Write(Segment bytes) override;
  void Finish() override;
  void Abort() override;
  std::size_t pending_bytes() const override;
  bool is_closed() const override { return closed_; }
  void OnClosed(std::function<void(bool)> callback) override { on_closed_ = std::move(callback); }
  void OnDrained(std::function<void()> callback) override;
  Result<std::unique_ptr<RawStream>> Upgrade(const Headers& headers) override;

  // Called by the connection.
  void Closed(bool completed);
  void Drained();

 private:
  void AwaitDrain(Connection& connection);

  std::weak_ptr<Connection> connection_;
  const StreamId stream_;
  UvLoop& loop_;
  enum class State { kWaiting, kStreaming, kAnswered } state_ = State::kWaiting;
  bool closed_ = false;
  bool awaiting_drain_ = false;
  std::function<void(bool)> on_closed_;
  std::function<void()> on_drained_;
};

}  // namespace drakkar::net::server
