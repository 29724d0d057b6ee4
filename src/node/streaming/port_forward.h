#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "base/exec/event_loop.h"
#include "base/exec/lifetime.h"
#include "net/http/raw_stream.h"
#include "net/spdy/session.h"
#include "node/runtime/port_connection.h"

namespace drakkar::node {

inline constexpr char kPortForwardProtocol[] = "portforward.k8s.io";

// Forwards connections to ports of a pod over SPDY (Kubernetes' portforward.k8s.io): each
// connection is a pair of streams, one for data and one for errors. Ends with the client or after
// kIdleTimeout without traffic. Flow control applies to the whole connection: about kMaxPending
// bytes are buffered per direction and connection. Bounds: kMaxConnections at a time.
//
// Loop-bound.
class PortForward final : private net::spdy::Session::Events {
 public:
  using Connect = std::function<Result<std::unique_ptr<PortConnection>>(
      std::uint16_t port, PortConnection::Events& events)>;
  struct Options {
    EventLoop& loop;
    std::string pod;  // for messages
    Connect connect;
    std::function<void()> on_gone;  // called once, last, from the loop: destroy it
  };
  static constexpr std::size_t kMaxPending = 256 << 10;
  static constexpr std::size_t kMaxConnections = 500;
  static constexpr Duration kIdleTimeout = std::chrono::hours(4);
  // Maximum time between the two streams of a pair.
  static constexpr Duration kPairWithin = std::chrono::seconds(30);

  PortForward(Options options, std::unique_ptr<net::RawStream> stream);
  ~PortForward() override;
  void Start();

 private:
  class Forwarded;

  void OnStream(net::spdy::StreamId stream, const net::Headers& headers) override;
  void OnReply(net::spdy::StreamId) override {}
  void OnData(net::spdy::StreamId stream, std::string_view bytes) override;
  void OnFinish(net::spdy::StreamId stream) override;
  void OnReset(net::spdy::StreamId stream) override;
  void OnGoAway() override {}

  Forwarded* FindByData(net::spdy::StreamId stream);
  void Remove(const std::string& request);
  void Flush();
  void UpdateReading();
  void RestartIdleTimer();
  void Gone();

  const Options options_;
  std::unique_ptr<net::RawStream> stream_;
  net::spdy::Session session_;
  std::map<std::string, std::unique_ptr<Forwarded>> forwarded_;  // by the client's request id
  std::map<net::spdy::StreamId, std::string> data_streams_;      // to the request id
  TimerHandle idle_;
  bool output_paused_ = false;
  bool gone_ = false;
  Lifetime lifetime_;
};

}  // namespace drakkar::node
