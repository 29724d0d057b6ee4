#include "node/streaming/spdy_command.h"

#include "api/json/reader.h"
#include "base/text/text.h"
#include "node/streaming/remote_command.h"

namespace drakkar::node {
namespace {

using net::spdy::StreamId;

// Sizes follow each other without a separator; each of them is far shorter than this.
constexpr std::size_t kMaxSizeBytes = 4096;

}  // namespace

SpdyCommand::SpdyCommand(Options options, std::unique_ptr<net::RawStream> stream)
    : options_(std::move(options)),
      stream_(std::move(stream)),
      session_(net::spdy::Role::kServer, *this) {}

SpdyCommand::~SpdyCommand() = default;

void SpdyCommand::Start() {
  RestartTimer(kStreamsWithin);
  stream_->OnDrained([this] {
    if (std::exchange(output_paused_, false) && process_) process_->SetReading(true);
  });
  // Last, because it may deliver events and find that the client has disconnected.
  stream_->Start(
      [this](std::string_view bytes) {
        const Result<void> received = session_.Receive(bytes);
        Flush();
        if (!received.ok()) Gone();
      },
      [this] { Gone(); });
}

std::size_t SpdyCommand::ExpectedStreams() const {
  const StreamOptions& wanted = options_.streams;
  return 1u + wanted.standard_input + wanted.standard_output + wanted.error_output +
         wanted.terminal;
}

StreamId SpdyCommand::Find(const char* type) const {
  const auto found = streams_.find(type);
  return found == streams_.end() ? 0 : found->second;
}

void SpdyCommand::OnStream(StreamId stream, const net::Headers& headers) {
  const std::string type(headers.Get("streamtype"));
  const StreamOptions& wanted = options_.streams;
  const bool expected = type == "error" || (type == "stdin" && wanted.standard_input) ||
                        (type == "stdout" && wanted.standard_output) ||
                        (type == "stderr" && wanted.error_output) ||
                        (type == "resize" && wanted.terminal);
  if (!expected || streams_.contains(type)) {
    return session_.Reset(stream, net::spdy::kProtocolError);
  }
  streams_[type] = stream;
  session_.Reply(stream);
  if (streams_.size() < ExpectedStreams()) return;
  RestartTimer(kIdleTimeout);
  Result<std::unique_ptr<ProcessStreams>> started = options_.starter(*this);
  if (!started.ok()) return EndWith(RemoteCommandStatus(started.error(), options_.what));
  process_ = *std::move(started);
}

void SpdyCommand::OnData(StreamId stream, std::string_view bytes) {
  if (!process_) return;
  RestartTimer(kIdleTimeout);
  if (stream == Find("stdin")) {
    process_->WriteInput(bytes);
    if (process_->pending_input() > kMaxPending) stream_->SetReading(false);
  } else if (stream == Find("resize")) {
    size_ += bytes;
    // Each is one JSON object, {"Width":80,"Height":24}.
    for (std::size_t end = size_.find('}'); end != std::string::npos; end = size_.find('}')) {
      Result<api::TreePtr> size = api::ParseJson(Trim(std::string_view(size_).substr(0, end + 1)));
      size_.erase(0, end + 1);
      if (!size.ok()) continue;
      const std::int64_t columns = (*size)->root()["Width"].integer();
      const std::int64_t rows = (*size)->root()["Height"].integer();
      if (columns <= 0 || rows <= 0 || columns > UINT16_MAX || rows > UINT16_MAX) continue;
      process_->Resize(static_cast<std::uint16_t>(columns), static_cast<std::uint16_t>(rows));
    }
    if (size_.size() > kMaxSizeBytes) size_.clear();
  }
}

void SpdyCommand::OnFinish(StreamId stream) {
  if (process_ && stream == Find("stdin")) process_->CloseInput();
}

void SpdyCommand::OnReset(StreamId stream) {
  if (stream == Find("stdin")) OnFinish(stream);
  if (stream == Find("error")) Gone();
}

void SpdyCommand::OnOutput(OutputStream stream, std::string_view bytes) {
  if (ended_ || gone_) return;
  RestartTimer(kIdleTimeout);
  session_.Send(Find(stream == OutputStream::kStandard ? "stdout" : "stderr"), bytes);
  Flush();
  if (stream_->pending_bytes() > kMaxPending && process_) {
    output_paused_ = true;
    process_->SetReading(false);
  }
}

void SpdyCommand::OnInputDrained() {
  stream_->SetReading(true);
}

void SpdyCommand::OnEnd(Result<int> exit_code) {
  EndWith(RemoteCommandStatus(exit_code, options_.what));
  // Posted, because this runs inside the object's own event.
  options_.loop.Post([process = std::shared_ptr<ProcessStreams>(std::move(process_))] {});
}

void SpdyCommand::EndWith(const std::string& status_json) {
  if (std::exchange(ended_, true)) return;
  session_.Send(Find("error"), status_json);
  for (const auto& [type, stream] : streams_) session_.Finish(stream);
  session_.GoAway();
  Flush();
  stream_->SetReading(true);
  RestartTimer(kCloseTimeout);
}

void SpdyCommand::RestartTimer(Duration delay) {
  timer_ = options_.loop.RunAfter(delay, [this] { Gone(); });
}

void SpdyCommand::Flush() {
  if (session_.has_output()) stream_->Write(session_.TakeOutput());
}

void SpdyCommand::Gone() {
  if (std::exchange(gone_, true)) return;
  options_.loop.Post(options_.on_gone);
}

}  // namespace drakkar::node
