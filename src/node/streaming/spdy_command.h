#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "base/exec/event_loop.h"
#include "net/http/raw_stream.h"
#include "net/spdy/session.h"
#include "node/runtime/runtime.h"

namespace drakkar::node {

inline constexpr char kSpdyCommandProtocol[] = "v4.channel.k8s.io";

// Connects a SPDY client (kubectl before 1.31, client-go's older executor) to a process in a
// container: one stream each for input, output, error output, terminal size and the final status.
// The process starts once the client has opened all of them, within kStreamsWithin. Flow control
// and timeouts are those of RemoteCommand.
//
// Loop-bound.
class SpdyCommand final : private net::spdy::Session::Events, private ProcessStreams::Events {
 public:
  using Starter =
      std::function<Result<std::unique_ptr<ProcessStreams>>(ProcessStreams::Events& events)>;
  struct Options {
    EventLoop& loop;
    StreamOptions streams;
    std::string what;  // "executing command", for errors
    Starter starter;
    std::function<void()> on_gone;  // called once, last, from the loop: destroy it
  };
  static constexpr std::size_t kMaxPending = 256 << 10;
  static constexpr Duration kIdleTimeout = std::chrono::hours(4);
  static constexpr Duration kStreamsWithin = std::chrono::seconds(30);
  // How long the client may take to close the connection after the final status.
  static constexpr Duration kCloseTimeout = std::chrono::seconds(5);

  SpdyCommand(Options options, std::unique_ptr<net::RawStream> stream);
  ~SpdyCommand() override;
  void Start();

 private:
  void OnStream(net::spdy::StreamId stream, const net::Headers& headers) override;
  void OnReply(net::spdy::StreamId) override {}
  void OnData(net::spdy::StreamId stream, std::string_view bytes) override;
  void OnFinish(net::spdy::StreamId stream) override;
  void OnReset(net::spdy::StreamId stream) override;
  void OnGoAway() override {}
  void OnOutput(OutputStream stream, std::string_view bytes) override;
  void OnInputDrained() override;
  void OnEnd(Result<int> exit_code) override;

  std::size_t ExpectedStreams() const;
  net::spdy::StreamId Find(const char* type) const;
  void RestartTimer(Duration delay);
  void EndWith(const std::string& status_json);
  void Flush();
  void Gone();

  const Options options_;
  std::unique_ptr<net::RawStream> stream_;
  net::spdy::Session session_;
  std::map<std::string, net::spdy::StreamId, std::less<>> streams_;  // by type
  std::unique_ptr<ProcessStreams> process_;
  std::string size_;  // an incomplete terminal size
  TimerHandle timer_;
  bool output_paused_ = false;
  bool ended_ = false;
  bool gone_ = false;
};

}  // namespace drakkar::node
