#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/exec/event_loop.h"
#include "base/exec/lifetime.h"
#include "node/probes/network_prober.h"

namespace drakkar::node {

// A network in memory: which port answers how, the same on every host.
class FakeNetworkProber final : public NetworkProber {
 public:
  struct Endpoint {
    bool silent = false;  // accepts connections and never answers
    std::function<HttpAnswer(const HttpProbe&)> http;
    std::map<std::string, std::string> grpc;  // service -> status
  };

  explicit FakeNetworkProber(EventLoop& loop) : loop_(loop) {}

  std::map<int, Endpoint> endpoints;
  std::vector<HttpProbe> requests;  // in the order made

  void Get(HttpProbe probe, Duration timeout,
           std::function<void(Result<HttpAnswer>)> done) override;
  void Connect(const std::string& host, int port, Duration timeout,
               std::function<void(Result<void>)> done) override;
  void CheckGrpc(const std::string& host, int port, const std::string& service, Duration timeout,
                 std::function<void(Result<std::string>)> done) override;

 private:
  const Endpoint* Find(int port) const;
  template <typename T>
  void Answer(Result<T> result, std::function<void(Result<T>)> done);
  template <typename T>
  void TimeOut(Duration timeout, std::function<void(Result<T>)> done);

  EventLoop& loop_;
  std::vector<TimerHandle> timers_;
  Lifetime lifetime_;
};

}  // namespace drakkar::node
