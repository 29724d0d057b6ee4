#include "net/http1/client_session.h"

#include "base/text/text.h"
#include "net/http/output_queue.h"
#include "net/http1/framing.h"

namespace drakkar::net::http1 {
namespace {

class Session final : public ClientSession {
 public:
  Session(const SessionLimits& limits, Events& events)
      : events_(events), head_(limits.max_header_bytes) {}

  bool CanSubmit() const override { return state_ == State::kIdle && !closing_; }

  Result<StreamId> Submit(const Request& request, std::string_view) override {
    CHECK(CanSubmit());
    for (const auto& [name, value] : request.headers) {
      if (!IsToken(name) || !IsHeaderValue(value)) {
        return InvalidArgument(StrCat("header ", Quote(name), " cannot be sent"));
      }
    }
    if (request.target.empty() || request.target.find_first_of(" \r\n") != std::string::npos) {
      return InvalidArgument("the request target cannot be sent");
    }
    std::string head = StrCat(MethodName(request.method), " ", request.target, " HTTP/1.1\r\n");
    AppendHeaders(head, request.headers);
    const bool carries_body = request.method != Method::kGet && request.method != Method::kHead;
    if ((carries_body || !request.body.empty()) && !request.headers.Find("content-length")) {
      head += StrCat("Content-Length: ", request.body.size(), "\r\n");
    }
    head += "\r\n";
    head += request.body;
    out_.Push(std::move(head));
    is_head_ = request.method == Method::kHead;
    asked_upgrade_ = request.headers.HasToken("connection", "upgrade");
    asked_close_ = request.headers.HasToken("connection", "close");
    state_ = State::kHead;
    return ++stream_;
  }

  Result<void> Receive(std::string_view bytes) override {
    while (!bytes.empty()) {
      switch (state_) {
        case State::kIdle:
          return Fail("unexpected bytes without a request");
        case State::kRaw:
          events_.OnRawData(bytes);
          return Ok();
        case State::kClosed:
          return Ok();
        case State::kHead: {
          Result<bool> complete = head_.Feed(bytes);
          if (!complete.ok()) return Fail(complete.error().message);
          if (!*complete) return Ok();
          RETURN_IF_ERROR(BeginResponse());
          break;
        }
        case State::kBody: {
          std::string content;
          Result<void> fed = body_.Feed(bytes, content);
          if (!fed.ok()) return Fail(fed.error().message);
          if (!content.empty()) events_.OnData(stream_, content);
          if (state_ == State::kBody && body_.done()) EndResponse();
          break;
        }
      }
    }
    return Ok();
  }

  void ReceiveEnd() override {
    if (state_ == State::kBody && body_.kind() == BodyKind::kUntilClose) EndResponse();
  }

  void Send(std::string& out, std::size_t limit) override {
    if (out.size() < limit) out_.Pop(out, limit - out.size());
  }

  bool IsFinished() const override {
    return state_ == State::kClosed || (closing_ && state_ == State::kIdle);
  }

  void Cancel(StreamId stream) override {
    if (stream != stream_ || state_ == State::kIdle) return;
    state_ = State::kClosed;
    out_.Clear();
  }

  void WriteRaw(std::string_view bytes) override {
    if (state_ == State::kRaw) out_.Push(std::string(bytes));
  }
  std::size_t PendingRawBytes() const override { return state_ == State::kRaw ? out_.bytes() : 0; }

  void Shutdown() override { closing_ = true; }
  std::size_t open_streams() const override {
    return state_ == State::kHead || state_ == State::kBody || state_ == State::kRaw ? 1 : 0;
  }

 private:
  enum class State { kIdle, kHead, kBody, kRaw, kClosed };

  Error Fail(std::string_view why) {
    state_ = State::kClosed;
    return InvalidArgument(StrCat("malformed HTTP/1.1 response: ", why));
  }

  Result<void> BeginResponse() {
    Result<Head> head = ParseHead(head_.TakeHead());
    if (!head.ok()) return Fail(head.error().message);
    const std::string& line = head->start_line;
    const bool shaped = line.size() >= 12 && line.starts_with("HTTP/1.") &&
                        (line[7] == '0' || line[7] == '1') && line[8] == ' ' &&
                        (line.size() == 12 || line[12] == ' ');
    const std::optional<std::int64_t> status =
        shaped ? ParseInt64(std::string_view(line).substr(9, 3)) : std::nullopt;
    if (!status || *status < 100 || *status > 999) return Fail("bad status line");
    const int code = static_cast<int>(*status);
    if (code == 101) {
      if (!asked_upgrade_) return Fail("unrequested upgrade");
      state_ = State::kRaw;
      events_.OnResponse(stream_, code, std::move(head->headers));
      return Ok();
    }
    if (code < 200) return Ok();  // interim; the final response follows
    Framing framing;
    const bool bodyless = is_head_ || code == 204 || code == 304;
    if (!bodyless) {
      Result<Framing> found = FramingOf(head->headers);
      if (!found.ok()) return Fail(found.error().message);
      framing = *found;
      if (framing.kind == BodyKind::kNone) framing.kind = BodyKind::kUntilClose;
    }
    keep_alive_ = !asked_close_ && framing.kind != BodyKind::kUntilClose &&
                  (line[7] == '1' ? !head->headers.HasToken("connection", "close")
                                  : head->headers.HasToken("connection", "keep-alive"));
    body_ = BodyDecoder(framing);
    state_ = State::kBody;
    events_.OnResponse(stream_, code, std::move(head->headers));
    if (state_ == State::kBody && body_.done()) EndResponse();
    return Ok();
  }

  void EndResponse() {
    // If the response arrived before the request was sent completely, the connection cannot be
    // reused.
    state_ = keep_alive_ && out_.empty() ? State::kIdle : State::kClosed;
    events_.OnStreamEnd(stream_, nullptr, false);
  }

  Events& events_;
  State state_ = State::kIdle;
  HeadReader head_;
  BodyDecoder body_;
  OutputQueue out_;
  StreamId stream_ = 0;
  bool is_head_ = false;
  bool asked_upgrade_ = false;
  bool asked_close_ = false;
  bool keep_alive_ = false;
  bool closing_ = false;
};

}  // namespace

std::unique_ptr<ClientSession> NewClientSession(const SessionLimits& limits,
                                                ClientSession::Events& events) {
  return std::make_unique<Session>(limits, events);
}

}  // namespace drakkar::net::http1
