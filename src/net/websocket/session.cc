#include "net/websocket/session.h"

#include <algorithm>

#include "base/text/text.h"

namespace drakkar::net::websocket {
namespace {

constexpr std::uint8_t kContinuation = 0x0;
constexpr std::uint8_t kTextFrame = 0x1;
constexpr std::uint8_t kBinaryFrame = 0x2;
constexpr std::uint8_t kCloseFrame = 0x8;
constexpr std::uint8_t kPingFrame = 0x9;
constexpr std::uint8_t kPongFrame = 0xa;
constexpr std::uint8_t kFinalBit = 0x80;
constexpr std::uint8_t kReservedBits = 0x70;
constexpr std::uint8_t kMaskBit = 0x80;

bool IsControl(std::uint8_t opcode) {
  return opcode >= kCloseFrame;
}

std::uint8_t ByteAt(std::string_view bytes, std::size_t at) {
  return static_cast<std::uint8_t>(bytes[at]);
}

// The length of the header, as far as the bytes so far determine it.
std::size_t HeaderSize(std::string_view header) {
  if (header.size() < 2) return 2;
  const std::uint8_t length = ByteAt(header, 1) & 0x7f;
  return 2 +
         (length == 126   ? 2u
          : length == 127 ? 8u
                          : 0u) +
         ((ByteAt(header, 1) & kMaskBit) != 0 ? 4u : 0u);
}

// Codes that are allowed in a frame (section 7.4): defined ones that are not for internal use, and
// those of libraries and applications.
bool IsCloseCode(std::uint16_t code) {
  if (code >= 3000 && code <= 4999) return true;
  return code >= 1000 && code <= 1014 && code != 1004 && code != 1005 && code != 1006;
}

void Mask(std::string& bytes, std::size_t from, const std::uint8_t (&mask)[4], std::size_t at) {
  for (std::size_t i = from; i < bytes.size(); ++i, ++at) {
    bytes[i] = static_cast<char>(static_cast<std::uint8_t>(bytes[i]) ^ mask[at & 3]);
  }
}

}  // namespace

Session::Session(Role role, Random& random, Events& events, std::size_t max_message_bytes)
    : role_(role), random_(random), events_(events), max_message_bytes_(max_message_bytes) {}

void Session::Receive(std::string_view bytes) {
  while (state_ != State::kClosed) {
    if (state_ == State::kHeader) {
      std::size_t wanted = HeaderSize(header_);
      while (header_.size() < wanted && !bytes.empty()) {
        const std::size_t count = std::min(wanted - header_.size(), bytes.size());
        header_.append(bytes.substr(0, count));
        bytes.remove_prefix(count);
        wanted = HeaderSize(header_);
      }
      if (header_.size() < wanted || !TakeHeader()) return;
      state_ = State::kPayload;
    }
    const std::size_t count = std::min(payload_left_, bytes.size());
    std::string& target = IsControl(opcode_) ? control_ : message_;
    const std::size_t old_size = target.size();
    target.append(bytes.substr(0, count));
    if (role_ == Role::kServer) Mask(target, old_size, mask_, payload_at_);
    bytes.remove_prefix(count);
    payload_left_ -= count;
    payload_at_ += count;
    if (payload_left_ > 0) return;
    state_ = State::kHeader;
    EndFrame();
  }
}

bool Session::TakeHeader() {
  const std::string header = std::exchange(header_, {});
  const std::uint8_t first = ByteAt(header, 0);
  const std::uint8_t second = ByteAt(header, 1);
  opcode_ = first & 0x0f;
  is_final_ = (first & kFinalBit) != 0;
  if ((first & kReservedBits) != 0) return Fail(kProtocolError, "reserved bits are set"), false;
  const bool masked = (second & kMaskBit) != 0;
  if (masked != (role_ == Role::kServer)) {
    return Fail(kProtocolError,
                masked ? "a server's frame is masked" : "a client's frame is not masked"),
           false;
  }
  std::uint64_t length = second & 0x7f;
  std::size_t at = 2;
  if (length >= 126) {
    const std::size_t size = length == 126 ? 2 : 8;
    length = 0;
    for (std::size_t i = 0; i < size; ++i) length = length << 8 | ByteAt(header, at++);
    if (length < (size == 2 ? 126u : 65536u)) {
      return Fail(kProtocolError, "a length is not in its shortest form"), false;
    }
  }
  for (std::size_t i = 0; masked && i < 4; ++i) mask_[i] = ByteAt(header, at++);
  if (IsControl(opcode_)) {
    if (opcode_ > kPongFrame) return Fail(kProtocolError, "unknown opcode"), false;
    if (!is_final_ || length > kMaxControlBytes) {
      return Fail(kProtocolError, "a control frame is fragmented or too long"), false;
    }
  } else {
    if (opcode_ > kBinaryFrame) return Fail(kProtocolError, "unknown opcode"), false;
    if ((opcode_ == kContinuation) != (message_opcode_ != 0)) {
      return Fail(kProtocolError, "a message fragment is out of order"), false;
    }
    if (opcode_ != kContinuation) message_opcode_ = opcode_;
    if (length > max_message_bytes_ - message_.size()) {
      return Fail(kTooBig, StrCat("a message may have at most ", max_message_bytes_, " bytes")),
             false;
    }
  }
  payload_left_ = static_cast<std::size_t>(length);
  payload_at_ = 0;
  return true;
}

void Session::EndFrame() {
  if (IsControl(opcode_)) return EndControlFrame();
  if (!is_final_) return;
  const std::uint8_t opcode = std::exchange(message_opcode_, std::uint8_t{0});
  const std::string message = std::exchange(message_, {});
  if (opcode == kTextFrame && !IsValidUtf8(message))
    return Fail(kInvalidData, "a text message is not UTF-8");
  events_.OnMessage(opcode == kTextFrame ? MessageType::kText : MessageType::kBinary, message);
}

void Session::EndControlFrame() {
  const std::string payload = std::exchange(control_, {});
  if (opcode_ == kPongFrame) return;
  if (opcode_ == kPingFrame) {
    if (!sent_close_ && events_.MayAnswerPing()) Append(kPongFrame, payload, {});
    return;
  }
  std::uint16_t code = kNoStatus;
  if (payload.size() == 1) return Fail(kProtocolError, "a close code is truncated");
  if (payload.size() >= 2) {
    code = static_cast<std::uint16_t>(ByteAt(payload, 0) << 8 | ByteAt(payload, 1));
    if (!IsCloseCode(code)) return Fail(kProtocolError, "unknown close code");
    if (!IsValidUtf8(std::string_view(payload).substr(2))) {
      return Fail(kInvalidData, "a close reason is not UTF-8");
    }
  }
  state_ = State::kClosed;
  if (!sent_close_) {
    sent_close_ = true;
    Append(kCloseFrame, std::string_view(payload).substr(0, 2), {});
  }
  events_.OnClose(code, payload.size() > 2 ? std::string_view(payload).substr(2) : "");
}

void Session::Send(MessageType type, std::string_view first, std::string_view second) {
  if (sent_close_ || state_ == State::kClosed) return;
  Append(type == MessageType::kText ? kTextFrame : kBinaryFrame, first, second);
}

void Session::Ping() {
  if (!sent_close_ && state_ != State::kClosed) Append(kPingFrame, {}, {});
}

void Session::Close(std::uint16_t code, std::string_view reason) {
  if (sent_close_) return;
  sent_close_ = true;
  const char bytes[2] = {static_cast<char>(code >> 8), static_cast<char>(code & 0xff)};
  // Cut at a character boundary.
  std::size_t size = std::min(reason.size(), kMaxControlBytes - 2);
  while (size > 0 && size < reason.size() && (ByteAt(reason, size) & 0xc0) == 0x80) --size;
  Append(kCloseFrame, std::string_view(bytes, 2), reason.substr(0, size));
}

void Session::Fail(std::uint16_t code, std::string_view why) {
  state_ = State::kClosed;
  message_.clear();
  control_.clear();
  Close(code, why);
  events_.OnClose(code, why);
}

void Session::Append(std::uint8_t opcode, std::string_view first, std::string_view second) {
  const std::size_t size = first.size() + second.size();
  const std::uint8_t mask_bit = role_ == Role::kClient ? kMaskBit : 0;
  out_.reserve(out_.size() + size + 14);
  out_ += static_cast<char>(kFinalBit | opcode);
  if (size < 126) {
    out_ += static_cast<char>(mask_bit | size);
  } else {
    const int bytes = size < 65536 ? 2 : 8;
    out_ += static_cast<char>(mask_bit | (bytes == 2 ? 126 : 127));
    for (int i = bytes - 1; i >= 0; --i) out_ += static_cast<char>(size >> (8 * i) & 0xff);
  }
  if (role_ == Role::kServer) {
    out_.append(first).append(second);
    return;
  }
  const std::uint64_t bits = random_.Next();
  std::uint8_t mask[4];
  for (int i = 0; i < 4; ++i)
    out_ += static_cast<char>(mask[i] = static_cast<std::uint8_t>(bits >> (8 * i)));
  const std::size_t begin = out_.size();
  out_.append(first).append(second);
  Mask(out_, begin, mask, 0);
}

}  // namespace drakkar::net::websocket
