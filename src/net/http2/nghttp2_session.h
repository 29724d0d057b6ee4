#pragma once

#include <nghttp2/nghttp2.h>

#include <list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/result/result.h"
#include "net/http/output_queue.h"
#include "net/http/session.h"

namespace drakkar::net::http2 {

// What client and server share: the nghttp2 session, its callbacks as virtual calls, the stream
// table and the outgoing bodies. For net/http2 and rpc/grpc. A session must not be destroyed inside
// one of its own virtual calls.
class Nghttp2Session {
 public:
  struct Stream {
    StreamId id = 0;
    Request request;  // server: being received
    int status = 0;   // client: of the response being received
    Headers headers;  // client: the same
    std::size_t header_bytes = 0;
    std::size_t buffered = 0;  // server: included in the connection's buffered bytes
    BodyLease lease;           // server: of the memory for bodies
    enum class Approval : std::uint8_t { kNotNeeded, kAwaited, kGiven };
    Approval approval = Approval::kNotNeeded;  // server: of a large body
    std::size_t held_back = 0;  // server: received bytes whose window is not reopened yet
    bool head_done = false;     // the peer's header block is complete
    bool dispatched = false;    // server: OnRequest was called
    bool responded = false;     // server: a response head was submitted
    bool remote_done = false;   // the peer has sent END_STREAM
    std::size_t discarded = 0;  // server: bytes dropped since the rejection
    bool refused = false;       // drop the rest of the peer's body
    bool silent = false;        // client: cancelled, no events
    OutputQueue out;
    bool out_final = false;  // only trailers follow `out`
    std::optional<Headers> trailers;
    bool deferred = false;  // nghttp2 waits for nghttp2_session_resume_data
    bool has_body = false;  // a data provider is attached
  };

  virtual ~Nghttp2Session();

 protected:
  enum class Side { kServer, kClient };
  // Who reopens the windows of received data: nghttp2 at once, or the session with
  // nghttp2_session_consume_*.
  enum class Windows { kAutomatic, kManual };

  void Init(Side side, const SessionLimits& limits, std::vector<nghttp2_settings_entry> settings,
            std::int32_t connection_window, Windows windows = Windows::kAutomatic);

  virtual void OnHeader(Stream& stream, std::string_view name, std::string_view value,
                        bool trailer) = 0;
  virtual void OnHeadersDone(Stream& stream, bool end) = 0;
  virtual void OnBody(Stream& stream, std::string_view bytes) = 0;
  virtual void OnRemoteEnd(Stream& stream) = 0;
  virtual void OnClose(Stream& stream, std::uint32_t error_code) = 0;
  // Streams above `last` were not and will not be processed.
  virtual void OnGoaway(StreamId /*last*/) {}
  virtual void OnPeerReset(Stream&) {}
  virtual void OnSettings() {}         // the peer's, not its acknowledgement of ours
  virtual void OnLocalEnd(Stream&) {}  // our END_STREAM was sent
  virtual void OnFrameBegin(const nghttp2_frame_hd&) {}
  virtual void OnHeadSent(Stream&) {}  // our header block was sent

  Result<void> ReceiveBytes(std::string_view bytes);
  void SendBytes(std::string& out, std::size_t limit);
  Stream* Find(StreamId id) const;
  Stream& Open(StreamId id);
  void Resume(Stream& stream);
  void ResetStream(StreamId id, std::uint32_t error_code);
  static nghttp2_data_provider Provider(Stream& stream);

  nghttp2_session* session_ = nullptr;
  std::unordered_map<StreamId, std::unique_ptr<Stream>> streams_;
  bool broken_ = false;  // the connection must end once GOAWAY is sent
  std::string broken_why_;

 private:
  struct Callbacks;
  std::string* out_ = nullptr;  // during SendBytes
  std::size_t out_limit_ = 0;
};

// Name-value pairs for nghttp2: lower-case names, no connection fields, cleaned values. Borrows its
// inputs, which must outlive the list; nghttp2 copies them.
class FieldList {
 public:
  explicit FieldList(const Headers& headers, bool skip_host = false);
  FieldList(const FieldList&) = delete;
  FieldList& operator=(const FieldList&) = delete;

  // Pseudo fields are sent first, whenever they are added.
  void AddPseudo(std::string_view name, std::string_view value);
  void Add(std::string_view name, std::string_view value) { pairs_.push_back(Pair(name, value)); }

  const nghttp2_nv* data() const { return pairs_.data(); }
  std::size_t size() const { return pairs_.size(); }

 private:
  static nghttp2_nv Pair(std::string_view name, std::string_view value);

  std::vector<nghttp2_nv> pairs_;
  std::string names_;               // reserved once, because pairs point into it
  std::list<std::string> cleaned_;  // rarely used
  std::size_t pseudo_ = 0;
};

}  // namespace drakkar::net::http2
