#pragma once

#include <memory>
#include <string>
#include <unordered_map>

#include "net/client/http_client.h"
#include "net/client/tunnel.h"
#include "net/http/session.h"
#include "net/http/url.h"
#include "net/tls/certificates.h"
#include "net/transport/transport.h"

namespace drakkar::net::client {

// One request from the call to its end, whether queued or on a connection.
struct Call {
  Request request;
  std::string url;  // as given, for errors
  Method method = Method::kGet;
  StreamSink* sink = nullptr;
  std::unique_ptr<StreamSink> owned_sink;
  // if set, the caller wants a raw stream
  std::function<void(std::unique_ptr<RawStream>)> on_upgrade;
  TimerHandle timeout;
  int attempts = 0;
  bool response_started = false;
  bool over = false;  // the sink has had its last call or wants no more

  // On a connection:
  class Connection* connection = nullptr;
  StreamId stream = 0;

  // Calls OnEnd once.
  void End(Result<void> result);
};
using CallPtr = std::shared_ptr<Call>;

// What a connection needs from the pool.
class ConnectionOwner {
 public:
  virtual ~ConnectionOwner() = default;
  virtual FlushQueue& flush_queue() = 0;
  virtual void OnConnectionReady(Connection& connection) = 0;
  // Streams have ended, so there may be room for queued calls.
  virtual void OnConnectionRoom(Connection& connection) = 0;
  virtual void OnRetry(Connection& connection, CallPtr call) = 0;
  // `error` is why it never became ready, or null. The last call; the pool then releases it.
  virtual void OnConnectionClosed(Connection& connection, const Error* error) = 0;
};

class Connection final : public std::enable_shared_from_this<Connection>,
                         public Flushable,
                         public RawEndpoint,
                         private Transport::Handler,
                         private ClientSession::Events {
 public:
  Connection(UvLoop& loop, const HttpClientOptions& options, ConnectionOwner& owner, Url url,
             std::string peer, std::shared_ptr<const TlsContext> tls);
  ~Connection() override;

  void* pool_entry = nullptr;  // used by the owner to find its record
  // The client's certificate when the connection was opened; null if there is none.
  std::shared_ptr<const CertificateAndKey> certificate = nullptr;
  std::optional<HttpProxy> proxy = std::nullopt;  // set before Start
  // Takes no new calls, because the client has another certificate now. It closes when it is idle.
  bool is_retired = false;

  void Start();
  bool is_ready() const { return session_ != nullptr; }
  bool is_http2() const { return http2_; }
  bool CanSubmit() const;
  void Submit(CallPtr call);
  void Cancel(Call& call);
  void SetReading(const Call& call, bool reading);
  // Closes immediately; open calls fail with `error`, or are retried if that is safe.
  void Close(const Error& error);
  // Closes without notifying anyone.
  void Abandon();
  void Check(MonotonicTime now);

  void FlushOutput() override;
  void RawWrite(std::string_view bytes) override;
  std::size_t RawPendingBytes() const override;
  void RawSetReading(bool reading) override;
  void RawClose() override;

 private:
  void OnTransportReady() override;
  void OnTransportData(std::string_view bytes) override;
  void OnTransportClosed(const Error* error) override;
  void OnTransportDrained() override { ScheduleFlush(); }
  void OnResponse(StreamId stream, int status, Headers headers) override;
  void OnData(StreamId stream, std::string_view bytes) override;
  void OnStreamEnd(StreamId stream, const Error* error, bool unprocessed) override;
  void OnRawData(std::string_view bytes) override;

  void OnSocket(std::unique_ptr<Socket> socket);
  void ScheduleFlush();
  void AfterEvents();

  UvLoop& loop_;
  const HttpClientOptions& options_;
  ConnectionOwner* owner_;  // null once closed
  const Url url_;
  const std::string peer_;
  std::shared_ptr<const TlsContext> tls_;
  std::unique_ptr<Connector> connector_;
  std::unique_ptr<Tunnel> tunnel_;
  TimerHandle connect_timeout_;
  std::unique_ptr<Transport> transport_;
  std::unique_ptr<ClientSession> session_;
  std::unordered_map<StreamId, CallPtr> calls_;
  RawStreamEnd* raw_ = nullptr;
  bool raw_closing_ = false;
  bool http2_ = false;
  bool served_ = false;  // has delivered a response before
  bool room_ = false;    // streams have ended since AfterEvents
  bool flush_scheduled_ = false;
  std::string out_;
  bool active_ = false;  // read or wrote something since the last check
  MonotonicTime last_received_{};
  MonotonicTime idle_since_{};
  MonotonicTime pinged_at_{};
  bool pinged_ = false;
};

}  // namespace drakkar::net::client
