#pragma once

#include <memory>
#include <string>

#include "absl/functional/any_invocable.h"
#include "base/exec/event_loop.h"
#include "base/exec/lifetime.h"
#include "net/spdy/session.h"
#include "node/runtime/cri/stream_dialer.h"
#include "node/runtime/port_connection.h"

namespace drakkar::node {

// A connection to a pod's port through a CRI runtime's streaming server: SPDY with a data stream
// and an error stream (portforward.k8s.io). Loop-bound.
class CriPort final : public PortConnection, private net::spdy::Session::Events {
 public:
  CriPort(EventLoop& loop, StreamDialer dial, std::uint16_t port, PortConnection::Events& events);
  ~CriPort() override;

  // Takes the runtime's answer to PortForward.
  absl::AnyInvocable<void(Result<std::string>)> UrlCallback();

  void Write(std::string_view bytes) override;
  std::size_t pending_bytes() const override;
  void FinishWriting() override;
  void SetReading(bool reading) override;

 private:
  static constexpr std::size_t kMaxErrorBytes = 4 << 10;

  void OnConnected(Result<std::unique_ptr<net::RawStream>> stream);
  void OnStream(net::spdy::StreamId stream, const net::Headers& headers) override;
  void OnReply(net::spdy::StreamId stream) override;
  void OnData(net::spdy::StreamId stream, std::string_view bytes) override;
  void OnFinish(net::spdy::StreamId stream) override;
  void OnReset(net::spdy::StreamId stream) override;
  void OnGoAway() override {}
  void SendEarly();
  void Flush();
  void End(Result<void> result);

  EventLoop& loop_;
  const StreamDialer dial_;
  const std::uint16_t port_;
  PortConnection::Events& events_;
  net::spdy::Session session_;
  std::unique_ptr<PendingDial> dialing_;
  std::unique_ptr<net::RawStream> stream_;
  net::spdy::StreamId error_ = 0;
  net::spdy::StreamId data_ = 0;
  bool accepted_ = false;
  bool finished_ = false;
  bool reading_ = true;
  bool data_ended_ = false;
  bool error_ended_ = false;
  bool ended_ = false;
  std::string early_;
  std::string error_text_;
  Lifetime lifetime_;
};

}  // namespace drakkar::node
