#include "rpc/ttrpc/frame.h"

#include <algorithm>

#include "base/text/text.h"

namespace drakkar::rpc {
namespace {

constexpr std::size_t kTtrpcHeader = 10;
constexpr std::size_t kMuxHeader = 8;

void AppendNumber(std::string& out, std::uint32_t number) {
  for (int shift = 24; shift >= 0; shift -= 8) {
    out += static_cast<char>(static_cast<unsigned char>(number >> shift));
  }
}

std::uint32_t ReadNumber(std::string_view bytes) {
  std::uint32_t number = 0;
  for (std::size_t i = 0; i < 4; ++i) number = number << 8 | static_cast<unsigned char>(bytes[i]);
  return number;
}

}  // namespace

std::string EncodeTtrpc(const TtrpcMessage& message) {
  std::string out;
  out.reserve(kTtrpcHeader + message.data.size());
  AppendNumber(out, static_cast<std::uint32_t>(message.data.size()));
  AppendNumber(out, message.stream);
  out += static_cast<char>(message.type);
  out += static_cast<char>(message.flags);
  out += message.data;
  return out;
}

Result<std::vector<TtrpcMessage>> TtrpcDecoder::Feed(std::string_view bytes) {
  buffer_ += bytes;
  std::vector<TtrpcMessage> messages;
  std::string_view rest = buffer_;
  while (rest.size() >= kTtrpcHeader) {
    const std::size_t length = ReadNumber(rest);
    if (length > kMaxTtrpcData) {
      return InvalidArgument(
          StrCat("a ttRPC message of ", length, " bytes, the limit is ", kMaxTtrpcData));
    }
    const auto type = static_cast<std::uint8_t>(rest[8]);
    if (type < 1 || type > 3) return InvalidArgument(StrCat("unknown ttRPC message type ", type));
    if (rest.size() < kTtrpcHeader + length) break;
    messages.push_back({.stream = ReadNumber(rest.substr(4)),
                        .type = static_cast<TtrpcType>(type),
                        .flags = static_cast<std::uint8_t>(rest[9]),
                        .data = std::string(rest.substr(kTtrpcHeader, length))});
    rest.remove_prefix(kTtrpcHeader + length);
  }
  buffer_.erase(0, buffer_.size() - rest.size());
  return messages;
}

std::string EncodeMux(std::uint32_t connection, std::string_view bytes) {
  std::string out;
  while (!bytes.empty()) {
    const std::size_t size = std::min(bytes.size(), kMaxSentPiece);
    AppendNumber(out, connection);
    AppendNumber(out, static_cast<std::uint32_t>(size));
    out += bytes.substr(0, size);
    bytes.remove_prefix(size);
  }
  return out;
}

Result<std::vector<MuxFrame>> MuxDecoder::Feed(std::string_view bytes) {
  buffer_ += bytes;
  std::vector<MuxFrame> frames;
  std::string_view rest = buffer_;
  while (rest.size() >= kMuxHeader) {
    const std::size_t length = ReadNumber(rest.substr(4));
    if (length > kMaxTakenPiece) {
      return InvalidArgument(
          StrCat("a piece of ", length, " bytes, the limit is ", kMaxTakenPiece));
    }
    if (rest.size() < kMuxHeader + length) break;
    frames.push_back({ReadNumber(rest), std::string(rest.substr(kMuxHeader, length))});
    rest.remove_prefix(kMuxHeader + length);
  }
  buffer_.erase(0, buffer_.size() - rest.size());
  return frames;
}

}  // namespace drakkar::rpc
