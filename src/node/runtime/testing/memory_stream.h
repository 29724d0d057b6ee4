#pragma once

#include <memory>
#include <string>
#include <utility>

#include "base/exec/event_loop.h"
#include "net/http/raw_stream.h"

namespace drakkar::node {

// Two ends of a connection in memory. What one writes, the other reads through the loop.
class MemoryStream final : public net::RawStream,
                           public std::enable_shared_from_this<MemoryStream> {
 public:
  static std::pair<std::unique_ptr<net::RawStream>, std::unique_ptr<net::RawStream>> Pair(
      EventLoop& loop);

  explicit MemoryStream(EventLoop& loop) : loop_(loop) {}
  void Start(std::function<void(std::string_view)> on_data,
             std::function<void()> on_closed) override {
    on_data_ = std::move(on_data);
    on_closed_ = std::move(on_closed);
    Deliver();
  }
  void Write(std::string_view bytes) override {
    auto other = other_.lock();
    if (!other) return;
    other->inbox_ += bytes;
    loop_.Post([other] { other->Deliver(); });
    if (on_drained_) loop_.Post(on_drained_);
  }
  std::size_t pending_bytes() const override { return 0; }
  void OnDrained(std::function<void()> callback) override { on_drained_ = std::move(callback); }
  void SetReading(bool reading) override {
    reading_ = reading;
    if (reading) loop_.Post([self = shared_from_this()] { self->Deliver(); });
  }
  void Close() {
    on_data_ = nullptr;
    on_closed_ = nullptr;
    on_drained_ = nullptr;
    if (auto other = other_.lock()) {
      other->other_closed_ = true;
      loop_.Post([other] { other->Deliver(); });
    }
    other_.reset();
  }

 private:
  friend class MemoryStreamEnd;
  void Deliver() {
    if (!on_data_ || !reading_) return;
    if (!inbox_.empty()) {
      const std::string bytes = std::exchange(inbox_, {});
      auto call = on_data_;
      call(bytes);
    }
    if (other_closed_ && inbox_.empty() && on_closed_) std::exchange(on_closed_, nullptr)();
  }

  EventLoop& loop_;
  std::weak_ptr<MemoryStream> other_;
  std::function<void(std::string_view)> on_data_;
  std::function<void()> on_closed_;
  std::function<void()> on_drained_;
  std::string inbox_;
  bool reading_ = true;
  bool other_closed_ = false;
};

// Owns one end; destroying it closes the connection.
class MemoryStreamEnd final : public net::RawStream {
 public:
  explicit MemoryStreamEnd(std::shared_ptr<MemoryStream> end) : end_(std::move(end)) {}
  ~MemoryStreamEnd() override { end_->Close(); }
  static void Join(const std::shared_ptr<MemoryStream>& a, const std::shared_ptr<MemoryStream>& b) {
    a->other_ = b;
    b->other_ = a;
  }
  void Start(std::function<void(std::string_view)> on_data,
             std::function<void()> on_closed) override {
    end_->Start(std::move(on_data), std::move(on_closed));
  }
  void Write(std::string_view bytes) override { end_->Write(bytes); }
  std::size_t pending_bytes() const override { return end_->pending_bytes(); }
  void OnDrained(std::function<void()> callback) override { end_->OnDrained(std::move(callback)); }
  void SetReading(bool reading) override { end_->SetReading(reading); }

 private:
  const std::shared_ptr<MemoryStream> end_;
};

inline std::pair<std::unique_ptr<net::RawStream>, std::unique_ptr<net::RawStream>>
MemoryStream::Pair(EventLoop& loop) {
  auto a = std::make_shared<MemoryStream>(loop);
  auto b = std::make_shared<MemoryStream>(loop);
  MemoryStreamEnd::Join(a, b);
  return {std::make_unique<MemoryStreamEnd>(a), std::make_unique<MemoryStreamEnd>(b)};
}

}  // namespace drakkar::node
