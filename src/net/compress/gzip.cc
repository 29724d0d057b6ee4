#include "net/compress/gzip.h"

#include <zlib.h>

#include "base/result/check.h"

namespace drakkar::net {
namespace {

constexpr int kGzip = 16;  // added to the window bits to select gzip instead of zlib
constexpr int kWindowBits = 15;
constexpr int kMemory = 8;
constexpr std::size_t kChunk = 64 << 10;

}  // namespace

std::string Gzip(const Body& body) {
  z_stream stream{};
  CHECK(deflateInit2(&stream, Z_BEST_SPEED, Z_DEFLATED, kWindowBits + kGzip, kMemory,
                     Z_DEFAULT_STRATEGY) == Z_OK);
  std::string out;
  const auto run = [&](int flush) {
    do {
      const std::size_t start = out.size();
      out.resize(start + kChunk);
      stream.next_out = reinterpret_cast<Bytef*>(out.data() + start);
      stream.avail_out = kChunk;
      deflate(&stream, flush);
      out.resize(start + kChunk - stream.avail_out);
    } while (stream.avail_out == 0);
  };
  for (const Segment& segment : body) {
    // zlib never writes through next_in.
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(segment->data()));
    stream.avail_in = static_cast<uInt>(segment->size());
    run(Z_NO_FLUSH);
  }
  run(Z_FINISH);
  deflateEnd(&stream);
  return out;
}

std::optional<std::string> Gunzip(std::string_view bytes, std::size_t max_size) {
  z_stream stream{};
  CHECK(inflateInit2(&stream, kWindowBits + kGzip) == Z_OK);
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  std::string out;
  int result = Z_OK;
  while (result == Z_OK && out.size() <= max_size) {
    const std::size_t start = out.size();
    out.resize(start + kChunk);
    stream.next_out = reinterpret_cast<Bytef*>(out.data() + start);
    stream.avail_out = kChunk;
    result = inflate(&stream, Z_NO_FLUSH);
    out.resize(start + kChunk - stream.avail_out);
  }
  inflateEnd(&stream);
  if (result != Z_STREAM_END || out.size() > max_size) return std::nullopt;
  return out;
}

}  // namespace drakkar::net
