#include "rpc/grpc/server_session.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "base/text/text.h"
#include "net/http2/nghttp2_session.h"

namespace drakkar::rpc::grpc {
namespace {

constexpr std::int32_t kStreamWindow = 1 << 20;
constexpr std::int32_t kConnectionWindow = 16 << 20;
constexpr std::size_t kMaxHeaderBytes = 16 * 1024;
// Bytes a peer may keep sending to a call that wants no more of them, before a reset.
constexpr std::size_t kMaxDiscardedBytes = 1 << 20;
// Longer status messages are truncated: peers limit trailers as a whole to about twice this.
constexpr std::size_t kMaxTextBytes = 4 * 1024;
// Calls cancelled before any response, in excess of those answered (CVE-2023-44487). Beyond it the
// connection is closed.
constexpr std::size_t kMaxEarlyResets = 1'000;

struct Call {
  bool is_post = false;
  std::string method;
  std::string content_type;
  std::string timeout_text;
  std::optional<Duration> timeout;
  MessageReader reader;
  std::size_t received = 0;  // its part of the session's `receiving_`
  std::size_t discarded = 0;
  bool streaming = false;  // the method takes more than one message
  bool started = false;    // its first event was issued
  bool finished = false;   // its status is decided
};

std::string_view Shorten(std::string_view text) {
  if (text.size() <= kMaxTextBytes) return text;
  std::size_t end = kMaxTextBytes;
  while (end > kMaxTextBytes - 4 && (text[end] & 0xc0) == 0x80) --end;  // not inside a character
  return text.substr(0, end);
}

class Session final : public ServerSession, private net::http2::Nghttp2Session {
 public:
  Session(CheckMethod check_method, IsStreaming is_streaming)
      : check_method_(std::move(check_method)), is_streaming_(std::move(is_streaming)) {
    net::SessionLimits limits;
    limits.max_header_bytes = kMaxHeaderBytes;
    Init(Side::kServer, limits,
         {{NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, kMaxConcurrentCalls},
          {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, kStreamWindow}},
         kConnectionWindow);
  }

  Result<void> Receive(std::string_view bytes) override { return ReceiveBytes(bytes); }

  void Send(std::string& out, std::size_t limit) override { SendBytes(out, limit); }

  std::vector<Event> TakeEvents() override { return std::exchange(events_, {}); }

  bool IsFinished() const override {
    if (broken_ || (shut_down_ && streams_.empty())) return !nghttp2_session_want_write(session_);
    return !nghttp2_session_want_read(session_) && !nghttp2_session_want_write(session_);
  }

  void SendMessage(StreamId id, std::string_view message) override {
    Stream* stream = nullptr;
    Call* call = FindOpen(id, &stream);
    if (call == nullptr) return;
    if (const std::optional<Status> refused = CheckMessageSize(message.size())) {
      return Break(*stream, *call, *refused);
    }
    if (stream->out.segments() >= kMaxPendingMessages) {
      return Break(
          *stream, *call,
          {kResourceExhausted, StrCat("the peer is ", kMaxPendingMessages, " messages behind")});
    }
    if (UnsentBytes() + message.size() > kMaxBufferedBytes) {
      return Break(
          *stream, *call,
          {kResourceExhausted, StrCat("the peer is ", kMaxBufferedBytes, " bytes behind")});
    }
    stream->out.Push(FrameMessage(message));
    if (stream->responded) {
      Resume(*stream);
    } else {
      Respond(*stream, net::Headers(), /*has_body=*/true);
    }
  }

  void Finish(StreamId id, const Status& status) override {
    Stream* stream = nullptr;
    Call* call = FindOpen(id, &stream);
    if (call == nullptr) return;
    End(*stream, *call, status);
  }

  void Abort(StreamId id, const Status& status) override {
    Stream* stream = nullptr;
    Call* call = FindOpen(id, &stream);
    if (call == nullptr) return;
    stream->out.DropUnstarted();
    End(*stream, *call, status);
  }

  void Shutdown(const Status& status) override {
    if (shut_down_) return;
    shut_down_ = true;
    std::vector<StreamId> open;
    for (const auto& [id, call] : calls_) open.push_back(id);
    std::sort(open.begin(), open.end());
    for (const StreamId id : open) Abort(id, status);
    nghttp2_submit_goaway(session_, NGHTTP2_FLAG_NONE,
                          nghttp2_session_get_last_proc_stream_id(session_), NGHTTP2_NO_ERROR,
                          nullptr, 0);
  }

  std::size_t open_calls() const override { return calls_.size(); }

 private:
  Call* FindCall(StreamId id) {
    const auto found = calls_.find(id);
    return found == calls_.end() ? nullptr : &found->second;
  }

  Call* FindOpen(StreamId id, Stream** stream) {
    *stream = Find(id);
    Call* call = FindCall(id);
    return *stream == nullptr || call == nullptr || call->finished ? nullptr : call;
  }

  // Only streaming calls ever have many messages, so summing is cheap enough.
  std::size_t UnsentBytes() const {
    std::size_t bytes = 0;
    for (const auto& [id, stream] : streams_) bytes += stream->out.bytes();
    return bytes;
  }

  void OnHeader(Stream& stream, std::string_view name, std::string_view value,
                bool trailer) override {
    stream.header_bytes += name.size() + value.size() + 32;
    if (trailer || stream.header_bytes > kMaxHeaderBytes) return;
    Call& call = calls_[stream.id];
    if (name == ":method") {
      call.is_post = value == "POST";
    } else if (name == ":path") {
      call.method = value;
    } else if (name == "content-type") {
      call.content_type = value;
    } else if (name == "grpc-timeout") {
      call.timeout_text = value;
    }
  }

  void OnHeadersDone(Stream& stream, bool) override {
    stream.head_done = true;
    Call& call = calls_[stream.id];
    if (stream.header_bytes > kMaxHeaderBytes) {
      return End(stream, call,
                 {kResourceExhausted,
                  StrCat("the headers of the call exceed ", kMaxHeaderBytes, " bytes")});
    }
    if (!call.is_post) return Refuse(stream, call, "405");
    if (!IsGrpcContentType(call.content_type)) return Refuse(stream, call, "415");
    if (!call.timeout_text.empty()) {
      call.timeout = ParseTimeout(call.timeout_text);
      if (!call.timeout) {
        return End(stream, call,
                   {kInternal, StrCat("malformed grpc-timeout: ", Quote(call.timeout_text))});
      }
    }
    if (shut_down_) return End(stream, call, {kUnavailable, "the server is stopping"});
    if (Result<void> served = check_method_(call.method); !served.ok()) {
      return End(stream, call, {kUnimplemented, std::move(served).error().message});
    }
    call.streaming = is_streaming_ && is_streaming_(call.method);
  }

  void OnBody(Stream& stream, std::string_view bytes) override {
    Call* call = FindCall(stream.id);
    if (call == nullptr) return;
    if ((call->started && !call->streaming) || call->finished) {
      call->discarded += bytes.size();
      if (call->discarded > kMaxDiscardedBytes) ResetStream(stream.id, NGHTTP2_NO_ERROR);
      return;
    }
    if (receiving_ + bytes.size() > kMaxBufferedBytes) {
      return Break(stream, *call,
                   {kResourceExhausted, StrCat("the connection's incomplete requests exceed ",
                                               kMaxBufferedBytes, " bytes")});
    }
    std::vector<std::string> messages;
    const std::optional<Status> refused = call->reader.Read(bytes, messages);
    receiving_ += call->reader.buffered_bytes();
    receiving_ -= std::exchange(call->received, call->reader.buffered_bytes());
    for (std::string& message : messages) {
      if (call->started && !call->streaming) break;
      if (call->started) {
        events_.push_back({stream.id, EventType::kMessage, {}, std::move(message)});
      } else {
        events_.push_back(
            {stream.id, EventType::kCall, call->method, std::move(message), call->timeout});
      }
      call->started = true;
    }
    if (call->started && !call->streaming) return DoneReceiving(*call);
    if (refused) Break(stream, *call, *refused);
  }

  void OnRemoteEnd(Stream& stream) override {
    Call* call = FindCall(stream.id);
    if (call == nullptr || call->finished) return;
    if (!call->started) return End(stream, *call, {kInternal, "the call has no request message"});
    if (call->streaming) events_.push_back({stream.id, EventType::kEnd});
  }

  void OnClose(Stream& stream, std::uint32_t) override {
    Call* call = FindCall(stream.id);
    if (call == nullptr) return;
    if (call->finished) ++answered_;
    if (call->started && !call->finished) {
      events_.push_back({stream.id, EventType::kCancelled});
    }
    DoneReceiving(*call);
    calls_.erase(stream.id);
  }

  void OnPeerReset(Stream& stream) override {
    if (stream.responded || broken_) return;
    if (++early_resets_ > kMaxEarlyResets + answered_) {
      broken_ = true;
      broken_why_ = "too many calls were cancelled before their response";
      nghttp2_session_terminate_session(session_, NGHTTP2_ENHANCE_YOUR_CALM);
    }
  }

  // RFC 9113 section 8.1: the peer need not send the rest of a request that has been answered.
  void OnLocalEnd(Stream& stream) override {
    if (!stream.remote_done) ResetStream(stream.id, NGHTTP2_NO_ERROR);
  }

  void DoneReceiving(Call& call) {
    receiving_ -= std::exchange(call.received, 0);
    call.reader = MessageReader();
  }

  // Ends a call for our own reason. Its handler learns that it was cancelled.
  void Break(Stream& stream, Call& call, const Status& status) {
    if (call.started) events_.push_back({stream.id, EventType::kCancelled});
    stream.out.DropUnstarted();
    End(stream, call, status);
  }

  void End(Stream& stream, Call& call, const Status& status) {
    call.finished = true;
    DoneReceiving(call);
    net::Headers fields{{"grpc-status", std::to_string(status.code)}};
    if (!status.message.empty()) fields.Add("grpc-message", EncodeText(Shorten(status.message)));
    if (!stream.responded) return Respond(stream, fields, /*has_body=*/false);
    stream.trailers = std::move(fields);
    stream.out_final = true;
    Resume(stream);
  }

  // Not gRPC: sends an HTTP response that has only a status.
  void Refuse(Stream& stream, Call& call, std::string_view http_status) {
    call.finished = true;
    stream.responded = true;
    const net::Headers none;
    net::http2::FieldList fields(none);
    fields.AddPseudo(":status", http_status);
    Submit(stream, fields, /*has_body=*/false);
  }

  void Respond(Stream& stream, const net::Headers& trailers, bool has_body) {
    stream.responded = true;
    net::http2::FieldList fields(trailers);
    fields.AddPseudo(":status", "200");
    fields.Add("content-type", "application/grpc");
    fields.Add("grpc-accept-encoding", "identity");
    Submit(stream, fields, has_body);
  }

  void Submit(Stream& stream, const net::http2::FieldList& fields, bool has_body) {
    stream.has_body = has_body;
    nghttp2_data_provider provider = Provider(stream);
    const int code = nghttp2_submit_response(session_, stream.id, fields.data(), fields.size(),
                                             has_body ? &provider : nullptr);
    if (code != 0) ResetStream(stream.id, NGHTTP2_INTERNAL_ERROR);
  }

  const CheckMethod check_method_;
  const IsStreaming is_streaming_;
  std::unordered_map<StreamId, Call> calls_;
  std::vector<Event> events_;
  std::size_t receiving_ = 0;  // bytes of incomplete requests
  std::size_t answered_ = 0;
  std::size_t early_resets_ = 0;
  bool shut_down_ = false;
};

}  // namespace

std::unique_ptr<ServerSession> NewServerSession(ServerSession::CheckMethod check_method,
                                                ServerSession::IsStreaming is_streaming) {
  return std::make_unique<Session>(std::move(check_method), std::move(is_streaming));
}

}  // namespace drakkar::rpc::grpc
