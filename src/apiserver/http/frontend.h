#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "apiserver/auth/authenticator.h"
#include "apiserver/http/device_usage.h"
#include "apiserver/http/health.h"
#include "apiserver/http/request_info.h"
#include "apiserver/http/request_metrics.h"
#include "apiserver/http/watch_events.h"
#include "apiserver/rest/core.h"
#include "net/server/http_server.h"

namespace drakkar {
class Metrics;
class WorkerPool;
}

namespace drakkar::apiserver {

// Serves what lies behind a subresource that is no object: logs, exec. The request has been
// authorized.
class SubresourceProxy {
 public:
  virtual ~SubresourceProxy() = default;
  virtual void Serve(const RequestInfo& info, const UserInfo& user, net::ServerRequest request,
                     std::shared_ptr<net::ResponseWriter> writer) = 0;
};

// HTTP in front of the core: who is asking, what for, in which form; then the core; then the answer,
// once what it is built on is durable.
class Frontend final : public net::RequestHandler {
 public:
  struct Options {
    Core& core;
    const Authenticator& authenticator;
    Metrics& metrics;
    // May `user` do `verb` on a path that is no resource? Null: everybody may.
    std::function<bool(const UserInfo& user, std::string_view verb, std::string_view path)>
        authorize_path;
    std::vector<HealthCheck> health_checks;
    // More documents by path: /configz, /openid/v1/jwks ...
    std::map<std::string, std::function<std::string()>, std::less<>> documents;
    // Brings `metrics` up to date before they are shown; may be null.
    std::function<void()> before_metrics;
    std::map<std::string, SubresourceProxy*> proxies;  // by "pods/log"
    // Gives skipNodeOperations out as a list however it was written: Go clients read nothing else.
    bool skip_operations_as_list = false;
    // Where large answers are compressed; null: on the loop.
    WorkerPool* workers = nullptr;
  };
  explicit Frontend(Options options);
  ~Frontend() override;

  void Handle(net::ServerRequest request, std::shared_ptr<net::ResponseWriter> writer) override;
  // `subresource` is "pods/log".
  void AddProxy(std::string subresource, SubresourceProxy* proxy) {
    options_.proxies[std::move(subresource)] = proxy;
  }

 private:
  struct Exchange;

  void HandlePath(Exchange& exchange, net::ServerRequest& request);
  void HandleResource(std::shared_ptr<Exchange> exchange, net::ServerRequest request);
  SubresourceProxy* FindProxy(const RequestInfo& info) const;
  void Answer(Exchange& exchange, Response response);
  void Fail(Exchange& exchange, const Failure& failure, const std::string& continue_token = {});
  // Compresses what is large, for those who asked for it.
  void Send(Exchange& exchange, int status, net::Headers headers, net::Body body);
  // How many devices of a slice are allocated, by the claims of now.
  std::int64_t AllocatedIn(const api::Object& slice);

  void Finished(const Exchange& exchange, int code);

  Options options_;
  RequestMetrics request_metrics_;
  WatchEvents watch_events_;
  DeviceUsage usage_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace drakkar::apiserver
