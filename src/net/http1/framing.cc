#include "net/http1/framing.h"

#include "base/text/text.h"

namespace drakkar::net::http1 {

Result<bool> HeadReader::Feed(std::string_view& bytes) {
  // RFC 9112 section 2.2: skip empty lines before the start line.
  while (head_.empty() && !bytes.empty() && (bytes[0] == '\r' || bytes[0] == '\n')) {
    bytes.remove_prefix(1);
  }
  // Scan only the head byte by byte: the body may follow in the same buffer.
  const std::string_view taken = bytes.substr(0, max_bytes_ + 4 - head_.size());
  for (std::size_t i = 0; i < taken.size(); ++i) {
    const char c = taken[i];
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte != 0x7f) {
      line_end_ = 0;
    } else if (c == '\r') {
      line_end_ = line_end_ == 2 ? 3 : 1;
    } else if (c == '\n') {
      if (line_end_ != 1 && line_end_ != 3) {
        return InvalidArgument("a line of the message head ends without CR");
      }
      if (++line_end_ == 4) {
        line_end_ = 0;
        head_.append(taken.substr(0, i > 0 ? i - 1 : 0));
        bytes.remove_prefix(i + 1);
        return true;
      }
    } else if (c == '\t') {
      line_end_ = 0;
    } else {
      return InvalidArgument("the message head has a control character");
    }
  }
  head_.append(taken);
  bytes.remove_prefix(taken.size());
  if (head_.size() > max_bytes_) {
    return Error{ErrorCode::kResourceExhausted,
                 StrCat("the message head is larger than ", max_bytes_, " bytes")};
  }
  return false;
}

std::string HeadReader::TakeHead() {
  std::string head = std::move(head_);
  head_.clear();
  // The final CR may have arrived before its LF.
  if (head.ends_with("\r\n\r")) head.pop_back();
  return head;
}

Result<Head> ParseHead(std::string_view text) {
  Head head;
  bool first = true;
  while (!text.empty()) {
    const std::size_t end = text.find("\r\n");
    if (end == std::string_view::npos) return InvalidArgument("the message head is truncated");
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(end + 2);
    if (line.find('\r') != std::string_view::npos) {
      return InvalidArgument("the message head has a bare CR");
    }
    if (first) {
      head.start_line = line;
      first = false;
      continue;
    }
    const std::size_t colon = line.find(':');
    if (colon == std::string_view::npos || !IsToken(line.substr(0, colon))) {
      return InvalidArgument("a header field has no valid name");
    }
    const std::string_view value = Trim(line.substr(colon + 1));
    if (!IsHeaderValue(value)) return InvalidArgument("a header field has no valid value");
    head.headers.Add(std::string(line.substr(0, colon)), std::string(value));
  }
  return head;
}

Result<Framing> FramingOf(const Headers& headers) {
  const std::size_t encodings = headers.Count("transfer-encoding");
  const std::size_t lengths = headers.Count("content-length");
  if (encodings > 0 && lengths > 0) {
    return InvalidArgument("both Transfer-Encoding and Content-Length are given");
  }
  if (encodings > 1 || lengths > 1)
    return InvalidArgument("duplicate Transfer-Encoding or Content-Length");
  if (encodings == 1) {
    if (!EqualsIgnoreCase(headers.Get("transfer-encoding"), "chunked")) {
      return Error{ErrorCode::kUnimplemented, "only the chunked transfer encoding is supported"};
    }
    return Framing{BodyKind::kChunked, 0};
  }
  if (lengths == 1) {
    const std::string_view text = headers.Get("content-length");
    std::uint64_t length = 0;
    if (text.empty() || text.size() > 18) return InvalidArgument("Content-Length is not a number");
    for (char c : text) {
      if (c < '0' || c > '9') return InvalidArgument("Content-Length is not a number");
      length = length * 10 + static_cast<std::uint64_t>(c - '0');
    }
    return Framing{BodyKind::kLength, length};
  }
  return Framing{};
}

BodyDecoder::BodyDecoder(Framing framing) : kind_(framing.kind), left_(framing.length) {
  switch (kind_) {
    case BodyKind::kNone:
      state_ = State::kDone;
      break;
    case BodyKind::kLength:
      state_ = left_ == 0 ? State::kDone : State::kData;
      break;
    case BodyKind::kChunked:
      state_ = State::kSizeLine;
      break;
    case BodyKind::kUntilClose:
      state_ = State::kData;
      break;
  }
}

// Collects one line into line_ without its CRLF.
Result<void> BodyDecoder::FeedLine(std::string_view& bytes, bool& complete) {
  complete = false;
  while (!bytes.empty()) {
    const char c = bytes[0];
    bytes.remove_prefix(1);
    if (c == '\n') {
      if (line_.empty() || line_.back() != '\r') {
        return InvalidArgument("a line of the chunked body ends without CR");
      }
      line_.pop_back();
      if (line_.find('\r') != std::string::npos) {
        return InvalidArgument("a line of the chunked body has a bare CR");
      }
      complete = true;
      return Ok();
    }
    line_ += c;
    if (line_.size() > kMaxLineBytes) {
      return InvalidArgument("a line of the chunked body is too long");
    }
  }
  return Ok();
}

Result<void> BodyDecoder::Feed(std::string_view& bytes, std::string& content) {
  while (!bytes.empty() && state_ != State::kDone) {
    bool complete = false;
    switch (state_) {
      case State::kData: {
        if (kind_ == BodyKind::kUntilClose) {
          content.append(bytes);
          bytes = {};
          break;
        }
        const std::string_view part = bytes.substr(0, left_);
        content.append(part);
        left_ -= part.size();
        bytes.remove_prefix(part.size());
        if (left_ == 0) state_ = State::kDone;
        break;
      }
      case State::kSizeLine: {
        RETURN_IF_ERROR(FeedLine(bytes, complete));
        if (!complete) break;
        const std::string_view digits = std::string_view(line_).substr(0, line_.find(';'));
        const std::string_view size = Trim(digits);
        if (size.empty() || size.size() > 8 || size.data() != digits.data()) {
          return InvalidArgument("a chunk has no valid size");
        }
        left_ = 0;
        for (char c : size) {
          int digit = -1;
          if (c >= '0' && c <= '9') digit = c - '0';
          if (c >= 'a' && c <= 'f') digit = c - 'a' + 10;
          if (c >= 'A' && c <= 'F') digit = c - 'A' + 10;
          if (digit < 0) return InvalidArgument("a chunk has no valid size");
          left_ = left_ * 16 + static_cast<std::uint64_t>(digit);
        }
        line_.clear();
        state_ = left_ == 0 ? State::kTrailer : State::kChunkData;
        break;
      }
      case State::kChunkData: {
        const std::string_view part = bytes.substr(0, left_);
        content.append(part);
        left_ -= part.size();
        bytes.remove_prefix(part.size());
        if (left_ == 0) state_ = State::kChunkEnd;
        break;
      }
      case State::kChunkEnd:
        if (bytes[0] != (line_.empty() ? '\r' : '\n')) {
          return InvalidArgument("a chunk exceeds its size");
        }
        if (line_.empty()) {
          line_ = "\r";
        } else {
          line_.clear();
          state_ = State::kSizeLine;
        }
        bytes.remove_prefix(1);
        break;
      case State::kTrailer:
        RETURN_IF_ERROR(FeedLine(bytes, complete));
        if (!complete) break;
        trailer_bytes_ += line_.size();
        if (trailer_bytes_ > kMaxTrailerBytes) return InvalidArgument("the trailer is too large");
        if (line_.empty()) state_ = State::kDone;
        line_.clear();
        break;
      case State::kDone:
        break;
    }
  }
  return Ok();
}

void AppendHeaders(std::string& out, const Headers& headers) {
  for (const auto& [name, value] : headers) {
    if (!IsToken(name)) continue;
    out += name;
    out += ": ";
    if (IsHeaderValue(value)) {
      out += value;
    } else {
      out += CleanHeaderValue(value);
    }
    out += "\r\n";
  }
}

}  // namespace drakkar::net::http1
