#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result/result.h"
#include "net/http/headers.h"

namespace drakkar::net::http1 {

// Collects a message head up to its empty line. Rejects invalid bytes as soon as they arrive.
class HeadReader {
 public:
  explicit HeadReader(std::size_t max_bytes) : max_bytes_(max_bytes) {}

  // Consumes bytes from the front of `bytes`. Returns true when the head is complete: `head` is
  // then the start line and the fields, each terminated by CRLF, without the empty line. Fails with
  // kInvalidArgument, or with kResourceExhausted beyond the limit.
  Result<bool> Feed(std::string_view& bytes);
  std::string TakeHead();
  bool empty() const { return head_.empty(); }

 private:
  const std::size_t max_bytes_;
  std::string head_;
  int line_end_ = 0;  // how much of CR LF CR LF has been seen
};

struct Head {
  std::string start_line;
  Headers headers;
};
// Strict: no folded lines, no space before the colon, no bare CR or LF.
Result<Head> ParseHead(std::string_view text);

enum class BodyKind { kNone, kLength, kChunked, kUntilClose };

struct Framing {
  BodyKind kind = BodyKind::kNone;
  std::uint64_t length = 0;
};
// RFC 9112 section 6.3. Rejects Transfer-Encoding together with Content-Length, and duplicates of
// either, because both enable request smuggling. Fails with kUnimplemented for an unknown transfer
// coding. The kind is kNone if there is neither.
Result<Framing> FramingOf(const Headers& headers);

// Decodes a body as framed on the wire.
class BodyDecoder {
 public:
  BodyDecoder() = default;
  explicit BodyDecoder(Framing framing);

  // Consumes bytes from the front of `bytes` and appends content to `content`. Stops at the end of
  // the body.
  Result<void> Feed(std::string_view& bytes, std::string& content);
  bool done() const { return state_ == State::kDone; }
  BodyKind kind() const { return kind_; }

 private:
  enum class State { kData, kSizeLine, kChunkData, kChunkEnd, kTrailer, kDone };
  Result<void> FeedLine(std::string_view& bytes, bool& complete);

  static constexpr std::size_t kMaxLineBytes = 1024;
  static constexpr std::size_t kMaxTrailerBytes = 8 * 1024;

  BodyKind kind_ = BodyKind::kNone;
  State state_ = State::kDone;
  std::uint64_t left_ = 0;
  std::string line_;
  std::size_t trailer_bytes_ = 0;
};

// Appends "name: value" lines; skips names that are not tokens, and cleans values.
void AppendHeaders(std::string& out, const Headers& headers);

}  // namespace drakkar::net::http1
