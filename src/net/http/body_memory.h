#pragma once

#include <atomic>
#include <cstddef>
#include <utility>

namespace drakkar::net {

// The memory that the bodies of all requests in progress share, on every loop of a server.
// Unauthenticated callers can take only a part of it, so that they cannot keep the others from
// sending. Thread-safe.
class BodyMemory {
 public:
  BodyMemory(std::size_t limit_bytes, std::size_t stranger_limit_bytes)
      : limit_(limit_bytes), stranger_limit_(stranger_limit_bytes) {}

  // Returns false if there is not enough left; the caller then rejects the request.
  bool Take(std::size_t bytes, bool is_stranger) {
    if (is_stranger && !Add(strangers_, bytes, stranger_limit_)) return false;
    if (Add(used_, bytes, limit_)) return true;
    if (is_stranger) strangers_.fetch_sub(bytes, std::memory_order_relaxed);
    return false;
  }
  void Give(std::size_t bytes, bool is_stranger) {
    used_.fetch_sub(bytes, std::memory_order_relaxed);
    if (is_stranger) strangers_.fetch_sub(bytes, std::memory_order_relaxed);
  }
  std::size_t used() const { return used_.load(std::memory_order_relaxed); }
  std::size_t limit() const { return limit_; }

 private:
  static bool Add(std::atomic<std::size_t>& sum, std::size_t bytes, std::size_t limit) {
    if (sum.fetch_add(bytes, std::memory_order_relaxed) + bytes <= limit) return true;
    sum.fetch_sub(bytes, std::memory_order_relaxed);
    return false;
  }

  const std::size_t limit_;
  const std::size_t stranger_limit_;
  std::atomic<std::size_t> used_{0};
  std::atomic<std::size_t> strangers_{0};  // a part of used_
};

// The share of a BodyMemory that one request uses, returned when it is destroyed. Without a
// BodyMemory it takes any amount.
class BodyLease {
 public:
  BodyLease() = default;
  BodyLease(BodyMemory* memory, bool is_stranger) : memory_(memory), is_stranger_(is_stranger) {}
  ~BodyLease() { Reset(); }
  BodyLease(BodyLease&& other) noexcept
      : memory_(std::exchange(other.memory_, nullptr)),
        is_stranger_(other.is_stranger_),
        bytes_(std::exchange(other.bytes_, 0)) {}
  BodyLease& operator=(BodyLease&& other) noexcept {
    if (this == &other) return *this;
    Reset();
    memory_ = std::exchange(other.memory_, nullptr);
    is_stranger_ = other.is_stranger_;
    bytes_ = std::exchange(other.bytes_, 0);
    return *this;
  }

  bool Take(std::size_t bytes) {
    if (memory_ == nullptr) return true;
    if (!memory_->Take(bytes, is_stranger_)) return false;
    bytes_ += bytes;
    return true;
  }
  void Reset() {
    if (memory_ != nullptr && bytes_ > 0) memory_->Give(bytes_, is_stranger_);
    bytes_ = 0;
  }

 private:
  BodyMemory* memory_ = nullptr;
  bool is_stranger_ = false;
  std::size_t bytes_ = 0;
};

}  // namespace drakkar::net
