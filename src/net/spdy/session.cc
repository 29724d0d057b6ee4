#include "net/spdy/session.h"

#include <algorithm>

#include "base/text/text.h"

namespace drakkar::net::spdy {
namespace {

constexpr std::uint16_t kVersion = 3;
constexpr std::size_t kHeadBytes = 8;
constexpr std::uint8_t kFlagFinish = 1;

enum FrameType : std::uint16_t {
  kSynStream = 1,
  kSynReply = 2,
  kRstStream = 3,
  kSettings = 4,
  kPing = 6,
  kGoAway = 7,
  kHeaders = 8,
  kWindowUpdate = 9,
};

std::uint32_t ReadNumber(std::string_view bytes, std::size_t at) {
  std::uint32_t number = 0;
  for (std::size_t i = 0; i < 4; ++i) {
    number = number << 8 | static_cast<unsigned char>(bytes[at + i]);
  }
  return number;
}

void AppendNumber(std::string& out, std::uint32_t number) {
  for (int shift = 24; shift >= 0; shift -= 8) out += static_cast<char>(number >> shift & 0xff);
}

constexpr std::uint32_t kIdMask = 0x7fffffff;

}  // namespace

void Session::WriteControl(std::uint16_t type, std::uint8_t flags, std::string_view payload) {
  AppendNumber(out_, 0x80000000u | std::uint32_t{kVersion} << 16 | type);
  AppendNumber(out_, std::uint32_t{flags} << 24 | static_cast<std::uint32_t>(payload.size()));
  out_ += payload;
}

StreamId Session::Open(const Headers& headers) {
  const StreamId id = next_id_;
  next_id_ += 2;
  streams_[id] = {};
  std::string payload;
  AppendNumber(payload, id);
  AppendNumber(payload, 0);  // not associated with another stream
  payload += std::string(2, '\0');
  payload += headers_.Compress(headers);
  WriteControl(kSynStream, 0, payload);
  return id;
}

void Session::Reply(StreamId stream) {
  if (!IsOpen(stream)) return;
  std::string payload;
  AppendNumber(payload, stream);
  payload += headers_.Compress({});
  WriteControl(kSynReply, 0, payload);
}

void Session::Send(StreamId stream, std::string_view bytes) {
  const auto found = streams_.find(stream);
  if (found == streams_.end() || found->second.we_finished) return;
  while (!bytes.empty()) {
    const std::string_view part = bytes.substr(0, kDataFrameBytes);
    bytes.remove_prefix(part.size());
    AppendNumber(out_, stream);
    AppendNumber(out_, static_cast<std::uint32_t>(part.size()));
    out_ += part;
  }
}

void Session::Finish(StreamId stream) {
  const auto found = streams_.find(stream);
  if (found == streams_.end() || std::exchange(found->second.we_finished, true)) return;
  AppendNumber(out_, stream);
  AppendNumber(out_, std::uint32_t{kFlagFinish} << 24);
  ForgetIfFinished(stream);
}

void Session::Reset(StreamId stream, std::uint32_t status) {
  if (streams_.erase(stream) == 0) return;
  std::string payload;
  AppendNumber(payload, stream);
  AppendNumber(payload, status);
  WriteControl(kRstStream, 0, payload);
}

void Session::GoAway() {
  std::string payload;
  AppendNumber(payload, last_peer_id_);
  AppendNumber(payload, 0);
  WriteControl(kGoAway, 0, payload);
}

void Session::ForgetIfFinished(StreamId stream) {
  const auto found = streams_.find(stream);
  if (found == streams_.end()) return;
  if (found->second.we_finished && found->second.peer_finished) streams_.erase(found);
}

void Session::PeerFinished(StreamId stream) {
  const auto found = streams_.find(stream);
  if (found == streams_.end() || std::exchange(found->second.peer_finished, true)) return;
  ForgetIfFinished(stream);
  events_.OnFinish(stream);
}

Result<void> Session::Receive(std::string_view bytes) {
  while (!bytes.empty()) {
    if (data_left_ > 0) {
      const std::string_view part = bytes.substr(0, data_left_);
      bytes.remove_prefix(part.size());
      data_left_ -= static_cast<std::uint32_t>(part.size());
      const auto found = streams_.find(data_stream_);
      // Data for a stream that we have reset may still be in flight.
      if (found != streams_.end() && !found->second.peer_finished) {
        events_.OnData(data_stream_, part);
      }
      if (data_left_ == 0 && data_finishes_) PeerFinished(data_stream_);
      continue;
    }
    if (in_.size() < kHeadBytes) {
      const std::size_t missing = std::min(kHeadBytes - in_.size(), bytes.size());
      in_ += bytes.substr(0, missing);
      bytes.remove_prefix(missing);
      if (in_.size() < kHeadBytes) return Ok();
    }
    const std::uint32_t first = ReadNumber(in_, 0);
    const std::uint32_t second = ReadNumber(in_, 4);
    const auto flags = static_cast<std::uint8_t>(second >> 24);
    const std::uint32_t length = second & 0xffffff;
    if ((first & 0x80000000u) == 0) {
      in_.clear();
      if (first == 0) return InvalidArgument("SPDY data for stream 0");
      data_stream_ = first;
      data_left_ = length;
      data_finishes_ = (flags & kFlagFinish) != 0;
      if (length == 0 && data_finishes_) PeerFinished(data_stream_);
      continue;
    }
    if ((first >> 16 & 0x7fff) != kVersion) return InvalidArgument("not SPDY/3");
    if (length > kMaxControlBytes) return InvalidArgument("a SPDY control frame is too long");
    const std::size_t missing = kHeadBytes + length - in_.size();
    const std::string_view part = bytes.substr(0, missing);
    in_ += part;
    bytes.remove_prefix(part.size());
    if (part.size() < missing) return Ok();
    const std::string frame = std::exchange(in_, {});
    RETURN_IF_ERROR(ReceiveControl(static_cast<std::uint16_t>(first & 0xffff), flags,
                                   std::string_view(frame).substr(kHeadBytes)));
  }
  return Ok();
}

Result<void> Session::ReceiveSynStream(std::uint8_t flags, std::string_view payload) {
  if (payload.size() < 10) return InvalidArgument("a SPDY SYN_STREAM frame is too short");
  const StreamId id = ReadNumber(payload, 0) & kIdMask;
  // Every block must be decompressed, whatever happens to the stream.
  ASSIGN_OR_RETURN(const Headers headers, headers_.Decompress(payload.substr(10)));
  const bool odd = id % 2 == 1;
  if (id <= last_peer_id_ || odd != (role_ == Role::kServer)) {
    return InvalidArgument(StrCat("SPDY stream ", id, " is out of order"));
  }
  last_peer_id_ = id;
  streams_[id] = {};
  if (streams_.size() > kMaxStreams) {
    Reset(id, kRefusedStream);
    return Ok();
  }
  events_.OnStream(id, headers);
  if ((flags & kFlagFinish) != 0) PeerFinished(id);
  return Ok();
}

Result<void> Session::ReceiveControl(std::uint16_t type, std::uint8_t flags,
                                     std::string_view payload) {
  switch (type) {
    case kSynStream:
      return ReceiveSynStream(flags, payload);
    case kSynReply:
    case kHeaders: {
      if (payload.size() < 4) return InvalidArgument("a SPDY SYN_REPLY frame is too short");
      const StreamId id = ReadNumber(payload, 0) & kIdMask;
      RETURN_IF_ERROR(headers_.Decompress(payload.substr(4)));
      if (type == kSynReply && IsOpen(id)) events_.OnReply(id);
      if ((flags & kFlagFinish) != 0) PeerFinished(id);
      return Ok();
    }
    case kRstStream: {
      if (payload.size() < 8) return InvalidArgument("a SPDY RST_STREAM frame is too short");
      const StreamId id = ReadNumber(payload, 0) & kIdMask;
      if (streams_.erase(id) > 0) events_.OnReset(id);
      return Ok();
    }
    case kPing: {
      if (payload.size() < 4) return InvalidArgument("a SPDY PING frame is too short");
      // Even numbers are the server's. A ping with our kind of number answers ours.
      const bool odd = ReadNumber(payload, 0) % 2 == 1;
      if (odd == (role_ == Role::kServer)) WriteControl(kPing, 0, payload.substr(0, 4));
      return Ok();
    }
    case kGoAway:
      events_.OnGoAway();
      return Ok();
    case kSettings:
    case kWindowUpdate:
      return Ok();
    default:
      return InvalidArgument(StrCat("SPDY frame of unknown type ", type));
  }
}

}  // namespace drakkar::net::spdy
