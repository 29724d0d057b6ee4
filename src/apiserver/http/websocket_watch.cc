#include "apiserver/http/websocket_watch.h"

#include <cstdint>
#include <utility>

#include "api/meta/status.h"
#include "apiserver/http/encode.h"
#include "base/env/random.h"
#include "base/exec/lifetime.h"
#include "net/websocket/session.h"

namespace drakkar::apiserver {
namespace {

constexpr std::size_t kPrefixBytes = 4;
constexpr std::size_t kMaxUnsentPongs = 64u << 10;

class WebSocketWriter final : public net::ResponseWriter, private net::websocket::Session::Events {
 public:
  WebSocketWriter(EventLoop& loop, std::shared_ptr<net::ResponseWriter> writer,
                  net::websocket::Accepted accepted, WatchFrames frames)
      : loop_(loop),
        writer_(std::move(writer)),
        accepted_(std::move(accepted)),
        frames_(frames),
        // Server frames are not masked, so this randomness is never used.
        session_(net::websocket::Role::kServer, RealRandom(), *this) {}

  ~WebSocketWriter() override {
    // May be destroyed inside a call of the stream.
    if (stream_ != nullptr) loop_.Post([stream = std::move(stream_)] {});
  }

  using ResponseWriter::Send;
  void Send(int status, const net::Headers& headers, net::Body body) override {
    writer_->Send(status, headers, std::move(body));
  }

  void StartStream(int, const net::Headers&) override {
    Result<std::unique_ptr<net::RawStream>> upgraded = writer_->Upgrade(accepted_.headers);
    if (!upgraded.ok()) {
      const Failure failure = api::StatusBadRequest(upgraded.error().message);
      EncodedBody encoded = EncodeFailure(Negotiated{}, failure);
      writer_->Send(failure.code, {{"Content-Type", encoded.content_type}},
                    std::move(encoded.body));
      is_closed_ = true;
      return;
    }
    stream_ = std::move(*upgraded);
    stream_->OnDrained(lifetime_.Guard([this] {
      if (on_drained_) {
        const auto call = on_drained_;
        call();
      }
    }));
    stream_->Start(lifetime_.Guard([this](std::string_view bytes) {
      session_.Receive(bytes);
      Flush();
    }),
                   lifetime_.Guard([this] { Closed(false); }));
  }

  void Write(net::Segment bytes) override {
    if (stream_ == nullptr || is_closed_) return;
    if (frames_ == WatchFrames::kLines) {
      buffer_ += *bytes;
      if (buffer_.ends_with('\n')) {
        session_.Send(net::websocket::MessageType::kText, buffer_);
        buffer_.clear();
      }
    } else {
      buffer_ += *bytes;
      while (buffer_.size() >= kPrefixBytes) {
        std::size_t size = 0;
        for (std::size_t i = 0; i < kPrefixBytes; ++i) {
          size = size << 8 | static_cast<std::uint8_t>(buffer_[i]);
        }
        if (buffer_.size() - kPrefixBytes < size) break;
        session_.Send(net::websocket::MessageType::kBinary,
                      std::string_view(buffer_).substr(kPrefixBytes, size));
        buffer_.erase(0, kPrefixBytes + size);
      }
    }
    Flush();
  }

  void Finish() override {
    if (stream_ == nullptr || is_closed_) return;
    session_.Close(net::websocket::kNormalClosure);
    Flush();
    Closed(true);
  }
  void Abort() override {
    if (stream_ == nullptr) return writer_->Abort();
    Closed(false);
  }

  std::size_t pending_bytes() const override {
    return stream_ == nullptr ? writer_->pending_bytes() : stream_->pending_bytes();
  }
  bool is_closed() const override {
    return is_closed_ || (stream_ == nullptr && writer_->is_closed());
  }
  void OnClosed(std::function<void(bool)> callback) override {
    if (stream_ == nullptr && !is_closed_) return writer_->OnClosed(std::move(callback));
    on_closed_ = std::move(callback);
    // The upgrade failed.
    if (is_closed_) {
      if (auto call = std::exchange(on_closed_, nullptr)) loop_.Post([call] { call(false); });
    }
  }
  void OnDrained(std::function<void()> callback) override {
    if (stream_ == nullptr) return writer_->OnDrained(std::move(callback));
    on_drained_ = std::move(callback);
  }
  Result<std::unique_ptr<net::RawStream>> Upgrade(const net::Headers&) override {
    return InvalidArgument("the request is a WebSocket already");
  }

 private:
  void OnMessage(net::websocket::MessageType, std::string_view) override {}
  void OnClose(std::uint16_t, std::string_view) override {
    Flush();
    Closed(false);
  }
  bool MayAnswerPing() const override { return stream_->pending_bytes() < kMaxUnsentPongs; }

  void Flush() {
    if (stream_ != nullptr && session_.has_output()) stream_->Write(session_.TakeOutput());
  }

  // The stream is destroyed after the current call, which may come from it; what was written is
  // still sent.
  void Closed(bool completed) {
    if (std::exchange(is_closed_, true)) return;
    loop_.Post([stream = std::move(stream_)] {});
    on_drained_ = nullptr;
    if (auto call = std::exchange(on_closed_, nullptr)) call(completed);
  }

  EventLoop& loop_;
  const std::shared_ptr<net::ResponseWriter> writer_;
  const net::websocket::Accepted accepted_;
  const WatchFrames frames_;
  net::websocket::Session session_;
  std::unique_ptr<net::RawStream> stream_;
  std::string buffer_;  // the beginning of an event
  bool is_closed_ = false;
  std::function<void(bool)> on_closed_;
  std::function<void()> on_drained_;
  Lifetime lifetime_;
};

}  // namespace

std::shared_ptr<net::ResponseWriter> WatchOverWebSocket(EventLoop& loop,
                                                        std::shared_ptr<net::ResponseWriter> writer,
                                                        net::websocket::Accepted accepted,
                                                        WatchFrames frames) {
  return std::make_shared<WebSocketWriter>(loop, std::move(writer), std::move(accepted), frames);
}

}  // namespace drakkar::apiserver
