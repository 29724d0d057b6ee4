#include "node/runtime/cri/cri_streams.h"

#include "base/text/text.h"
#include "node/runtime/cri/cri_messages.h"
#include "node/runtime/json.h"

namespace drakkar::node {

using net::spdy::StreamId;

Result<int> ParseCommandStatus(std::string_view json) {
  auto parsed = ParseJson(json);
  if (!parsed.ok()) return Internal("the container runtime sent no status for the command");
  const api::Value status = (*parsed)->root();
  if (status["status"].str() == "Success") return 0;
  if (status["reason"].str() == "NonZeroExitCode") {
    for (const api::Value cause : status["details"]["causes"].elements()) {
      if (cause["reason"].str() != "ExitCode") continue;
      if (const auto code = ParseInt64(cause["message"].str());
          code && *code >= 0 && *code <= 255) {
        return static_cast<int>(*code);
      }
    }
  }
  return Internal(std::string(status["message"].str("the command failed")));
}

CriStreams::CriStreams(EventLoop& loop, StreamDialer dial, const StreamOptions& options,
                       ProcessStreams::Events& events)
    : loop_(loop),
      dial_(std::move(dial)),
      options_(options),
      events_(events),
      session_(net::spdy::Role::kClient, *this) {}

CriStreams::~CriStreams() = default;

absl::AnyInvocable<void(Result<std::string>)> CriStreams::UrlCallback() {
  return lifetime_.Guard([this](Result<std::string> bytes) {
    if (!bytes.ok()) return End(std::move(bytes).error());
    auto url = cri::DecodeStreamUrl(*bytes);
    if (!url.ok()) return End(std::move(url).error());
    dialing_ = dial_(*url, SpdyHeaders("v4.channel.k8s.io"),
                     lifetime_.Guard([this](Result<std::unique_ptr<net::RawStream>> stream) {
                       OnConnected(std::move(stream));
                     }));
  });
}

void CriStreams::OnConnected(Result<std::unique_ptr<net::RawStream>> stream) {
  if (!stream.ok()) return End(std::move(stream).error());
  stream_ = *std::move(stream);
  status_ = session_.Open({{"streamType", "error"}});
  session_.Finish(status_);  // nothing is written to it
  if (options_.standard_input) input_ = session_.Open({{"streamType", "stdin"}});
  if (options_.standard_output) output_ = session_.Open({{"streamType", "stdout"}});
  if (options_.error_output && !options_.terminal) {
    error_output_ = session_.Open({{"streamType", "stderr"}});
  }
  if (options_.terminal) resize_ = session_.Open({{"streamType", "resize"}});
  if (!early_size_.empty()) session_.Send(resize_, early_size_);
  stream_->SetReading(reading_);
  stream_->OnDrained([this] {
    if (early_input_.empty() && accepts_input_) events_.OnInputDrained();
  });
  Flush();
  stream_->Start(
      [this](std::string_view bytes) {
        const Lifetime::Observer self = lifetime_.Observe();
        const Result<void> received = session_.Receive(bytes);
        if (!self.alive()) return;
        if (!received.ok()) return End(received.error());
        Flush();
      },
      [this] {
        // Without a status, the outcome of the command is unknown.
        if (!status_text_.empty()) return End(ParseCommandStatus(status_text_));
        End(Unavailable("the container runtime closed the connection"));
      });
}

void CriStreams::OnStream(StreamId stream, const net::Headers&) {
  session_.Reset(stream, net::spdy::kRefusedStream);
}

void CriStreams::OnReply(StreamId stream) {
  if (stream != input_) return;
  accepts_input_ = true;
  SendInput();
}

void CriStreams::OnData(StreamId stream, std::string_view bytes) {
  if (ended_) return;
  if (stream == status_) {
    status_text_ +=
        bytes.substr(0, kMaxStatusBytes - std::min(kMaxStatusBytes, status_text_.size()));
  } else if (stream == output_) {
    events_.OnOutput(OutputStream::kStandard, bytes);
  } else if (stream == error_output_) {
    events_.OnOutput(OutputStream::kError, bytes);
  }
}

void CriStreams::OnFinish(StreamId stream) {
  if (stream == status_) End(ParseCommandStatus(status_text_));
}

void CriStreams::OnReset(StreamId stream) {
  if (stream != status_) return;
  End(status_text_.empty() ? Result<int>(Unavailable("the container runtime reset the connection"))
                           : ParseCommandStatus(status_text_));
}

void CriStreams::WriteInput(std::string_view bytes) {
  if (!options_.standard_input || input_closed_ || ended_) return;
  early_input_ += bytes;
  if (accepts_input_) SendInput();
}

void CriStreams::SendInput() {
  session_.Send(input_, early_input_);
  early_input_.clear();
  if (input_closed_) session_.Finish(input_);
  Flush();
}

std::size_t CriStreams::pending_input() const {
  return early_input_.size() + (stream_ ? stream_->pending_bytes() : 0);
}

void CriStreams::CloseInput() {
  if (!options_.standard_input || std::exchange(input_closed_, true)) return;
  if (accepts_input_) SendInput();
}

void CriStreams::Resize(std::uint16_t columns, std::uint16_t rows) {
  const std::string size = StrCat("{\"Width\":", columns, ",\"Height\":", rows, "}");
  if (resize_ == 0) {
    early_size_ = size;
    return;
  }
  session_.Send(resize_, size);
  Flush();
}

void CriStreams::SetReading(bool reading) {
  reading_ = reading;
  if (stream_) stream_->SetReading(reading);
}

void CriStreams::Flush() {
  if (stream_ && session_.has_output()) stream_->Write(session_.TakeOutput());
}

void CriStreams::End(Result<int> exit_code) {
  if (std::exchange(ended_, true)) return;
  // Posted: this may run inside an event of the session.
  loop_.Post(lifetime_.Guard([this, code = std::move(exit_code)]() mutable {
    dialing_.reset();
    events_.OnEnd(std::move(code));
  }));
}

}  // namespace drakkar::node
