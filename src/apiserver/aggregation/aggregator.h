#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "apiserver/aggregation/aggregated_apis.h"
#include "apiserver/aggregation/backend_client.h"
#include "apiserver/aggregation/local_services.h"
#include "apiserver/rest/core.h"
#include "apiserver/watch/watch_cache.h"
#include "base/exec/backoff.h"
#include "base/exec/lifetime.h"

namespace drakkar {
class Metrics;
}

namespace drakkar::apiserver {

// Maintains APIServices: registers the group versions that this server serves, decides whether the
// servers behind the others are available, writes that into their conditions, and keeps their
// resources for discovery and OpenAPI. The frontend forwards requests to them; it reads the board.
//
// A server is checked when its Service, its endpoints or its APIService change, and every
// kCheckInterval; after a failure sooner, with back-off. At most one check per APIService is in
// flight, so a server that hangs delays nobody else.
//
// Bound to the core's loop. Bounds: kMaxServices APIServices with a Service; further ones are never
// available. A list of resources has at most kMaxDiscoveryBytes, because it is parsed on this loop,
// an OpenAPI document kMaxOpenApiBytes. All OpenAPI documents together have at most
// kMaxOpenApiTotalBytes; further ones are not shown. kMaxOpenApiCalls are fetched at a time;
// further ones wait.
class Aggregator {
 public:
  static constexpr std::size_t kMaxServices = 200;
  static constexpr std::size_t kMaxDiscoveryBytes = std::size_t{512} << 10;
  static constexpr std::size_t kMaxOpenApiBytes = std::size_t{4} << 20;
  static constexpr std::size_t kMaxOpenApiTotalBytes = std::size_t{32} << 20;
  static constexpr std::size_t kMaxOpenApiCalls = 4;
  static constexpr Duration kCheckInterval = std::chrono::seconds(30);
  // Endpoints may change many times a second.
  static constexpr Duration kMinInterval = std::chrono::seconds(1);
  static constexpr Duration kCheckTimeout = std::chrono::seconds(5);
  static constexpr Duration kDocumentTimeout = std::chrono::seconds(20);
  // Number of attempts, each at another endpoint: one that fails may be about to disappear.
  static constexpr int kAttempts = 3;

  struct Options {
    Core& core;
    BackendClient& backends;
    Random& random;
    Metrics* metrics = nullptr;  // null: nothing is counted
    // The group versions that this server serves besides those of definitions.
    std::vector<ServedVersion> built_in;
  };
  explicit Aggregator(Options options);
  ~Aggregator();

  // The local APIServices that the server has from its start.
  std::vector<api::TreePtr> OwnServices() const;
  // Begins to follow the objects. The core must have been started.
  void Start();
  // Stops following. Must be called before the core ends.
  void Stop();

  const AggregationBoard& board() const { return board_; }
  std::size_t service_count() const { return services_.size(); }
  // Of the OpenAPI documents.
  std::size_t open_api_bytes() const;
  // "10.0.0.7:443": a ready endpoint of the server behind an API.
  Result<std::string> Resolve(const AggregatedApi& api) const;

 private:
  struct Service;
  struct Verdict {
    bool is_available = false;
    std::string_view reason;
    std::string message;
  };

  void Follow(std::string_view group, std::string_view plural,
              void (Aggregator::*see)(const Change& change));
  void Restart();
  void SeeApiService(const Change& change);
  void SeeService(const Change& change);
  void SeeSlice(const Change& change);
  void SeeDefinition(const Change& change);
  // All APIServices that name this Service.
  void MarkService(std::string_view namespace_, std::string_view name);
  void Put(const api::ObjectPtr& object);
  void CheckSoon(const std::string& name, Duration wait = Duration(0));
  void Check(const std::string& name);
  // The verdict that follows from the objects alone; nullopt: the server has to be asked.
  std::optional<Verdict> Judge(const AggregatedApi& api) const;
  void Ask(const std::string& name, int attempt);
  void OnAnswer(const std::string& name, const std::string& url, int attempt,
                const Result<net::Response>& response);
  void AskOpenApi(const std::string& name);
  void OnOpenApi(Service& service, const std::string& path, std::string body);
  void Conclude(const std::string& name, const Verdict& verdict);
  void WriteCondition(const std::string& name, const Verdict& verdict);
  BackendClient::Call CallFor(const AggregatedApi& api, const std::string& host,
                              std::string_view path) const;
  void Publish();

  // Registers the groups of definitions, and removes those that nobody serves any more.
  void ReconcileSoon();
  void Reconcile();
  void Register(std::vector<Request> requests);

  Options options_;
  AggregationBoard board_;
  std::map<std::string, std::unique_ptr<Service>> services_;  // by the name of the APIService
  std::size_t open_api_calls_ = 0;
  std::vector<std::unique_ptr<WatchCache::Watcher>> watchers_;
  std::shared_ptr<const std::size_t> one_ = std::make_shared<const std::size_t>(1);
  TimerHandle reconcile_timer_;
  bool is_reconciling_ = false;
  bool reconcile_again_ = false;
  bool is_running_ = false;
  Lifetime lifetime_;
};

}  // namespace drakkar::apiserver
