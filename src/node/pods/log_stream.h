#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/env/clock.h"
#include "base/env/file_system.h"

namespace drakkar::node {

struct LogOptions {
  std::optional<std::int64_t> tail_lines;
  std::optional<WallTime> since;
  std::optional<std::int64_t> limit_bytes;
  bool timestamps = false;
  bool previous = false;
  bool follow = false;
  std::string stream;  // "Stdout", "Stderr"; else both
};

// Reads a container's log in CRI format ("<time> <stream> <F|P> <text>") as plain text. Each call
// continues where the previous one stopped, also across a rotation (detected by the file being gone
// or shorter than what was read). Lines longer than kMaxLine are returned in pieces.
class LogStream {
 public:
  static constexpr std::size_t kReadBytes = 256 * 1024;
  static constexpr std::size_t kMaxLine = 1 << 20;

  LogStream(FileSystem& files, std::string path, LogOptions options);

  // The next text; empty if there is none right now. A missing file counts as empty.
  Result<std::string> Read();
  // Whether `limit_bytes` have been returned, so that nothing more follows.
  bool is_exhausted() const { return exhausted_; }

 private:
  Result<void> FindStart();
  // The next bytes; empty if there are none right now.
  Result<std::string> ReadPiece();
  void AddLine(std::string_view line, std::string& out);

  FileSystem& files_;
  const std::string path_;
  const LogOptions options_;
  bool placed_ = false;
  bool at_line_start_ = true;
  bool since_reached_ = false;
  bool exhausted_ = false;
  std::uint64_t offset_ = 0;
  std::string aside_;  // the rotated file that is still being read
  std::int64_t given_ = 0;
  std::string rest_;  // an incomplete line at the end of what was read
};

// The last `lines` lines of a log as plain text, cut to the last `bytes` bytes. No newline is added
// to text that does not end with one. Empty if the log cannot be read.
std::string ReadLogTail(FileSystem& files, const std::string& path, std::int64_t lines,
                        std::size_t bytes);

}  // namespace drakkar::node
