#include "net/http1/server_session.h"

#include <charconv>
#include <utility>

#include "base/text/text.h"
#include "net/http/output_queue.h"
#include "net/http/status.h"
#include "net/http/url.h"
#include "net/http1/framing.h"

namespace drakkar::net::http1 {
namespace {

bool HasNoBody(int status) {
  return status == 204 || status == 304 || (status >= 100 && status < 200);
}

class Session final : public ServerSession {
 public:
  Session(const SessionLimits& limits, Events& events)
      : limits_(limits), events_(events), head_(limits.max_header_bytes) {}

  Result<void> Receive(std::string_view bytes) override {
    if (state_ == State::kRaw) {
      events_.OnRawData(bytes);
      return Ok();
    }
    if (state_ == State::kClosing) return Ok();  // ignore what follows a rejected request
    if (!ahead_.empty() || state_ == State::kHandling || processing_ ||
        approval_ == Approval::kAwaited) {
      if (ahead_.size() + bytes.size() > kMaxAheadBytes) {
        Abort();
        return Error{ErrorCode::kResourceExhausted, "too many pipelined bytes"};
      }
      ahead_.append(bytes);
      bytes = {};
    }
    Process(bytes);
    return Ok();
  }

  void Send(std::string& out, std::size_t limit) override {
    while (out.size() < limit) {
      out_.Pop(out, limit - out.size());
      if (!out_.empty()) return;
      if (state_ != State::kHandling || !answered_) return;
      CompleteExchange();
      if (out_.empty()) return;
    }
  }

  bool IsFinished() const override { return state_ == State::kClosing && out_.empty(); }
  bool WantsRead() const override {
    return approval_ != Approval::kAwaited && ahead_.size() < kMaxAheadBytes / 2;
  }

  void ApproveBody(StreamId stream) override {
    if (approval_ != Approval::kAwaited || stream != stream_ + 1) return;
    approval_ = Approval::kGiven;
    if (!processing_) Process({});
  }

  void RejectBody(StreamId stream, int status, const Headers& headers, Body body) override {
    if (approval_ != Approval::kAwaited || stream != stream_ + 1) return;
    approval_ = Approval::kGiven;
    // The rest of the body follows, so the connection cannot be used for another request.
    std::size_t length = 0;
    for (const Segment& segment : body) length += segment->size();
    std::string head = StrCat("HTTP/1.1 ", status, " ", StatusText(status), "\r\n");
    Headers sent = headers;
    sent.Set("Content-Length", std::to_string(length));
    sent.Set("Connection", "close");
    AppendHeaders(head, sent);
    head += "\r\n";
    out_.Push(std::move(head));
    for (Segment& segment : body) out_.Push(std::move(segment));
    Close();
  }

  void Respond(StreamId stream, int status, const Headers& headers, Body body,
               bool final) override {
    if (!IsCurrent(stream) || started_) return;
    started_ = true;
    std::size_t length = 0;
    for (const Segment& segment : body) length += segment ? segment->size() : 0;
    std::string head = StrCat("HTTP/1.1 ", status, " ", StatusText(status), "\r\n");
    Headers sent;
    for (const auto& [name, value] : headers) {
      if (IsConnectionHeader(name)) continue;
      if (EqualsIgnoreCase(name, "content-length") && !(is_head_ && length == 0)) continue;
      sent.Add(name, value);
    }
    bodyless_ = is_head_ || HasNoBody(status);
    chunked_ = false;
    if (final) {
      if (!HasNoBody(status) && !sent.Find("content-length")) {
        sent.Add("Content-Length", std::to_string(length));
      }
    } else if (!bodyless_) {
      if (minor_version_ >= 1) {
        chunked_ = true;
        sent.Add("Transfer-Encoding", "chunked");
      } else {
        keep_alive_ = false;
      }
    }
    if (!keep_alive_ || shutting_down_) {
      keep_alive_ = false;
      sent.Add("Connection", "close");
    } else if (minor_version_ == 0) {
      sent.Add("Connection", "keep-alive");
    }
    AppendHeaders(head, sent);
    head += "\r\n";
    out_.Push(std::move(head));
    for (Segment& segment : body) PushContent(std::move(segment));
    if (final) answered_ = true;
  }

  void Write(StreamId stream, Segment bytes) override {
    if (!IsCurrent(stream) || !started_ || answered_) return;
    PushContent(std::move(bytes));
  }

  void Finish(StreamId stream) override {
    if (!IsCurrent(stream) || !started_ || answered_) return;
    if (chunked_ && !bodyless_) out_.Push(std::string("0\r\n\r\n"));
    answered_ = true;
  }

  void Reset(StreamId stream) override {
    if (!IsCurrent(stream)) return;
    // In HTTP/1.1, closing before the last chunk marks a body as incomplete.
    Abort();
    events_.OnStreamClosed(stream, false);
  }

  std::size_t PendingBytes(StreamId stream) const override {
    return IsCurrent(stream) ? out_.bytes() : 0;
  }

  bool Upgrade(StreamId stream, const Headers& headers) override {
    if (!IsCurrent(stream) || started_ || !upgradable_) return false;
    std::string head = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\n";
    Headers sent;
    for (const auto& [name, value] : headers) {
      if (!EqualsIgnoreCase(name, "connection")) sent.Add(name, value);
    }
    AppendHeaders(head, sent);
    head += "\r\n";
    out_.Push(std::move(head));
    state_ = State::kRaw;
    std::string ahead = std::move(ahead_);
    ahead_.clear();
    if (!ahead.empty()) events_.OnRawData(ahead);
    return true;
  }

  void WriteRaw(std::string_view bytes) override {
    if (state_ == State::kRaw) out_.Push(std::string(bytes));
  }
  std::size_t PendingRawBytes() const override { return state_ == State::kRaw ? out_.bytes() : 0; }

  void Shutdown() override {
    shutting_down_ = true;
    keep_alive_ = false;
    if (state_ == State::kHead && head_.empty()) state_ = State::kClosing;
  }

  std::size_t open_streams() const override {
    return state_ == State::kHandling || state_ == State::kRaw || IsReceiving() ? 1 : 0;
  }
  StreamId ReceivingStream() const override { return IsReceiving() ? stream_ + 1 : 0; }

 private:
  enum class State { kHead, kBody, kHandling, kRaw, kClosing };
  enum class Approval { kNotNeeded, kAwaited, kGiven };
  static constexpr std::size_t kMaxAheadBytes = 256 * 1024;
  static constexpr std::size_t kMaxPartBytes = 64 * 1024;

  bool IsCurrent(StreamId stream) const { return state_ == State::kHandling && stream == stream_; }

  bool IsReceiving() const {
    return state_ == State::kBody || (state_ == State::kHead && !head_.empty());
  }

  void Abort() {
    out_.Clear();
    ahead_.clear();
    state_ = State::kClosing;
  }

  void PushContent(Segment segment) {
    if (bodyless_ || !segment || segment->empty()) return;
    if (!chunked_) {
      out_.Push(std::move(segment));
      return;
    }
    char size[20];
    const auto end = std::to_chars(size, size + 16, segment->size(), 16).ptr;
    out_.Push(std::string(size, end) + "\r\n");
    out_.Push(std::move(segment));
    static const Segment kLineEnd = MakeSegment("\r\n");
    out_.Push(kLineEnd);
  }

  // Ends the connection once everything is sent.
  void Close() {
    ahead_.clear();
    request_ = Request();
    lease_.Reset();
    state_ = State::kClosing;
  }

  // Responds with an error and ends the connection.
  void Refuse(int status, std::string_view why, std::string_view more_headers = {}) {
    std::string body = StrCat(why, "\n");
    std::string text =
        StrCat("HTTP/1.1 ", status, " ", StatusText(status),
               "\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: ", body.size(),
               "\r\n", more_headers, "Connection: close\r\n\r\n", body);
    out_.Push(std::move(text));
    Close();
  }

  void CompleteExchange() {
    const StreamId stream = stream_;
    const bool keep = keep_alive_ && !shutting_down_;
    lease_.Reset();
    state_ = keep ? State::kHead : State::kClosing;
    events_.OnStreamClosed(stream, true);
    if (state_ == State::kHead && !ahead_.empty() && !processing_) Process({});
  }

  void Process(std::string_view bytes) {
    if (processing_) return;
    processing_ = true;
    std::string held;
    if (!ahead_.empty()) {
      held = std::move(ahead_);
      ahead_.clear();
      bytes = held;
    }
    while (!bytes.empty() && approval_ != Approval::kAwaited &&
           (state_ == State::kHead || state_ == State::kBody)) {
      if (state_ == State::kHead) {
        TakeHead(bytes);
      } else {
        TakeBody(bytes);
      }
    }
    processing_ = false;
    if (bytes.empty()) return;
    if (state_ == State::kRaw) {
      events_.OnRawData(bytes);
    } else if (state_ == State::kHandling || approval_ == Approval::kAwaited) {
      ahead_.insert(0, bytes);
    }
  }

  void TakeHead(std::string_view& bytes) {
    Result<bool> complete = head_.Feed(bytes);
    if (!complete.ok()) {
      Refuse(complete.error().code == ErrorCode::kResourceExhausted ? 431 : 400,
             complete.error().message);
      return;
    }
    if (!*complete) return;
    Result<Head> head = ParseHead(head_.TakeHead());
    if (!head.ok()) return Refuse(400, head.error().message);
    BeginRequest(std::move(*head));
  }

  void BeginRequest(Head head) {
    request_ = Request();
    const std::vector<std::string_view> parts = Split(head.start_line, ' ');
    if (parts.size() != 3 || !IsToken(parts[0])) return Refuse(400, "malformed request line");
    if (parts[2] != "HTTP/1.1" && parts[2] != "HTTP/1.0") {
      if (parts[2].starts_with("HTTP/"))
        return Refuse(505, "only HTTP/1.0 and HTTP/1.1 are supported");
      return Refuse(400, "malformed request line");
    }
    minor_version_ = parts[2].back() - '0';
    const std::optional<Method> method = FindMethod(parts[0]);
    if (!method || *method == Method::kConnect || *method == Method::kTrace) {
      return Refuse(501, "unsupported method");
    }
    request_.method = *method;
    request_.target = parts[1];
    if (request_.target.starts_with("http://") || request_.target.starts_with("https://")) {
      Result<Url> url = ParseUrl(request_.target);
      if (!url.ok()) return Refuse(400, url.error().message);
      request_.target = std::move(url->target);
    } else if (!request_.target.starts_with("/") &&
               !(request_.target == "*" && *method == Method::kOptions)) {
      return Refuse(400, "malformed request target");
    }
    const Headers& headers = head.headers;
    const std::size_t hosts = headers.Count("host");
    if (hosts > 1 || (hosts == 0 && minor_version_ == 1)) {
      return Refuse(400, "exactly one Host header is required");
    }
    Result<Framing> framing = FramingOf(headers);
    if (!framing.ok()) {
      return Refuse(framing.error().code == ErrorCode::kUnimplemented ? 501 : 400,
                    framing.error().message);
    }
    if (framing->kind == BodyKind::kChunked && minor_version_ == 0) {
      return Refuse(400, "HTTP/1.0 does not support transfer encodings");
    }
    if (framing->kind == BodyKind::kLength && framing->length > limits_.max_body_bytes) {
      return RefuseBody();
    }
    keep_alive_ =
        !shutting_down_ && (minor_version_ == 1 ? !headers.HasToken("connection", "close")
                                                : headers.HasToken("connection", "keep-alive"));
    upgradable_ = minor_version_ == 1 && headers.HasToken("connection", "upgrade") &&
                  headers.Find("upgrade") && framing->kind != BodyKind::kChunked &&
                  framing->length == 0;
    is_head_ = *method == Method::kHead;
    const std::string* expect = headers.Find("expect");
    if (expect && !EqualsIgnoreCase(*expect, "100-continue")) {
      return Refuse(417, "unknown expectation");
    }
    body_ = BodyDecoder(*framing);
    // The announced length is not reserved: it may never come.
    approval_ = Approval::kNotNeeded;
    lease_ = BodyLease(limits_.body_memory.get(), events_.IsStranger());
    if (expect && minor_version_ == 1 && !body_.done()) {
      out_.Push(std::string("HTTP/1.1 100 Continue\r\n\r\n"));
    }
    request_.headers = std::move(head.headers);
    if (body_.done()) {
      DispatchRequest();
    } else {
      state_ = State::kBody;
      if (framing->kind == BodyKind::kLength && framing->length > limits_.max_unapproved_bytes) {
        AskApproval();
      }
    }
  }

  void AskApproval() {
    approval_ = Approval::kAwaited;
    // The head without what has been received.
    std::string received = std::exchange(request_.body, {});
    if (events_.OnLargeBody(stream_ + 1, request_)) approval_ = Approval::kGiven;
    if (state_ == State::kBody) request_.body = std::move(received);
  }

  void RefuseBody() {
    Refuse(413, StrCat("the request body is larger than ", limits_.max_body_bytes, " bytes"));
  }

  void TakeBody(std::string_view& bytes) {
    // At most this much goes into the body, so an unapproved one stays small.
    std::string_view part = bytes.substr(0, kMaxPartBytes);
    const std::size_t before = request_.body.size();
    const std::size_t given = part.size();
    Result<void> fed = body_.Feed(part, request_.body);
    bytes.remove_prefix(given - part.size());
    if (!fed.ok()) return Refuse(400, fed.error().message);
    if (request_.body.size() > limits_.max_body_bytes) return RefuseBody();
    if (!lease_.Take(request_.body.size() - before)) {
      return Refuse(429, "too many request bodies are being received", "Retry-After: 1\r\n");
    }
    if (body_.done()) return DispatchRequest();
    if (approval_ == Approval::kNotNeeded && request_.body.size() > limits_.max_unapproved_bytes) {
      AskApproval();
    }
  }

  void DispatchRequest() {
    state_ = State::kHandling;
    started_ = false;
    answered_ = false;
    ++stream_;
    events_.OnRequest(stream_, std::move(request_));
  }

  const SessionLimits limits_;
  Events& events_;

  State state_ = State::kHead;
  HeadReader head_;
  BodyDecoder body_;
  Approval approval_ = Approval::kNotNeeded;  // of a large body
  BodyLease lease_;                           // of the memory for bodies
  Request request_;
  std::string ahead_;  // pipelined bytes that wait for the previous response
  bool processing_ = false;
  bool shutting_down_ = false;

  // The exchange in progress.
  StreamId stream_ = 0;
  int minor_version_ = 1;
  bool keep_alive_ = true;
  bool is_head_ = false;
  bool upgradable_ = false;
  bool started_ = false;   // the response head is in out_
  bool answered_ = false;  // the whole response is in out_
  bool bodyless_ = false;
  bool chunked_ = false;
  OutputQueue out_;
};

}  // namespace

std::unique_ptr<ServerSession> NewServerSession(const SessionLimits& limits,
                                                ServerSession::Events& events) {
  return std::make_unique<Session>(limits, events);
}

}  // namespace drakkar::net::http1
