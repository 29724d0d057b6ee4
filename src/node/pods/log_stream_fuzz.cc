// A container's log with any content: reading it at once or while it grows gives the same text, and
// options only remove text.
#include "node/pods/log_stream.h"

#include <cstddef>
#include <cstdint>

#include "base/result/check.h"
#include "base/testing/memory_file_system.h"

namespace {

std::string ReadAll(drakkar::node::LogStream& stream) {
  std::string all;
  while (true) {
    const auto piece = stream.Read();
    CHECK(piece.ok());
    if (piece->empty()) return all;
    all += *piece;
  }
}

}  // namespace

// The first byte chooses where to split, the second the options.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace drakkar;
  if (size < 2) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 2, size - 2);
  const std::size_t cut = text.size() * data[0] / 256;
  MemoryFileSystem files;
  CHECK(files.WriteFile("/log", text.substr(0, cut), 0600).ok());
  node::LogStream follower(files, "/log", {});
  std::string followed = ReadAll(follower);
  CHECK(files.AppendFile("/log", text.substr(cut), 0600).ok());
  followed += ReadAll(follower);
  node::LogStream whole(files, "/log", {});
  const std::string all = ReadAll(whole);
  CHECK(followed == all);
  node::LogOptions few;
  few.limit_bytes = data[1];
  node::LogStream limited(files, "/log", few);
  const std::string first = ReadAll(limited);
  CHECK(first == all.substr(0, data[1]));
  node::LogOptions last;
  last.tail_lines = data[1] % 8;
  last.since = WallTime(std::chrono::hours(480'000));
  last.timestamps = data[1] % 2 == 0;
  last.stream = "Stdout";
  node::LogStream tail(files, "/log", last);
  static_cast<void>(ReadAll(tail));
  return 0;
}
