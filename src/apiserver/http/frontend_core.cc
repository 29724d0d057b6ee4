// The part of the frontend that runs on the core's loop.
#include "api/scheme/scheme.h"
#include "apiserver/auth/impersonation.h"
#include "apiserver/http/connect_options.h"
#include "apiserver/http/exchange.h"
#include "apiserver/http/openapi.h"
#include "apiserver/http/openapi_protobuf.h"
#include "apiserver/http/proxy_target.h"
#include "apiserver/rest/decode.h"
#include "base/exec/work_budget.h"
#include "base/exec/worker_pool.h"
#include "base/text/text.h"
#include "features/gates/feature_gates.h"

namespace drakkar::apiserver {

namespace {

// Where the active scheduler publishes its settings and where it answers questions.
constexpr char kSchedulerSettings[] = "kube-system/drakkar-scheduler";

}  // namespace

void Frontend::OnCore(ExchangePtr exchange) {
  std::optional<Failure> failure;
  if (exchange->identify) {
    if ((failure = Identify(*exchange)) || (failure = exchange->refusal)) {
      exchange->response = Response::Failed(std::move(*failure));
      return SendBack(std::move(exchange));
    }
    Request& asked = exchange->watch == nullptr ? exchange->asked : exchange->watch->request;
    if (exchange->info.is_resource) asked.user = std::move(exchange->user);
    if (exchange->watch != nullptr) return SendBack(std::move(exchange));
  }
  if (exchange->is_large && exchange->info.is_resource && exchange->proxy == nullptr) {
    // Before the work of decoding it.
    if ((failure = options_.core.CheckAuthorized(exchange->asked))) {
      exchange->response = Response::Failed(std::move(*failure));
      return SendBack(std::move(exchange));
    }
    return DecodeAside(std::move(exchange));
  }
  HandleOnCore(std::move(exchange));
}

void Frontend::DecodeAside(ExchangePtr exchange) {
  if (options_.workers == nullptr) {
    DecodeEarly(exchange->asked);
    return HandleOnCore(std::move(exchange));
  }
  EventLoop& core_loop = options_.core.loop();
  const bool queued = options_.workers->Run(
      [&core_loop, request = &exchange->asked,
       next = bridge_.Guard([this, exchange] { HandleOnCore(exchange); })]() mutable {
        DecodeEarly(*request);
        core_loop.Post(std::move(next));
      });
  if (queued) return;
  exchange->response = Response::Failed(api::StatusTooManyRequests(
      "too many large requests are waiting, please try again later", /*retry_after_seconds=*/1));
  SendBack(std::move(exchange));
}

void Frontend::HandleOnCore(ExchangePtr exchange) {
  std::optional<Failure> failure;
  if (exchange->aggregated != nullptr) {
    failure = FindBackend(*exchange);
  } else if (!exchange->info.is_resource) {
    failure = LookAtPath(*exchange);
  } else if (exchange->proxy != nullptr) {
    failure = FindTarget(*exchange);
    if (!failure) return AdmitConnection(std::move(exchange));
  } else {
    if (exchange->stamp) reads_.Follow(*exchange->info.kind);
    return options_.core.Handle(std::move(exchange->asked),
                                bridge_.Guard([this, exchange](Response response) mutable {
                                  FinishOnCore(std::move(exchange), std::move(response));
                                }));
  }
  if (!failure && exchange->question != nullptr) return Ask(std::move(exchange));
  if (failure) exchange->response = Response::Failed(std::move(*failure));
  SendBack(std::move(exchange));
}

void Frontend::AdmitConnection(ExchangePtr exchange) {
  const std::optional<ConnectOptions> connect =
      ConnectOptionsOf(exchange->info, *exchange->request.query());
  if (!connect) return SendBack(std::move(exchange));
  options_.core.AdmitConnection(
      exchange->asked, *connect->kind, connect->object,
      bridge_.Guard([this, exchange](std::optional<Failure> rejected) mutable {
        if (rejected) exchange->response = Response::Failed(std::move(*rejected));
        SendBack(std::move(exchange));
      }));
}

void Frontend::Ask(ExchangePtr exchange) {
  const Options::Question& question = *exchange->question;
  const net::Query& query = *exchange->request.query();
  question(query, bridge_.Guard([this, exchange](Result<std::string> answer) mutable {
    if (answer.ok()) {
      exchange->document = net::MakeSegment(*std::move(answer));
    } else {
      exchange->response = Response::Failed(api::StatusFromError(answer.error()));
    }
    SendBack(std::move(exchange));
  }));
}

void Frontend::FinishOnCore(ExchangePtr exchange, Response response) {
  // Whatever the core found, part of it was skipped. Errors in the object were found before that.
  if (WorkBudget::IsExceeded() && (!response.failure || response.failure->code != 422)) {
    response = Response::Failed(TooMuchWorkFailure());
  }
  // The response must not be based on state that can still be lost.
  const storage::Revision revision = response.revision;
  exchange->response = std::move(response);
  if (exchange->negotiated.shape == Shape::kTable && exchange->info.resource == "resourceslices") {
    exchange->usage = Usage();
  }
  if (options_.core.IsDurable(revision)) return SendBack(std::move(exchange));
  options_.core.WhenDurable(
      revision,
      bridge_.Guard([this, exchange = std::move(exchange)](std::optional<Failure> failure) mutable {
        if (failure) {
          exchange->response = Response::Failed(std::move(*failure));
        }
        SendBack(std::move(exchange));
      }));
}

void Frontend::SendBack(ExchangePtr exchange) {
  bridge_.ToHttp([this, exchange = std::move(exchange)] { Return(*exchange); });
}

std::optional<Failure> Frontend::Identify(Exchange& exchange) {
  std::optional<UserInfo> user = options_.authenticator.Authenticate(exchange.request);
  request_metrics_.CountLogin(user.has_value());
  if (!user) return api::StatusUnauthorized("Unauthorized");
  exchange.is_identified = true;
  exchange.token_user = user->name;
  exchange.token_level = FlowControl::LevelOf(*user);
  exchange.user = std::move(*user);
  options_.authenticator.RemoveIdentityHeaders(exchange.request.headers);
  return Impersonate(options_.core, exchange.request.headers, exchange.user);
}

std::optional<Failure> Frontend::LookAtPath(Exchange& exchange) {
  const net::ServerRequest& request = exchange.request;
  const std::string& path = request.path;
  const std::string method = ToLower(net::MethodName(request.method));
  if (options_.authorize_path && !options_.authorize_path(exchange.user, method, path)) {
    Failure failure = api::StatusForbidden({}, "", "");
    failure.message = StrCat("forbidden: User ", Quote(exchange.user.name), " cannot ", method,
                             " path ", Quote(path));
    return failure;
  }
  if (exchange.mutating) return api::StatusMethodNotSupported({}, method);
  if (IsHealthPath(path)) {
    const net::Query& query = *request.query();
    std::vector<std::string_view> excluded;
    for (const auto& [name, value] : query) {
      if (name == "exclude") excluded.push_back(value);
    }
    exchange.health =
        AnswerHealth(path, query.Find("verbose") != nullptr, excluded, options_.health_checks);
  } else if (path == "/metrics") {
    request_metrics_.Refresh(options_.core);
    if (options_.before_metrics) options_.before_metrics();
  } else if (auto found = options_.documents.find(path); found != options_.documents.end()) {
    exchange.document = net::MakeSegment(found->second());
  } else if (auto asked = options_.questions.find(path); asked != options_.questions.end()) {
    exchange.question = &asked->second;
  } else {
    exchange.document =
        FindOpenApi(path, options_.core.custom_kinds().current(),
                    options_.aggregation == nullptr ? nullptr : options_.aggregation->current());
    if (AsksForOpenApiProtobuf(path, request.headers.Get("accept")))
      exchange.document = OpenApiInProtobuf(exchange.document);
  }
  return std::nullopt;
}

std::optional<Failure> Frontend::FindBackend(Exchange& exchange) {
  const RequestInfo& info = exchange.info;
  const AggregatedApi& api = *exchange.aggregated;
  if (info.is_resource) {
    const UserInfo& user = exchange.asked.user;
    const Decision decision = options_.core.Authorize({user,
                                                       exchange.verb_name,
                                                       info.group,
                                                       info.resource,
                                                       info.subresource,
                                                       info.namespace_,
                                                       info.name,
                                                       {}});
    if (!decision.allowed) {
      const std::string resource =
          info.subresource.empty() ? info.resource : StrCat(info.resource, "/", info.subresource);
      std::string text = StrCat("User ", Quote(user.name), " cannot ", exchange.verb_name,
                                " resource ", Quote(resource), " in API group ", Quote(info.group));
      text += info.namespace_.empty() ? std::string(" at the cluster scope")
                                      : StrCat(" in the namespace ", Quote(info.namespace_));
      if (!decision.reason.empty()) text += StrCat(": ", decision.reason);
      return api::StatusForbidden({info.group, info.resource}, info.name, text);
    }
  } else {
    const std::string verb = ToLower(net::MethodName(exchange.request.method));
    if (options_.authorize_path &&
        !options_.authorize_path(exchange.user, verb, exchange.request.path)) {
      Failure failure = api::StatusForbidden({}, "", "");
      failure.message = StrCat("forbidden: User ", Quote(exchange.user.name), " cannot ", verb,
                               " path ", Quote(exchange.request.path));
      return failure;
    }
  }
  if (!api.is_available || options_.aggregation_proxy == nullptr || !options_.find_backend) {
    return api::StatusServiceUnavailable(
        StrCat("APIService ", api.name, " is not available: see its condition Available"));
  }
  Result<std::string> host = options_.find_backend(api);
  if (!host.ok()) {
    return api::StatusServiceUnavailable(
        StrCat("APIService ", api.name, ": ", host.error().message));
  }
  exchange.backend = *std::move(host);
  return std::nullopt;
}

std::optional<Failure> Frontend::FindTarget(Exchange& exchange) {
  Core& core = options_.core;
  Request& asked = exchange.asked;
  if (std::optional<Failure> failure = core.CheckAuthorized(asked)) return failure;
  if (exchange.also_needs) {
    asked.verb = *exchange.also_needs;
    if (std::optional<Failure> failure = core.CheckAuthorized(asked)) return failure;
  }
  const RequestInfo& info = exchange.info;
  exchange.target.user = asked.user;
  if (info.subresource == "why") {
    exchange.target.scheduler = core.Find("", "configmaps", kSchedulerSettings);
    return std::nullopt;
  }
  if (IsProxyPath(info)) return FindProxyTarget(core, info, core.random(), exchange.target);
  std::string node = info.name;
  if (info.resource == "pods") {
    exchange.target.pod = core.Find("", "pods", StrCat(info.namespace_, "/", info.name));
    node = exchange.target.pod == nullptr ? "" : (*exchange.target.pod)["spec"]["nodeName"].str();
  }
  if (!node.empty()) exchange.target.node = core.Find("", "nodes", node);
  exchange.target.nodes_declare_features = core.gates().Enabled(Gate::kNodeDeclaredFeatures);
  return std::nullopt;
}

std::shared_ptr<const DeviceUsage> Frontend::Usage() {
  const WatchCache* claims = options_.core.FindCache("resource.k8s.io", "resourceclaims");
  if (claims == nullptr) return nullptr;
  if (usage_ == nullptr || usage_revision_ != claims->last_change()) {
    auto made = std::make_shared<DeviceUsage>();
    made->Update(claims->objects(), claims->last_change());
    usage_ = std::move(made);
    usage_revision_ = claims->last_change();
  }
  return usage_;
}

}  // namespace drakkar::apiserver
