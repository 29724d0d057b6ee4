#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "base/exec/event_loop.h"
#include "base/exec/lifetime.h"
#include "base/result/result.h"
#include "net/http/raw_stream.h"
#include "net/http/url.h"
#include "net/spdy/session.h"
#include "net/websocket/session.h"

namespace drakkar::apiserver {

// Port-forward as spoken by older WebSocket clients: the ports are in the query, and each has one
// channel for data and one for errors, whose first message is the port as two bytes.
inline constexpr std::string_view kPortChannels = "v4.channel.k8s.io";
inline constexpr std::size_t kMaxForwardedPorts = 100;

// The ports of "?ports=80,443&ports=8080".
Result<std::vector<std::uint16_t>> ForwardedPorts(const net::Query& query);

// Connects such a client to a node, which speaks SPDY: each channel becomes a stream. Ends when
// either side ends. Loop-bound. Bounds: bytes are read no faster than the other side accepts them,
// up to kMaxPending.
class PortForwardChannels final : private net::websocket::Session::Events,
                                  private net::spdy::Session::Events {
 public:
  static constexpr std::size_t kMaxPending = 256 << 10;

  // `on_gone` is called once, last, from inside a call of a stream: destroy it later.
  PortForwardChannels(std::unique_ptr<net::RawStream> client, std::unique_ptr<net::RawStream> node,
                      std::vector<std::uint16_t> ports, std::function<void()> on_gone);
  ~PortForwardChannels() override;
  void Start();

 private:
  struct Forwarded {
    std::uint16_t port = 0;
    net::spdy::StreamId data = 0;
    net::spdy::StreamId error = 0;
  };

  void OnMessage(net::websocket::MessageType type, std::string_view payload) override;
  void OnClose(std::uint16_t code, std::string_view reason) override;
  bool MayAnswerPing() const override;

  void OnStream(net::spdy::StreamId stream, const net::Headers& headers) override;
  void OnReply(net::spdy::StreamId) override {}
  void OnData(net::spdy::StreamId stream, std::string_view bytes) override;
  void OnFinish(net::spdy::StreamId stream) override;
  void OnReset(net::spdy::StreamId stream) override { OnFinish(stream); }
  void OnGoAway() override {}

  void Tell(std::size_t channel, std::string_view bytes);
  void Flush();
  void Gone();

  const std::unique_ptr<net::RawStream> client_;
  const std::unique_ptr<net::RawStream> node_;
  const std::function<void()> on_gone_;
  net::websocket::Session socket_;
  net::spdy::Session spdy_;
  std::vector<Forwarded> ports_;  // its data has channel 2i, its error 2i + 1
  std::size_t open_ = 0;          // data streams of the node
  bool gone_ = false;
  Lifetime lifetime_;
};

}  // namespace drakkar::apiserver
