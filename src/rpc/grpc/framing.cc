#include "rpc/grpc/framing.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>

#include "base/text/text.h"

namespace drakkar::rpc::grpc {
namespace {

constexpr std::size_t kPrefixBytes = 5;
constexpr std::int64_t kMaxTimeoutDigits = 99'999'999;

struct TimeoutUnit {
  char name;
  std::int64_t nanoseconds;
};
constexpr TimeoutUnit kTimeoutUnits[] = {
    {'n', 1},
    {'u', 1'000},
    {'m', 1'000'000},
    {'S', 1'000'000'000},
    {'M', 60'000'000'000},
    {'H', 3'600'000'000'000},
};

constexpr std::array<std::string_view, 14> kResetNames = {"NO_ERROR",
                                                          "PROTOCOL_ERROR",
                                                          "INTERNAL_ERROR",
                                                          "FLOW_CONTROL_ERROR",
                                                          "SETTINGS_TIMEOUT",
                                                          "STREAM_CLOSED",
                                                          "FRAME_SIZE_ERROR",
                                                          "REFUSED_STREAM",
                                                          "CANCEL",
                                                          "COMPRESSION_ERROR",
                                                          "CONNECT_ERROR",
                                                          "ENHANCE_YOUR_CALM",
                                                          "INADEQUATE_SECURITY",
                                                          "HTTP_1_1_REQUIRED"};

Status TooLarge(std::string_view what, std::size_t size, std::size_t limit) {
  return {kResourceExhausted,
          StrCat(what, " message larger than max (", size, " vs. ", limit, ")")};
}

int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}

}  // namespace

std::optional<Status> CheckMessageSize(std::size_t size) {
  if (size <= static_cast<std::size_t>(kMaxMessageBytes)) return std::nullopt;
  return TooLarge("trying to send", size, kMaxMessageBytes);
}

std::string FrameMessage(std::string_view message) {
  std::string framed;
  framed.reserve(kPrefixBytes + message.size());
  framed += '\0';
  for (const int shift : {24, 16, 8, 0}) {
    framed += static_cast<char>((message.size() >> shift) & 0xff);
  }
  framed += message;
  return framed;
}

std::optional<Status> MessageReader::Read(std::string_view bytes,
                                          std::vector<std::string>& messages) {
  while (!bytes.empty()) {
    if (prefix_size_ < kPrefixBytes) {
      const std::size_t part = std::min(kPrefixBytes - prefix_size_, bytes.size());
      std::memcpy(prefix_ + prefix_size_, bytes.data(), part);
      prefix_size_ += part;
      bytes.remove_prefix(part);
      if (prefix_size_ < kPrefixBytes) return std::nullopt;
      if (std::optional<Status> refused = ReadPrefix()) return refused;
    }
    const std::size_t part = std::min(length_ - message_.size(), bytes.size());
    message_.append(bytes.substr(0, part));
    bytes.remove_prefix(part);
    if (message_.size() < length_) return std::nullopt;
    messages.push_back(std::move(message_));
    message_.clear();
    prefix_size_ = 0;
  }
  return std::nullopt;
}

std::optional<Status> MessageReader::ReadPrefix() {
  if (prefix_[0] == 1) {
    return Status{kUnimplemented, "compressed messages are not supported, only identity is"};
  }
  if (prefix_[0] != 0) {
    return Status{kInternal, StrCat("received unexpected payload format ",
                                    static_cast<int>(static_cast<unsigned char>(prefix_[0])))};
  }
  length_ = 0;
  for (std::size_t i = 1; i < kPrefixBytes; ++i) {
    length_ = length_ << 8 | static_cast<unsigned char>(prefix_[i]);
  }
  if (length_ > max_message_bytes_) return TooLarge("received", length_, max_message_bytes_);
  return std::nullopt;
}

std::string EncodeText(std::string_view text) {
  static constexpr char kDigits[] = "0123456789ABCDEF";
  std::string encoded;
  encoded.reserve(text.size());
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte <= 0x7e && c != '%') {
      encoded += c;
    } else {
      encoded += '%';
      encoded += kDigits[byte >> 4];
      encoded += kDigits[byte & 15];
    }
  }
  return encoded;
}

std::string DecodeText(std::string_view text) {
  std::string decoded;
  decoded.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    const int high = text[i] == '%' && i + 2 < text.size() ? HexDigit(text[i + 1]) : -1;
    const int low = high >= 0 ? HexDigit(text[i + 2]) : -1;
    if (low < 0) {
      decoded += text[i];
    } else {
      decoded += static_cast<char>(high * 16 + low);
      i += 2;
    }
  }
  return decoded;
}

std::string EncodeTimeout(Duration timeout) {
  const std::int64_t nanoseconds = std::max<std::int64_t>(timeout.count(), 1);
  for (const TimeoutUnit& unit : kTimeoutUnits) {
    const std::int64_t count = (nanoseconds - 1) / unit.nanoseconds + 1;
    if (count <= kMaxTimeoutDigits) return StrCat(count, unit.name);
  }
  return StrCat(kMaxTimeoutDigits, "H");
}

std::optional<Duration> ParseTimeout(std::string_view text) {
  if (text.size() < 2 || text.size() > 9) return std::nullopt;
  std::int64_t count = 0;
  for (const char c : text.substr(0, text.size() - 1)) {
    if (c < '0' || c > '9') return std::nullopt;
    count = count * 10 + (c - '0');
  }
  for (const TimeoutUnit& unit : kTimeoutUnits) {
    if (unit.name != text.back()) continue;
    if (count > std::numeric_limits<std::int64_t>::max() / unit.nanoseconds) return Duration::max();
    return Duration(count * unit.nanoseconds);
  }
  return std::nullopt;
}

bool IsGrpcContentType(std::string_view type) {
  constexpr std::string_view kBase = "application/grpc";
  const std::string lower = ToLower(type);
  if (!std::string_view(lower).starts_with(kBase)) return false;
  std::string_view rest = std::string_view(lower).substr(kBase.size());
  rest = Trim(rest.substr(0, rest.find(';')));
  return rest.empty() || rest == "+proto";
}

Status StatusFromTrailers(std::string_view code, std::string_view message) {
  const std::optional<std::int64_t> number = ParseInt64(code);
  if (!number || *number < 0 || *number > std::numeric_limits<int>::max()) {
    return {kUnknown, StrCat("the peer's grpc-status is malformed: ", Quote(code))};
  }
  return {static_cast<int>(*number), DecodeText(message)};
}

Status StatusFromHttp(int http_status, std::string_view content_type) {
  int code = kUnknown;
  switch (http_status) {
    case 200:
      if (IsGrpcContentType(content_type)) {
        return {kInternal, "server closed the stream without sending trailers"};
      }
      return {kUnknown, StrCat("received unexpected content-type ", Quote(content_type))};
    case 400:
      code = kInternal;
      break;
    case 401:
      code = kUnauthenticated;
      break;
    case 403:
      code = kPermissionDenied;
      break;
    case 404:
      code = kUnimplemented;
      break;
    case 429:
    case 502:
    case 503:
    case 504:
      code = kUnavailable;
      break;
    default:
      break;
  }
  return {code, StrCat("unexpected HTTP status code received from server: ", http_status)};
}

Status StatusFromReset(std::uint32_t http2_error) {
  int code = kInternal;
  switch (http2_error) {
    case 7:
      code = kUnavailable;
      break;  // refused before it was processed
    case 8:
      code = kCancelled;
      break;
    case 11:
      code = kResourceExhausted;
      break;
    case 12:
      code = kPermissionDenied;
      break;
    default:
      break;
  }
  const std::string name = http2_error < kResetNames.size() ? std::string(kResetNames[http2_error])
                                                            : std::to_string(http2_error);
  return {code, StrCat("stream terminated by RST_STREAM with error code: ", name)};
}

}  // namespace drakkar::rpc::grpc
