#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "apiserver/aggregation/aggregated_apis.h"
#include "apiserver/auth/authenticator.h"
#include "apiserver/http/change_feed.h"
#include "apiserver/http/device_usage.h"
#include "apiserver/http/flow_control.h"
#include "apiserver/http/health.h"
#include "apiserver/http/loop_bridge.h"
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

class AggregationProxy;
class CustomKinds;
class Discovery;

// Serves HTTP for the connections of one loop: authenticates and parses the request, passes it to
// the core, and answers once the state that the response is based on is durable. Work that needs no
// state of the core (paths, queries, bodies, encodings, client certificates) is done on the HTTP
// loop; tokens, authorization and the verbs run on the core's loop.
//
// Construct and destroy it on the core's loop. Destroy it only when nothing runs on the HTTP loop
// any more, unless both are the same loop.
class Frontend final : public net::RequestHandler {
 public:
  struct Options {
    Core& core;
    const Authenticator& authenticator;
    Metrics& metrics;
    // Whether `user` may do `verb` on a non-resource path; null allows everyone. This and the
    // following members are called on the core's loop.
    std::function<bool(const UserInfo& user, std::string_view verb, std::string_view path)>
        authorize_path;
    std::vector<HealthCheck> health_checks;
    // More documents by path: /configz, /openid/v1/jwks ...
    std::map<std::string, std::function<std::string()>, std::less<>> documents;
    // The same for documents that take a while: binary, from the query.
    using Question =
        std::function<void(const net::Query& query, std::function<void(Result<std::string>)> done)>;
    std::map<std::string, Question, std::less<>> questions = {};
    // Updates `metrics` before they are shown; may be null.
    std::function<void()> before_metrics;
    std::map<std::string, SubresourceProxy*> proxies;  // by "pods/log"; belong to the HTTP loop
    // Group versions that other servers serve, what passes requests on to them (belongs to the HTTP
    // loop), and an address of the server behind one. Null: there are none.
    const AggregationBoard* aggregation = nullptr;
    AggregationProxy* aggregation_proxy = nullptr;
    std::function<Result<std::string>(const AggregatedApi& api)> find_backend = {};
    // Always writes skipNodeOperations as a list: Go clients cannot decode the other form.
    bool skip_operations_as_list = false;
    // Where large responses are compressed; null: on the loop.
    WorkerPool* workers = nullptr;
    // The loop of the connections; null: the core's loop.
    EventLoop* loop = nullptr;
    // The default duration of a watch, so that clients spread over servers and a watch does not
    // outlive the permissions it was started with by much. On the HTTP loop.
    std::function<Duration()> watch_lifetime = RandomWatchLifetime;
    // How many requests this loop handles at a time, in total and per user.
    FlowControl::Limits reads = FlowControl::LimitsFor(400);
    FlowControl::Limits writes = FlowControl::LimitsFor(200);
  };
  // Bodies larger than this are read only after the core has authorized the request, and decoded on
  // a worker, because that takes longer than other requests should wait.
  static constexpr std::size_t kLargeBodyBytes = 64u << 10;
  // Larger bodies are rejected with a Status. The connection's own limit must be higher, because it
  // rejects without one.
  static constexpr std::size_t kMaxBodyBytes = 3u << 20;
  explicit Frontend(Options options);
  static Duration RandomWatchLifetime();
  ~Frontend() override;

  // On the HTTP loop.
  void Handle(net::ServerRequest request, std::shared_ptr<net::ResponseWriter> writer) override;
  void CheckLargeBody(net::ServerRequest head,
                      std::function<void(std::optional<Rejection>)> done) override;

 private:
  struct Exchange;
  using ExchangePtr = std::shared_ptr<Exchange>;

  // On the HTTP loop.
  // Waits for its turn, then reads the request and sends it to the core.
  void Admit(ExchangePtr exchange);
  void Start(ExchangePtr exchange);
  // Who the flow control counts a request for: the user, as far as the HTTP loop knows.
  std::pair<std::string_view, FlowControl::Level> FlowOf(const Exchange& exchange) const;
  void RememberToken(const Exchange& exchange);
  // What an HTTP response with this failure consists of.
  Rejection RejectionOf(const Exchange& exchange, const Failure& failure);
  void ReadResource(Exchange& exchange);
  // What another server answers: the request is passed on as it is.
  AggregatedApiPtr FindAggregated(const RequestInfo& info, std::string_view path) const;
  void ReadAggregated(Exchange& exchange);
  // The kind of a path that is not one of ours.
  void FindCustomKind(RequestInfo& info) const;
  std::shared_ptr<const std::string> FindDiscoveryDocument(std::string_view path, bool aggregated);
  std::optional<Failure> ReadWatch(Exchange& exchange, Request asked);
  // Answers a get from the cache, if the entry is still valid.
  bool AnswerFromCache(Exchange& exchange);
  SubresourceProxy* FindProxy(const RequestInfo& info) const;
  void Return(Exchange& exchange);
  // A writer for other code to respond with; the request is counted when it does.
  std::shared_ptr<net::ResponseWriter> Counted(Exchange& exchange);
  void AnswerPath(Exchange& exchange);
  void Answer(Exchange& exchange);
  void Fail(Exchange& exchange, const Failure& failure, const std::string& continue_token = {});
  // Compresses large responses for clients that accept it.
  void Send(Exchange& exchange, int status, net::Headers headers, net::Body body);
  void Finished(const Exchange& exchange, int code, std::optional<std::size_t> bytes = {});

  // On the core's loop.
  void OnCore(ExchangePtr exchange);
  void HandleOnCore(ExchangePtr exchange);
  // Decodes a large body on a worker and then handles the request.
  void DecodeAside(ExchangePtr exchange);
  std::optional<Failure> Identify(Exchange& exchange);
  std::optional<Failure> LookAtPath(Exchange& exchange);
  std::optional<Failure> FindTarget(Exchange& exchange);
  // Authorizes a request for another server, and finds that server.
  std::optional<Failure> FindBackend(Exchange& exchange);
  void FinishOnCore(ExchangePtr exchange, Response response);
  // Asks webhooks about a request that a proxy will serve.
  void AdmitConnection(ExchangePtr exchange);
  void Ask(ExchangePtr exchange);
  void SendBack(ExchangePtr exchange);
  // The currently allocated devices.
  std::shared_ptr<const DeviceUsage> Usage();

  const Options options_;
  EventLoop& loop_;
  LoopBridge bridge_;
  // Used on the HTTP loop.
  const std::shared_ptr<FlowControl> reads_in_progress_;
  const std::shared_ptr<FlowControl> writes_in_progress_;
  // Users of tokens that were accepted lately, by a hash of the token. Bounded by kMaxKnownTokens;
  // a forgotten one shares the flow of unknown callers for one request.
  struct KnownToken {
    std::string user;
    FlowControl::Level level;
  };
  std::unordered_map<std::size_t, KnownToken> known_tokens_;
  // Discovery with custom resources and other servers, as of the two after it.
  std::unique_ptr<const Discovery> discovery_;
  std::shared_ptr<const CustomKinds> discovered_;
  AggregatedApisPtr discovered_apis_;
  RequestMetrics request_metrics_;
  WatchEvents watch_events_;
  // Used on both loops, each its own part.
  ChangeFeed feed_;
  ReadCache reads_;
  // Used on the core's loop.
  std::shared_ptr<const DeviceUsage> usage_;
  storage::Revision usage_revision_ = -1;
};

}  // namespace drakkar::apiserver
