#include "apiserver/http/frontend.h"

#include "api/codec/protobuf_reader.h"
#include "api/json/reader.h"
#include "api/scheme/scheme.h"
#include "apiserver/auth/impersonation.h"
#include "apiserver/conversion/skip_operations_form.h"
#include "apiserver/http/discovery.h"
#include "apiserver/http/encode.h"
#include "apiserver/http/openapi.h"
#include "apiserver/http/table.h"
#include "apiserver/http/watch_stream.h"
#include "base/exec/worker_pool.h"
#include "base/ids/uuid.h"
#include "base/text/text.h"
#include "net/compress/gzip.h"
#include "telemetry/metrics/metrics.h"

namespace drakkar::apiserver {
namespace {

// Smaller answers are sent faster as they are; the bound is Kubernetes' own.
constexpr std::size_t kMinCompressedBytes = 128 << 10;

// Warning headers as RFC 7234 has them; what would break the header is made harmless.
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

bool IsYaml(std::string_view content_type) {
  return content_type == "application/yaml" || content_type == "application/x-yaml";
}

bool IsProtobuf(std::string_view content_type) {
  return content_type == kProtobufType;
}

std::optional<Failure> ReadPatchType(std::string_view content_type, PatchKind& kind) {
  if (content_type == "application/json-patch+json") {
    kind = PatchKind::kJson;
  } else if (content_type == "application/merge-patch+json") {
    kind = PatchKind::kMerge;
  } else if (content_type == "application/strategic-merge-patch+json") {
    kind = PatchKind::kStrategicMerge;
  } else if (content_type == "application/apply-patch+yaml") {
    kind = PatchKind::kApply;
  } else {
    return api::StatusUnsupportedMediaType(
        StrCat("the body of the request was in an unknown format - accepted media types include: "
               "application/json-patch+json, application/merge-patch+json, "
               "application/strategic-merge-patch+json, application/apply-patch+yaml (it was ",
               Quote(content_type), ")"));
  }
  return std::nullopt;
}

// The body of a delete: DeleteOptions, of which the query may have said some already.
std::optional<Failure> ReadDeleteOptions(std::string_view body, Request& request) {
  if (Trim(body).empty()) return std::nullopt;
  Result<api::TreePtr> tree = [&]() -> Result<api::TreePtr> {
    if (!api::HasProtobufMagic(body)) return api::ParseJson(body);
    ASSIGN_OR_RETURN(const api::ProtobufEnvelope envelope, api::OpenProtobufEnvelope(body));
    return api::ReadProtobuf(envelope.message, *api::FindStruct("io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions"));
  }();
  if (!tree.ok()) {
    return api::StatusBadRequest(StrCat("error decoding DeleteOptions: ", tree.error().message));
  }
  const api::Value options = (*tree)->root();
  if (std::optional<std::int64_t> grace = options["gracePeriodSeconds"].optional_integer()) {
    request.grace_period_seconds = *grace;
  }
  if (!options["propagationPolicy"].str().empty()) {
    request.propagation_policy = options["propagationPolicy"].str();
    if (options["orphanDependents"].has_value()) {
      api::FieldError error;
      error.field = "propagationPolicy";
      error.value = std::string_view(request.propagation_policy);
      error.detail = "orphanDependents and deletionPropagation cannot be both set";
      return InvalidOptions(Verb::kDelete, std::move(error));
    }
  }
  if (options["orphanDependents"].boolean()) request.propagation_policy = "Orphan";
  request.precondition_uid = options["preconditions"]["uid"].str();
  request.precondition_resource_version = options["preconditions"]["resourceVersion"].str();
  for (api::Value dry_run : options["dryRun"].elements()) {
    if (dry_run.str() != "All") {
      return InvalidOptions(Verb::kDelete, api::FieldError::NotSupported(
                                               api::FieldPath("dryRun"), options["dryRun"], {"All"}));
    }
    request.dry_run = true;
  }
  return std::nullopt;
}

std::optional<Failure> CheckPropagation(const Request& request) {
  const std::string_view policy = request.propagation_policy;
  if (policy.empty() || policy == "Orphan" || policy == "Background" || policy == "Foreground") {
    return std::nullopt;
  }
  api::FieldError error;
  error.type = api::FieldErrorType::kNotSupported;
  error.field = "propagationPolicy";
  error.value = policy;
  // In the order Kubernetes has them.
  error.detail = R"(supported values: "Foreground", "Background", "Orphan", "nil")";
  return InvalidOptions(Verb::kDelete, std::move(error));
}

}  // namespace

// One request on its way through.
struct Frontend::Exchange {
  std::shared_ptr<net::ResponseWriter> writer;
  Negotiated negotiated;
  UserInfo user;
  RequestInfo info;
  Verb verb = Verb::kGet;
  std::string include_object;
  bool accepts_gzip = false;
  std::string audit_id;
  std::string method;
  MonotonicTime begun;
  std::string_view verb_name;  // "" for paths that are no resource
  bool dry_run = false;
  bool mutating = false;
};

Frontend::Frontend(Options options)
    : options_(std::move(options)),
      request_metrics_(options_.metrics),
      watch_events_(options_.core, options_.metrics) {}
Frontend::~Frontend() {
  *alive_ = false;
}

void Frontend::Handle(net::ServerRequest request, std::shared_ptr<net::ResponseWriter> writer) {
  auto exchange = std::make_shared<Exchange>();
  exchange->writer = std::move(writer);
  exchange->method = net::MethodName(request.method);
  exchange->begun = options_.core.loop().clock().Monotonic();
  exchange->info = ParseRequestPath(request.path);
  exchange->mutating =
      request.method != net::Method::kGet && request.method != net::Method::kHead;
  request_metrics_.Began(exchange->mutating);
  if (!request.query().ok()) {
    return Fail(*exchange, api::StatusBadRequest(request.query().error().message));
  }
  const net::Query& query = *request.query();
  const bool watch = exchange->info.is_resource &&
                     VerbOf(request.method, exchange->info, query) == Verb::kWatch;
  // Texts and discovery are what they are, whatever is asked for.
  if (std::optional<Failure> failure = NegotiateAccept(request.headers.Get("accept"), watch,
                                                       exchange->negotiated);
      failure && exchange->info.is_resource) {
    return Fail(*exchange, *failure);
  }
  exchange->accepts_gzip = AcceptsGzip(request.headers.Get("accept-encoding"));
  exchange->include_object = query.Get("includeObject");
  const std::string_view pretty = query.Get("pretty");
  exchange->negotiated.pretty = pretty == "true" || pretty == "1";
  std::optional<UserInfo> user = options_.authenticator.Authenticate(request);
  if (!user) return Fail(*exchange, api::StatusUnauthorized("Unauthorized"));
  exchange->user = std::move(*user);
  if (std::optional<Failure> failure =
          Impersonate(options_.core, request.headers, exchange->user)) {
    return Fail(*exchange, *failure);
  }
  if (!exchange->info.is_resource) return HandlePath(*exchange, request);
  HandleResource(std::move(exchange), std::move(request));
}

void Frontend::HandlePath(Exchange& exchange, net::ServerRequest& request) {
  const std::string& path = request.path;
  if (options_.authorize_path &&
      !options_.authorize_path(exchange.user, ToLower(exchange.method), path)) {
    Failure failure = api::StatusForbidden({}, "", "");
    failure.message = StrCat("forbidden: User ", Quote(exchange.user.name), " cannot ",
                             ToLower(exchange.method), " path ", Quote(path));
    return Fail(exchange, failure);
  }
  if (request.method != net::Method::kGet && request.method != net::Method::kHead) {
    return Fail(exchange, api::StatusMethodNotSupported({}, ToLower(exchange.method)));
  }
  if (IsHealthPath(path)) {
    const net::Query& query = *request.query();
    std::vector<std::string_view> excluded;
    if (const std::string* exclude = query.Find("exclude")) excluded.push_back(*exclude);
    HealthAnswer answer = AnswerHealth(path, query.Find("verbose") != nullptr, excluded,
                                       options_.health_checks);
    Finished(exchange, answer.status);
    return exchange.writer->Send(answer.status,
                                 {{"Content-Type", "text/plain; charset=utf-8"},
                                  {"Cache-Control", "no-cache, private"},
                                  {"X-Content-Type-Options", "nosniff"}},
                                 std::move(answer.body));
  }
  if (path == "/metrics") {
    Finished(exchange, 200);
    request_metrics_.Refresh(options_.core);
    if (options_.before_metrics) options_.before_metrics();
    return exchange.writer->Send(200, {{"Content-Type", "text/plain; version=0.0.4"}},
                                 options_.metrics.Text());
  }
  const bool aggregated = exchange.negotiated.shape == Shape::kDiscovery;
  if (std::shared_ptr<const std::string> document = FindDiscovery(path, aggregated)) {
    Finished(exchange, 200);
    const bool is_aggregated = aggregated && (path == "/api" || path == "/apis");
    EncodedBody encoded =
        is_aggregated ? EncodedBody{std::string(kAggregatedDiscoveryType), {document}}
                      : EncodeDocument(exchange.negotiated, document);
    return Send(exchange, 200, {{"Content-Type", encoded.content_type}, {"Vary", "Accept"}},
                std::move(encoded.body));
  }
  if (auto found = options_.documents.find(path); found != options_.documents.end()) {
    Finished(exchange, 200);
    return exchange.writer->Send(200, {{"Content-Type", "application/json"}}, found->second());
  }
  if (std::shared_ptr<const std::string> document = FindOpenApi(path)) {
    Finished(exchange, 200);
    return Send(exchange, 200, {{"Content-Type", "application/json"}}, net::Body{document});
  }
  Fail(exchange, api::StatusNoSuchPath());
}

void Frontend::HandleResource(std::shared_ptr<Exchange> exchange, net::ServerRequest request) {
  const RequestInfo& info = exchange->info;
  if (info.kind == nullptr) return Fail(*exchange, api::StatusNoSuchPath());
  const net::Query& query = *request.query();
  const std::optional<Verb> verb = VerbOf(request.method, info, query);
  if (!verb) {
    return Fail(*exchange, MethodNotAllowedFailure(*info.kind, ToLower(exchange->method)));
  }
  exchange->verb = *verb;
  exchange->verb_name = VerbName(*verb);
  if (info.kind->namespaced && info.namespace_.empty() && !info.name.empty()) {
    return Fail(*exchange, api::StatusNoSuchPath());
  }

  Request asked;
  asked.user = std::move(exchange->user);
  asked.verb = *verb;
  asked.kind = info.kind;
  asked.namespace_ = info.namespace_;
  asked.name = info.name;
  asked.subresource = info.subresource;
  asked.user_agent = request.headers.Get("user-agent");
  if (std::optional<Failure> failure = ReadOptions(query, asked)) return Fail(*exchange, *failure);
  exchange->dry_run = asked.dry_run;

  if (SubresourceProxy* proxy = FindProxy(info)) {
    if (std::optional<Failure> failure = options_.core.CheckAuthorized(asked)) {
      return Fail(*exchange, *failure);
    }
    Finished(*exchange, 200);
    return proxy->Serve(info, asked.user, std::move(request), exchange->writer);
  }

  const std::string_view content_type = MediaTypeOf(request.headers.Get("content-type"));
  switch (*verb) {
    case Verb::kPatch:
      if (std::optional<Failure> failure = ReadPatchType(content_type, asked.patch)) {
        return Fail(*exchange, *failure);
      }
      asked.text = std::move(request.body);
      break;
    case Verb::kCreate:
    case Verb::kUpdate:
      if (!content_type.empty() && content_type != "application/json" && !IsYaml(content_type) &&
          !IsProtobuf(content_type)) {
        return Fail(*exchange,
                    api::StatusUnsupportedMediaType(
                        StrCat("the body of the request was in an unknown format - accepted media "
                               "types include: application/json, application/yaml, "
                               "application/vnd.kubernetes.protobuf (it was ",
                               Quote(content_type), ")")));
      }
      if (IsYaml(content_type)) asked.encoding = Request::Encoding::kYaml;
      if (IsProtobuf(content_type)) asked.encoding = Request::Encoding::kProtobuf;
      asked.text = std::move(request.body);
      break;
    case Verb::kDelete:
    case Verb::kDeleteCollection:
      if (std::optional<Failure> failure = ReadDeleteOptions(request.body, asked)) {
        return Fail(*exchange, *failure);
      }
      if (std::optional<Failure> failure = CheckPropagation(asked)) {
        return Fail(*exchange, *failure);
      }
      break;
    case Verb::kWatch: {
      WatchStreamOptions watch;
      const std::string_view bookmarks = query.Get("allowWatchBookmarks");
      watch.bookmarks = bookmarks == "true" || bookmarks == "1";
      const std::string_view initial = query.Get("sendInitialEvents");
      watch.send_initial_events = initial == "true" || initial == "1";
      if (const std::string* timeout = query.Find("timeoutSeconds")) {
        const std::optional<std::int64_t> seconds = ParseInt64(*timeout);
        if (!seconds || *seconds < 0) {
          return Fail(*exchange, api::StatusBadRequest(StrCat(
                                     "timeoutSeconds: ", Quote(*timeout), " is not a number")));
        }
        if (*seconds > 0) watch.timeout = std::chrono::seconds(std::min<std::int64_t>(*seconds, 86'400));
      }
      watch.request = std::move(asked);
      watch.negotiated = exchange->negotiated;
      Finished(*exchange, 200);
      watch.skip_operations_as_list = options_.skip_operations_as_list;
      watch.include_object = ParseIncludeObject(exchange->include_object)
                                 .value_or(TableOptions::Include::kMetadata);
      watch.allocated_devices = [this, alive = alive_](const api::Object& slice) {
        return *alive ? std::optional(AllocatedIn(slice)) : std::nullopt;
      };
      return ServeWatch(options_.core, watch_events_, std::move(watch), exchange->writer);
    }
    case Verb::kGet:
    case Verb::kList: break;
  }
  Core& core = options_.core;
  core.Handle(std::move(asked), [this, alive = alive_, exchange, &core](Response response) {
    // What the answer is built on must not be lost after the client has seen it.
    const storage::Revision revision = response.revision;
    if (core.IsDurable(revision)) {
      if (*alive) Answer(*exchange, std::move(response));
      return;
    }
    core.WhenDurable(revision, [this, alive, exchange, response = std::move(response)]() mutable {
      if (*alive) Answer(*exchange, std::move(response));
    });
  });
}

SubresourceProxy* Frontend::FindProxy(const RequestInfo& info) const {
  if (info.subresource.empty()) return nullptr;
  const auto found = options_.proxies.find(StrCat(info.resource, "/", info.subresource));
  return found == options_.proxies.end() ? nullptr : found->second;
}

void Frontend::Answer(Exchange& exchange, Response response) {
  if (response.failure) return Fail(exchange, *response.failure, response.continue_token);
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
    table.now = options_.core.loop().clock().Now();
    table.include_object = ParseIncludeObject(exchange.include_object)
                               .value_or(TableOptions::Include::kMetadata);
    table.resource_version = std::to_string(response.revision);
    table.continue_token = response.continue_token;
    table.remaining_items = response.remaining_items;
    table.allocated_devices = [this](const api::Object& slice) { return AllocatedIn(slice); };
    std::vector<api::ObjectPtr> objects = response.items;
    if (!is_list) objects.push_back(response.object);
    const api::ObjectPtr tree = std::make_shared<const api::Object>(
        MakeTable(*exchange.info.kind, objects, table));
    Negotiated plain = exchange.negotiated;
    plain.shape = Shape::kObject;
    encoded = EncodeObject(plain, tree);
  } else if (is_list) {
    encoded = EncodeList(exchange.negotiated, *exchange.info.kind, response);
  } else {
    encoded = EncodeObject(exchange.negotiated, response.object);
  }
  headers.Set("Content-Type", encoded.content_type);
  Finished(exchange, response.http_status);
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
  // Compressing takes about as long as everything else together: not on the loop that all share.
  EventLoop& loop = options_.core.loop();
  auto compress = [&loop, writer = exchange.writer, status, headers, body]() mutable {
    std::string compressed = net::Gzip(body);
    // The writer's last reference must not end here.
    loop.Post([writer = std::move(writer), status, headers = std::move(headers),
               compressed = std::move(compressed)]() mutable {
      writer->Send(status, std::move(headers), std::move(compressed));
    });
  };
  if (options_.workers != nullptr && options_.workers->Run(compress)) return;
  exchange.writer->Send(status, std::move(headers), net::Gzip(body));
}

std::int64_t Frontend::AllocatedIn(const api::Object& slice) {
  if (const WatchCache* claims = options_.core.FindCache("resource.k8s.io", "resourceclaims")) {
    usage_.Update(claims->objects(), claims->last_change());
  }
  return usage_.AllocatedIn(slice);
}

void Frontend::Finished(const Exchange& exchange, int code) {
  request_metrics_.Ended(exchange.mutating);
  request_metrics_.Count(exchange.info, exchange.verb_name, exchange.dry_run, code,
                         options_.core.loop().clock().Monotonic() - exchange.begun);
}

void Frontend::Fail(Exchange& exchange, const Failure& failure, const std::string& continue_token) {
  Finished(exchange, failure.code);
  EncodedBody encoded = EncodeFailure(exchange.negotiated, failure, continue_token);
  net::Headers headers = {{"Content-Type", encoded.content_type},
                          {"Cache-Control", "no-cache, private"}};
  if (failure.retry_after_seconds > 0) {
    headers.Set("Retry-After", std::to_string(failure.retry_after_seconds));
  }
  exchange.writer->Send(failure.code, headers, std::move(encoded.body));
}

}  // namespace drakkar::apiserver
