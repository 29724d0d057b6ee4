#include "apiserver/server.h"

#include <algorithm>
#include <list>
#include <set>

#include "api/json/reader.h"
#include "api/json/writer.h"
#include "api/scheme/scheme.h"
#include "api/tree/draft.h"
#include "apiserver/admission/admission.h"
#include "apiserver/admission/policy_set.h"
#include "apiserver/admission/policy_status.h"
#include "apiserver/aggregation/aggregator.h"
#include "apiserver/aggregation/http_backend_client.h"
#include "apiserver/auth/access_reviews.h"
#include "apiserver/auth/bootstrap_policy.h"
#include "apiserver/auth/bootstrap_tokens.h"
#include "apiserver/auth/chain.h"
#include "apiserver/auth/join_policy.h"
#include "apiserver/auth/node_authorizer.h"
#include "apiserver/auth/rbac.h"
#include "apiserver/auth/service_account_tokens.h"
#include "apiserver/http/aggregation_proxy.h"
#include "apiserver/http/discovery.h"
#include "apiserver/http/frontend.h"
#include "apiserver/http/limit_metrics.h"
#include "apiserver/http/store_metrics.h"
#include "apiserver/http/store_questions.h"
#include "apiserver/rest/event_expiry.h"
#include "apiserver/rest/living_servers.h"
#include "apiserver/self_report.h"
#include "apiserver/webhook/conversion_webhooks.h"
#include "apiserver/webhook/http_transport.h"
#include "apiserver/webhook/webhook_admission.h"
#include "base/env/file_system.h"
#include "base/exec/lifetime.h"
#include "base/exec/wakefulness.h"
#include "base/exec/worker_pool.h"
#include "base/text/text.h"
#include "bootstrap/cluster_info.h"
#include "net/server/server_group.h"
#include "telemetry/log/log.h"
#include "telemetry/metrics/metrics.h"
#include "telemetry/metrics/process_metrics.h"

namespace drakkar::apiserver {
namespace {

constexpr Logger kLog("apiserver");
constexpr Duration kNever = std::chrono::hours(24 * 365 * 100);
constexpr char kDecisions[] = "Counter of authorization attempts broken down by result.";
constexpr std::string_view kNamespaces[] = {"default", "kube-system", "kube-public",
                                            "kube-node-lease"};

// Large responses are compressed on a worker; if the queue is full, on the loop.
constexpr std::size_t kWorkers = 1;
// Maximum number of unreadable objects with a metric of their own; the rest is only counted.
constexpr std::size_t kMaxNamedUnreadable = 100;
constexpr std::size_t kMaxQueuedWork = 64;

// The connection's limit, beyond which it rejects requests without a Status.
constexpr std::size_t kMaxTakenBodyBytes = 4u << 20;
// Memory limits for the bodies of all requests together, and for those of unauthenticated callers.
// Beyond them, requests get 429.
constexpr std::size_t kMaxBodyMemory = 64u << 20;
constexpr std::size_t kMaxStrangerBodyMemory = 16u << 20;
static_assert(kMaxTakenBodyBytes > Frontend::kMaxBodyBytes);

UserInfo Internal() {
  return UserInfo{.name = "system:apiserver", .groups = {"system:masters"}};
}

bool IsPublicPath(std::string_view path) {
  for (std::string_view open : {"/healthz", "/livez", "/readyz", "/version"}) {
    if (path == open || (path.starts_with(open) && path[open.size()] == '/')) return true;
  }
  return false;
}

// On behalf of the server itself.
Request CreationOf(const api::TreePtr& object) {
  const api::Value root = object->root();
  Request request;
  request.user = Internal();
  request.verb = Verb::kCreate;
  request.kind = api::FindKindByApiVersion(root["apiVersion"].str(), root["kind"].str());
  request.namespace_ = root["metadata"]["namespace"].str();
  request.object = object;
  return request;
}

api::TreePtr NamespaceTree(std::string_view name) {
  api::Draft draft = api::Draft::Object();
  draft["apiVersion"] = "v1";
  draft["kind"] = "Namespace";
  draft["metadata"]["name"] = name;
  return draft.Freeze();
}

bool IsSingleAddress(const std::string& host) {
  const bool is_address = host.find_first_not_of("0123456789.") == std::string::npos ||
                          host.find(':') != std::string::npos;
  return !host.empty() && is_address && host != "0.0.0.0" && host != "::";
}

// Service and Endpoints "kubernetes" in the namespace default, with the address of the API server.
// Since nothing here forwards service addresses, it is the server's own address. Empty if the
// server has no single address.
std::vector<api::TreePtr> WhereWeAre(const std::string& host, std::uint16_t port) {
  if (!IsSingleAddress(host)) return {};
  const auto metadata = [](std::string_view label, std::string_view value) {
    return api::Draft{{"name", "kubernetes"},
                      {"namespace", "default"},
                      {"labels", api::Draft::Map({{label, value}})}};
  };
  const auto only = [](api::Draft element) {
    std::vector<api::Draft> elements;
    elements.push_back(std::move(element));
    return api::Draft::Array(std::move(elements));
  };
  const int number = port;
  api::Draft service{
      {"apiVersion", "v1"},
      {"kind", "Service"},
      {"metadata", metadata("component", "apiserver")},
      {"spec",
       {{"ports",
         only({{"name", "https"}, {"protocol", "TCP"}, {"port", number}, {"targetPort", number}})},
        {"clusterIP", host},
        {"clusterIPs", only(host)},
        {"type", "ClusterIP"},
        {"sessionAffinity", "None"}}}};
  service["metadata"]["labels"].Entry("provider") = "kubernetes";
  const api::Draft endpoints{
      {"apiVersion", "v1"},
      {"kind", "Endpoints"},
      {"metadata", metadata("endpointslice.kubernetes.io/skip-mirror", "true")},
      {"subsets",
       only({{"addresses", only({{"ip", host}})},
             {"ports", only({{"name", "https"}, {"port", number}, {"protocol", "TCP"}})}})}};
  return {service.Freeze(), endpoints.Freeze()};
}

// How often the server looks whether its own Service still exists.
constexpr Duration kKeepInterval = std::chrono::seconds(10);

// In a store that supports it, events expire by themselves. Their number is limited in any case.
EventLimits ExpiryLimits(EventLimits limits, const storage::Store& store) {
  if (store.expires_keys()) limits.ttl = kNever;
  return limits;
}

struct SystemPriority {
  std::string_view name;
  std::int64_t value;
  std::string_view description;
};
// Whether the server starts although one of its own objects is damaged or does not fit on the disk.
bool StartsWithout(const Failure& failure) {
  return failure.reason == Core::kStoreReadError || failure.reason == Core::kInsufficientStorage;
}

// What this server presents to the servers behind APIServices; null if it cannot be issued, and
// then they treat the callers as anonymous.
std::shared_ptr<net::CertificateSource> FrontProxy(const Pki& pki) {
  Result<Pki::Source> source = pki.FrontProxySource();
  if (source.ok()) return *std::move(source);
  kLog.Error("could not issue the front proxy's certificate", {{"error", source.error().message}});
  return nullptr;
}

constexpr SystemPriority kPriorities[] = {
    {"system-cluster-critical", 2'000'000'000,
     "Used for system critical pods that must run in the cluster, but can be moved to another node "
     "if necessary."},
    {"system-node-critical", 2'000'001'000,
     "Used for system critical pods that must not be moved from their current node."}};

api::TreePtr PriorityTree(const SystemPriority& priority) {
  return api::Draft{
      {"apiVersion", "scheduling.k8s.io/v1"},  {"kind", "PriorityClass"},
      {"metadata", {{"name", priority.name}}}, {"value", priority.value},
      {"description", priority.description},   {"preemptionPolicy", "PreemptLowerPriority"}}
      .Freeze();
}

}  // namespace

struct ApiServer::Impl {
  explicit Impl(Options o)
      : options(std::move(o)),
        core(Core::Options{
            .loop = options.loop,
            .random = RealRandom(),
            .store = *options.store,
            .layout = options.layout,
            .event_ttl = options.events.ttl,
            .gates = options.gates,
            .authorizer = &authorizer,
            .admission = MakeAdmissionChain({.rbac = &rbac,
                                             .policies = &policies,
                                             .mutating_policies = &mutating_policies,
                                             .metrics = &options.metrics}),
            .webhooks = &webhooks,
            .conversion = &conversion,
            .answerer = &answerers,
            .on_store_call = [this](
                                 const api::KindSchema& kind, std::string_view operation,
                                 Duration took) { store_metrics.Observe(kind, operation, took); },
            .on_write = options.low_latency
                            ? std::function<void()>([this] { wakefulness->Touch(); })
                            : nullptr,
            .on_store_failed =
                [](const Error& why) {
                  kLog.Error("store failed", {{"error", why.message}});
                },
            .on_store_full =
                [](const std::optional<Error>& why) {
                  if (why) {
                    kLog.Error("writes are refused until the disk has space",
                               {{"error", why->message}});
                  } else {
                    kLog.Info("the disk has space again; writes are accepted");
                  }
                },
            .on_unreadable =
                [](std::string_view key, const Error& why) {
                  kLog.Error(
                      "a stored object cannot be read; run `drakkar store repair`, or "
                      "restore it from a backup",
                      {{"key", std::string(key)}, {"error", why.message}});
                }}) {
    ShowBuild();
    rbac.Attach(core);
    policies.Attach(core);
    mutating_policies.Attach(core);
    webhooks.Attach(core);
    conversion.Attach(core);
    answerers.Add(reviews);
    node_authorizer.Attach(core);
  }

  // The group versions that this server serves itself.
  static std::vector<ServedVersion> BuiltIn() {
    std::vector<ServedVersion> built_in;
    for (const auto& [group, version] : BuiltInVersions()) {
      built_in.push_back({std::string(group), std::string(version)});
    }
    return built_in;
  }

  Frontend::Options FrontendOptions(UvLoop& loop) {
    return {.core = core,
            .authenticator = authenticator,
            .metrics = options.metrics,
            .authorize_path =
                [this](const UserInfo& user, std::string_view verb, std::string_view path) {
                  // Everyone may read health and version.
                  if (IsPublicPath(path)) return true;
                  return rbac.CheckPath(user, verb, path).allowed;
                },
            .health_checks = HealthChecks(),
            .documents = Documents(),
            .questions = StoreQuestions(*options.store, options.layout),
            .before_metrics =
                [this] {
                  UpdateStoreMetrics();
                  UpdateLimits();
                  UpdateProcessMetrics(RealFileSystem(), options.metrics);
                },
            .proxies = {},
            .aggregation = &aggregator.board(),
            .find_backend = [this](const AggregatedApi& api) { return aggregator.Resolve(api); },
            .skip_operations_as_list = options.skip_operations_as_list,
            .workers = &workers,
            .loop = &loop,
            .reads = FlowControl::LimitsFor(PerLoop(options.in_flight.reads)),
            .writes = FlowControl::LimitsFor(PerLoop(options.in_flight.writes))};
  }

  std::size_t PerLoop(std::size_t limit) const {
    return limit / std::max<std::size_t>(options.http_loops, 1);
  }

  // Service account tokens; fails if the key cannot be used.
  Result<void> SetUpTokens() {
    const std::string& key =
        options.token_signing_key.empty() ? options.pki.token_key_pem() : options.token_signing_key;
    ASSIGN_OR_RETURN(tokens, ServiceAccountTokens::Create(key, options.loop.clock(), RealRandom(),
                                                          options.token_keys, options.token_names));
    tokens->Attach(core);
    answerers.Add(*tokens);
    authenticator.AddTokenVerifier([this](std::string_view token) {
      std::vector<std::string> meant_for;
      return tokens->Verify(token, {}, meant_for);
    });
    authenticator.AddTokenVerifier([this](std::string_view token) {
      return VerifyBootstrapToken(core, token, options.loop.clock().Now());
    });
    return Ok();
  }

  Result<void> TrustProxies() {
    const FrontProxies& trusted = options.front_proxies;
    if (trusted.ca_pem.empty()) return Ok();
    // Otherwise every client could say that it is somebody else.
    const std::string& clients = options.pki.ca().certificate_pem;
    if (trusted.allowed_names.empty() && trusted.ca_pem.find(Trim(clients)) != std::string::npos) {
      return InvalidArgument(
          "the CA for their certificates is that of all clients; name those that are proxies with "
          "--requestheader-allowed-names");
    }
    authenticator.TrustProxies(trusted);
    return Ok();
  }

  // For a TokenReview. A bootstrap token is for this server only.
  std::optional<UserInfo> ReviewToken(std::string_view token,
                                      const std::vector<std::string>& audiences,
                                      std::vector<std::string>& meant_for) {
    if (tokens == nullptr) return std::nullopt;
    if (auto user = tokens->Verify(token, audiences, meant_for)) return user;
    const bool for_us = audiences.empty() || std::ranges::find_first_of(
                                                 audiences, tokens->audiences()) != audiences.end();
    std::optional<UserInfo> user =
        for_us ? VerifyBootstrapToken(core, token, options.loop.clock().Now()) : std::nullopt;
    if (user && !audiences.empty()) meant_for.push_back(tokens->audiences().front());
    return user;
  }

  std::vector<HealthCheck> HealthChecks() {
    auto fine = [] { return Ok(); };
    auto started = [this]() -> Result<void> {
      if (!is_started) return Unavailable("not finished");
      return Ok();
    };
    return {{"ping", fine},
            {"log", fine},
            {"etcd",
             [this]() -> Result<void> {
               if (!is_started) return Unavailable("not finished");
               if (const std::optional<Error> failure = options.store->failure()) return *failure;
               // An embedded store without space still serves reads.
               if (!options.store->is_shared()) return Ok();
               const std::optional<Error> outage = options.store->outage();
               if (!outage) return Ok();
               // Without requests nothing else would find out that it is over.
               if (!std::exchange(is_asking_store, true)) {
                 options.store->ReadRevision(lifetime.Guard(
                     [this](const Result<storage::Revision>&) { is_asking_store = false; }));
               }
               return *outage;
             }},
            {"informer-sync",
             [this]() -> Result<void> {
               if (is_ready && !is_ready())
                 return Unavailable("the controllers have not synced yet");
               return Ok();
             },
             /*ready_only=*/true},
            {"poststarthook/rbac/bootstrap-roles", started},
            {"poststarthook/scheduling/bootstrap-system-priority-classes", started},
            {"shutdown",
             [this]() -> Result<void> {
               if (stopping) return Unavailable("shutting down");
               return Ok();
             },
             /*ready_only=*/true}};
  }

  std::map<std::string, std::function<std::string()>, std::less<>> Documents() {
    return {{"/configz", [this] { return Configuration(); }},
            {"/drakkar/status",
             [this] {
               return SelfReport(core, options.gates, options.pki, options.loop.clock().Now());
             }},
            {"/openid/v1/jwks", [this] { return tokens->KeysJson(); }},
            {"/.well-known/openid-configuration", [this] { return tokens->ConfigurationJson(); }}};
  }

  // The effective configuration, without secrets.
  std::string Configuration() const {
    api::Draft out = api::Draft::Object();
    api::Draft& server_part = out.Entry("apiserver.drakkar.io");
    server_part["emulatedVersion"] = options.gates.emulated().ToString();
    server_part["bindAddress"] = options.address.host;
    server_part["serviceAccountIssuer"] = tokens->issuer();
    for (std::string_view step : core.AdmissionNames())
      server_part["admissionPlugins"].Append(step);
    for (std::string_view mode : {"Node", "RBAC"}) server_part["authorizationModes"].Append(mode);
    return api::WriteJson(out.Freeze()->root());
  }

  // How much of each limit in docs/limits.md is used.
  void UpdateLimits() {
    const WatchCache& events = *core.FindCache("", "events");
    ShowLimit(options.metrics, "events", events.size(), options.events.count_max);
    ShowLimit(options.metrics, "event_bytes", events.encoded_bytes(), options.events.bytes_max);
    std::size_t changes = 0;
    std::size_t change_bytes = 0;
    core.ForEachCache([&](const api::KindSchema&, const WatchCache& cache) {
      if (&cache == &events) return;
      changes = std::max(changes, cache.change_count());
      change_bytes = std::max(change_bytes, cache.change_bytes());
    });
    ShowLimit(options.metrics, "watch_changes", changes, WatchCache::kMaxChanges);
    ShowLimit(options.metrics, "watch_change_bytes", change_bytes, WatchCache::kMaxChangeBytes);
    ShowLimit(options.metrics, "event_change_bytes", events.change_bytes(),
              events.change_bytes_max());
    ShowLimit(options.metrics, "request_body_bytes", body_memory->used(), body_memory->limit());
    ShowLimit(options.metrics, "waiting_creates", core.waiting_count(), Core::kMaxWaiting);
    ShowLimit(options.metrics, "webhook_review_bytes", webhooks.bytes_in_flight(),
              WebhookAdmission::kMaxBytes);
    ShowLimit(options.metrics, "aggregated_apis", aggregator.service_count(),
              Aggregator::kMaxServices);
    ShowLimit(options.metrics, "aggregated_openapi_bytes", aggregator.open_api_bytes(),
              Aggregator::kMaxOpenApiTotalBytes);
    const storage::StoreStatistics store = options.store->statistics();
    ShowLimit(options.metrics, "store_history_bytes", store.history_bytes, store.history_bytes_max);
    ShowLimit(options.metrics, "store_queued_bytes", store.queued_bytes, store.queued_bytes_max);
  }

  // Names the stored objects that cannot be read, at most kMaxNamedUnreadable of them.
  void ShowUnreadable() {
    const auto show = [this](const std::string& key, int value) {
      options.metrics
          .GetGauge("drakkar_store_unreadable_object", "1 if this stored object cannot be read.",
                    {{"key", key}})
          .Set(value);
    };
    for (const auto& [key, why] : core.unreadable()) {
      if (named_unreadable.size() == kMaxNamedUnreadable) break;
      if (named_unreadable.insert(key).second) show(key, 1);
    }
    for (const std::string& key : named_unreadable) {
      if (!core.unreadable().contains(key)) show(key, 0);
    }
  }

  void UpdateStoreMetrics() {
    const storage::StoreStatistics now = options.store->statistics();
    auto follow = [this](const char* name, const char* help, std::uint64_t value) {
      Counter& counter = options.metrics.GetCounter(name, help);
      counter.Add(static_cast<double>(value) - counter.value());
    };
    follow("drakkar_store_transactions_total", "Transactions applied.", now.transactions);
    follow("drakkar_store_commits_total", "Group commits written.", now.commits);
    follow("drakkar_store_syncs_total", "Syncs of the store.", now.syncs);
    follow("drakkar_store_written_bytes_total", "Bytes written to the file.", now.bytes_written);
    options.metrics
        .GetGauge("drakkar_store_history_bytes", "Bytes of superseded versions that are kept.")
        .Set(static_cast<double>(now.history_bytes));
    options.metrics.GetGauge("drakkar_store_full", "1 while the disk is too full for writes.")
        .Set(options.store->outage() ? 1 : 0);
    options.metrics
        .GetGauge("drakkar_store_unreadable_objects", "Stored objects that cannot be read.")
        .Set(static_cast<double>(core.unreadable().size()));
    ShowUnreadable();
    options.metrics
        .GetGauge("drakkar_store_info", "The file system of the store.",
                  {{"file_system", now.file_system}})
        .Set(1);
  }

  // kubernetes_build_info, with the labels of /version.
  void ShowBuild() {
    const Result<api::TreePtr> version =
        api::ParseJson(*FindDiscovery("/version", /*aggregated=*/false));
    if (!version.ok()) return;
    MetricLabels labels;
    struct LabelOfField {
      const char* label;
      api::FieldName field;
    };
    for (const auto& [label, field] :
         std::initializer_list<LabelOfField>{{"build_date", "buildDate"},
                                             {"compiler", "compiler"},
                                             {"git_commit", "gitCommit"},
                                             {"git_tree_state", "gitTreeState"},
                                             {"git_version", "gitVersion"},
                                             {"go_version", "goVersion"},
                                             {"major", "major"},
                                             {"minor", "minor"},
                                             {"platform", "platform"}}) {
      labels.emplace_back(label, std::string((*version)->root()[field].str()));
    }
    options.metrics
        .GetGauge("kubernetes_build_info",
                  "A metric with a constant '1' value labeled by the fields of /version.", labels)
        .Set(1);
  }

  // Creates or updates each of `wanted`, from last to first, then calls `done`.
  void Put(std::vector<api::TreePtr> wanted, std::function<void(Result<void>)> done) {
    if (wanted.empty()) return done(Ok());
    const api::TreePtr next = std::move(wanted.back());
    wanted.pop_back();
    Request request = CreationOf(next);
    const std::string name(next->root()["metadata"]["name"].str());
    if (core.Find(request.kind->group, request.kind->plural,
                  StrCat(request.namespace_, "/", name)) != nullptr) {
      request.verb = Verb::kUpdate;
      request.name = name;
    }
    core.Handle(std::move(request), [this, wanted = std::move(wanted),
                                     done = std::move(done)](Response response) mutable {
      if (response.failure && !StartsWithout(*response.failure)) {
        return done(api::ErrorFromStatus(*response.failure));
      }
      Put(std::move(wanted), std::move(done));
    });
  }

  const std::string& OwnHost() const {
    return options.advertise_address.empty() ? options.address.host : options.advertise_address;
  }

  // The Service and Endpoints by which pods find the server.
  std::vector<api::TreePtr> OwnService() const { return WhereWeAre(OwnHost(), server->port()); }

  // On a shared store: keeps Endpoints, EndpointSlices and Service "kubernetes" true.
  void FollowServers() {
    if (!IsSingleAddress(OwnHost())) return;
    living.emplace(LivingServers::Options{
        .loop = options.loop,
        .store = *options.store,
        .layout = options.layout,
        .self = {OwnHost(), server->port()},
        .on_servers = [this](const std::vector<ServerAddress>& servers) { PutServers(servers); }});
    living->Start();
  }

  void PutServers(const std::vector<ServerAddress>& servers) {
    static const std::string kName = "default/kubernetes";
    const api::ObjectPtr endpoints = core.Find("", "endpoints", kName);
    const bool is_true = endpoints != nullptr && ServersOf(endpoints->root()) == servers &&
                         core.Find("discovery.k8s.io", "endpointslices", kName) != nullptr &&
                         core.Find("", "services", kName) != nullptr;
    if (is_true || putting_servers) return;
    putting_servers = true;
    std::vector<api::TreePtr> wanted = EndpointsOf(servers);
    const std::vector<ServerAddress> before =
        endpoints == nullptr ? std::vector<ServerAddress>() : ServersOf(endpoints->root());
    const api::ObjectPtr service = core.Find("", "services", kName);
    if (service == nullptr) {
      wanted.push_back(OwnService().front());
    } else if (const auto next = SuccessorOf(service->root(), before, servers)) {
      wanted.push_back(WhereWeAre(next->ip, next->port).front());
    }
    if (endpoints != nullptr) RemoveSlices(before, servers);
    Put(std::move(wanted), lifetime.Guard([this](const Result<void>& put) {
      putting_servers = false;
      // Another server may have been quicker; the next renewal looks again.
      if (!put.ok() && put.error().code != ErrorCode::kConflict &&
          put.error().code != ErrorCode::kAlreadyExists) {
        kLog.Warning("could not write the Endpoints of the API servers",
                     {{"error", put.error().message}});
      }
    }));
  }

  // Those that servers on other ports had.
  void RemoveSlices(const std::vector<ServerAddress>& before,
                    const std::vector<ServerAddress>& now) {
    std::set<std::string> names;
    for (const api::TreePtr& each : EndpointsOf(before)) {
      if (each->root()["kind"].str() == "EndpointSlice") {
        names.emplace(each->root()["metadata"]["name"].str());
      }
    }
    for (const api::TreePtr& each : EndpointsOf(now)) {
      names.erase(std::string(each->root()["metadata"]["name"].str()));
    }
    for (const std::string& name : names) {
      Request request;
      request.user = Internal();
      request.verb = Verb::kDelete;
      request.kind = api::FindKind("discovery.k8s.io", "v1", "EndpointSlice");
      request.namespace_ = "default";
      request.name = name;
      core.Handle(std::move(request), [](const Response&) {});
    }
  }

  // The ConfigMap in which joining machines find the CA, with the names of all API servers. Nothing
  // if it is up to date. On a shared store the address is that of the server that started first.
  // The controllers maintain the signatures in it.
  std::vector<api::TreePtr> ClusterInfo() const {
    std::string host = OwnHost();
    if (host.empty() || host == "0.0.0.0") host = "127.0.0.1";
    if (host == "::") host = "::1";
    if (host.find(':') != std::string::npos) host = StrCat("[", host, "]");
    const std::string text = bootstrap::WriteClusterInfo(
        {StrCat("https://", host, ":", server->port()), options.pki.ca().certificate_pem});
    const api::ObjectPtr there =
        core.Find("", "configmaps", StrCat(bootstrap::kInfoNamespace, "/", bootstrap::kInfoName));
    api::Draft map = there != nullptr ? api::Draft(there->tree())
                                      : api::Draft{{"apiVersion", "v1"},
                                                   {"kind", "ConfigMap"},
                                                   {"metadata",
                                                    {{"name", bootstrap::kInfoName},
                                                     {"namespace", bootstrap::kInfoNamespace}}}};
    const api::Value data = there == nullptr ? api::Value() : (*there)["data"];
    bool changed = false;
    const auto set = [&](std::string_view key, const std::string& value) {
      if (data.Entry(key).str() == value) return;
      map["data"].Entry(key) = value;
      changed = true;
    };
    std::set<std::string> names;
    for (const std::string_view each : Split(data.Entry(bootstrap::kInfoServerNames).str(), ',')) {
      if (!each.empty()) names.emplace(each);
    }
    if (const Result<net::CertificateInfo> own =
            net::ParseCertificate(options.pki.server().certificate_pem);
        own.ok()) {
      names.insert(own->subject.dns_names.begin(), own->subject.dns_names.end());
      names.insert(own->subject.ip_addresses.begin(), own->subject.ip_addresses.end());
    }
    set(bootstrap::kInfoServerNames, Join(names, ","));
    if (there == nullptr || !core.is_shared()) set(bootstrap::kInfoKubeconfig, text);
    if (!changed) return {};
    return {map.Freeze()};
  }

  // The ConfigMap that tells the servers behind APIServices which authorities to trust. Nothing if
  // it is up to date. Authorities that others have written stay: another server may use them.
  std::vector<api::TreePtr> Authentication() const {
    const api::TreePtr wanted = DelegatedAuthentication(
        options.pki.ca().certificate_pem, options.pki.front_proxy_ca().certificate_pem,
        options.front_proxies)[0];
    const api::Value metadata = wanted->root()["metadata"];
    const api::ObjectPtr there = core.Find(
        "", "configmaps", StrCat(metadata["namespace"].str(), "/", metadata["name"].str()));
    if (there == nullptr) return {wanted};
    if (api::TreePtr merged = MergeAuthentication(there->tree(), wanted->root())) return {merged};
    return {};
  }

  // Publishes the server's address. On a shared store others do so at the same time; after a
  // conflict, what they wrote is taken into account.
  void Publish(std::function<void(Result<void>)> done, int attempt = 1) {
    constexpr int kMostAttempts = 10;
    std::vector<api::TreePtr> maps = ClusterInfo();
    for (api::TreePtr& each : Authentication()) maps.push_back(std::move(each));
    Put(std::move(maps), [this, done = std::move(done), attempt](const Result<void>& informed) {
      if (!informed.ok()) {
        const bool again = informed.error().code == ErrorCode::kConflict ||
                           informed.error().code == ErrorCode::kAlreadyExists;
        if (again && attempt < kMostAttempts) return Publish(done, attempt + 1);
        return done(informed);
      }
      // Other servers may have written the Service already, each with its own address.
      if (core.is_shared()) {
        return CreateMissing(OwnService(), [this, done](Result<void> made) {
          if (made.ok()) FollowServers();
          done(std::move(made));
        });
      }
      Put(OwnService(), [this, done](Result<void> put) {
        if (put.ok()) KeepOwnService();
        done(std::move(put));
      });
    });
  }

  // Recreates them if somebody deletes them.
  void KeepOwnService() {
    keep_timer = options.loop.RunAfter(kKeepInterval, [this] {
      if (stopping) return;
      std::vector<api::TreePtr> missing = OwnService();
      std::erase_if(missing, [this](const api::TreePtr& each) {
        const std::string_view kind = each->root()["kind"].str();
        return core.Find("", kind == "Service" ? "services" : "endpoints", "default/kubernetes") !=
               nullptr;
      });
      for (api::TreePtr& each : Authentication()) missing.push_back(std::move(each));
      Put(std::move(missing), [this](Result<void>) { KeepOwnService(); });
    });
  }

  // Creates missing objects of `wanted` one by one, then calls `done`. Roles and bindings of an
  // older release are completed.
  void CreateMissing(std::vector<api::TreePtr> wanted, std::function<void(Result<void>)> done) {
    if (wanted.empty()) return done(Ok());
    api::TreePtr next = std::move(wanted.back());
    wanted.pop_back();
    Request request = CreationOf(next);
    const std::string name(next->root()["metadata"]["name"].str());
    const std::string key =
        request.namespace_.empty() ? name : StrCat(request.namespace_, "/", name);
    const api::KindSchema& kind = *request.kind;
    if (kind.group == "rbac.authorization.k8s.io") {
      if (const api::ObjectPtr there = core.Find(kind.group, kind.plural, key)) {
        request.object = ReconcilePolicy(there->root(), next->root());
        if (request.object == nullptr) return CreateMissing(std::move(wanted), std::move(done));
        request.verb = Verb::kUpdate;
        request.name = name;
      }
    }
    core.Handle(std::move(request), [this, &kind, key, wanted = std::move(wanted),
                                     done = std::move(done)](Response response) mutable {
      // What another server has created in the meantime counts as created. A Service is refused
      // for its address before its name is looked at.
      if (response.failure && response.failure->code != 409 && !StartsWithout(*response.failure) &&
          core.Find(kind.group, kind.plural, key) == nullptr) {
        return done(api::ErrorFromStatus(*response.failure));
      }
      CreateMissing(std::move(wanted), std::move(done));
    });
  }

  Result<void> Listen() {
    net::TlsServerOptions tls;
    tls.source = options.pki.server_source();
    tls.client_ca_pem = options.pki.ca().certificate_pem;
    tls.proxy_ca_pem = options.front_proxies.ca_pem;
    ASSIGN_OR_RETURN(std::shared_ptr<const net::TlsContext> context, net::TlsContext::Server(tls));
    net::HttpServerOptions http;
    http.address = options.address;
    http.second_host = options.second_host;
    http.reuse_port = options.reuse_port;
    http.tls = std::move(context);
    http.limits.max_body_bytes = kMaxTakenBodyBytes;
    http.limits.max_unapproved_bytes = Frontend::kLargeBodyBytes;
    http.limits.body_memory = body_memory;
    for (std::size_t i = 0; i < options.http_loops; ++i) {
      threads.push_back(std::make_unique<LoopThread>(StrCat("http-", i)));
    }
    if (threads.empty()) MakeDoor(options.loop);
    for (const auto& thread : threads) {
      thread->RunSync([&] { MakeDoor(thread->loop()); });
    }
    std::vector<net::ServerGroup::Member> members;
    for (Door& door : doors) {
      Frontend::Options frontend = FrontendOptions(door.loop);
      frontend.aggregation_proxy = door.aggregation.get();
      for (const auto& [subresource, proxy] : door.by_subresource) {
        frontend.proxies[subresource] = proxy;
      }
      door.frontend = std::make_unique<Frontend>(std::move(frontend));
      members.push_back({door.loop, *door.frontend});
    }
    server = std::make_unique<net::ServerGroup>(options.loop, std::move(http), std::move(members));
    return server->Start();
  }

  // On `loop`.
  void MakeDoor(UvLoop& loop) {
    Door& door = doors.emplace_back(loop);
    door.aggregation = std::make_unique<AggregationProxy>(loop, front_proxy);
    for (const auto& [subresources, make] : proxies) {
      SubresourceProxy* made = door.proxies.emplace_back(make(loop)).get();
      for (const std::string& subresource : subresources) {
        door.by_subresource.emplace_back(subresource, made);
      }
    }
  }

  // Destroys everything on the HTTP loops, then the loops. Tasks posted to them from now on are
  // dropped by their destructors.
  void CloseDoors() {
    server.reset();
    for (Door& door : doors) {
      door.loop.Post(
          [gone = std::move(door.proxies), proxy = std::move(door.aggregation)]() mutable {
            gone.clear();
            proxy.reset();
          });
    }
    for (const auto& thread : threads) thread->Stop();
    doors.clear();
  }

  using Proxies = std::vector<std::unique_ptr<SubresourceProxy>>;
  // The objects of one HTTP loop.
  struct Door {
    explicit Door(UvLoop& own_loop) : loop(own_loop) {}
    UvLoop& loop;
    Proxies proxies;                                // live on `loop`
    std::unique_ptr<AggregationProxy> aggregation;  // the same
    std::vector<std::pair<std::string, SubresourceProxy*>> by_subresource;
    std::unique_ptr<Frontend> frontend;  // also used on the core's loop
  };

  // First, so that they outlive everything that posts to them.
  std::vector<std::unique_ptr<LoopThread>> threads;
  Options options;
  RbacAuthorizer rbac;
  PolicySet policies;
  MutatingPolicySet mutating_policies;
  NodeAuthorizer node_authorizer;
  Counter& allowed = options.metrics.GetCounter("authorization_attempts_total", kDecisions,
                                                {{"result", "allowed"}});
  Counter& denied = options.metrics.GetCounter("authorization_attempts_total", kDecisions,
                                               {{"result", "no-opinion"}});
  AuthorizerChain authorizer{{&node_authorizer, &rbac},
                             [this](bool yes) { (yes ? allowed : denied).Add(); }};
  Authenticator authenticator;
  std::unique_ptr<ServiceAccountTokens> tokens;
  AccessReviews reviews{authorizer, rbac,
                        [this](std::string_view token, const std::vector<std::string>& audiences,
                               std::vector<std::string>& meant_for) {
                          return ReviewToken(token, audiences, meant_for);
                        }};
  AnswererList answerers;
  HttpWebhookTransport webhook_transport{options.loop};
  WebhookAdmission webhooks{{.random = RealRandom(),
                             .transport = webhook_transport,
                             .metrics = &options.metrics,
                             .rbac = &rbac}};
  ConversionWebhooks conversion{
      {.random = RealRandom(), .transport = webhook_transport, .metrics = &options.metrics}};
  std::function<bool()> is_ready;
  bool is_started = false;
  TimerHandle keep_timer;
  std::optional<LivingServers> living;  // on a shared store
  bool putting_servers = false;
  bool is_asking_store = false;
  StoreMetrics store_metrics{options.metrics};
  WorkerPool workers{kWorkers, kMaxQueuedWork};
  const std::unique_ptr<Wakefulness> wakefulness =
      options.low_latency ? std::make_unique<Wakefulness>(options.loop) : nullptr;
  Core core;
  PolicyStatusKeeper policy_status{options.loop};
  const std::shared_ptr<net::CertificateSource> front_proxy = FrontProxy(options.pki);
  HttpBackendClient backends{options.loop, front_proxy};
  Aggregator aggregator{{.core = core,
                         .backends = backends,
                         .random = RealRandom(),
                         .metrics = &options.metrics,
                         .built_in = BuiltIn()}};
  EventExpiry event_expiry{core, ExpiryLimits(options.events, *options.store)};
  std::vector<std::pair<std::vector<std::string>, MakeProxy>> proxies;
  const std::shared_ptr<net::BodyMemory> body_memory =
      std::make_shared<net::BodyMemory>(kMaxBodyMemory, kMaxStrangerBodyMemory);
  std::list<Door> doors;
  std::unique_ptr<net::ServerGroup> server;
  bool stopping = false;
  std::set<std::string> named_unreadable;  // those with a metric
  Lifetime lifetime;
};

ApiServer::ApiServer(Options options) : impl_(std::make_unique<Impl>(std::move(options))) {}
ApiServer::~ApiServer() {
  impl_->CloseDoors();
  impl_->aggregator.Stop();
  if (impl_->tokens != nullptr) impl_->tokens->Detach();
  impl_->node_authorizer.Detach();
  impl_->rbac.Detach();
  impl_->policies.Detach();
  impl_->mutating_policies.Detach();
  impl_->webhooks.Detach();
  impl_->conversion.Detach();
}

void ApiServer::Start(std::function<void(Result<void>)> done) {
  if (Result<void> trusted = impl_->TrustProxies(); !trusted.ok()) {
    return done(trusted.error().Prefixed("front proxies"));
  }
  if (Result<void> ready = impl_->SetUpTokens(); !ready.ok()) {
    return done(ready.error().Prefixed("service account tokens"));
  }
  impl_->core.Start([this, done = std::move(done)](Result<void> loaded) {
    if (!loaded.ok()) return done(loaded);
    // Created from last to first: namespaces before their contents.
    std::vector<api::TreePtr> wanted = BootstrapPolicy();
    for (api::TreePtr& each : DelegatedAuthentication(
             impl_->options.pki.ca().certificate_pem,
             impl_->options.pki.front_proxy_ca().certificate_pem, impl_->options.front_proxies)) {
      wanted.push_back(std::move(each));
    }
    wanted.push_back(LegacyTokenTracking(impl_->options.loop.clock().Now()));
    for (api::TreePtr& each : JoinPolicy()) wanted.push_back(std::move(each));
    for (api::TreePtr& each : impl_->aggregator.OwnServices()) wanted.push_back(std::move(each));
    for (std::string_view name : kNamespaces) wanted.push_back(NamespaceTree(name));
    for (const SystemPriority& each : kPriorities) wanted.push_back(PriorityTree(each));
    impl_->CreateMissing(std::move(wanted), [this, done](Result<void> made) {
      if (!made.ok()) return done(made.error().Prefixed("set up the cluster"));
      // Clients may rely on these objects, so they must be durable.
      impl_->core.WhenDurable(impl_->core.revision(), [this, done](std::optional<Failure> failure) {
        if (failure) return done(api::ErrorFromStatus(*failure).Prefixed("set up the cluster"));
        impl_->is_started = true;
        impl_->event_expiry.Start();
        impl_->aggregator.Start();
        impl_->policy_status.Start(impl_->core);
        Result<void> listening = impl_->Listen();
        if (!listening.ok()) return done(std::move(listening));
        kLog.Info("serving", {{"address", impl_->options.address.host}, {"port", port()}});
        impl_->Publish(done);
      });
    });
  });
}

void ApiServer::Stop(std::function<void()> done) {
  if (impl_->stopping) return done();
  impl_->stopping = true;
  impl_->keep_timer.reset();
  impl_->aggregator.Stop();
  auto stop_store = [this, done = std::move(done)] {
    if (!impl_->living) return impl_->options.store->Stop(done);
    impl_->living->Stop([this, done] { impl_->options.store->Stop(done); });
  };
  if (impl_->server == nullptr) return stop_store();
  impl_->server->Stop(std::move(stop_store));
}

Core& ApiServer::core() {
  return impl_->core;
}

std::uint16_t ApiServer::port() const {
  return impl_->server == nullptr ? 0 : impl_->server->port();
}

void ApiServer::AddProxy(std::vector<std::string> subresources, MakeProxy make) {
  impl_->proxies.emplace_back(std::move(subresources), std::move(make));
}

std::size_t ApiServer::DefaultHttpLoops(std::size_t processors) {
  return std::clamp<std::size_t>(processors / 2, 1, 4);
}

void ApiServer::SetReadyCheck(std::function<bool()> is_ready) {
  impl_->is_ready = std::move(is_ready);
}

}  // namespace drakkar::apiserver
