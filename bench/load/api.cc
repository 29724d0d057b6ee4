#include "bench/load/api.h"

#include "base/text/text.h"
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
  client(connection).Do(Request(call), [what = StrCat(net::MethodName(call.method), " ", call.path),
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
                   StrCat(what, ": not within ",
                          std::chrono::duration_cast<std::chrono::seconds>(at_most).count(), " s")};
    }
    loop_.Run();
  }
  return Ok();
}

Result<void> Api::RunFor(Duration duration) {
  // The timer decides: it may fire a little before the clock says so.
  bool over = false;
  TimerHandle timer = loop_.RunAfter(duration, [&] {
    over = true;
    Wake();
  });
  return RunUntil("run", [&] { return over; }, duration + std::chrono::minutes(1));
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

Result<RunResult> Api::Run(std::size_t count, std::size_t depth,
                           const std::function<Call(std::size_t)>& make) {
  // Shared with answers that come after a failure has ended the run.
  struct State {
    RunResult result;
    std::size_t begun = 0;
    std::size_t ended = 0;
    bool over = false;
    std::function<void(std::size_t)> next;
  };
  auto state = std::make_shared<State>();
  const MonotonicTime start = now();
  std::weak_ptr<State> weak = state;
  state->next = [this, count, &make, weak](std::size_t connection) {
    const std::shared_ptr<State> self = weak.lock();
    if (!self || self->over || self->begun == count) return;
    const MonotonicTime sent = now();
    SendOn(connection, make(self->begun++),
           [this, count, weak, sent, connection](Result<net::Response> response) {
             const std::shared_ptr<State> then = weak.lock();
             if (!then || then->over) return;
             if (!response.ok()) return Fail(response.error());
             then->result.latencies.Add(now() - sent);
             if (++then->ended == count) return Wake();
             then->next(connection);
           });
  };
  for (std::size_t i = 0; i < depth; ++i) {
    for (std::size_t c = 0; c < clients_.size(); ++c) state->next(c);
  }
  Result<void> ran = RunUntil(StrCat(count, " calls"), [&] { return state->ended == count; });
  state->over = true;
  RETURN_IF_ERROR(ran);
  state->result.elapsed = now() - start;
  return std::move(state->result);
}

}  // namespace drakkar::load
