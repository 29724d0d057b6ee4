#include "net/http2/client_session.h"

#include "base/text/text.h"
#include "net/http2/nghttp2_session.h"

namespace drakkar::net::http2 {
namespace {

constexpr std::int32_t kStreamWindow = 1024 * 1024;
constexpr std::int32_t kConnectionWindow = 16 * 1024 * 1024;

class Session final : public ClientSession, private Nghttp2Session {
 public:
  Session(const SessionLimits& limits, Events& events) : limits_(limits), events_(events) {
    Init(Side::kClient, limits,
         {{NGHTTP2_SETTINGS_ENABLE_PUSH, 0}, {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, kStreamWindow}},
         kConnectionWindow);
  }

  Result<void> Receive(std::string_view bytes) override { return ReceiveBytes(bytes); }
  void Send(std::string& out, std::size_t limit) override { SendBytes(out, limit); }

  bool IsFinished() const override {
    if (broken_) return true;
    if (going_away_ && streams_.empty()) return !nghttp2_session_want_write(session_);
    return !nghttp2_session_want_read(session_) && !nghttp2_session_want_write(session_);
  }

  bool CanSubmit() const override {
    return !broken_ && !going_away_ && nghttp2_session_check_request_allowed(session_) &&
           streams_.size() < nghttp2_session_get_remote_settings(
                                 session_, NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS);
  }

  Result<StreamId> Submit(const Request& request, std::string_view scheme) override {
    for (const auto& [name, value] : request.headers) {
      if (!IsToken(name) || !IsHeaderValue(value)) {
        return InvalidArgument(StrCat("header ", Quote(name), " cannot be sent"));
      }
    }
    FieldList fields(request.headers, /*skip_host=*/true);
    fields.AddPseudo(":method", MethodName(request.method));
    fields.AddPseudo(":scheme", scheme);
    fields.AddPseudo(":authority", request.headers.Get("host"));
    fields.AddPseudo(":path", request.target);
    const bool has_body = !request.body.empty();
    const std::string length = std::to_string(request.body.size());
    if (has_body && !request.headers.Find("content-length")) fields.Add("content-length", length);
    auto stream = std::make_unique<Stream>();
    stream->out_final = true;
    stream->has_body = has_body;
    if (has_body) stream->out.Push(request.body);
    nghttp2_data_provider provider = Provider(*stream);
    const std::int32_t id = nghttp2_submit_request(session_, nullptr, fields.data(), fields.size(),
                                                   has_body ? &provider : nullptr, nullptr);
    if (id < 0) return Unavailable(StrCat("HTTP/2: ", nghttp2_strerror(id)));
    stream->id = id;
    streams_.emplace(id, std::move(stream));
    return id;
  }

  void Cancel(StreamId id) override {
    if (Stream* stream = Find(id)) {
      stream->silent = true;
      ResetStream(id, NGHTTP2_CANCEL);
    }
  }

  void WriteRaw(std::string_view) override {}
  std::size_t PendingRawBytes() const override { return 0; }
  void Ping() override { nghttp2_submit_ping(session_, NGHTTP2_FLAG_NONE, nullptr); }
  void Shutdown() override {
    going_away_ = true;
    nghttp2_submit_goaway(session_, NGHTTP2_FLAG_NONE, 0, NGHTTP2_NO_ERROR, nullptr, 0);
  }
  std::size_t open_streams() const override { return streams_.size(); }

 private:
  void OnHeader(Stream& stream, std::string_view name, std::string_view value,
                bool trailer) override {
    stream.header_bytes += name.size() + value.size() + 32;
    if (trailer || stream.header_bytes > limits_.max_header_bytes) return;
    if (name == ":status") {
      stream.status = static_cast<int>(ParseInt64(value).value_or(0));
    } else if (!name.starts_with(':')) {
      stream.headers.Add(std::string(name), std::string(value));
    }
  }

  void OnHeadersDone(Stream& stream, bool) override {
    if (stream.header_bytes > limits_.max_header_bytes) {
      ResetStream(stream.id, NGHTTP2_ENHANCE_YOUR_CALM);
      return;
    }
    if (stream.status < 200) {  // interim; the final response follows
      stream.headers = Headers();
      stream.header_bytes = 0;
      return;
    }
    stream.head_done = true;
    if (!stream.silent) events_.OnResponse(stream.id, stream.status, std::move(stream.headers));
  }

  void OnBody(Stream& stream, std::string_view bytes) override {
    if (!stream.silent) events_.OnData(stream.id, bytes);
  }

  void OnRemoteEnd(Stream& stream) override {
    if (stream.silent) return;
    // The response is complete even if the server does not want the rest of the request.
    stream.silent = true;
    if (stream.head_done) {
      events_.OnStreamEnd(stream.id, nullptr, false);
    } else {
      const Error error = Unavailable("the stream ended without a response");
      events_.OnStreamEnd(stream.id, &error, false);
    }
  }

  void OnClose(Stream& stream, std::uint32_t error_code) override {
    if (stream.silent) return;
    const Error error =
        Unavailable(StrCat("the server reset the stream: ", nghttp2_http2_strerror(error_code)));
    events_.OnStreamEnd(stream.id, &error, error_code == NGHTTP2_REFUSED_STREAM);
  }

  void OnGoaway(StreamId) override { going_away_ = true; }

  const SessionLimits limits_;
  Events& events_;
  bool going_away_ = false;
};

}  // namespace

std::unique_ptr<ClientSession> NewClientSession(const SessionLimits& limits,
                                                ClientSession::Events& events) {
  return std::make_unique<Session>(limits, events);
}

}  // namespace drakkar::net::http2
