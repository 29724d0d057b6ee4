#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/exec/event_loop.h"
#include "net/http/raw_stream.h"
#include "net/websocket/session.h"
#include "node/runtime/runtime.h"

namespace drakkar::node {

// The oldest of Kubernetes' channel protocols: a command that succeeds ends without a status, and
// one that fails with a text. Clients that ask for no version mean this one.
inline constexpr std::string_view kFirstChannelProtocol = "channel.k8s.io";

// Connects a WebSocket client to a process in a container: input, output, terminal size, and the
// final status (Kubernetes' channel protocol, v4, v5 and the first). Flow control in both
// directions: at most about kMaxPending bytes are buffered each way. Ends with the process, with
// the client, or after kIdleTimeout without traffic; the destructor ends both.
//
// Loop-bound.
class RemoteCommand final : private net::websocket::Session::Events,
                            private ProcessStreams::Events {
 public:
  struct Options {
    EventLoop& loop;
    StreamOptions streams;
    std::string protocol;           // the negotiated one
    std::string what;               // "executing command", for errors
    std::function<void()> on_gone;  // called once, last, from the loop: destroy it
  };
  using Starter =
      std::function<Result<std::unique_ptr<ProcessStreams>>(ProcessStreams::Events& events)>;

  static constexpr std::size_t kMaxPending = 256 << 10;
  static constexpr Duration kPingEvery = std::chrono::seconds(30);
  static constexpr Duration kIdleTimeout = std::chrono::hours(4);
  // How long the client may take to answer our close frame.
  static constexpr Duration kCloseTimeout = std::chrono::seconds(5);

  RemoteCommand(Options options, std::unique_ptr<net::RawStream> stream);
  ~RemoteCommand() override;

  void Start(const Starter& starter);

 private:
  void OnMessage(net::websocket::MessageType type, std::string_view payload) override;
  void OnClose(std::uint16_t code, std::string_view reason) override;
  bool MayAnswerPing() const override;
  void OnOutput(OutputStream stream, std::string_view bytes) override;
  void OnInputDrained() override;
  void OnEnd(Result<int> exit_code) override;

  void OnTick();
  void Flush();
  // The final message to the client.
  void EndWith(std::string status_json);
  void Gone();

  const Options options_;
  std::unique_ptr<net::RawStream> stream_;
  net::websocket::Session session_;
  std::unique_ptr<ProcessStreams> process_;
  MonotonicTime last_bytes_;
  TimerHandle tick_;
  TimerHandle close_timer_;
  bool output_paused_ = false;
  bool input_paused_ = false;
  bool ended_ = false;  // the final status was sent
  bool gone_ = false;
};

// The final Status of a command: success, its exit code, or why there is none.
std::string RemoteCommandStatus(const Result<int>& exit_code, std::string_view what);

}  // namespace drakkar::node
