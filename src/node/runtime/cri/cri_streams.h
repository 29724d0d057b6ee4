#pragma once

#include <memory>
#include <string>

#include "absl/functional/any_invocable.h"
#include "base/exec/event_loop.h"
#include "base/exec/lifetime.h"
#include "net/spdy/session.h"
#include "node/runtime/cri/stream_dialer.h"
#include "node/runtime/runtime.h"

namespace drakkar::node {

// The streams of a process behind a CRI runtime's streaming server: SPDY with one stream each for
// input, output, error output, terminal size and the final status (Kubernetes' v4 protocol, the
// oldest that reports an exit code, which every runtime speaks).
//
// Loop-bound. Input that is written before the connection exists is kept, up to what the caller
// writes beyond pending_input. Destroying it closes the connection; the runtime then ends the
// command.
class CriStreams final : public ProcessStreams, private net::spdy::Session::Events {
 public:
  CriStreams(EventLoop& loop, StreamDialer dial, const StreamOptions& options,
             ProcessStreams::Events& events);
  ~CriStreams() override;

  // Takes the runtime's answer to Exec or Attach.
  absl::AnyInvocable<void(Result<std::string>)> UrlCallback();

  void WriteInput(std::string_view bytes) override;
  std::size_t pending_input() const override;
  void CloseInput() override;
  void Resize(std::uint16_t columns, std::uint16_t rows) override;
  void SetReading(bool reading) override;

 private:
  static constexpr std::size_t kMaxStatusBytes = 64 << 10;

  void OnConnected(Result<std::unique_ptr<net::RawStream>> stream);
  void OnStream(net::spdy::StreamId stream, const net::Headers& headers) override;
  void OnReply(net::spdy::StreamId stream) override;
  void OnData(net::spdy::StreamId stream, std::string_view bytes) override;
  void OnFinish(net::spdy::StreamId stream) override;
  void OnReset(net::spdy::StreamId stream) override;
  void OnGoAway() override {}
  void SendInput();
  void Flush();
  void End(Result<int> exit_code);

  EventLoop& loop_;
  const StreamDialer dial_;
  const StreamOptions options_;
  ProcessStreams::Events& events_;
  net::spdy::Session session_;
  std::unique_ptr<PendingDial> dialing_;
  std::unique_ptr<net::RawStream> stream_;
  net::spdy::StreamId status_ = 0;
  net::spdy::StreamId input_ = 0;
  net::spdy::StreamId output_ = 0;
  net::spdy::StreamId error_output_ = 0;
  net::spdy::StreamId resize_ = 0;
  bool accepts_input_ = false;
  std::string early_input_;
  std::string early_size_;
  bool input_closed_ = false;
  bool reading_ = true;
  std::string status_text_;
  bool ended_ = false;
  Lifetime lifetime_;
};

// The outcome in a command's final status: its exit code, or an error.
Result<int> ParseCommandStatus(std::string_view json);

}  // namespace drakkar::node
