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

// Reads a container's log in CRI's form ("<time> <stream> <F|P> <text>") as plain text. Reading on
// from where it stopped gives what was written since, also when the log was rotated in between
// (found by its being gone, or shorter than what was read). Lines longer than kMaxLine without an
// end are passed on in pieces.
class LogStream {
 public:
  static constexpr std::size_t kReadBytes = 256 * 1024;
  static constexpr std::size_t kMaxLine = 1 << 20;

  LogStream(FileSystem& files, std::string path, LogOptions options);

  // The next text; empty when there is none for now. A file that is not there yet is empty.
  Result<std::string> Read();
  // `limit_bytes` have been given out: nothing more comes.
  bool is_exhausted() const { return exhausted_; }

 private:
  Result<void> FindStart();
  // The next bytes; empty when there are none for now.
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
  std::string aside_;  // the rotated file whose end is still to be read
  std::int64_t given_ = 0;
  std::string rest_;  // the begin of a line whose end was not there yet
};

// The last `lines` lines of a log as plain text, and of these the last `bytes` bytes. Text that its
// writer did not end with a newline gets none. Empty if the log cannot be read.
std::string ReadLogTail(FileSystem& files, const std::string& path, std::int64_t lines,
                        std::size_t bytes);

}  // namespace drakkar::node
