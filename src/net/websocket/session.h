#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "base/env/random.h"

namespace drakkar::net::websocket {

enum class Role { kServer, kClient };
enum class MessageType { kText, kBinary };

// Status codes of a close frame (RFC 6455 section 7.4.1).
inline constexpr std::uint16_t kNormalClosure = 1000;
inline constexpr std::uint16_t kGoingAway = 1001;
inline constexpr std::uint16_t kProtocolError = 1002;
inline constexpr std::uint16_t kNoStatus = 1005;  // never sent; the peer's frame had no code
inline constexpr std::uint16_t kInvalidData = 1007;
inline constexpr std::uint16_t kTooBig = 1009;

// One end of a WebSocket (RFC 6455) after the handshake, without I/O: bytes in through Receive,
// bytes out through TakeOutput. Reassembles fragmented messages up to `max_message_bytes`, answers
// pings, and sends a close frame with the reason to a peer that violates the protocol. No
// extensions.
class Session {
 public:
  class Events {
   public:
    virtual ~Events() = default;
    virtual void OnMessage(MessageType type, std::string_view payload) = 0;
    // Called once: the peer closed or violated the protocol. Send what TakeOutput still returns,
    // then close the connection. Nothing is received after this.
    virtual void OnClose(std::uint16_t code, std::string_view reason) = 0;
    // Return false if too much is already queued for the peer to answer its pings as well.
    virtual bool MayAnswerPing() const { return true; }
  };

  static constexpr std::size_t kMaxMessageBytes = 1 << 20;
  static constexpr std::size_t kMaxControlBytes = 125;

  // `random` generates the masks of a client's frames; it must outlive the session.
  Session(Role role, Random& random, Events& events,
          std::size_t max_message_bytes = kMaxMessageBytes);

  // May call events; these may call back into the session but not destroy it.
  void Receive(std::string_view bytes);
  // Sends one message in one frame, the concatenation of two parts. A no-op after Close.
  void Send(MessageType type, std::string_view first, std::string_view second = {});
  void Ping();
  // Sends the close frame, once. The peer's messages still arrive until its own close frame.
  void Close(std::uint16_t code, std::string_view reason = {});

  // Everything to be sent since the last call.
  std::string TakeOutput() { return std::exchange(out_, {}); }
  bool has_output() const { return !out_.empty(); }
  bool is_receiving() const { return state_ != State::kClosed; }
  bool has_sent_close() const { return sent_close_; }

 private:
  enum class State { kHeader, kPayload, kClosed };

  bool TakeHeader();
  void EndFrame();
  void EndControlFrame();
  void Fail(std::uint16_t code, std::string_view why);
  void Append(std::uint8_t opcode, std::string_view first, std::string_view second);

  const Role role_;
  Random& random_;
  Events& events_;
  const std::size_t max_message_bytes_;

  State state_ = State::kHeader;
  std::string header_;       // at most 14 bytes
  std::uint8_t opcode_ = 0;  // of the frame in progress
  bool is_final_ = false;
  std::uint8_t mask_[4] = {};
  std::size_t payload_left_ = 0;
  std::size_t payload_at_ = 0;       // position in the frame, for the mask
  std::string control_;              // payload of a control frame
  std::uint8_t message_opcode_ = 0;  // 0 if no message is in progress
  std::string message_;
  std::string out_;
  bool sent_close_ = false;
};

}  // namespace drakkar::net::websocket
