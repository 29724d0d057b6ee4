#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace drakkar::net {

// An HTTP/1.1 connection after 101 Switching Protocols: bytes in both directions. Bound to the
// connection's loop. Destroying it closes the connection after everything written has been sent.
class RawStream {
 public:
  virtual ~RawStream() = default;
  // Starts delivery. `on_closed` is the last call; neither is called after destruction.
  virtual void Start(std::function<void(std::string_view)> on_data,
                     std::function<void()> on_closed) = 0;
  virtual void Write(std::string_view bytes) = 0;
  // Bytes written that the kernel has not accepted yet.
  virtual std::size_t pending_bytes() const = 0;
  // Called each time pending_bytes drops to zero.
  virtual void OnDrained(std::function<void()> callback) = 0;
  // If false, stops reading from the peer, as back-pressure.
  virtual void SetReading(bool reading) = 0;
};

// The connection's side of a RawStream; private to net.
class RawEndpoint {
 public:
  virtual ~RawEndpoint() = default;
  virtual void RawWrite(std::string_view bytes) = 0;
  virtual std::size_t RawPendingBytes() const = 0;
  virtual void RawSetReading(bool reading) = 0;
  virtual void RawClose() = 0;  // the stream is destroyed; deliver nothing more
};

class RawStreamEnd final : public RawStream {
 public:
  explicit RawStreamEnd(std::weak_ptr<RawEndpoint> endpoint) : endpoint_(std::move(endpoint)) {}
  ~RawStreamEnd() override {
    if (auto endpoint = endpoint_.lock()) endpoint->RawClose();
  }

  void Start(std::function<void(std::string_view)> on_data,
             std::function<void()> on_closed) override {
    on_data_ = std::move(on_data);
    on_closed_ = std::move(on_closed);
    started_ = true;
    if (!early_.empty()) {
      const std::string early = std::move(early_);
      early_.clear();
      on_data_(early);
    }
  }
  void Write(std::string_view bytes) override {
    if (auto endpoint = endpoint_.lock()) {
      undrained_ = true;
      endpoint->RawWrite(bytes);
    }
  }
  std::size_t pending_bytes() const override {
    auto endpoint = endpoint_.lock();
    return endpoint ? endpoint->RawPendingBytes() : 0;
  }
  void SetReading(bool reading) override {
    if (auto endpoint = endpoint_.lock()) endpoint->RawSetReading(reading);
  }
  void OnDrained(std::function<void()> callback) override { on_drained_ = std::move(callback); }

  // Called by the connection. Each may destroy this object.
  void Deliver(std::string_view bytes) {
    if (!started_) {
      early_.append(bytes);
    } else if (on_data_) {
      auto call = on_data_;
      call(bytes);
    }
  }
  // The connection has sent everything that was queued.
  void Flushed() {
    if (!undrained_ || pending_bytes() > 0) return;
    undrained_ = false;
    if (on_drained_) {
      auto call = on_drained_;
      call();
    }
  }
  void Closed() {
    endpoint_.reset();
    if (on_closed_) std::exchange(on_closed_, nullptr)();
  }

 private:
  std::weak_ptr<RawEndpoint> endpoint_;
  std::function<void(std::string_view)> on_data_;
  std::function<void()> on_closed_;
  std::string early_;  // received before Start; at most one read
  std::function<void()> on_drained_;
  bool started_ = false;
  bool undrained_ = false;
};

}  // namespace drakkar::net
