#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/env/descriptor.h"
#include "base/exec/uv_loop.h"
#include "base/os/descriptor_watch.h"
#include "base/result/result.h"

namespace drakkar::node {

struct PipeEnds {
  Descriptor ours;    // does not block
  Descriptor theirs;  // for a child
};
// All are close-on-exec.
Result<PipeEnds> MakePipe(bool we_read);
Result<PipeEnds> MakeTerminal();  // ours: the master; theirs: a raw terminal
Result<Descriptor> OpenNull();
Result<Descriptor> Duplicate(const Descriptor& descriptor);
// A packet socket connected to the one bound at `directory`/`name`; the path may exceed the socket
// address limit.
Result<Descriptor> ConnectPacketSocket(const std::string& directory, const std::string& name);

// Reads until the end and forwards the data. Loop-bound. Either callback may destroy it.
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

// Writes data and buffers what the peer does not accept yet. Data written after the peer has closed
// is dropped. Loop-bound.
class PipeWriter {
 public:
  // `max_packet` is for sockets that preserve packet boundaries.
  PipeWriter(UvLoop& loop, Descriptor descriptor, std::function<void()> on_drained,
             std::size_t max_packet = SIZE_MAX);
  void Write(std::string_view bytes);
  std::size_t pending() const { return pending_.size() - sent_; }
  // Closes after pending data is written.
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
