#include "node/runtime/cri/cri_port.h"

#include <algorithm>

#include "base/text/text.h"
#include "node/runtime/cri/cri_messages.h"

namespace drakkar::node {

using net::spdy::StreamId;

CriPort::CriPort(EventLoop& loop, StreamDialer dial, std::uint16_t port,
                 PortConnection::Events& events)
    : loop_(loop),
      dial_(std::move(dial)),
      port_(port),
      events_(events),
      session_(net::spdy::Role::kClient, *this) {}

CriPort::~CriPort() = default;

absl::AnyInvocable<void(Result<std::string>)> CriPort::UrlCallback() {
  return lifetime_.Guard([this](Result<std::string> bytes) {
    if (!bytes.ok()) return End(std::move(bytes).error());
    auto url = cri::DecodeStreamUrl(*bytes);
    if (!url.ok()) return End(std::move(url).error());
    dialing_ = dial_(*url, SpdyHeaders("portforward.k8s.io"),
                     lifetime_.Guard([this](Result<std::unique_ptr<net::RawStream>> stream) {
                       OnConnected(std::move(stream));
                     }));
  });
}

void CriPort::OnConnected(Result<std::unique_ptr<net::RawStream>> stream) {
  if (!stream.ok()) return End(std::move(stream).error());
  stream_ = *std::move(stream);
  const std::string port = std::to_string(port_);
  error_ = session_.Open({{"streamType", "error"}, {"port", port}, {"requestID", "0"}});
  session_.Finish(error_);  // nothing is written to it
  data_ = session_.Open({{"streamType", "data"}, {"port", port}, {"requestID", "0"}});
  stream_->SetReading(reading_);
  stream_->OnDrained([this] {
    if (early_.empty()) events_.OnPortDrained();
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
      [this] { End(Unavailable("the container runtime closed the connection")); });
}

void CriPort::OnStream(StreamId stream, const net::Headers&) {
  session_.Reset(stream, net::spdy::kRefusedStream);
}

void CriPort::OnReply(StreamId stream) {
  if (stream != data_) return;
  accepted_ = true;
  SendEarly();
}

void CriPort::OnData(StreamId stream, std::string_view bytes) {
  if (ended_) return;
  if (stream == data_) return events_.OnPortData(bytes);
  const std::size_t room = kMaxErrorBytes - std::min(kMaxErrorBytes, error_text_.size());
  error_text_ += bytes.substr(0, room);
}

// The error stream carries the outcome, and may end before or after the data.
void CriPort::OnFinish(StreamId stream) {
  (stream == data_ ? data_ended_ : error_ended_) = true;
  if (error_ended_ && !error_text_.empty()) return End(Internal(error_text_));
  if (data_ended_ && error_ended_) End(Ok());
}

void CriPort::OnReset(StreamId stream) {
  OnFinish(stream);
}

void CriPort::Write(std::string_view bytes) {
  if (finished_ || ended_) return;
  early_ += bytes;
  if (accepted_) SendEarly();
}

void CriPort::SendEarly() {
  session_.Send(data_, early_);
  early_.clear();
  if (finished_) session_.Finish(data_);
  Flush();
}

std::size_t CriPort::pending_bytes() const {
  return early_.size() + (stream_ ? stream_->pending_bytes() : 0);
}

void CriPort::FinishWriting() {
  if (std::exchange(finished_, true)) return;
  if (accepted_) SendEarly();
}

void CriPort::SetReading(bool reading) {
  reading_ = reading;
  if (stream_) stream_->SetReading(reading);
}

void CriPort::Flush() {
  if (stream_ && session_.has_output()) stream_->Write(session_.TakeOutput());
}

void CriPort::End(Result<void> result) {
  if (std::exchange(ended_, true)) return;
  // Posted: this may run inside an event of the session.
  loop_.Post(lifetime_.Guard([this, ended = std::move(result)]() mutable {
    dialing_.reset();
    events_.OnPortEnd(std::move(ended));
  }));
}

}  // namespace drakkar::node
