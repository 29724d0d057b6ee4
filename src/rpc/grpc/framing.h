#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/env/clock.h"

namespace drakkar::rpc::grpc {

// gRPC's own bytes and texts inside HTTP/2, as the protocol's PROTOCOL-HTTP2.md says: messages with
// a length in front, the status in trailers, the deadline in a header.

// gRPC codes that this transport gives itself.
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
  int code = kOk;  // 0 to 16, or what a peer made up
  std::string message;

  bool operator==(const Status&) const = default;
};

// What a message that is too large to be sent is answered with.
std::optional<Status> CheckMessageSize(std::size_t size);

// A flag byte (never compressed) and the length in four bytes, then the message.
std::string FrameMessage(std::string_view message);

// Cuts a stream of bytes into messages. Holds at most one message, and of that only what arrived.
class MessageReader {
 public:
  // Appends the messages that `bytes` completes. A status if the peer broke the framing, compressed
  // a message or announced one beyond kMaxMessageBytes; nothing can be read from there on.
  std::optional<Status> Read(std::string_view bytes, std::vector<std::string>& messages);
  bool IsWithinMessage() const { return prefix_size_ > 0; }

 private:
  std::optional<Status> ReadPrefix();

  char prefix_[5] = {};
  std::size_t prefix_size_ = 0;
  std::size_t length_ = 0;  // of the message, once the prefix is complete
  std::string message_;
};

// grpc-message: what is not printable ASCII, and '%', as %XX. Decoding leaves what is malformed.
std::string EncodeText(std::string_view text);
std::string DecodeText(std::string_view text);

// grpc-timeout: at most eight digits and a unit, rounded up. Nothing for what is malformed.
std::string EncodeTimeout(Duration timeout);
std::optional<Duration> ParseTimeout(std::string_view text);

// "application/grpc", also with "+proto" or parameters; no other encoding of messages.
bool IsGrpcContentType(std::string_view type);

// grpc-status and grpc-message as received.
Status StatusFromTrailers(std::string_view code, std::string_view message);
// What an answer without a gRPC status means.
Status StatusFromHttp(int http_status, std::string_view content_type);
// What a stream that ends with this HTTP/2 error code means.
Status StatusFromReset(std::uint32_t http2_error);

}  // namespace drakkar::rpc::grpc
