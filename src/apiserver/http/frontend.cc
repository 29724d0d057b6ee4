#include "apiserver/http/frontend.h"

#include <algorithm>

#include "absl/hash/hash.h"
#include "api/scheme/scheme.h"
#include "apiserver/auth/impersonation.h"
#include "apiserver/conversion/skip_operations_form.h"
#include "apiserver/custom/definition.h"
#include "apiserver/http/aggregation_proxy.h"
#include "apiserver/http/counted_writer.h"
#include "apiserver/http/discovery.h"
#include "apiserver/http/encode.h"
#include "apiserver/http/exchange.h"
#include "apiserver/http/openapi_protobuf.h"
#include "apiserver/http/request_body.h"
#include "apiserver/http/table.h"
#include "apiserver/http/watch_stream.h"
#include "apiserver/http/websocket_token.h"
#include "apiserver/http/websocket_watch.h"
#include "apiserver/registry/custom_strategies.h"
#include "apiserver/rest/decode.h"
#include "base/env/random.h"
#include "base/exec/worker_pool.h"
#include "base/text/text.h"
#include "client/fence.h"
#include "net/compress/gzip.h"
#include "telemetry/metrics/metrics.h"

namespace drakkar::apiserver {
namespace {

// Kinds that are never read, such as reviews, are not shown as tables.
bool HasTable(const api::KindSchema& kind) {
  return std::ranges::any_of(kind.verbs,
                             [](std::string_view verb) { return verb == "get" || verb == "list"; });
}

// Smaller responses are sent faster uncompressed. The same limit as in Kubernetes.
constexpr std::size_t kMinCompressedBytes = 128 << 10;
constexpr std::int64_t kMaxTimeoutSeconds = 86'400;
// As in Kubernetes: the default duration of a watch is between this and twice as long.
constexpr std::chrono::minutes kMinWatchLifetime{30};

constexpr std::size_t kMaxKnownTokens = 4'096;

// A hash of the credentials that decide who sent the request: the token, or the certificate.
std::size_t HashOfToken(const net::ServerRequest& request) {
  const std::string_view token = request.headers.Get("authorization");
  const net::ConnectionInfo* connection = request.connection.get();
  if (connection != nullptr && connection->proxy) {
    // Its headers say who it is, and which of them is up to the authenticator.
    std::string text;
    for (const auto& [name, value] : request.headers) text += StrCat(name, "\n", value, "\n");
    return absl::HashOf(std::string_view(text));
  }
  if (connection != nullptr && connection->peer) {
    std::string text = connection->peer->common_name;
    for (const std::string& group : connection->peer->organizations) text += "\n" + group;
    return absl::HashOf(std::string_view(text));
  }
  return absl::HashOf(token);
}

// Warning headers as in RFC 7234. Characters that would break the header are replaced.
void AddWarnings(net::Headers& headers, const std::vector<std::string>& warnings) {
  for (const std::string& warning : warnings) {
    std::string escaped;
    for (char c : net::CleanHeaderValue(warning)) {
      if (c == '"' || c == '\\') escaped += '\\';
      escaped += c;
    }
    headers.Add("Warning", StrCat("299 - \"", escaped, "\""));
  }
}

}  // namespace

Duration Frontend::RandomWatchLifetime() {
  return std::chrono::duration_cast<Duration>(kMinWatchLifetime * (1 + RealRandom().Fraction()));
}

Frontend::Frontend(Options options)
    : options_(std::move(options)),
      loop_(options_.loop == nullptr ? options_.core.loop() : *options_.loop),
      bridge_(loop_, options_.core.loop()),
      reads_in_progress_(std::make_shared<FlowControl>(options_.reads)),
      writes_in_progress_(std::make_shared<FlowControl>(options_.writes)),
      request_metrics_(options_.metrics),
      watch_events_(loop_.clock(), options_.metrics),
      feed_(options_.core, bridge_, [this] { return Usage(); }),
      reads_(options_.core) {}

Frontend::~Frontend() {
  bridge_.Close();
}

void Frontend::Handle(net::ServerRequest given, std::shared_ptr<net::ResponseWriter> writer) {
  ExchangePtr exchange = bridge_.Share(std::make_unique<Exchange>());
  exchange->request = std::move(given);
  const net::ServerRequest& request = exchange->request;
  exchange->writer = std::move(writer);
  exchange->begun = loop_.clock().Monotonic();
  exchange->mutating = request.method != net::Method::kGet && request.method != net::Method::kHead;
  request_metrics_.Began(exchange->mutating);
  if (std::optional<Failure> failure = TakeWebSocketToken(exchange->request.headers)) {
    return Fail(*exchange, *failure);
  }
  if (AnswerFromCache(*exchange)) return request_metrics_.CountLogin(/*known=*/true);
  exchange->info = ParseRequestPath(request.path);
  exchange->aggregated = FindAggregated(exchange->info, request.path);
  if (exchange->aggregated == nullptr) FindCustomKind(exchange->info);
  if (request.body.size() > kMaxBodyBytes) {
    return Fail(*exchange, api::StatusRequestEntityTooLarge(StrCat("limit is ", kMaxBodyBytes)));
  }
  if (!request.query().ok()) {
    return Fail(*exchange, api::StatusBadRequest(request.query().error().message));
  }
  const net::Query& query = *request.query();
  const bool watch =
      exchange->info.is_resource && VerbOf(request.method, exchange->info, query) == Verb::kWatch;
  // Plain text and discovery ignore the Accept header.
  if (std::optional<Failure> failure =
          NegotiateAccept(request.headers.Get("accept"), watch, exchange->negotiated);
      failure && exchange->info.is_resource && exchange->aggregated == nullptr &&
      !IsProxyPath(exchange->info)) {
    return Fail(*exchange, *failure);
  }
  if (exchange->negotiated.shape == Shape::kTable && exchange->info.is_resource &&
      exchange->info.kind != nullptr && !IsProxyPath(exchange->info) &&
      !HasTable(*exchange->info.kind)) {
    return Fail(*exchange, api::StatusNotAcceptable(
                               "only the following media types are accepted: application/json, "
                               "application/yaml, application/vnd.kubernetes.protobuf"));
  }
  exchange->accepts_gzip = AcceptsGzip(request.headers.Get("accept-encoding"));
  exchange->include_object = query.Get("includeObject");
  exchange->negotiated.pretty = IsTrueParameter(query.Find("pretty"));
  exchange->identify =
      options_.authenticator.NeedsToken(request) || AsksToImpersonate(request.headers);
  if (exchange->identify) exchange->token_hash = HashOfToken(request);
  if (!exchange->identify) {
    std::optional<UserInfo> user = options_.authenticator.Authenticate(request);
    request_metrics_.CountLogin(user.has_value());
    if (!user) return Fail(*exchange, api::StatusUnauthorized("Unauthorized"));
    exchange->user = std::move(*user);
    options_.authenticator.RemoveIdentityHeaders(exchange->request.headers);
  }
  Admit(std::move(exchange));
}

void Frontend::Admit(ExchangePtr exchange) {
  // Probes must be answered when nothing else is.
  if (!exchange->info.is_resource && IsHealthPath(exchange->request.path)) {
    return Start(std::move(exchange));
  }
  FlowControl& control = exchange->mutating ? *writes_in_progress_ : *reads_in_progress_;
  const auto [user, level] = FlowOf(*exchange);
  if (level == FlowControl::Level::kExempt) return Start(std::move(exchange));
  const bool entered = control.Enter(std::string(user), level,
                                     bridge_.Guard([this, exchange](FlowControl::Ticket ticket) {
                                       exchange->ticket = std::move(ticket);
                                       Start(exchange);
                                     }));
  if (!entered) {
    Fail(*exchange, api::StatusTooManyRequests(StrCat("too many requests of ", user,
                                                      " are waiting, please try again later"),
                                               /*retry_after_seconds=*/1));
  }
}

std::pair<std::string_view, FlowControl::Level> Frontend::FlowOf(const Exchange& exchange) const {
  if (exchange.identify) {
    const auto known = known_tokens_.find(exchange.token_hash);
    if (known == known_tokens_.end()) return {"unidentified callers", FlowControl::Level::kOther};
    return {known->second.user, known->second.level};
  }
  return {exchange.user.name, FlowControl::LevelOf(exchange.user)};
}

void Frontend::RememberToken(const Exchange& exchange) {
  if (!exchange.is_identified) return;
  if (exchange.request.connection != nullptr) {
    exchange.request.connection->is_authenticated = true;
  }
  if (known_tokens_.contains(exchange.token_hash)) return;
  if (known_tokens_.size() >= kMaxKnownTokens) known_tokens_.clear();
  known_tokens_[exchange.token_hash] = {exchange.token_user, exchange.token_level};
}

void Frontend::Start(ExchangePtr exchange) {
  if (exchange->aggregated != nullptr) {
    ReadAggregated(*exchange);
  } else if (exchange->info.is_resource) {
    ReadResource(*exchange);
  }
  if (!exchange->identify) {
    if (exchange->refusal) return Fail(*exchange, *exchange->refusal);
    // The feed asks the core itself.
    if (exchange->watch != nullptr) return Return(*exchange);
    // Tables depend on other objects and on the time.
    if (exchange->aggregated == nullptr && exchange->verb == Verb::kGet &&
        exchange->info.subresource.empty() && exchange->info.is_resource &&
        !exchange->read_key.empty() && exchange->negotiated.shape != Shape::kTable) {
      exchange->stamp = reads_.StampOf(exchange->info);
    }
  }
  bridge_.ToCore([this, exchange = std::move(exchange)]() mutable { OnCore(std::move(exchange)); });
}

AggregatedApiPtr Frontend::FindAggregated(const RequestInfo& info, std::string_view path) const {
  if (options_.aggregation == nullptr || info.kind != nullptr) return nullptr;
  return options_.aggregation->current()->FindByPath(path);
}

void Frontend::ReadAggregated(Exchange& exchange) {
  if (!exchange.info.is_resource) return;
  const std::optional<Verb> verb =
      VerbOf(exchange.request.method, exchange.info, *exchange.request.query());
  if (!verb) {
    exchange.refusal =
        api::StatusMethodNotSupported({exchange.info.group, exchange.info.resource},
                                      ToLower(net::MethodName(exchange.request.method)));
    return;
  }
  exchange.verb = *verb;
  exchange.verb_name = VerbName(*verb);
  if (!exchange.identify) exchange.asked.user = std::move(exchange.user);
}

void Frontend::FindCustomKind(RequestInfo& info) const {
  if (!info.is_resource || info.kind != nullptr) return;
  info.kind =
      options_.core.custom_kinds().current()->FindResource(info.group, info.version, info.resource);
}

std::shared_ptr<const std::string> Frontend::FindDiscoveryDocument(std::string_view path,
                                                                   bool aggregated) {
  CustomKindsPtr kinds = options_.core.custom_kinds().current();
  AggregatedApisPtr apis =
      options_.aggregation == nullptr ? nullptr : options_.aggregation->current();
  if (kinds->served().empty() && (apis == nullptr || apis->empty())) {
    return FindDiscovery(path, aggregated);
  }
  if (discovery_ == nullptr || kinds != discovered_ || apis != discovered_apis_) {
    discovery_ = std::make_unique<const Discovery>(DiscoveryOptions{}, kinds->served(), apis.get(),
                                                   discovery_.get());
    discovered_ = std::move(kinds);
    discovered_apis_ = std::move(apis);
  }
  return discovery_->Find(path, aggregated);
}

void Frontend::ReadResource(Exchange& exchange) {
  const RequestInfo& info = exchange.info;
  const net::ServerRequest& request = exchange.request;
  if (info.kind == nullptr) {
    exchange.refusal = api::StatusNoSuchPath();
    return;
  }
  // Custom resources and their definitions have no protobuf messages.
  if (exchange.negotiated.media == MediaType::kProtobuf &&
      exchange.negotiated.shape == Shape::kObject &&
      (info.kind->family != nullptr || info.kind->group == kExtensionsGroup)) {
    exchange.negotiated.media = MediaType::kJson;
  }
  const net::Query& query = *request.query();
  const std::optional<Verb> verb = VerbOf(request.method, info, query);
  if (!verb) {
    exchange.refusal =
        MethodNotAllowedFailure(*info.kind, ToLower(net::MethodName(request.method)));
    return;
  }
  exchange.verb = *verb;
  exchange.verb_name = VerbName(*verb);
  if (info.kind->namespaced && info.namespace_.empty()) {
    if (!info.name.empty()) {
      exchange.refusal = api::StatusNoSuchPath();
      return;
    }
    // A request over all namespaces may only read.
    if (*verb != Verb::kList && *verb != Verb::kWatch) {
      exchange.refusal = MethodNotAllowedFailure(*info.kind, exchange.verb_name);
      return;
    }
  }
  Request& asked = exchange.asked;
  asked.verb = *verb;
  asked.kind = info.kind;
  asked.namespace_ = info.namespace_;
  asked.name = info.name;
  asked.subresource = info.subresource;
  asked.user_agent = request.headers.Get("user-agent");
  asked.fence = request.headers.Get(client::kFenceHeader);
  // Below a proxy the query is not ours.
  if (!IsProxyPath(info) && (exchange.refusal = ReadOptions(query, asked))) return;
  exchange.dry_run = asked.dry_run;
  const bool may_decode = !exchange.identify && exchange.user.name != kAnonymousUser;
  if (!exchange.identify) asked.user = std::move(exchange.user);

  if (SubresourceProxy* proxy = FindProxy(info)) {
    exchange.proxy = proxy;
    exchange.also_needs = proxy->AlsoNeeds(request);
    return;
  }
  if (*verb == Verb::kWatch) {
    exchange.refusal = ReadWatch(exchange, std::move(asked));
    return;
  }
  exchange.refusal =
      ReadBody(request.headers.Get("content-type"), std::move(exchange.request.body), asked);
  if (exchange.refusal) return;
  if (asked.text.size() > kLargeBodyBytes) {
    if (IsDecodedEarly(asked)) {
      exchange.is_large = true;
    } else {
      exchange.refusal = api::StatusRequestEntityTooLarge(
          StrCat("the limit for this subresource is ", kLargeBodyBytes));
    }
    return;
  }
  // Anonymous callers do not get to use CPU time before the core has authorized them. Patches are
  // small and depend on the object.
  if (may_decode && asked.verb != Verb::kPatch) DecodeEarly(asked);
}

std::optional<Failure> Frontend::ReadWatch(Exchange& exchange, Request asked) {
  const net::Query& query = *exchange.request.query();
  exchange.watch = std::make_unique<WatchStreamOptions>();
  WatchStreamOptions& watch = *exchange.watch;
  watch.request = std::move(asked);
  watch.bookmarks = IsTrueParameter(query.Find("allowWatchBookmarks"));
  if (const std::string* wanted = query.Find("sendInitialEvents")) {
    watch.send_initial_events = IsTrueParameter(wanted);
  }
  if (const std::string* timeout = query.Find("timeoutSeconds")) {
    const std::optional<std::int64_t> seconds = ParseInt64(*timeout);
    if (!seconds || *seconds < 0) {
      return api::StatusBadRequest(StrCat("timeoutSeconds: ", Quote(*timeout), " is not a number"));
    }
    if (*seconds > 0) watch.timeout = std::chrono::seconds(std::min(*seconds, kMaxTimeoutSeconds));
  }
  if (!watch.timeout) watch.timeout = options_.watch_lifetime();
  watch.negotiated = exchange.negotiated;
  watch.skip_operations_as_list = options_.skip_operations_as_list;
  watch.include_object =
      ParseIncludeObject(exchange.include_object).value_or(TableOptions::Include::kMetadata);
  if (net::websocket::IsUpgrade(exchange.request.headers)) {
    Result<net::websocket::Accepted> accepted = net::websocket::AcceptAny(exchange.request.headers);
    if (!accepted.ok()) return api::StatusBadRequest(accepted.error().message);
    exchange.web_socket = *std::move(accepted);
  }
  return std::nullopt;
}

bool Frontend::AnswerFromCache(Exchange& exchange) {
  exchange.read_key = ReadCache::KeyOf(exchange.request);
  if (exchange.read_key.empty()) return false;
  const ReadCache::Entry* entry = reads_.Find(exchange.read_key);
  if (entry == nullptr) return false;
  exchange.info = entry->info;
  exchange.negotiated = entry->negotiated;
  exchange.verb_name = VerbName(Verb::kGet);
  exchange.response.object = entry->object;
  Answer(exchange);
  return true;
}

SubresourceProxy* Frontend::FindProxy(const RequestInfo& info) const {
  // Not those of custom resources that happen to have the name of a built-in one.
  if (info.subresource.empty() || info.kind->family != nullptr) return nullptr;
  const auto found = options_.proxies.find(StrCat(info.resource, "/", info.subresource));
  return found == options_.proxies.end() ? nullptr : found->second;
}

void Frontend::CheckLargeBody(net::ServerRequest head,
                              std::function<void(std::optional<Rejection>)> done) {
  ExchangePtr exchange = bridge_.Share(std::make_unique<Exchange>());
  exchange->request = std::move(head);
  const net::ServerRequest& request = exchange->request;
  exchange->info = ParseRequestPath(request.path);
  exchange->aggregated = FindAggregated(exchange->info, request.path);
  if (exchange->aggregated == nullptr) FindCustomKind(exchange->info);
  const RequestInfo& info = exchange->info;
  const auto reject = [&](const Failure& failure) { done(RejectionOf(*exchange, failure)); };
  if (!info.is_resource || (info.kind == nullptr && exchange->aggregated == nullptr) ||
      !request.query().ok()) {
    return reject(
        api::StatusRequestEntityTooLarge(StrCat("the limit for this path is ", kLargeBodyBytes)));
  }
  const std::optional<Verb> verb = VerbOf(request.method, info, *request.query());
  // Handle rejects it for another reason, after it has seen some of the body.
  if (!verb) {
    return reject(api::StatusMethodNotSupported({info.group, info.resource},
                                                ToLower(net::MethodName(request.method))));
  }
  if (const auto length = ParseInt64(request.headers.Get("content-length"));
      length && *length > static_cast<std::int64_t>(kMaxBodyBytes)) {
    return reject(api::StatusRequestEntityTooLarge(StrCat("limit is ", kMaxBodyBytes)));
  }
  exchange->verb_name = VerbName(*verb);
  exchange->asked.verb = *verb;
  exchange->asked.kind = info.kind;
  exchange->asked.namespace_ = info.namespace_;
  exchange->asked.name = info.name;
  exchange->asked.subresource = info.subresource;
  exchange->identify =
      options_.authenticator.NeedsToken(request) || AsksToImpersonate(request.headers);
  if (!exchange->identify) {
    std::optional<UserInfo> user = options_.authenticator.Authenticate(request);
    if (!user) return reject(api::StatusUnauthorized("Unauthorized"));
    exchange->user = std::move(*user);
  }
  bridge_.ToCore([this, exchange, done = std::move(done)]() mutable {
    std::optional<Failure> failure;
    if (exchange->identify) failure = Identify(*exchange);
    if (!failure) {
      exchange->asked.user = std::move(exchange->user);
      failure = exchange->aggregated != nullptr ? FindBackend(*exchange)
                                                : options_.core.CheckAuthorized(exchange->asked);
    }
    if (failure) exchange->response = Response::Failed(std::move(*failure));
    bridge_.ToHttp([this, exchange, done = std::move(done)] {
      RememberToken(*exchange);
      if (!exchange->response.failure) return done(std::nullopt);
      done(RejectionOf(*exchange, *exchange->response.failure));
    });
  });
}

net::RequestHandler::Rejection Frontend::RejectionOf(const Exchange& exchange,
                                                     const Failure& failure) {
  EncodedBody encoded = EncodeFailure(exchange.negotiated, failure, {});
  Rejection rejection{
      failure.code,
      {{"Content-Type", encoded.content_type}, {"Cache-Control", "no-cache, private"}},
      {}};
  for (const net::Segment& segment : encoded.body) rejection.body += *segment;
  return rejection;
}

void Frontend::Return(Exchange& exchange) {
  RememberToken(exchange);
  if (exchange.response.failure) {
    return Fail(exchange, *exchange.response.failure, exchange.response.continue_token);
  }
  if (exchange.aggregated != nullptr) {
    UserInfo& user = exchange.info.is_resource ? exchange.asked.user : exchange.user;
    return options_.aggregation_proxy->Serve(
        {exchange.aggregated, std::move(exchange.backend), std::move(user)},
        std::move(exchange.request), Counted(exchange));
  }
  if (exchange.watch != nullptr) {
    std::shared_ptr<net::ResponseWriter> writer = Counted(exchange);
    if (exchange.web_socket) {
      writer = WatchOverWebSocket(loop_, std::move(writer), std::move(*exchange.web_socket),
                                  exchange.negotiated.media == MediaType::kProtobuf
                                      ? WatchFrames::kPrefixed
                                      : WatchFrames::kLines);
    }
    return ServeWatch(loop_, feed_, watch_events_, std::move(*exchange.watch), std::move(writer));
  }
  if (exchange.proxy != nullptr) {
    return exchange.proxy->Serve(exchange.info, std::move(exchange.target),
                                 std::move(exchange.request), Counted(exchange));
  }
  if (!exchange.info.is_resource) return AnswerPath(exchange);
  Answer(exchange);
}

std::shared_ptr<net::ResponseWriter> Frontend::Counted(Exchange& exchange) {
  return CountAnswer(std::move(exchange.writer), bridge_.Guard([this, info = exchange.info,
                                                                verb = exchange.verb_name,
                                                                mutating = exchange.mutating,
                                                                begun = exchange.begun](int code) {
    request_metrics_.Ended(mutating);
    request_metrics_.Count(info, verb, /*dry_run=*/false, code, loop_.clock().Monotonic() - begun);
  }));
}

void Frontend::AnswerPath(Exchange& exchange) {
  const std::string& path = exchange.request.path;
  if (exchange.health) {
    Finished(exchange, exchange.health->status);
    return exchange.writer->Send(exchange.health->status,
                                 {{"Content-Type", "text/plain; charset=utf-8"},
                                  {"Cache-Control", "no-cache, private"},
                                  {"X-Content-Type-Options", "nosniff"}},
                                 std::move(exchange.health->body));
  }
  if (path == "/metrics") {
    Finished(exchange, 200);
    return exchange.writer->Send(200, {{"Content-Type", "text/plain; version=0.0.4"}},
                                 options_.metrics.Text());
  }
  const bool aggregated = exchange.negotiated.shape == Shape::kDiscovery;
  if (std::shared_ptr<const std::string> document = FindDiscoveryDocument(path, aggregated)) {
    Finished(exchange, 200);
    const bool is_aggregated = aggregated && (path == "/api" || path == "/apis");
    EncodedBody encoded = is_aggregated
                              ? EncodedBody{std::string(kAggregatedDiscoveryType), {document}}
                              : EncodeDocument(exchange.negotiated, document);
    return Send(exchange, 200, {{"Content-Type", encoded.content_type}, {"Vary", "Accept"}},
                std::move(encoded.body));
  }
  if (exchange.document == nullptr) return Fail(exchange, api::StatusNoSuchPath());
  Finished(exchange, 200);
  const std::string_view type =
      exchange.question != nullptr ? "application/octet-stream"
      : AsksForOpenApiProtobuf(path, exchange.request.headers.Get("accept")) ? kOpenApiProtobufType
                                                                             : "application/json";
  Send(exchange, 200, {{"Content-Type", std::string(type)}}, net::Body{exchange.document});
}

void Frontend::Answer(Exchange& exchange) {
  Response& response = exchange.response;
  if (exchange.stamp) {
    reads_.Keep(std::move(exchange.read_key),
                {exchange.info, exchange.negotiated, response.object, *exchange.stamp});
  }
  if (options_.skip_operations_as_list && exchange.info.group == "resource.k8s.io") {
    if (response.object != nullptr) response.object = WithSkipOperationsAsList(response.object);
    for (api::ObjectPtr& item : response.items) item = WithSkipOperationsAsList(item);
  }
  net::Headers headers = {{"Cache-Control", "no-cache, private"}};
  AddWarnings(headers, response.warnings);
  EncodedBody encoded;
  const bool is_list = exchange.verb == Verb::kList || exchange.verb == Verb::kDeleteCollection;
  const bool is_status = response.object != nullptr && response.object->kind() == "Status";
  if (exchange.negotiated.shape == Shape::kTable && !is_status) {
    TableOptions table;
    table.now = loop_.clock().Now();
    table.include_object =
        ParseIncludeObject(exchange.include_object).value_or(TableOptions::Include::kMetadata);
    table.resource_version = std::to_string(response.revision);
    table.continue_token = response.continue_token;
    table.remaining_items = response.remaining_items;
    ShowUsage(exchange.usage, table);
    std::vector<api::ObjectPtr> objects = response.items;
    if (!is_list) objects.push_back(response.object);
    const api::ObjectPtr tree =
        std::make_shared<const api::Object>(MakeTable(*exchange.info.kind, objects, table));
    Negotiated plain = exchange.negotiated;
    plain.shape = Shape::kObject;
    encoded = EncodeObject(plain, tree);
  } else if (is_list) {
    encoded = EncodeList(exchange.negotiated, *exchange.info.kind, response);
  } else {
    encoded = EncodeObject(exchange.negotiated, response.object);
  }
  headers.Set("Content-Type", encoded.content_type);
  std::optional<std::size_t> size;  // of reads
  if (!exchange.mutating) {
    size = 0;
    for (const net::Segment& segment : encoded.body) *size += segment->size();
  }
  Finished(exchange, response.http_status, size);
  Send(exchange, response.http_status, std::move(headers), std::move(encoded.body));
}

void Frontend::Send(Exchange& exchange, int status, net::Headers headers, net::Body body) {
  std::size_t size = 0;
  for (const net::Segment& segment : body) size += segment->size();
  if (!exchange.accepts_gzip || size < kMinCompressedBytes) {
    return exchange.writer->Send(status, std::move(headers), std::move(body));
  }
  headers.Set("Content-Encoding", "gzip");
  headers.Add("Vary", "Accept-Encoding");
  // Compression takes about as long as everything else together, so it does not run on the shared
  // loop.
  auto compress = [&loop = loop_, writer = exchange.writer, status, headers, body]() mutable {
    std::string compressed = net::Gzip(body);
    // The last reference to the writer must not be dropped on the worker.
    loop.Post([writer = std::move(writer), status, headers = std::move(headers),
               compressed = std::move(compressed)]() mutable {
      writer->Send(status, std::move(headers), std::move(compressed));
    });
  };
  if (options_.workers != nullptr && options_.workers->Run(compress)) return;
  exchange.writer->Send(status, std::move(headers), net::Gzip(body));
}

void Frontend::Finished(const Exchange& exchange, int code, std::optional<std::size_t> bytes) {
  request_metrics_.Ended(exchange.mutating);
  request_metrics_.Count(exchange.info, exchange.verb_name, exchange.dry_run, code,
                         loop_.clock().Monotonic() - exchange.begun, bytes);
}

void Frontend::Fail(Exchange& exchange, const Failure& failure, const std::string& continue_token) {
  Finished(exchange, failure.code);
  EncodedBody encoded = EncodeFailure(exchange.negotiated, failure, continue_token);
  net::Headers headers = {{"Content-Type", encoded.content_type},
                          {"Cache-Control", "no-cache, private"}};
  AddWarnings(headers, exchange.response.warnings);
  if (failure.retry_after_seconds > 0) {
    headers.Set("Retry-After", std::to_string(failure.retry_after_seconds));
  }
  exchange.writer->Send(failure.code, headers, std::move(encoded.body));
}

}  // namespace drakkar::apiserver
