#include "apiserver/aggregation/aggregator.h"

#include <algorithm>
#include <set>

#include "api/json/reader.h"
#include "api/meta/time.h"
#include "api/scheme/scheme.h"
#include "api/tree/draft.h"
#include "apiserver/custom/definition.h"
#include "apiserver/request/identity_headers.h"
#include "apiserver/webhook/endpoint.h"
#include "base/text/text.h"
#include "telemetry/log/log.h"
#include "telemetry/metrics/metrics.h"

namespace drakkar::apiserver {
namespace {

using api::Value;

constexpr Logger kLog("aggregator");
constexpr std::string_view kDiscoveryGroup = "discovery.k8s.io";
constexpr std::string_view kSlices = "endpointslices";
constexpr std::string_view kServiceLabel = "kubernetes.io/service-name";
constexpr Duration kFirstRetry = std::chrono::seconds(1);
// Definitions often change in groups.
constexpr Duration kReconcileDelay = std::chrono::milliseconds(100);
constexpr Duration kReconcileRetry = std::chrono::seconds(5);
constexpr std::size_t kMaxShownBytes = 512;  // of an error
constexpr char kUnavailable[] =
    "Gauge of APIServices which are marked as unavailable broken down by APIService name.";

UserInfo Self() {
  return {.name = "system:kube-aggregator", .groups = {"system:masters"}};
}

UserInfo Writer() {
  return {.name = "system:apiserver", .groups = {"system:masters"}};
}

const api::KindSchema& Kind() {
  static const api::KindSchema& kind =
      *api::FindKindByApiVersion("apiregistration.k8s.io/v1", "APIService");
  return kind;
}

Request RequestFor(Verb verb, std::string name) {
  Request request;
  request.user = Writer();
  request.verb = verb;
  request.kind = &Kind();
  request.name = std::move(name);
  return request;
}

Value AvailableOf(Value object) {
  for (const Value each : object["status"]["conditions"].elements()) {
    if (each["type"].str() == "Available") return each;
  }
  return Value();
}

// Whether a slice has a ready endpoint, and the port.
bool HasReadyEndpoint(Value slice, std::string_view port_name) {
  const auto is_ready = [](Value endpoint) {
    return endpoint["conditions"]["ready"].boolean(true);
  };
  bool ready = false;
  for (const Value each : slice["endpoints"].elements()) ready = ready || is_ready(each);
  if (!ready) return false;
  for (const Value each : slice["ports"].elements()) {
    if (each["name"].str() == port_name && each["port"].has_value()) return true;
  }
  return false;
}

// The URL of a group version's document in the index at /openapi/v3; "" if there is none, or if it
// points elsewhere.
std::string OpenApiPath(Value index, std::string_view group, std::string_view version) {
  const Value entry = index["paths"].Entry(StrCat("apis/", group, "/", version));
  const std::string_view path = entry["serverRelativeURL"].str();
  return path.starts_with("/openapi/v3/") ? std::string(path) : std::string();
}

}  // namespace

// One APIService with a Service.
struct Aggregator::Service {
  explicit Service(Random& random)
      : backoff({.initial = kFirstRetry, .max = kCheckInterval, .jitter = 0.1}, &random) {}

  api::ObjectPtr object;
  std::shared_ptr<AggregatedApi> state;  // never changed once published: replaced by a copy
  bool is_asking = false;
  bool is_dirty = false;          // something changed while the check was in flight
  std::uint64_t incarnation = 0;  // of UID and spec; answers for an older state are dropped
  std::string open_api_path;      // of the document in `state`
  std::optional<MonotonicTime> asked_at;
  Backoff backoff;
  TimerHandle timer;
  bool is_known = false;  // the condition has been decided at least once
};

Aggregator::Aggregator(Options options) : options_(std::move(options)) {}
Aggregator::~Aggregator() = default;

std::vector<api::TreePtr> Aggregator::OwnServices() const {
  std::vector<api::TreePtr> wanted;
  for (const ServedVersion& each : options_.built_in) {
    if (each.group != kRegistrationGroup) wanted.push_back(LocalApiService(each, kManagedOnStart));
  }
  return wanted;
}

void Aggregator::Start() {
  is_running_ = true;
  Follow(kRegistrationGroup, kApiServices, &Aggregator::SeeApiService);
  Follow("", "services", &Aggregator::SeeService);
  Follow(kDiscoveryGroup, kSlices, &Aggregator::SeeSlice);
  Follow("", "endpoints", &Aggregator::SeeService);
  Follow("apiextensions.k8s.io", "customresourcedefinitions", &Aggregator::SeeDefinition);
  std::set<std::string> present;
  if (const WatchCache* cache = options_.core.FindCache(kRegistrationGroup, kApiServices)) {
    for (const auto& [name, object] : cache->objects()) {
      present.insert(name);
      Put(object);
    }
  }
  std::erase_if(services_, [&](const auto& each) { return !present.contains(each.first); });
  Publish();
  ReconcileSoon();
}

void Aggregator::Stop() {
  is_running_ = false;
  watchers_.clear();
  services_.clear();
  reconcile_timer_.reset();
}

void Aggregator::Follow(std::string_view group, std::string_view plural,
                        void (Aggregator::*see)(const Change& change)) {
  const WatchCache* cache = options_.core.FindCache(group, plural);
  if (cache == nullptr) return;
  watchers_.push_back(cache->StartFeed(one_, storage::Mark::kApplied,
                                       {.on_changes =
                                            [this, see](const std::vector<Change>& changes) {
                                              for (const Change& each : changes) (this->*see)(each);
                                            },
                                        // The caches were reloaded.
                                        .on_closed =
                                            [this](const Error&) {
                                              options_.core.loop().Post(
                                                  lifetime_.Guard([this] { Restart(); }));
                                            }}));
}

void Aggregator::Restart() {
  if (!is_running_) return;
  watchers_.clear();
  Start();
}

void Aggregator::SeeApiService(const Change& change) {
  if (change.type != ChangeType::kDeleted) return Put(change.object);
  const std::string name(change.object->name());
  if (options_.metrics != nullptr && services_.contains(name)) {
    options_.metrics->GetGauge("aggregator_unavailable_apiservice", kUnavailable, {{"name", name}})
        .Set(0);
  }
  if (services_.erase(name) > 0) Publish();
  // Somebody may have removed one of our own APIServices.
  if (IsAutomanaged(change.object->root())) ReconcileSoon();
}

void Aggregator::SeeService(const Change& change) {
  MarkService(change.object->namespace_(), change.object->name());
}

void Aggregator::SeeSlice(const Change& change) {
  const Value metadata = change.object->root()["metadata"];
  MarkService(metadata["namespace"].str(), metadata["labels"].Entry(kServiceLabel).str());
}

void Aggregator::SeeDefinition(const Change&) {
  ReconcileSoon();
}

void Aggregator::MarkService(std::string_view namespace_, std::string_view name) {
  for (const auto& [own, service] : services_) {
    const AggregatedApi& api = *service->state;
    if (api.service_namespace == namespace_ && api.service_name == name) CheckSoon(own);
  }
}

void Aggregator::Put(const api::ObjectPtr& object) {
  const std::string name(object->name());
  std::shared_ptr<AggregatedApi> read = ReadApiService(object->root());
  const auto found = services_.find(name);
  if (read == nullptr) {
    if (found == services_.end()) return;
    services_.erase(found);
    return Publish();
  }
  if (found == services_.end()) {
    if (services_.size() >= kMaxServices) {
      kLog.Warning("ignored an APIService: there are too many", {{"name", name}});
      return;
    }
    auto made = std::make_unique<Service>(options_.random);
    made->object = object;
    // Use the result of another server until this one has checked.
    made->state = std::move(read);
    services_.emplace(name, std::move(made));
    CheckSoon(name);
    return Publish();
  }
  Service& service = *found->second;
  const bool is_same = service.object->uid() == object->uid() &&
                       api::Equal(service.object->root()["spec"], object->root()["spec"]);
  service.object = object;
  if (is_same) {
    // Only the status changed, perhaps by our own write.
    if (read->is_available != service.state->is_available) {
      // Another server of the cluster may disagree. Do not answer its write immediately, or both
      // would keep writing.
      if (service.is_known) CheckSoon(name, kFirstRetry);
    }
    return;
  }
  ++service.incarnation;
  service.asked_at.reset();
  service.is_known = false;
  service.open_api_path.clear();
  service.state = std::move(read);
  service.backoff.Reset();
  CheckSoon(name);
  Publish();
}

void Aggregator::CheckSoon(const std::string& name, Duration wait) {
  const auto found = services_.find(name);
  if (found == services_.end()) return;
  Service& service = *found->second;
  if (service.is_asking) {
    service.is_dirty = true;
    return;
  }
  service.timer =
      options_.core.loop().RunAfter(wait, lifetime_.Guard([this, name] { Check(name); }));
}

void Aggregator::Check(const std::string& name) {
  const auto found = services_.find(name);
  if (found == services_.end() || found->second->is_asking) return;
  Service& service = *found->second;
  service.is_dirty = false;
  if (const std::optional<Verdict> verdict = Judge(*service.state)) {
    return Conclude(name, *verdict);
  }
  const MonotonicTime now = options_.core.loop().clock().Monotonic();
  if (service.asked_at && now - *service.asked_at < kMinInterval) {
    return CheckSoon(name, *service.asked_at + kMinInterval - now);
  }
  service.asked_at = now;
  service.is_asking = true;
  Ask(name, 1);
}

std::optional<Aggregator::Verdict> Aggregator::Judge(const AggregatedApi& api) const {
  const Core& core = options_.core;
  const std::string where =
      StrCat("service/", api.service_name, " in ", Quote(api.service_namespace));
  const auto no = [](std::string_view reason, std::string message) {
    return Verdict{false, reason, std::move(message)};
  };
  if (!api.error.empty()) return no("FailedDiscoveryCheck", api.error);
  const api::ObjectPtr service =
      core.Find("", "services", StrCat(api.service_namespace, "/", api.service_name));
  if (service == nullptr) return no("ServiceNotFound", where + " is not present");
  const Value spec = service->root()["spec"];
  if (spec["type"].str("ClusterIP") != "ClusterIP") return std::nullopt;
  std::optional<std::string> port_name;
  for (const Value each : spec["ports"].elements()) {
    if (each["port"].integer() == api.port && !port_name) port_name = each["name"].str();
  }
  if (!port_name) {
    return no("ServicePortError", StrCat(where, " is not listening on port ", api.port));
  }
  const WatchCache* slices = core.FindCache(kDiscoveryGroup, kSlices);
  bool has_slices = false;
  bool is_ready = false;
  if (slices != nullptr) {
    const std::string prefix = api.service_namespace + "/";
    for (auto each = slices->objects().lower_bound(prefix);
         each != slices->objects().end() && each->first.starts_with(prefix); ++each) {
      const Value slice = each->second->root();
      if (slice["metadata"]["labels"].Entry(kServiceLabel).str() != api.service_name) continue;
      has_slices = true;
      is_ready = is_ready || HasReadyEndpoint(slice, *port_name);
    }
  }
  if (!has_slices) {
    // Endpoints that someone wrote by hand, before a controller mirrors them.
    if (Resolve(api).ok()) return std::nullopt;
    return no("EndpointsNotFound", StrCat("cannot find endpointslices for ", where));
  }
  if (!is_ready) {
    return no("MissingEndpoints", StrCat("endpointslices for ", where,
                                         " have no addresses with port name ", Quote(*port_name)));
  }
  return std::nullopt;
}

Result<std::string> Aggregator::Resolve(const AggregatedApi& api) const {
  return ResolveService(options_.core, api.service_namespace, api.service_name, api.port,
                        options_.random);
}

BackendClient::Call Aggregator::CallFor(const AggregatedApi& api, const std::string& host,
                                        std::string_view path) const {
  BackendClient::Call call;
  call.url = StrCat("https://", host, path);
  call.server_name = api.ServerName();
  call.ca_pem = api.ca_pem;
  call.insecure = api.insecure;
  call.timeout = kCheckTimeout;
  call.max_bytes = kMaxDiscoveryBytes;
  call.headers.Add("Host", StrCat(api.ServerName(), ":", api.port));
  call.headers.Add("Accept", "application/json");
  call.headers.Add("User-Agent", "kube-aggregator");
  AddIdentity(Self(), call.headers);
  return call;
}

void Aggregator::Ask(const std::string& name, int attempt) {
  const AggregatedApi& api = *services_.at(name)->state;
  const Result<std::string> host = Resolve(api);
  if (!host.ok()) {
    return OnAnswer(name, StrCat("https://", api.ServerName(), ":", api.port), kAttempts,
                    host.error());
  }
  BackendClient::Call call = CallFor(api, *host, StrCat("/apis/", api.group, "/", api.version));
  const std::string url = call.url;
  const std::uint64_t incarnation = services_.at(name)->incarnation;
  options_.backends.Get(
      std::move(call),
      lifetime_.Guard([this, name, url, attempt, incarnation](Result<net::Response> response) {
        const auto found = services_.find(name);
        if (found == services_.end()) return;
        if (found->second->incarnation != incarnation) {
          // The answer is about a server that the APIService no longer points to.
          found->second->is_asking = false;
          return CheckSoon(name);
        }
        OnAnswer(name, url, attempt, response);
      }));
}

void Aggregator::OnAnswer(const std::string& name, const std::string& url, int attempt,
                          const Result<net::Response>& response) {
  Service& service = *services_.at(name);
  std::string problem;
  if (!response.ok()) {
    problem = response.error().message;
  } else if (response->status < 200 || response->status >= 300) {
    problem = StrCat("bad status from ", url, ": ", response->status);
  }
  if (!problem.empty()) {
    if (attempt < kAttempts) return Ask(name, attempt + 1);
    return Conclude(name, {false, "FailedDiscoveryCheck",
                           StrCat("failing or missing response from ", url, ": ",
                                  problem.substr(0, kMaxShownBytes))});
  }
  auto next = std::make_shared<AggregatedApi>(*service.state);
  const Result<api::TreePtr> list = api::ParseJson(response->body, {.refuse_duplicates = false});
  api::TreePtr resources =
      list.ok() ? ResourcesOfList((*list)->root(), next->group, next->version) : nullptr;
  next->is_stale = resources == nullptr;
  const bool is_new =
      resources != nullptr &&
      (next->resources == nullptr || !api::Equal(resources->root(), next->resources->root()));
  if (is_new) next->resources = std::move(resources);
  if (is_new || next->is_stale != service.state->is_stale) {
    service.state = std::move(next);
    Publish();
  }
  Conclude(name, {true, "Passed", "all checks passed"});
  AskOpenApi(name);
}

void Aggregator::AskOpenApi(const std::string& name) {
  const auto found = services_.find(name);
  if (found == services_.end()) return;
  const std::uint64_t incarnation = found->second->incarnation;
  const AggregatedApi& api = *found->second->state;
  const Result<std::string> host = Resolve(api);
  if (!host.ok()) return;
  // On errors, keep the current document: not every server has such documents.
  const auto find = [this, name, incarnation]() -> Service* {
    const auto each = services_.find(name);
    return each == services_.end() || each->second->incarnation != incarnation ? nullptr
                                                                               : each->second.get();
  };
  // The next check fetches it again.
  if (open_api_calls_ >= kMaxOpenApiCalls) return;
  ++open_api_calls_;
  BackendClient::Call index = CallFor(api, *host, "/openapi/v3");
  options_.backends.Get(
      std::move(index),
      lifetime_.Guard([this, host = *host, find](const Result<net::Response>& response) {
        --open_api_calls_;
        Service* service = find();
        if (service == nullptr || !response.ok() || response->status != 200) return;
        const Result<api::TreePtr> read =
            api::ParseJson(response->body, {.refuse_duplicates = false});
        if (!read.ok()) return;
        const std::string path =
            OpenApiPath((*read)->root(), service->state->group, service->state->version);
        // The path contains a hash of the document.
        if (path.empty() || path == service->open_api_path) return;
        BackendClient::Call document = CallFor(*service->state, host, path);
        document.timeout = kDocumentTimeout;
        document.max_bytes = kMaxOpenApiBytes;
        ++open_api_calls_;
        options_.backends.Get(std::move(document),
                              lifetime_.Guard([this, find, path](Result<net::Response> answer) {
                                --open_api_calls_;
                                Service* asked = find();
                                if (asked == nullptr || !answer.ok() || answer->status != 200)
                                  return;
                                OnOpenApi(*asked, path, std::move(answer->body));
                              }));
      }));
}

std::size_t Aggregator::open_api_bytes() const {
  std::size_t bytes = 0;
  for (const auto& [name, service] : services_) {
    if (service->state->open_api != nullptr) bytes += service->state->open_api->size();
  }
  return bytes;
}

void Aggregator::OnOpenApi(Service& service, const std::string& path, std::string body) {
  if (path.find("hash=") != std::string::npos) service.open_api_path = path;
  const net::Segment& before = service.state->open_api;
  if (before != nullptr && *before == body) return;
  const std::size_t others = open_api_bytes() - (before == nullptr ? 0 : before->size());
  if (others + body.size() > kMaxOpenApiTotalBytes) {
    kLog.Warning("ignored an OpenAPI document: those of all APIServices are too large",
                 {{"name", service.state->name}, {"bytes", body.size()}});
    return;
  }
  auto next = std::make_shared<AggregatedApi>(*service.state);
  next->open_api = net::MakeSegment(std::move(body));
  service.state = std::move(next);
  Publish();
}

void Aggregator::Conclude(const std::string& name, const Verdict& verdict) {
  Service& service = *services_.at(name);
  service.is_asking = false;
  const bool first = !std::exchange(service.is_known, true);
  if (first || service.state->is_available != verdict.is_available ||
      (!verdict.is_available && !service.state->is_stale)) {
    if (service.state->is_available != verdict.is_available || first) {
      kLog.Info("APIService availability changed", {{"name", name},
                                                    {"available", verdict.is_available},
                                                    {"reason", verdict.reason},
                                                    {"message", verdict.message}});
    }
    auto next = std::make_shared<AggregatedApi>(*service.state);
    next->is_available = verdict.is_available;
    if (!verdict.is_available) next->is_stale = true;
    service.state = std::move(next);
    Publish();
  }
  if (options_.metrics != nullptr) {
    options_.metrics->GetGauge("aggregator_unavailable_apiservice", kUnavailable, {{"name", name}})
        .Set(verdict.is_available ? 0 : 1);
  }
  WriteCondition(name, verdict);
  const auto found = services_.find(name);
  if (found == services_.end() || found->second->is_asking) return;
  Service& still = *found->second;
  if (still.is_dirty) return CheckSoon(name);
  if (verdict.is_available) still.backoff.Reset();
  CheckSoon(name, verdict.is_available ? kCheckInterval : still.backoff.Next());
}

void Aggregator::WriteCondition(const std::string& name, const Verdict& verdict) {
  const api::ObjectPtr object = services_.at(name)->object;
  const Value before = AvailableOf(object->root());
  const std::string_view status = verdict.is_available ? "True" : "False";
  if (before["status"].str() == status && before["reason"].str() == verdict.reason &&
      before["message"].str() == verdict.message) {
    return;
  }
  api::Draft condition(
      {{"type", "Available"},
       {"status", status},
       {"lastTransitionTime", before["status"].str() == status
                                  ? std::string(before["lastTransitionTime"].str())
                                  : api::FormatTime(options_.core.loop().clock().Now())},
       {"reason", verdict.reason},
       {"message", verdict.message}});
  api::Draft changed(object->tree());
  bool replaced = false;
  if (changed["status"]["conditions"].is_array()) {
    for (api::Draft& each : changed["status"]["conditions"].MutableElements()) {
      if (each["type"].str() != "Available") continue;
      each = condition;
      replaced = true;
    }
  }
  if (!replaced) changed["status"]["conditions"].Append(std::move(condition));
  Request request = RequestFor(Verb::kUpdate, name);
  request.subresource = "status";
  request.object = changed.Freeze();
  options_.core.Handle(std::move(request), lifetime_.Guard([this, name](const Response& response) {
    // Somebody else changed it; its new state will be checked anyway.
    if (response.failure && response.failure->code != 409 && response.failure->code != 404) {
      kLog.Warning("could not write the condition of an APIService",
                   {{"name", name}, {"error", response.failure->message}});
      CheckSoon(name, kFirstRetry);
    }
  }));
}

void Aggregator::Publish() {
  AggregatedApis::Map map;
  for (const auto& [name, service] : services_) {
    const AggregatedApi& api = *service->state;
    // Built-in groups are always served locally.
    const bool is_ours = std::ranges::any_of(
        options_.built_in, [&](const ServedVersion& each) { return each.group == api.group; });
    if (!is_ours) map.emplace(std::pair(api.group, api.version), service->state);
  }
  board_.Publish(std::make_shared<const AggregatedApis>(std::move(map)));
}

void Aggregator::ReconcileSoon() {
  reconcile_timer_ =
      options_.core.loop().RunAfter(kReconcileDelay, lifetime_.Guard([this] { Reconcile(); }));
}

void Aggregator::Reconcile() {
  if (!is_running_) return;
  if (is_reconciling_) {
    reconcile_again_ = true;
    return;
  }
  std::map<std::string, std::pair<ServedVersion, std::string_view>> wanted;
  for (const ServedVersion& each : options_.built_in) {
    if (each.group == kRegistrationGroup) continue;
    wanted.emplace(ApiServiceName(each.group, each.version), std::pair(each, kManagedOnStart));
  }
  const CustomKindsPtr custom = options_.core.custom_kinds().current();
  for (const api::KindSchema* kind : custom->served()) {
    wanted.emplace(ApiServiceName(kind->group, kind->version),
                   std::pair(ServedVersion{std::string(kind->group), std::string(kind->version)},
                             kManagedAlways));
  }
  const WatchCache* cache = options_.core.FindCache(kRegistrationGroup, kApiServices);
  if (cache == nullptr) return;
  std::vector<Request> requests;
  for (const auto& [name, object] : cache->objects()) {
    if (wanted.erase(name) > 0 || !IsAutomanaged(object->root())) continue;
    if (object->root()["spec"]["service"].has_value()) continue;
    Request request = RequestFor(Verb::kDelete, name);
    request.precondition_uid = object->uid();
    requests.push_back(std::move(request));
  }
  for (const auto& [name, served] : wanted) {
    Request request = RequestFor(Verb::kCreate, "");
    request.object = LocalApiService(served.first, served.second);
    requests.push_back(std::move(request));
  }
  if (requests.empty()) return;
  is_reconciling_ = true;
  Register(std::move(requests));
}

void Aggregator::Register(std::vector<Request> requests) {
  if (requests.empty()) {
    is_reconciling_ = false;
    if (std::exchange(reconcile_again_, false)) ReconcileSoon();
    return;
  }
  Request next = std::move(requests.back());
  requests.pop_back();
  options_.core.Handle(std::move(next), lifetime_.Guard([this, requests = std::move(requests)](
                                                            const Response& response) mutable {
    if (response.failure && response.failure->code != 404 && response.failure->code != 409) {
      kLog.Warning("could not register an APIService", {{"error", response.failure->message}});
      is_reconciling_ = false;
      reconcile_timer_ =
          options_.core.loop().RunAfter(kReconcileRetry, lifetime_.Guard([this] { Reconcile(); }));
      return;
    }
    // Posted, so that many of them do not nest, and other tasks can run in between.
    options_.core.loop().Post(lifetime_.Guard(
        [this, requests = std::move(requests)]() mutable { Register(std::move(requests)); }));
  }));
}

}  // namespace drakkar::apiserver
