#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "apiserver/auth/authenticator.h"
#include "apiserver/http/change_feed.h"
#include "apiserver/http/crossing.h"
#include "apiserver/http/device_usage.h"
#include "apiserver/http/health.h"
#include "apiserver/http/read_cache.h"
#include "apiserver/http/request_info.h"
#include "apiserver/http/request_metrics.h"
#include "apiserver/http/subresource_proxy.h"
#include "apiserver/http/watch_events.h"
#include "apiserver/rest/core.h"
#include "net/server/http_server.h"

namespace drakkar {
class Metrics;
class WorkerPool;
}  // namespace drakkar

namespace drakkar::apiserver {

// HTTP in front of the core, for the connections of one loop: who is asking, what for, in which
// form; then the core; then the answer, once what it is built on is durable. What needs no state of
// the core (paths, queries, bodies, encodings, client certificates) is done on the HTTP loop;
// tokens, access and the verbs on the core's.
//
// Construct and destroy it on the core's loop; destroy it when nothing runs on the HTTP loop any
// more, unless that is the core's.
class Frontend final : public net::RequestHandler {
 public:
  struct Options {
    Core& core;
    const Authenticator& authenticator;
    Metrics& metrics;
    // May `user` do `verb` on a path that is no resource? Null: everybody may. This and what
    // follows is called on the core's loop.
    std::function<bool(const UserInfo& user, std::string_view verb, std::string_view path)>
        authorize_path;
    std::vector<HealthCheck> health_checks;
    // More documents by path: /configz, /openid/v1/jwks ...
    std::map<std::string, std::function<std::string()>, std::less<>> documents;
    // Brings `metrics` up to date before they are shown; may be null.
    std::function<void()> before_metrics;
    std::map<std::string, SubresourceProxy*> proxies;  // by "pods/log"; of the HTTP loop
    // Gives skipNodeOperations out as a list however it was written: Go clients read nothing else.
    bool skip_operations_as_list = false;
    // Where large answers are compressed; null: on the loop.
    WorkerPool* workers = nullptr;
    // The loop of the connections; null: the core's.
    EventLoop* loop = nullptr;
    // How long a watch lasts whose client does not say, so that clients spread over servers and no
    // watch outlives rights for ever. On the HTTP loop.
    std::function<Duration()> watch_lifetime = RandomWatchLifetime;
  };
  // Larger bodies are refused with a Status. What the connection refuses itself has none, so let it
  // take some more.
  static constexpr std::size_t kMaxBodyBytes = 3u << 20;
  explicit Frontend(Options options);
  static Duration RandomWatchLifetime();
  ~Frontend() override;

  // On the HTTP loop.
  void Handle(net::ServerRequest request, std::shared_ptr<net::ResponseWriter> writer) override;

 private:
  struct Exchange;
  using ExchangePtr = std::shared_ptr<Exchange>;

  // On the HTTP loop.
  void ReadResource(Exchange& exchange);
  std::optional<Failure> ReadWatch(Exchange& exchange, Request asked);
  // Answers a get again as it was answered before, if that still holds.
  bool AnswerFromCache(Exchange& exchange);
  SubresourceProxy* FindProxy(const RequestInfo& info) const;
  void Return(Exchange& exchange);
  // The writer for somebody else to answer with; the request is counted when they do.
  std::shared_ptr<net::ResponseWriter> Counted(Exchange& exchange);
  void AnswerPath(Exchange& exchange);
  void Answer(Exchange& exchange);
  void Fail(Exchange& exchange, const Failure& failure, const std::string& continue_token = {});
  // Compresses what is large, for those who asked for it.
  void Send(Exchange& exchange, int status, net::Headers headers, net::Body body);
  void Finished(const Exchange& exchange, int code, std::optional<std::size_t> bytes = {});

  // On the core's loop.
  void OnCore(ExchangePtr exchange);
  std::optional<Failure> Identify(Exchange& exchange);
  std::optional<Failure> LookAtPath(Exchange& exchange);
  std::optional<Failure> FindTarget(Exchange& exchange);
  void FinishOnCore(ExchangePtr exchange, Response response);
  void SendBack(ExchangePtr exchange);
  // Which devices are allocated, by the claims of now.
  std::shared_ptr<const DeviceUsage> Usage();

  const Options options_;
  EventLoop& loop_;
  Crossing crossing_;
  // The HTTP loop's.
  RequestMetrics request_metrics_;
  WatchEvents watch_events_;
  // Both loops', each its part.
  ChangeFeed feed_;
  ReadCache reads_;
  // The core's.
  std::shared_ptr<const DeviceUsage> usage_;
  storage::Revision usage_revision_ = -1;
};

}  // namespace drakkar::apiserver
