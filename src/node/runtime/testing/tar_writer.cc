#include "node/runtime/testing/tar_writer.h"

#include <zlib.h>

#include <cstdio>
#include <cstring>

#include "base/env/file_system.h"
#include "base/result/check.h"
#include "base/text/text.h"

namespace drakkar::node {

TarWriter& TarWriter::Raw(char type, std::string_view path, std::string_view link, unsigned mode,
                          std::string_view content) {
  if (path.size() > 99) Raw('L', "././@LongLink", "", 0, std::string(path) + '\0');
  if (link.size() > 99) Raw('K', "././@LongLink", "", 0, std::string(link) + '\0');
  char header[512] = {};
  std::memcpy(header, path.data(), std::min<std::size_t>(path.size(), 99));
  std::snprintf(header + 100, 8, "%07o", mode);
  std::snprintf(header + 108, 8, "%07o", 0);
  std::snprintf(header + 116, 8, "%07o", 0);
  std::snprintf(header + 124, 12, "%011llo", static_cast<unsigned long long>(content.size()));
  std::snprintf(header + 136, 12, "%011o", 1700000000);
  header[156] = type;
  std::memcpy(header + 157, link.data(), std::min<std::size_t>(link.size(), 99));
  std::memcpy(header + 257, "ustar\0", 6);
  std::memcpy(header + 263, "00", 2);
  std::memset(header + 148, ' ', 8);
  unsigned sum = 0;
  for (char c : header) sum += static_cast<unsigned char>(c);
  std::snprintf(header + 148, 8, "%06o", sum);
  archive_.append(header, sizeof(header));
  archive_.append(content);
  archive_.append((512 - content.size() % 512) % 512, '\0');
  return *this;
}

TarWriter& TarWriter::Directory(std::string_view path, unsigned mode) {
  return Raw('5', path, "", mode, "");
}
TarWriter& TarWriter::File(std::string_view path, std::string_view content, unsigned mode) {
  return Raw('0', path, "", mode, content);
}
TarWriter& TarWriter::Symlink(std::string_view path, std::string_view target) {
  return Raw('2', path, target, 0777, "");
}
TarWriter& TarWriter::HardLink(std::string_view path, std::string_view target) {
  return Raw('1', path, target, 0644, "");
}
std::string TarWriter::Finish() const {
  return archive_ + std::string(1024, '\0');
}

std::string PaxRecord(std::string_view key, std::string_view value) {
  const std::string body = StrCat(" ", key, "=", value, "\n");
  std::size_t length = body.size() + 1;
  while (std::to_string(length).size() + body.size() != length) ++length;
  return std::to_string(length) + body;
}

std::string Gzip(std::string_view bytes) {
  z_stream stream{};
  CHECK(::deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) == Z_OK);
  std::string out(::deflateBound(&stream, bytes.size()) + 64, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  CHECK(::deflate(&stream, Z_FINISH) == Z_STREAM_END);
  out = out.substr(0, stream.total_out);
  ::deflateEnd(&stream);
  return out;
}

std::string BusyboxRootfs() {
  auto busybox = RealFileSystem().ReadFile("/bin/busybox");
  if (!busybox.ok()) return "";
  TarWriter tar;
  for (const char* path : {"bin/", "etc/", "proc/", "sys/", "dev/", "root/", "tmp/", "var/"}) {
    tar.Directory(path, std::string_view(path) == "tmp/" ? 01777 : 0755);
  }
  tar.File("bin/busybox", *busybox, 0755);
  for (const char* name :
       {"sh",    "env",   "sleep", "echo", "cat",  "ls",   "id",   "hostname", "kill", "true",
        "false", "mount", "test",  "dd",   "grep", "tail", "head", "mkdir",    "wc",   "pwd"}) {
    tar.Symlink(StrCat("bin/", name), "busybox");
  }
  tar.File("etc/passwd", "root:x:0:0:root:/root:/bin/sh\nguest:x:1000:1000::/tmp:/bin/sh\n");
  tar.File("etc/group", "root:x:0:\nguest:x:1000:\nvideo:x:44:guest\n");
  return tar.Finish();
}

}  // namespace drakkar::node
