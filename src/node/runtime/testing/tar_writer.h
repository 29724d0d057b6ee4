#pragma once

#include <string>
#include <string_view>

namespace drakkar::node {

// Builds tar archives in memory, for tests and for the busybox image: ustar headers, with GNU long
// names where a path does not fit.
class TarWriter {
 public:
  TarWriter& Directory(std::string_view path, unsigned mode = 0755);
  TarWriter& File(std::string_view path, std::string_view content, unsigned mode = 0644);
  TarWriter& Symlink(std::string_view path, std::string_view target);
  TarWriter& HardLink(std::string_view path, std::string_view target);
  // Any header, `content` as its data: pax records, unknown types.
  TarWriter& Raw(char type, std::string_view path, std::string_view link, unsigned mode,
                 std::string_view content);
  // With the two zero blocks at the end.
  std::string Finish() const;

 private:
  std::string archive_;
};

// "<length> key=value\n" with the length of itself.
std::string PaxRecord(std::string_view key, std::string_view value);
// One gzip member.
std::string Gzip(std::string_view bytes);

// A root file system of Debian's busybox-static, as a tar archive. Empty if it is not installed.
std::string BusyboxRootfs();

}  // namespace drakkar::node
