#include "node/testing/fake_network_prober.h"

#include <utility>

#include "base/text/text.h"

namespace drakkar::node {
namespace {

Error Refused(const std::string& host, int port) {
  return Unavailable(StrCat("connect to ", host, ":", port, ": connection refused"));
}

}  // namespace

const FakeNetworkProber::Endpoint* FakeNetworkProber::Find(int port) const {
  const auto found = endpoints.find(port);
  return found == endpoints.end() ? nullptr : &found->second;
}

template <typename T>
void FakeNetworkProber::Answer(Result<T> result, std::function<void(Result<T>)> done) {
  loop_.Post(lifetime_.Guard(
      [result = std::move(result), done = std::move(done)]() mutable { done(std::move(result)); }));
}

template <typename T>
void FakeNetworkProber::TimeOut(Duration timeout, std::function<void(Result<T>)> done) {
  timers_.push_back(loop_.RunAfter(timeout, [done = std::move(done)] {
    done(Error{ErrorCode::kDeadlineExceeded, "no answer within the time limit"});
  }));
}

void FakeNetworkProber::Get(HttpProbe probe, Duration timeout,
                            std::function<void(Result<HttpAnswer>)> done) {
  requests.push_back(probe);
  const Endpoint* endpoint = Find(probe.port);
  if (endpoint == nullptr) return Answer<HttpAnswer>(Refused(probe.host, probe.port), done);
  if (endpoint->silent || !endpoint->http) return TimeOut<HttpAnswer>(timeout, std::move(done));
  HttpAnswer answer = endpoint->http(probe);
  answer.body.resize(std::min(answer.body.size(), kMaxProbeBody));
  Answer<HttpAnswer>(std::move(answer), std::move(done));
}

void FakeNetworkProber::Connect(const std::string& host, int port, Duration,
                                std::function<void(Result<void>)> done) {
  Answer<void>(Find(port) == nullptr ? Result<void>(Refused(host, port)) : Result<void>(Ok()),
               std::move(done));
}

void FakeNetworkProber::CheckGrpc(const std::string& host, int port, const std::string& service,
                                  Duration timeout, std::function<void(Result<std::string>)> done) {
  const Endpoint* endpoint = Find(port);
  if (endpoint == nullptr) return Answer<std::string>(Refused(host, port), std::move(done));
  if (endpoint->silent) return TimeOut<std::string>(timeout, std::move(done));
  if (endpoint->grpc.empty()) {
    return Answer<std::string>(Error{ErrorCode::kUnimplemented, "unknown service"},
                               std::move(done));
  }
  const auto found = endpoint->grpc.find(service);
  if (found == endpoint->grpc.end()) {
    return Answer<std::string>(NotFound("unknown service"), std::move(done));
  }
  Answer<std::string>(found->second, std::move(done));
}

}  // namespace drakkar::node
