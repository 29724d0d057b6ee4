#include "rpc/grpc/client_session.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "base/text/text.h"
#include "net/http2/nghttp2_session.h"

namespace drakkar::rpc::grpc {
namespace {

// A large message passes without waiting for the window; what is held is bounded by the messages.
constexpr std::int32_t kStreamWindow = 1 << 20;
constexpr std::int32_t kConnectionWindow = 16 << 20;
// Of a head and trailers together; grpc-message is in there. Beyond: Internal.
constexpr std::size_t kMaxHeaderBytes = 64 * 1024;

struct Call {
  int http_status = 0;
  std::string content_type;
  std::optional<std::string> grpc_status;
  std::string grpc_message;
  MessageReader reader;
};

class Session final : public ClientSession, private net::http2::Nghttp2Session {
 public:
  Session() {
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

  Result<StreamId> Start(const CallHead& head, std::string_view request) override {
    if (!net::IsHeaderValue(head.method) || !head.method.starts_with('/')) {
      return InvalidArgument(StrCat("malformed method name: ", Quote(head.method)));
    }
    const std::string timeout = head.timeout ? EncodeTimeout(*head.timeout) : "";
    const net::Headers none;
    net::http2::FieldList fields(none);
    fields.AddPseudo(":method", "POST");
    fields.AddPseudo(":scheme", "http");
    fields.AddPseudo(":path", head.method);
    fields.AddPseudo(":authority", head.authority);
    fields.Add("te", "trailers");
    if (head.timeout) fields.Add("grpc-timeout", timeout);
    fields.Add("content-type", "application/grpc");
    fields.Add("grpc-accept-encoding", "identity");
    if (!head.user_agent.empty()) fields.Add("user-agent", head.user_agent);
    auto stream = std::make_unique<Stream>();
    stream->out.Push(FrameMessage(request));
    stream->out_final = true;
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
    calls_.try_emplace(id);
    return id;
  }

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
      return Fail(stream, {kInternal, StrCat("the head or trailers of the answer are larger than ",
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
    if (call->http_status < 200) {  // interim; the answer is still to come
      *call = Call();
      stream.header_bytes = 0;
      return;
    }
    stream.head_done = true;
    // A proxy or another server: its body is of no use.
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
    // Nobody wants the rest of the request.
    if (!stream.out.empty()) ResetStream(stream.id, NGHTTP2_CANCEL);
  }

  void OnClose(Stream& stream, std::uint32_t error_code) override {
    if (calls_.contains(stream.id)) End(stream.id, StatusFromReset(error_code));
  }

  void OnGoaway(StreamId last) override {
    going_away_ = true;
    std::vector<StreamId> unprocessed;
    for (const auto& [id, call] : calls_) {
      if (id > last) unprocessed.push_back(id);
    }
    std::sort(unprocessed.begin(), unprocessed.end());
    for (const StreamId id : unprocessed) {
      End(id, {kUnavailable, "the server is going away and has not seen the call"});
    }
  }

  void OnSettings() override { ready_ = true; }

  void Fail(Stream& stream, Status status) {
    End(stream.id, std::move(status));
    ResetStream(stream.id, NGHTTP2_CANCEL);
  }

  void End(StreamId id, Status status) {
    calls_.erase(id);
    events_.push_back({id, std::nullopt, std::move(status)});
  }

  std::unordered_map<StreamId, Call> calls_;  // those not over yet
  std::vector<Event> events_;
  bool ready_ = false;
  bool going_away_ = false;
};

}  // namespace

std::unique_ptr<ClientSession> NewClientSession() {
  return std::make_unique<Session>();
}

}  // namespace drakkar::rpc::grpc
