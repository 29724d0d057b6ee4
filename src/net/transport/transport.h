#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/exec/lifetime.h"
#include "net/socket/socket.h"
#include "net/tls/tls.h"

namespace drakkar::net {

// A socket with or without TLS: plain bytes in and out. Bound to the socket's loop. Destroying it
// closes the connection immediately.
class Transport final : private Socket::Handler {
 public:
  class Handler {
   public:
    virtual ~Handler() = default;
    virtual void OnTransportReady() = 0;  // connected, and the TLS handshake, if any, is complete
    virtual void OnTransportData(std::string_view bytes) = 0;
    // The last event. Null if the peer closed cleanly.
    virtual void OnTransportClosed(const Error* error) = 0;
    virtual void OnTransportDrained() = 0;
  };

  // CanWrite is false if the socket's queue exceeds this many bytes.
  static constexpr std::size_t kHighWaterBytes = 256 * 1024;

  Transport(std::unique_ptr<Socket> socket, std::unique_ptr<TlsFilter> tls, Handler& handler);

  void Start();
  // `plain` is empty afterwards.
  void Write(std::string& plain);
  bool CanWrite() const { return socket_->pending_bytes() < kHighWaterBytes; }
  std::size_t pending_bytes() const { return socket_->pending_bytes(); }
  std::uint64_t total_written() const { return socket_->total_written(); }
  void SetReading(bool reading);
  // Frees buffers until there is data again.
  void ReleaseBuffers() {
    if (tls_) tls_->ReleaseBuffers();
  }
  // Sends what is queued, then close_notify and FIN. OnTransportClosed follows once the peer has
  // closed.
  void Shutdown();

  bool is_tls() const { return tls_ != nullptr; }
  std::string_view alpn() const { return tls_ ? tls_->alpn() : std::string_view(); }
  const TlsFilter* tls() const { return tls_.get(); }
  const std::string& peer() const { return socket_->peer(); }

 private:
  void OnSocketData(std::string_view bytes) override;
  void OnSocketClosed(const Error* error) override;
  void OnSocketDrained() override;
  bool BecomeReady();
  void WriteTlsOutput();
  void ReportClosed(const Error* error);

  std::unique_ptr<Socket> socket_;
  std::unique_ptr<TlsFilter> tls_;
  Handler* handler_;  // null after the last event
  bool ready_ = false;
  // An event may destroy the transport that raises it.
  Lifetime lifetime_;
};

}  // namespace drakkar::net
