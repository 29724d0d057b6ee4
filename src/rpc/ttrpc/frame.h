#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result/result.h"

namespace drakkar::rpc {

// Framing on an NRI socket: ttRPC messages, carried by two logical connections over one stream. No
// I/O here.

// ttRPC's own limit on the data of a message.
constexpr std::size_t kMaxTtrpcData = 4u << 20;

enum class TtrpcType : std::uint8_t { kRequest = 1, kResponse = 2, kData = 3 };

// "length(4) stream(4) type(1) flags(1) data", numbers big-endian.
struct TtrpcMessage {
  std::uint32_t stream = 0;
  TtrpcType type = TtrpcType::kRequest;
  std::uint8_t flags = 0;
  std::string data;

  bool operator==(const TtrpcMessage&) const = default;
};

std::string EncodeTtrpc(const TtrpcMessage& message);

// Consumes bytes and returns complete messages. Buffers at most one message.
class TtrpcDecoder {
 public:
  // An error is final: the start of the next message is unknown.
  Result<std::vector<TtrpcMessage>> Feed(std::string_view bytes);
  std::size_t pending_bytes() const { return buffer_.size(); }

 private:
  std::string buffer_;
};

// "connection(4) length(4) bytes": one piece of one logical connection.
struct MuxFrame {
  std::uint32_t connection = 0;
  std::string bytes;

  bool operator==(const MuxFrame&) const = default;
};

// The largest piece we send: readers in Go use a buffer of this size.
constexpr std::size_t kMaxSentPiece = 4'096;
// The largest piece we accept: a whole message.
constexpr std::size_t kMaxTakenPiece = kMaxTtrpcData + 10;

// Encodes `bytes` for `connection` in as many pieces as needed.
std::string EncodeMux(std::uint32_t connection, std::string_view bytes);

// Like TtrpcDecoder; buffers at most one piece.
class MuxDecoder {
 public:
  Result<std::vector<MuxFrame>> Feed(std::string_view bytes);
  std::size_t pending_bytes() const { return buffer_.size(); }

 private:
  std::string buffer_;
};

}  // namespace drakkar::rpc
