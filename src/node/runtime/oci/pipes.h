#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/env/descriptor.h"
#include "base/env/descriptor_watch.h"
#include "base/exec/uv_loop.h"
#include "base/result/result.h"

namespace drakkar::node {

struct PipeEnds {
  Descriptor ours;    // does not block
  Descriptor theirs;  // for a child
};
// All are closed in programs that are not handed them.
Result<PipeEnds> MakePipe(bool we_read);
Result<PipeEnds> MakeTerminal();  // ours: the master; theirs: a raw terminal
Result<Descriptor> OpenNull();
Result<Descriptor> Duplicate(const Descriptor& descriptor);
// A packet socket connected to the one bound at `directory`/`name`, however long that path is.
Result<Descriptor> ConnectPacketSocket(const std::string& directory, const std::string& name);

// Hands on what arrives, until its end. Loop-bound. Either callback may destroy it.
class PipeReader {
 public:
  static constexpr std::size_t kReadBytes = 64 << 10;

  PipeReader(UvLoop& loop, Descriptor descriptor, std::function<void(std::string_view)> on_data,
             std::function<void()> on_end);
  void SetReading(bool reading);
  bool has_ended() const { return !descriptor_.ok(); }

 private:
  void OnReadable();

  UvLoop& loop_;
  Descriptor descriptor_;
  std::function<void(std::string_view)> on_data_;
  std::function<void()> on_end_;
  std::unique_ptr<DescriptorWatch> watch_;
};

// Writes what is given, keeping what the other side does not take yet. What is written after the
// other side is gone vanishes. Loop-bound.
class PipeWriter {
 public:
  // `max_packet` is for sockets that keep packets apart.
  PipeWriter(UvLoop& loop, Descriptor descriptor, std::function<void()> on_drained,
             std::size_t max_packet = SIZE_MAX);
  void Write(std::string_view bytes);
  std::size_t pending() const { return pending_.size() - sent_; }
  // After what is pending.
  void Close(std::function<void(int descriptor)> how = nullptr);

 private:
  void Flush();
  void OnWritable();

  UvLoop& loop_;
  Descriptor descriptor_;
  std::function<void()> on_drained_;
  const std::size_t max_packet_;
  std::string pending_;
  std::size_t sent_ = 0;  // of pending_
  bool closing_ = false;
  std::function<void(int)> close_how_;
  std::unique_ptr<DescriptorWatch> watch_;
};

}  // namespace drakkar::node
