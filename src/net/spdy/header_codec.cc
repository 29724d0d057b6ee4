#include "net/spdy/header_codec.h"

#include <zlib.h>

#include "base/result/check.h"
#include "base/text/text.h"

namespace drakkar::net::spdy {
namespace {

void AppendNumber(std::string& out, std::size_t number) {
  for (int shift = 24; shift >= 0; shift -= 8) out += static_cast<char>(number >> shift & 0xff);
}

void AppendText(std::string& out, std::string_view text) {
  AppendNumber(out, text.size());
  out += text;
}

// SPDY/3, section 2.6.10.1: words with their lengths, then text that follows them.
std::string MakeDictionary() {
  std::string dictionary;
  for (const std::string_view word : {"options",
                                      "head",
                                      "post",
                                      "put",
                                      "delete",
                                      "trace",
                                      "accept",
                                      "accept-charset",
                                      "accept-encoding",
                                      "accept-language",
                                      "accept-ranges",
                                      "age",
                                      "allow",
                                      "authorization",
                                      "cache-control",
                                      "connection",
                                      "content-base",
                                      "content-encoding",
                                      "content-language",
                                      "content-length",
                                      "content-location",
                                      "content-md5",
                                      "content-range",
                                      "content-type",
                                      "date",
                                      "etag",
                                      "expect",
                                      "expires",
                                      "from",
                                      "host",
                                      "if-match",
                                      "if-modified-since",
                                      "if-none-match",
                                      "if-range",
                                      "if-unmodified-since",
                                      "last-modified",
                                      "location",
                                      "max-forwards",
                                      "pragma",
                                      "proxy-authenticate",
                                      "proxy-authorization",
                                      "range",
                                      "referer",
                                      "retry-after",
                                      "server",
                                      "te",
                                      "trailer",
                                      "transfer-encoding",
                                      "upgrade",
                                      "user-agent",
                                      "vary",
                                      "via",
                                      "warning",
                                      "www-authenticate",
                                      "method",
                                      "get",
                                      "status",
                                      "200 OK",
                                      "version",
                                      "HTTP/1.1",
                                      "url",
                                      "public",
                                      "set-cookie",
                                      "keep-alive",
                                      "origin"}) {
    AppendText(dictionary, word);
  }
  dictionary +=
      "1001012012022052063003023033043053063074024054064074084094104114124134144154164175025045052"
      "03 Non-Authoritative Information204 No Content301 Moved Permanently400 Bad Request401 "
      "Unauthorized403 Forbidden404 Not Found500 Internal Server Error501 Not Implemented503 "
      "Service UnavailableJan Feb Mar Apr May Jun Jul Aug Sept Oct Nov Dec 00:00:00 Mon, Tue, "
      "Wed, Thu, Fri, Sat, Sun, "
      "GMTchunked,text/html,image/png,image/jpg,image/gif,application/xml,application/xhtml+xml,"
      "text/plain,text/javascript,publicprivatemax-age=gzip,deflate,sdchcharset=utf-8charset="
      "iso-8859-1,utf-,*,enq=0.";
  CHECK(dictionary.size() == 1423);
  return dictionary;
}

const std::string& Dictionary() {
  static const std::string dictionary = MakeDictionary();
  return dictionary;
}

const Bytef* Bytes(std::string_view text) {
  return reinterpret_cast<const Bytef*>(text.data());
}

// Reads length-prefixed texts from a block.
class BlockReader {
 public:
  explicit BlockReader(std::string_view block) : rest_(block) {}
  bool ReadNumber(std::size_t& number) {
    if (rest_.size() < 4) return false;
    number = 0;
    for (int i = 0; i < 4; ++i) {
      number = number << 8 | static_cast<unsigned char>(rest_[static_cast<std::size_t>(i)]);
    }
    rest_.remove_prefix(4);
    return true;
  }
  bool ReadText(std::string_view& text) {
    std::size_t length = 0;
    if (!ReadNumber(length) || length > rest_.size()) return false;
    text = rest_.substr(0, length);
    rest_.remove_prefix(length);
    return true;
  }
  bool is_empty() const { return rest_.empty(); }

 private:
  std::string_view rest_;
};

}  // namespace

struct HeaderCodec::Streams {
  z_stream deflate{};
  z_stream inflate{};
};

HeaderCodec::HeaderCodec() : streams_(std::make_unique<Streams>()) {
  CHECK(deflateInit(&streams_->deflate, Z_BEST_SPEED) == Z_OK);
  CHECK(deflateSetDictionary(&streams_->deflate, Bytes(Dictionary()),
                             static_cast<uInt>(Dictionary().size())) == Z_OK);
  CHECK(inflateInit(&streams_->inflate) == Z_OK);
}

HeaderCodec::~HeaderCodec() {
  deflateEnd(&streams_->deflate);
  inflateEnd(&streams_->inflate);
}

std::string HeaderCodec::Compress(const Headers& headers) {
  std::string block;
  AppendNumber(block, headers.size());
  for (const auto& [name, value] : headers) {
    AppendText(block, ToLower(name));
    AppendText(block, value);
  }
  z_stream& stream = streams_->deflate;
  std::string out;
  char buffer[1024];
  stream.next_in = const_cast<Bytef*>(Bytes(block));
  stream.avail_in = static_cast<uInt>(block.size());
  do {
    stream.next_out = reinterpret_cast<Bytef*>(buffer);
    stream.avail_out = sizeof(buffer);
    const int status = deflate(&stream, Z_SYNC_FLUSH);
    CHECK(status == Z_OK || status == Z_BUF_ERROR);
    out.append(buffer, sizeof(buffer) - stream.avail_out);
  } while (stream.avail_out == 0);
  return out;
}

Result<Headers> HeaderCodec::Decompress(std::string_view block) {
  z_stream& stream = streams_->inflate;
  std::string plain;
  char buffer[1024];
  stream.next_in = const_cast<Bytef*>(Bytes(block));
  stream.avail_in = static_cast<uInt>(block.size());
  for (;;) {
    stream.next_out = reinterpret_cast<Bytef*>(buffer);
    stream.avail_out = sizeof(buffer);
    int status = inflate(&stream, Z_SYNC_FLUSH);
    if (status == Z_NEED_DICT) {
      if (inflateSetDictionary(&stream, Bytes(Dictionary()),
                               static_cast<uInt>(Dictionary().size())) != Z_OK) {
        return InvalidArgument("SPDY headers use another dictionary");
      }
      continue;
    }
    plain.append(buffer, sizeof(buffer) - stream.avail_out);
    if (plain.size() > kMaxBlockBytes) return InvalidArgument("SPDY headers are too long");
    if (status == Z_BUF_ERROR && stream.avail_in == 0) break;
    if (status != Z_OK) return InvalidArgument("SPDY headers are not compressed correctly");
    if (stream.avail_in == 0 && stream.avail_out > 0) break;
  }
  BlockReader reader(plain);
  std::size_t count = 0;
  if (!reader.ReadNumber(count)) return InvalidArgument("SPDY headers end early");
  Headers headers;
  for (std::size_t i = 0; i < count; ++i) {
    std::string_view name, values;
    if (!reader.ReadText(name) || !reader.ReadText(values)) {
      return InvalidArgument("SPDY headers end early");
    }
    for (const std::string_view value : Split(values, '\0')) {
      headers.Add(ToLower(name), std::string(value));
    }
  }
  if (!reader.is_empty()) return InvalidArgument("SPDY headers have bytes to spare");
  return headers;
}

}  // namespace drakkar::net::spdy
