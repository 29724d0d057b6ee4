#include "bench/load/api.h"

#include "base/text/text.h"
#include "bench/load/text_counter.h"
#include "client/http_client.h"

namespace drakkar::load {

Api::Api(UvLoop& loop, const client::ClusterAccess& access, Options options)
    : loop_(loop), access_(access), options_(options) {
  set_connections(options.connections);
}

void Api::set_connections(std::size_t count) {
  net::HttpClientOptions http = client::HttpOptionsFor(access_);
  http.tls.offer_http2 = options_.http2;
  http.max_connections_per_host = 1;
  clients_.resize(std::min(count, clients_.size()));
  while (clients_.size() < count) {
    clients_.push_back(std::make_unique<net::HttpClient>(loop_, http));
  }
}

net::ClientRequest Api::Request(const Call& call) const {
  net::ClientRequest request;
  request.method = call.method;
  request.url = StrCat(access_.server, call.path);
  request.body = call.body;
  if (!call.body.empty()) request.headers.Add("Content-Type", call.content_type);
  request.headers.Add("Accept", "application/json");
  if (!access_.token.empty()) {
    request.headers.Add("Authorization", StrCat("Bearer ", access_.token));
  }
  return request;
}

void Api::Send(const Call& call, std::function<void(Result<net::Response>)> done) {
  SendOn(next_++, call, std::move(done));
}

void Api::SendOn(std::size_t connection, const Call& call,
                 std::function<void(Result<net::Response>)> done) {
  client(connection)
      .Do(Request(call), [what = StrCat(net::MethodName(call.method), " ", call.path),
                          done = std::move(done)](Result<net::Response> response) {
        if (response.ok() && response->status / 100 != 2) {
          return done(Unavailable(StrCat(what, ": ", response->status, " ", response->body)));
        }
        done(std::move(response));
      });
}

void Api::Fail(const Error& error) {
  if (!failure_) failure_ = error;
  Wake();
}

Result<void> Api::RunUntil(const std::string& what, const std::function<bool()>& is_done,
                           Duration at_most) {
  bool late = false;
  TimerHandle limit = loop_.RunAfter(at_most, [&] {
    late = true;
    Wake();
  });
  while (!is_done()) {
    if (failure_) return *std::exchange(failure_, std::nullopt);
    if (late) {
      return Error{ErrorCode::kDeadlineExceeded,
                   StrCat(what, ": timed out after ",
                          std::chrono::duration_cast<std::chrono::seconds>(at_most).count(), " s")};
    }
    loop_.Run();
  }
  return Ok();
}

Result<void> Api::RunFor(Duration duration) {
  // Rely on the timer, which may fire slightly before the clock shows the time.
  bool over = false;
  TimerHandle timer = loop_.RunAfter(duration, [&] {
    over = true;
    Wake();
  });
  return RunUntil(
      "run", [&] { return over; }, duration + std::chrono::minutes(1));
}

Result<net::Response> Api::Do(const Call& call) {
  std::optional<Result<net::Response>> answer;
  Send(call, [&](Result<net::Response> response) {
    answer = std::move(response);
    Wake();
  });
  RETURN_IF_ERROR(RunUntil(call.path, [&] { return answer.has_value(); }));
  return std::move(*answer);
}

// State shared by the calls of a run.
struct Api::Running {
  Api& api;
  const std::size_t count;
  const std::function<Call(std::size_t)>& make;
  RunResult result;
  std::size_t begun = 0;
  std::size_t ended = 0;
};

// Makes calls sequentially on one connection.
class Api::Caller final : public net::StreamSink {
 public:
  Caller(Running& run, std::size_t connection) : run_(run), connection_(connection) {}

  void Next() {
    if (run_.begun == run_.count) return;
    call_ = run_.make(run_.begun++);
    status_ = 0;
    bytes_ = 0;
    length_.reset();
    counter_ = TextCounter(call_.item);
    error_text_.clear();
    sent_ = run_.api.now();
    handle_ = run_.api.client(connection_).Stream(run_.api.Request(call_), *this);
  }

  void OnResponse(int status, const net::Headers& headers) override {
    status_ = status;
    length_ = ParseInt64(headers.Get("content-length"));
  }
  void OnData(std::string_view bytes) override {
    bytes_ += bytes.size();
    if (status_ / 100 != 2) error_text_.append(bytes.substr(0, kMaxErrorBytes));
    if (call_.items > 0) counter_.Feed(bytes);
  }
  void OnEnd(Result<void> result) override {
    if (!result.ok()) return run_.api.Fail(result.error());
    if (status_ / 100 != 2) return Fail(StrCat(status_, " ", error_text_));
    if (length_ && *length_ != static_cast<std::int64_t>(bytes_)) {
      return Fail(StrCat(bytes_, " bytes instead of ", *length_));
    }
    if (call_.items > 0 && counter_.count() != call_.items) {
      return Fail(StrCat(counter_.count(), " items instead of ", call_.items));
    }
    run_.result.latencies.Add(run_.api.now() - sent_);
    if (++run_.ended == run_.count) return run_.api.Wake();
    Next();
  }

 private:
  static constexpr std::size_t kMaxErrorBytes = 4'096;

  void Fail(const std::string& why) {
    run_.api.Fail(Unavailable(StrCat(net::MethodName(call_.method), " ", call_.path, ": ", why)));
  }

  Running& run_;
  const std::size_t connection_;
  Call call_;
  int status_ = 0;
  std::size_t bytes_ = 0;
  std::optional<std::int64_t> length_;
  TextCounter counter_{""};
  std::string error_text_;
  MonotonicTime sent_{};
  std::unique_ptr<net::RequestHandle> handle_;
};

Result<RunResult> Api::Run(std::size_t count, std::size_t depth,
                           const std::function<Call(std::size_t)>& make) {
  Running run{.api = *this, .count = count, .make = make, .result = {}};
  const MonotonicTime start = now();
  // Destroying them cancels calls in flight after a failure.
  std::vector<std::unique_ptr<Caller>> callers;
  for (std::size_t i = 0; i < depth * clients_.size(); ++i) {
    callers.push_back(std::make_unique<Caller>(run, i % clients_.size()));
    callers.back()->Next();
  }
  RETURN_IF_ERROR(RunUntil(StrCat(count, " calls"), [&] { return run.ended == count; }));
  run.result.elapsed = now() - start;
  return std::move(run.result);
}

}  // namespace drakkar::load
