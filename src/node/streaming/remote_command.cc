#include "node/streaming/remote_command.h"

#include "api/json/reader.h"
#include "api/json/writer.h"
#include "api/meta/status.h"
#include "api/tree/draft.h"
#include "base/text/text.h"
#include "net/websocket/channels.h"

namespace drakkar::node {

namespace ws = net::websocket;

namespace {

// The message of a Status that is a failure.
std::string FailureIn(std::string_view status_json) {
  const auto status = api::ParseJson(status_json);
  if (!status.ok() || (*status)->root()["status"].str() == "Success") return "";
  return std::string((*status)->root()["message"].str());
}

}  // namespace

std::string RemoteCommandStatus(const Result<int>& exit_code, std::string_view what) {
  if (!exit_code.ok()) {
    const api::Status status = api::StatusInternalError(
        StrCat("error ", what, " in container: ", exit_code.error().message));
    return api::WriteJson(status.ToTree()->root());
  }
  if (*exit_code == 0) return R"({"metadata":{},"status":"Success"})";
  const std::string code = std::to_string(*exit_code);
  return StrCat(
      R"({"metadata":{},"status":"Failure","message":"command terminated with non-zero exit code: )",
      code, R"(","reason":"NonZeroExitCode","details":{"causes":[{"reason":"ExitCode","message":")",
      code, R"("}]}})");
}

RemoteCommand::RemoteCommand(Options options, std::unique_ptr<net::RawStream> stream)
    : options_(std::move(options)),
      stream_(std::move(stream)),
      // Server frames are not masked, so this randomness is never used.
      session_(ws::Role::kServer, RealRandom(), *this),
      last_bytes_(options_.loop.clock().Monotonic()) {}

RemoteCommand::~RemoteCommand() = default;

void RemoteCommand::Start(const Starter& starter) {
  stream_->OnDrained([this] {
    if (std::exchange(output_paused_, false) && process_) process_->SetReading(true);
  });
  tick_ = options_.loop.RunAfter(kPingEvery, [this] { OnTick(); });
  // An empty message tells the client that the connection is established.
  const char first = options_.streams.standard_output ? ws::kChannelOutput
                     : options_.streams.error_output  ? ws::kChannelErrorOutput
                                                      : ws::kChannelStatus;
  session_.Send(ws::MessageType::kBinary, std::string_view(&first, 1));
  Result<std::unique_ptr<ProcessStreams>> started = starter(*this);
  if (started.ok()) {
    process_ = std::move(*started);
  } else {
    EndWith(RemoteCommandStatus(started.error(), options_.what));
  }
  Flush();
  // Last, because it may deliver events and find that the client has disconnected.
  stream_->Start(
      [this](std::string_view bytes) {
        session_.Receive(bytes);
        Flush();
      },
      [this] { Gone(); });
}

void RemoteCommand::OnTick() {
  const Duration silent = options_.loop.clock().Monotonic() - last_bytes_;
  if (silent >= kIdleTimeout) return Gone();
  // Pings and pongs do not count as activity; they only detect a dead peer.
  if (stream_->pending_bytes() == 0) {
    session_.Ping();
    Flush();
  }
  tick_ = options_.loop.RunAfter(kPingEvery, [this] { OnTick(); });
}

void RemoteCommand::OnMessage(ws::MessageType, std::string_view payload) {
  if (payload.empty() || !process_) return;
  last_bytes_ = options_.loop.clock().Monotonic();
  const char channel = payload.front();
  payload.remove_prefix(1);
  if (channel == ws::kChannelInput && options_.streams.standard_input) {
    process_->WriteInput(payload);
    if (process_->pending_input() > kMaxPending) {
      input_paused_ = true;
      stream_->SetReading(false);
    }
  } else if (channel == ws::kChannelResize && options_.streams.terminal) {
    Result<api::TreePtr> size = api::ParseJson(payload);
    if (!size.ok()) return;
    const std::int64_t columns = (*size)->root()["Width"].integer();
    const std::int64_t rows = (*size)->root()["Height"].integer();
    if (columns <= 0 || rows <= 0 || columns > UINT16_MAX || rows > UINT16_MAX) return;
    process_->Resize(static_cast<std::uint16_t>(columns), static_cast<std::uint16_t>(rows));
  } else if (channel == ws::kChannelClose && options_.protocol == ws::kChannelProtocolV5) {
    if (payload == std::string_view(&ws::kChannelInput, 1)) process_->CloseInput();
  }
}

void RemoteCommand::OnClose(std::uint16_t, std::string_view) {
  Flush();
  Gone();
}

bool RemoteCommand::MayAnswerPing() const {
  return stream_->pending_bytes() < kMaxPending;
}

void RemoteCommand::OnOutput(OutputStream stream, std::string_view bytes) {
  if (ended_ || gone_) return;
  last_bytes_ = options_.loop.clock().Monotonic();
  const char channel =
      stream == OutputStream::kStandard ? ws::kChannelOutput : ws::kChannelErrorOutput;
  session_.Send(ws::MessageType::kBinary, std::string_view(&channel, 1), bytes);
  Flush();
  if (stream_->pending_bytes() > kMaxPending && process_) {
    output_paused_ = true;
    process_->SetReading(false);
  }
}

void RemoteCommand::OnInputDrained() {
  if (std::exchange(input_paused_, false)) stream_->SetReading(true);
}

void RemoteCommand::OnEnd(Result<int> exit_code) {
  EndWith(RemoteCommandStatus(exit_code, options_.what));
  Flush();
  // Posted, because this runs inside the object's own event.
  options_.loop.Post([process = std::shared_ptr<ProcessStreams>(std::move(process_))] {});
}

void RemoteCommand::EndWith(std::string status_json) {
  if (std::exchange(ended_, true)) return;
  if (options_.protocol != kFirstChannelProtocol) {
    session_.Send(ws::MessageType::kBinary, std::string_view(&ws::kChannelStatus, 1), status_json);
  } else if (const std::string why = FailureIn(status_json); !why.empty()) {
    session_.Send(ws::MessageType::kBinary, std::string_view(&ws::kChannelStatus, 1), why);
  }
  session_.Close(ws::kNormalClosure);
  // Pending input is read and discarded: closing with unread data could lose the final status.
  input_paused_ = false;
  stream_->SetReading(true);
  close_timer_ = options_.loop.RunAfter(kCloseTimeout, [this] { Gone(); });
}

void RemoteCommand::Flush() {
  if (session_.has_output()) stream_->Write(session_.TakeOutput());
}

void RemoteCommand::Gone() {
  if (std::exchange(gone_, true)) return;
  tick_.reset();
  options_.loop.Post(options_.on_gone);
}

}  // namespace drakkar::node
