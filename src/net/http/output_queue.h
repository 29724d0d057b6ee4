#pragma once

#include <vector>

#include "net/http/message.h"

namespace drakkar::net {

// Bytes waiting to be sent, in order. Shared segments are not copied until they are popped.
class OutputQueue {
 public:
  void Push(Segment segment) {
    if (!segment || segment->empty()) return;
    bytes_ += segment->size();
    segments_.push_back(std::move(segment));
  }
  void Push(std::string bytes) { Push(MakeSegment(std::move(bytes))); }

  // Appends to `out` at most `count` bytes; returns how many.
  std::size_t Pop(std::string& out, std::size_t count) {
    std::size_t moved = 0;
    while (moved < count && head_ < segments_.size()) {
      const std::string& front = *segments_[head_];
      const std::size_t part = std::min(count - moved, front.size() - offset_);
      out.append(front, offset_, part);
      moved += part;
      offset_ += part;
      if (offset_ == front.size()) {
        segments_[head_++].reset();
        offset_ = 0;
      }
    }
    // Compact once half of the vector is unused, so that the cost is amortized.
    if (head_ == segments_.size() || head_ >= 64 + segments_.size() / 2) {
      segments_.erase(segments_.begin(), segments_.begin() + static_cast<std::ptrdiff_t>(head_));
      head_ = 0;
    }
    bytes_ -= moved;
    return moved;
  }
  void Clear() {
    segments_.clear();
    head_ = 0;
    bytes_ = 0;
    offset_ = 0;
  }
  // Keeps only the rest of a partly popped segment.
  void DropUnstarted() {
    if (offset_ == 0) return Clear();
    segments_.resize(head_ + 1);
    bytes_ = segments_[head_]->size() - offset_;
  }
  std::size_t bytes() const { return bytes_; }
  std::size_t segments() const { return segments_.size() - head_; }
  bool empty() const { return bytes_ == 0; }

 private:
  std::vector<Segment> segments_;
  std::size_t head_ = 0;    // segments before it are sent
  std::size_t offset_ = 0;  // into the segment at `head_`
  std::size_t bytes_ = 0;
};

}  // namespace drakkar::net
