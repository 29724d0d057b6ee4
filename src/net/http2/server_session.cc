#include "net/http2/server_session.h"

#include <algorithm>
#include <utility>

#include "base/text/text.h"
#include "net/http2/nghttp2_session.h"

namespace drakkar::net::http2 {
namespace {

constexpr std::int32_t kStreamWindow = 256 * 1024;
// How much of a rejected body is dropped before its stream is reset.
constexpr std::size_t kMaxDiscardedBytes = 1024 * 1024;
// A CONTINUATION frame this large is worth its header.
constexpr std::uint32_t kLargeContinuation = 1024;
// Window updates that a receiver of data may send.
constexpr std::size_t kBytesPerWindowUpdate = 256;
constexpr std::size_t kMaxWindowUpdates = 1'000'000;
using Approval = Nghttp2Session::Stream::Approval;
constexpr std::int32_t kConnectionWindow = 4 * 1024 * 1024;

class Session final : public ServerSession, private Nghttp2Session {
 public:
  Session(const SessionLimits& limits, Events& events) : limits_(limits), events_(events) {
    Init(Side::kServer, limits,
         {{NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, limits.max_concurrent_streams},
          {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, kStreamWindow}},
         kConnectionWindow, Windows::kManual);
  }

  Result<void> Receive(std::string_view bytes) override { return ReceiveBytes(bytes); }

  void Send(std::string& out, std::size_t limit) override {
    const std::size_t before = out.size();
    SendBytes(out, limit);
    // A receiver updates two windows for what it has read, usually far less often.
    const std::size_t sent = out.size() - before;
    if (sent == 0) return;
    window_updates_ =
        std::min(window_updates_ + 2 + sent / kBytesPerWindowUpdate, kMaxWindowUpdates);
  }

  bool IsFinished() const override {
    if (broken_) return !nghttp2_session_want_write(session_);
    return !nghttp2_session_want_read(session_) && !nghttp2_session_want_write(session_);
  }

  void Respond(StreamId id, int status, const Headers& headers, Body body, bool final) override {
    Stream* stream = Find(id);
    if (!stream || stream->responded) return;
    stream->responded = true;
    const bool bodyless = stream->request.method == Method::kHead || status == 204 || status == 304;
    std::size_t length = 0;
    for (Segment& segment : body) {
      length += segment ? segment->size() : 0;
      if (!bodyless) stream->out.Push(std::move(segment));
    }
    FieldList fields(headers);
    const std::string status_text = std::to_string(status);
    const std::string length_text = std::to_string(length);
    fields.AddPseudo(":status", status_text);
    if (final && status != 204 && status != 304 && !headers.Find("content-length")) {
      fields.Add("content-length", length_text);
    }
    stream->out_final = final || bodyless;
    stream->has_body = !bodyless && !(final && length == 0);
    nghttp2_data_provider provider = Provider(*stream);
    const int code = nghttp2_submit_response(session_, id, fields.data(), fields.size(),
                                             stream->has_body ? &provider : nullptr);
    if (code != 0) ResetStream(id, NGHTTP2_INTERNAL_ERROR);
  }

  void Write(StreamId id, Segment bytes) override {
    Stream* stream = Find(id);
    if (!stream || !stream->responded || stream->out_final) return;
    stream->out.Push(std::move(bytes));
    if (!stream->out.empty()) Resume(*stream);
  }

  void Finish(StreamId id) override {
    Stream* stream = Find(id);
    if (!stream || !stream->responded || stream->out_final) return;
    stream->out_final = true;
    Resume(*stream);
  }

  void Reset(StreamId id) override {
    if (Find(id)) ResetStream(id, NGHTTP2_INTERNAL_ERROR);
  }

  std::size_t PendingBytes(StreamId id) const override {
    const Stream* stream = Find(id);
    return stream ? stream->out.bytes() : 0;
  }

  void ApproveBody(StreamId id) override {
    Stream* stream = Find(id);
    if (!stream || stream->approval != Approval::kAwaited) return;
    stream->approval = Approval::kGiven;
    nghttp2_session_consume_stream(session_, id, std::exchange(stream->held_back, 0));
    if (stream->remote_done) Dispatch(*stream);
  }

  void RejectBody(StreamId id, int status, const Headers& headers, Body body) override {
    Stream* stream = Find(id);
    if (!stream || stream->approval != Approval::kAwaited) return;
    StopReading(*stream);
    Respond(id, status, headers, std::move(body), true);
  }

  void Forgive() override { idle_frames_ /= 2; }

  bool Upgrade(StreamId, const Headers&) override { return false; }
  void WriteRaw(std::string_view) override {}
  std::size_t PendingRawBytes() const override { return 0; }

  void Shutdown() override {
    if (shut_down_) return;
    shut_down_ = true;
    // Streams that the client opened before it reads this are still served, up to the last one we
    // saw.
    nghttp2_submit_goaway(session_, NGHTTP2_FLAG_NONE,
                          nghttp2_session_get_last_proc_stream_id(session_), NGHTTP2_NO_ERROR,
                          nullptr, 0);
  }

  std::size_t open_streams() const override { return streams_.size(); }
  StreamId ReceivingStream() const override {
    if (receiving_ == 0) return 0;
    StreamId oldest = 0;
    for (const auto& [id, stream] : streams_) {
      if (stream->header_bytes > 0 && (oldest == 0 || id < oldest)) oldest = id;
    }
    return oldest;
  }

 private:
  void OnHeader(Stream& stream, std::string_view name, std::string_view value,
                bool trailer) override {
    if (!stream.head_done && stream.header_bytes == 0) ++receiving_;
    stream.header_bytes += name.size() + value.size() + 32;
    if (stream.header_bytes > limits_.max_header_bytes || trailer) return;
    if (name == ":method") {
      const std::optional<Method> method = FindMethod(value);
      if (!method || *method == Method::kConnect || *method == Method::kTrace) {
        stream.status = 501;
      } else {
        stream.request.method = *method;
      }
    } else if (name == ":path") {
      stream.request.target = value;
    } else if (name == ":authority") {
      stream.request.headers.Add("host", std::string(value));
    } else if (name == "host") {
      if (!stream.request.headers.Find("host")) {
        stream.request.headers.Add("host", std::string(value));
      }
    } else if (!name.starts_with(':')) {
      // RFC 9113 section 8.2.3: cookie crumbs and repeated fields stay separate.
      stream.request.headers.Add(std::string(name), std::string(value));
    }
  }

  void OnHeadersDone(Stream& stream, bool end) override {
    stream.head_done = true;
    if (stream.header_bytes > limits_.max_header_bytes) {
      Refuse(stream, 431,
             StrCat("the request head is larger than ", limits_.max_header_bytes, " bytes"));
    } else if (stream.status != 0) {
      Refuse(stream, stream.status, "unsupported method");
    } else if (const std::string* length = stream.request.headers.Find("content-length")) {
      const std::optional<std::int64_t> bytes = ParseInt64(*length);
      if (bytes && static_cast<std::uint64_t>(*bytes) > limits_.max_body_bytes) {
        RefuseBody(stream);
      } else if (bytes && !end &&
                 static_cast<std::uint64_t>(*bytes) > limits_.max_unapproved_bytes) {
        AskApproval(stream);
      }
    }
    if (!end) stream.lease = BodyLease(limits_.body_memory.get(), events_.IsStranger());
    if (!stream.refused && !end &&
        EqualsIgnoreCase(stream.request.headers.Get("expect"), "100-continue")) {
      FieldList fields{Headers()};
      fields.AddPseudo(":status", "100");
      nghttp2_submit_headers(session_, NGHTTP2_FLAG_NONE, stream.id, nullptr, fields.data(),
                             fields.size(), nullptr);
    }
  }

  void OnFrameBegin(const nghttp2_frame_hd& head) override {
    const bool is_data = head.type == NGHTTP2_DATA;
    const bool carries = is_data && (head.length > 0 || (head.flags & NGHTTP2_FLAG_END_STREAM));
    // Requests have their own limits, and a receiver of much data opens its window often.
    const bool is_request = head.type == NGHTTP2_HEADERS;
    const bool is_acknowledgement = (head.type == NGHTTP2_SETTINGS || head.type == NGHTTP2_PING) &&
                                    (head.flags & NGHTTP2_FLAG_ACK) != 0;
    const bool is_large_continuation =
        head.type == NGHTTP2_CONTINUATION && head.length >= kLargeContinuation;
    if (carries || is_request || is_acknowledgement || is_large_continuation) return;
    if (head.type == NGHTTP2_WINDOW_UPDATE && window_updates_ > 0) {
      --window_updates_;
      return;
    }
    if (++idle_frames_ <= limits_.max_idle_frames || broken_) return;
    broken_ = true;
    broken_why_ = "too many frames without content";
    nghttp2_session_terminate_session(session_, NGHTTP2_ENHANCE_YOUR_CALM);
  }

  void OnBody(Stream& stream, std::string_view bytes) override {
    nghttp2_session_consume_connection(session_, bytes.size());
    TakeBody(stream, bytes);
    if (stream.approval == Approval::kAwaited) {
      stream.held_back += bytes.size();
    } else {
      nghttp2_session_consume_stream(session_, stream.id, bytes.size());
    }
  }

  void TakeBody(Stream& stream, std::string_view bytes) {
    if (stream.refused) {
      // RFC 9113 section 8.1 allows a reset right after an early response, but some clients then
      // lose the response. A sender that has read it stops by itself.
      stream.discarded += bytes.size();
      if (stream.discarded > kMaxDiscardedBytes) ResetStream(stream.id, NGHTTP2_NO_ERROR);
      return;
    }
    if (stream.request.body.size() + bytes.size() > limits_.max_body_bytes) {
      RefuseBody(stream);
      return;
    }
    if (buffered_ + bytes.size() > limits_.max_buffered_bytes) {
      stream.refused = true;
      ResetStream(stream.id, NGHTTP2_REFUSED_STREAM);
      return;
    }
    if (!stream.lease.Take(bytes.size())) {
      StopReading(stream);
      return Respond(stream.id, 429,
                     Headers{{"content-type", "text/plain; charset=utf-8"}, {"retry-after", "1"}},
                     Body{MakeSegment("too many request bodies are being received\n")}, true);
    }
    buffered_ += bytes.size();
    stream.buffered += bytes.size();
    stream.request.body.append(bytes);
    if (stream.approval == Approval::kNotNeeded &&
        stream.request.body.size() > limits_.max_unapproved_bytes) {
      AskApproval(stream);
    }
  }

  void AskApproval(Stream& stream) {
    stream.approval = Approval::kAwaited;
    // The head without what has been received.
    std::string received = std::exchange(stream.request.body, {});
    if (events_.OnLargeBody(stream.id, stream.request)) stream.approval = Approval::kGiven;
    // Still there: streams are not removed within callbacks.
    if (!stream.refused) stream.request.body = std::move(received);
  }

  void StopReading(Stream& stream) {
    stream.refused = true;
    if (stream.approval == Approval::kAwaited) stream.approval = Approval::kGiven;
    stream.request.body = {};
    stream.lease.Reset();
    buffered_ -= std::exchange(stream.buffered, 0);
    nghttp2_session_consume_stream(session_, stream.id, std::exchange(stream.held_back, 0));
  }

  void OnRemoteEnd(Stream& stream) override {
    DoneReceiving(stream);
    // ApproveBody resumes it.
    if (stream.approval == Approval::kAwaited) return;
    Dispatch(stream);
  }

  void Dispatch(Stream& stream) {
    if (stream.refused) return;
    stream.dispatched = true;
    const Method method = stream.request.method;
    Request request = std::move(stream.request);
    stream.request.method = method;
    events_.OnRequest(stream.id, std::move(request));
  }

  void OnClose(Stream& stream, std::uint32_t error_code) override {
    DoneReceiving(stream);
    if (error_code == NGHTTP2_NO_ERROR && stream.out_final) ++answered_;
    if (stream.dispatched) {
      events_.OnStreamClosed(
          stream.id, stream.out_final && stream.out.empty() && error_code == NGHTTP2_NO_ERROR);
    }
  }

  void OnPeerReset(Stream& stream) override {
    if (stream.responded || broken_) return;
    if (++early_resets_ > limits_.max_early_resets + answered_) {
      broken_ = true;
      broken_why_ = "too many streams were reset before their response";
      nghttp2_session_terminate_session(session_, NGHTTP2_ENHANCE_YOUR_CALM);
    }
  }

  void DoneReceiving(Stream& stream) {
    if (stream.header_bytes > 0) {
      --receiving_;
      stream.header_bytes = 0;
    }
    buffered_ -= std::exchange(stream.buffered, 0);
  }

  void RefuseBody(Stream& stream) {
    Refuse(stream, 413,
           StrCat("the request body is larger than ", limits_.max_body_bytes, " bytes"));
  }

  void Refuse(Stream& stream, int status, const std::string& why) {
    StopReading(stream);
    Respond(stream.id, status, Headers{{"content-type", "text/plain; charset=utf-8"}},
            Body{MakeSegment(why + "\n")}, true);
  }

  const SessionLimits limits_;
  Events& events_;
  std::size_t receiving_ = 0;  // streams with an incomplete request
  std::size_t buffered_ = 0;
  std::size_t answered_ = 0;
  std::size_t early_resets_ = 0;
  std::size_t idle_frames_ = 0;
  // How many more window updates the data sent so far explains.
  std::size_t window_updates_ = 0;
  bool shut_down_ = false;
};

}  // namespace

std::unique_ptr<ServerSession> NewServerSession(const SessionLimits& limits,
                                                ServerSession::Events& events) {
  return std::make_unique<Session>(limits, events);
}

}  // namespace drakkar::net::http2
