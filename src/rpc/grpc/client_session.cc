#include "rpc/grpc/client_session.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "base/text/text.h"
#include "net/http2/nghttp2_session.h"

namespace drakkar::rpc::grpc {
namespace {

// Large enough for a large message to pass without a round trip; buffering is bounded per message.
constexpr std::int32_t kStreamWindow = 1 << 20;
constexpr std::int32_t kConnectionWindow = 16 << 20;
// Limit for headers and trailers together, grpc-message included. Beyond it: Internal.
constexpr std::size_t kMaxHeaderBytes = 64 * 1024;

struct Call {
  explicit Call(std::size_t max_message_bytes) : reader(max_message_bytes) {}

  bool sent = false;  // its header block has been handed out
  int http_status = 0;
  std::string content_type;
  std::optional<std::string> grpc_status;
  std::string grpc_message;
  MessageReader reader;
};

class Session final : public ClientSession, private net::http2::Nghttp2Session {
 public:
  explicit Session(std::size_t max_message_bytes) : max_message_bytes_(max_message_bytes) {
    net::SessionLimits limits;
    limits.max_header_bytes = kMaxHeaderBytes;
    Init(Side::kClient, limits,
         {{NGHTTP2_SETTINGS_ENABLE_PUSH, 0}, {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, kStreamWindow}},
         kConnectionWindow);
  }

  Result<void> Receive(std::string_view bytes) override { return ReceiveBytes(bytes); }
  void Send(std::string& out, std::size_t limit) override { SendBytes(out, limit); }
  std::vector<Event> TakeEvents() override { return std::exchange(events_, {}); }

  bool IsReady() const override { return ready_; }
  bool IsGoingAway() const override { return going_away_; }
  bool IsFinished() const override {
    if (broken_ || (going_away_ && calls_.empty())) return !nghttp2_session_want_write(session_);
    return !nghttp2_session_want_read(session_) && !nghttp2_session_want_write(session_);
  }

  Result<StreamId> Open(const CallHead& head) override {
    if (!net::IsHeaderValue(head.method) || !head.method.starts_with('/')) {
      return InvalidArgument(StrCat("malformed method name: ", Quote(head.method)));
    }
    const std::string timeout = head.timeout ? EncodeTimeout(*head.timeout) : "";
    const net::Headers none;
    net::http2::FieldList fields(none);
    fields.AddPseudo(":method", "POST");
    fields.AddPseudo(":scheme", head.scheme);
    fields.AddPseudo(":path", head.method);
    fields.AddPseudo(":authority", head.authority);
    fields.Add("te", "trailers");
    if (head.timeout) fields.Add("grpc-timeout", timeout);
    fields.Add("content-type", "application/grpc");
    fields.Add("grpc-accept-encoding", "identity");
    if (!head.user_agent.empty()) fields.Add("user-agent", head.user_agent);
    if (head.metadata != nullptr) {
      for (const auto& [name, value] : *head.metadata) fields.Add(name, value);
    }
    auto stream = std::make_unique<Stream>();
    stream->has_body = true;
    nghttp2_data_provider provider = Provider(*stream);
    const std::int32_t id =
        nghttp2_submit_request(session_, nullptr, fields.data(), fields.size(), &provider, nullptr);
    if (id < 0) {
      going_away_ = true;
      return Unavailable(StrCat("HTTP/2: ", nghttp2_strerror(id)));
    }
    stream->id = id;
    streams_.emplace(id, std::move(stream));
    calls_.try_emplace(id, max_message_bytes_);
    return id;
  }

  void SendMessage(StreamId id, std::string_view message) override {
    Stream* stream = Find(id);
    if (stream == nullptr || !calls_.contains(id) || stream->out_final) return;
    if (std::optional<Status> refused = CheckMessageSize(message.size())) {
      return Fail(*stream, *std::move(refused));
    }
    if (stream->out.segments() >= kMaxPendingMessages ||
        stream->out.bytes() + message.size() > kMaxBufferedBytes) {
      return Fail(*stream, {kResourceExhausted,
                            StrCat("the server is ", stream->out.segments(), " messages behind")});
    }
    stream->out.Push(FrameMessage(message));
    Resume(*stream);
  }

  void FinishSending(StreamId id) override {
    Stream* stream = Find(id);
    if (stream == nullptr || stream->out_final) return;
    stream->out_final = true;
    Resume(*stream);
  }

  bool WasSent(StreamId id) const override {
    const auto found = calls_.find(id);
    return found == calls_.end() || found->second.sent;
  }

  void Ping() override { nghttp2_submit_ping(session_, NGHTTP2_FLAG_NONE, nullptr); }

  void Cancel(StreamId id) override {
    if (calls_.erase(id) > 0) ResetStream(id, NGHTTP2_CANCEL);
    std::erase_if(events_, [id](const Event& event) { return event.stream == id; });
  }

  std::size_t open_calls() const override { return calls_.size(); }

 private:
  Call* FindCall(const Stream& stream) {
    const auto found = calls_.find(stream.id);
    return found == calls_.end() ? nullptr : &found->second;
  }

  void OnHeader(Stream& stream, std::string_view name, std::string_view value, bool) override {
    stream.header_bytes += name.size() + value.size() + 32;
    Call* call = FindCall(stream);
    if (call == nullptr) return;
    if (stream.header_bytes > kMaxHeaderBytes) {
      return Fail(stream, {kInternal, StrCat("the headers or trailers of the response exceed ",
                                             kMaxHeaderBytes, " bytes")});
    }
    if (name == ":status") {
      call->http_status = static_cast<int>(ParseInt64(value).value_or(0));
    } else if (name == "content-type") {
      call->content_type = value;
    } else if (name == "grpc-status") {
      call->grpc_status = value;
    } else if (name == "grpc-message") {
      call->grpc_message = value;
    }
  }

  void OnHeadersDone(Stream& stream, bool) override {
    Call* call = FindCall(stream);
    if (call == nullptr) {
      stream.head_done = true;
      return;
    }
    if (call->http_status < 200) {  // interim: the response is still to come
      *call = Call(max_message_bytes_);
      call->sent = true;
      stream.header_bytes = 0;
      return;
    }
    stream.head_done = true;
    // A proxy or some other server: its body is useless.
    const bool speaks_grpc = call->http_status == 200 && IsGrpcContentType(call->content_type);
    if (!speaks_grpc && !call->grpc_status) {
      Fail(stream, StatusFromHttp(call->http_status, call->content_type));
    }
  }

  void OnBody(Stream& stream, std::string_view bytes) override {
    Call* call = FindCall(stream);
    if (call == nullptr) return;
    std::vector<std::string> messages;
    const std::optional<Status> refused = call->reader.Read(bytes, messages);
    for (std::string& message : messages) events_.push_back({stream.id, std::move(message), {}});
    if (refused) Fail(stream, *refused);
  }

  void OnRemoteEnd(Stream& stream) override {
    Call* call = FindCall(stream);
    if (call == nullptr) return;
    Status status = call->grpc_status ? StatusFromTrailers(*call->grpc_status, call->grpc_message)
                                      : StatusFromHttp(call->http_status, call->content_type);
    if (status.code == kOk && call->reader.IsWithinMessage()) {
      status = {kInternal, "the stream ended within a message"};
    }
    End(stream.id, std::move(status));
    // The server does not want the rest of the request.
    if (!stream.out.empty() || !stream.out_final) ResetStream(stream.id, NGHTTP2_CANCEL);
  }

  void OnClose(Stream& stream, std::uint32_t error_code) override {
    if (!calls_.contains(stream.id)) return;
    End(stream.id, StatusFromReset(error_code), error_code == NGHTTP2_REFUSED_STREAM);
  }

  void OnGoaway(StreamId last) override {
    going_away_ = true;
    std::vector<StreamId> unprocessed;
    for (const auto& [id, call] : calls_) {
      if (id > last) unprocessed.push_back(id);
    }
    std::sort(unprocessed.begin(), unprocessed.end());
    for (const StreamId id : unprocessed) {
      End(id, {kUnavailable, "the server is going away and has not seen the call"}, true);
    }
  }

  void OnSettings() override { ready_ = true; }

  void OnHeadSent(Stream& stream) override {
    if (Call* call = FindCall(stream)) call->sent = true;
  }

  void Fail(Stream& stream, Status status) {
    End(stream.id, std::move(status));
    ResetStream(stream.id, NGHTTP2_CANCEL);
  }

  void End(StreamId id, Status status, bool unprocessed = false) {
    calls_.erase(id);
    events_.push_back({id, std::nullopt, std::move(status), unprocessed});
  }

  const std::size_t max_message_bytes_;
  std::unordered_map<StreamId, Call> calls_;  // those that have not ended
  std::vector<Event> events_;
  bool ready_ = false;
  bool going_away_ = false;
};

}  // namespace

std::unique_ptr<ClientSession> NewClientSession(std::size_t max_message_bytes) {
  return std::make_unique<Session>(max_message_bytes);
}

}  // namespace drakkar::rpc::grpc
