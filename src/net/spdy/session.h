#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "base/result/result.h"
#include "net/http/headers.h"
#include "net/spdy/header_codec.h"

namespace drakkar::net::spdy {

using StreamId = std::uint32_t;
enum class Role { kClient, kServer };

inline constexpr std::uint32_t kProtocolError = 1;  // status codes of RST_STREAM
inline constexpr std::uint32_t kRefusedStream = 3;
inline constexpr std::uint32_t kCancel = 5;

// One end of a SPDY/3.1 connection without I/O, as Kubernetes uses it for exec and port-forward:
// bytes in through Receive, bytes out through TakeOutput. Streams have no flow control of their
// own (Go's implementation has none): pausing the connection pauses all of them. Pings are
// answered; SETTINGS and WINDOW_UPDATE are read and ignored.
//
// Bounds: kMaxStreams open at a time, the peer's further ones are refused; control frames of at
// most kMaxControlBytes; data is passed on as it arrives, so nothing is buffered.
class Session {
 public:
  class Events {
   public:
    virtual ~Events() = default;
    // The peer opened a stream. Answer with Reply or Reset.
    virtual void OnStream(StreamId stream, const Headers& headers) = 0;
    virtual void OnReply(StreamId stream) = 0;
    virtual void OnData(StreamId stream, std::string_view bytes) = 0;
    virtual void OnFinish(StreamId stream) = 0;  // the peer sends no more on it
    virtual void OnReset(StreamId stream) = 0;   // the stream is gone
    virtual void OnGoAway() = 0;                 // the peer opens no more streams
  };

  static constexpr std::size_t kMaxStreams = 2'000;
  static constexpr std::size_t kMaxControlBytes = 64 << 10;
  static constexpr std::size_t kDataFrameBytes = 32 << 10;

  Session(Role role, Events& events) : role_(role), events_(events) {
    next_id_ = role == Role::kClient ? 1 : 2;
  }

  // May call events; these may call back into the session but not destroy it. After an error the
  // connection is unusable.
  Result<void> Receive(std::string_view bytes);
  std::string TakeOutput() { return std::exchange(out_, {}); }
  bool has_output() const { return !out_.empty(); }

  StreamId Open(const Headers& headers);
  void Reply(StreamId stream);
  // Ignored for a stream that is gone or finished on our side.
  void Send(StreamId stream, std::string_view bytes);
  void Finish(StreamId stream);
  void Reset(StreamId stream, std::uint32_t status);
  void GoAway();
  bool IsOpen(StreamId stream) const { return streams_.contains(stream); }
  std::size_t open_streams() const { return streams_.size(); }

 private:
  struct Stream {
    bool we_finished = false;
    bool peer_finished = false;
  };

  Result<void> ReceiveControl(std::uint16_t type, std::uint8_t flags, std::string_view payload);
  Result<void> ReceiveSynStream(std::uint8_t flags, std::string_view payload);
  void PeerFinished(StreamId stream);
  void WriteControl(std::uint16_t type, std::uint8_t flags, std::string_view payload);
  void ForgetIfFinished(StreamId stream);

  const Role role_;
  Events& events_;
  HeaderCodec headers_;
  std::map<StreamId, Stream> streams_;
  StreamId next_id_;
  StreamId last_peer_id_ = 0;
  std::string in_;               // an incomplete frame's head, or a control frame
  std::uint32_t data_left_ = 0;  // bytes of the current data frame
  StreamId data_stream_ = 0;
  bool data_finishes_ = false;
  std::string out_;
};

}  // namespace drakkar::net::spdy
