#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/env/clock.h"
#include "rpc/grpc/limits.h"

namespace drakkar::rpc::grpc {

// gRPC inside HTTP/2, as specified by gRPC's PROTOCOL-HTTP2.md: length-prefixed messages, the
// status in trailers, the deadline in a header.

// The gRPC codes that this transport itself generates.
enum Code : int {
  kOk = 0,
  kCancelled = 1,
  kUnknown = 2,
  kDeadlineExceeded = 4,
  kPermissionDenied = 7,
  kResourceExhausted = 8,
  kUnimplemented = 12,
  kInternal = 13,
  kUnavailable = 14,
  kUnauthenticated = 16,
};

struct Status {
  int code = kOk;  // 0 to 16, or whatever a peer made up
  std::string message;

  bool operator==(const Status&) const = default;
};

// The status for a message that is too large to send; nullopt if it may be sent.
std::optional<Status> CheckMessageSize(std::size_t size);

// A flag byte (always "not compressed"), the length in four bytes, then the message.
std::string FrameMessage(std::string_view message);

// Splits a byte stream into messages. Buffers at most one incomplete message.
class MessageReader {
 public:
  explicit MessageReader(std::size_t max_message_bytes = kMaxMessageBytes)
      : max_message_bytes_(max_message_bytes) {}

  // Appends the messages that `bytes` completes. Returns a status if the peer broke the framing,
  // compressed a message or announced one beyond the limit; the stream is unreadable from then on.
  std::optional<Status> Read(std::string_view bytes, std::vector<std::string>& messages);
  bool IsWithinMessage() const { return prefix_size_ > 0; }
  std::size_t buffered_bytes() const { return prefix_size_ + message_.size(); }

 private:
  std::optional<Status> ReadPrefix();

  std::size_t max_message_bytes_;
  char prefix_[5] = {};
  std::size_t prefix_size_ = 0;
  std::size_t length_ = 0;  // of the message, once the prefix is complete
  std::string message_;
};

// grpc-message: '%' and anything but printable ASCII as %XX. Decoding keeps malformed escapes.
std::string EncodeText(std::string_view text);
std::string DecodeText(std::string_view text);

// grpc-timeout: at most eight digits and a unit, rounded up. Parsing malformed text gives nullopt.
std::string EncodeTimeout(Duration timeout);
std::optional<Duration> ParseTimeout(std::string_view text);

// "application/grpc", also with "+proto" or parameters, but with no other message encoding.
bool IsGrpcContentType(std::string_view type);

// From grpc-status and grpc-message as received.
Status StatusFromTrailers(std::string_view code, std::string_view message);
// The status of a response without grpc-status.
Status StatusFromHttp(int http_status, std::string_view content_type);
// The status of a stream that ended with this HTTP/2 error code.
Status StatusFromReset(std::uint32_t http2_error);

}  // namespace drakkar::rpc::grpc
