#include "client/http_client.h"

#include <algorithm>
#include <map>

#include "api/json/reader.h"
#include "api/json/writer.h"
#include "api/meta/status.h"
#include "api/scheme/scheme.h"
#include "api/tree/draft.h"
#include "base/exec/lifetime.h"
#include "base/text/text.h"
#include "client/bearer_token.h"
#include "client/discovery.h"
#include "client/server_list.h"
#include "client/watch_reader.h"
#include "net/http/status.h"
#include "net/http/url.h"
#include "telemetry/log/log.h"

namespace drakkar::client {
namespace {

constexpr Logger kLog("client");

// Longer than any call but a watch should take. A server that has not answered by then is taken for
// dead.
constexpr Duration kCallTimeout = std::chrono::seconds(60);
// A busy server says when to retry. We retry at most this many times and wait at most this long.
constexpr int kMaxBusyAnswers = 10;
constexpr std::int64_t kLongestBusySeconds = 30;

// With several servers, one that is silent is given up within three times this, so that a leader
// can renew its lease at another.
constexpr Duration kSilence = std::chrono::seconds(3);

const std::string kBearer = "Bearer ";

std::string TokenOf(const net::ClientRequest& request) {
  const std::string_view header = request.headers.Get("authorization");
  return std::string(header.substr(std::min(header.size(), kBearer.size())));
}

// "?a=b&c=d" of the parameters that are set.
class QueryBuilder {
 public:
  QueryBuilder& Add(std::string_view name, std::string_view value) {
    if (value.empty()) return *this;
    text_ += text_.empty() ? '?' : '&';
    text_ += name;
    text_ += '=';
    text_ += net::PercentEncode(value);
    return *this;
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

std::string_view ContentTypeOf(PatchType type) {
  switch (type) {
    case PatchType::kJson:
      return "application/json-patch+json";
    case PatchType::kMerge:
      return "application/merge-patch+json";
    case PatchType::kStrategicMerge:
      return "application/strategic-merge-patch+json";
    case PatchType::kApply:
      return "application/apply-patch+yaml";
  }
  return "";
}

Error FailureOf(int http_status, const api::TreePtr& tree, std::string_view body) {
  if (tree != nullptr && tree->root()["kind"].str() == "Status") {
    return api::ErrorFromStatus(api::Status::FromTree(tree->root()));
  }
  std::string text(body.substr(0, 200));
  return Error{net::ErrorCodeOf(http_status),
               StrCat("the server answered ", http_status, ": ", Trim(text))};
}

api::ReadOptions ReadOptionsFor(FieldSets field_sets) {
  return {.opaque_field_sets = field_sets == FieldSets::kOpaque};
}

Reply ToReply(Result<net::Response> response, FieldSets field_sets) {
  Reply reply;
  if (!response.ok()) {
    reply.error = response.error();
    return reply;
  }
  reply.http_status = response->status;
  for (const auto& [name, value] : response->headers) {
    if (net::EqualsIgnoreCase(name, "warning")) reply.warnings.push_back(value);
  }
  Result<api::TreePtr> tree = api::ParseJson(response->body, ReadOptionsFor(field_sets));
  if (tree.ok()) reply.object = std::make_shared<const api::Object>(*tree);
  if (response->status >= 400) {
    reply.error = FailureOf(response->status, tree.ok() ? *tree : nullptr, response->body);
    if (std::optional<std::int64_t> seconds = ParseInt64(response->headers.Get("retry-after"))) {
      reply.retry_after_seconds = static_cast<int>(*seconds);
    }
  } else if (!tree.ok()) {
    reply.error = tree.error().Prefixed("the server's response is not JSON");
  }
  return reply;
}

// How long to wait before sending the request again. Nothing unless the server says that it did not
// process the request.
std::optional<Duration> BusyPause(const Result<net::Response>& response) {
  if (!response.ok() || (response->status != 429 && response->status < 500)) return std::nullopt;
  const std::optional<std::int64_t> seconds = ParseInt64(response->headers.Get("retry-after"));
  if (!seconds || *seconds < 0) return std::nullopt;
  return std::chrono::seconds(std::min(*seconds, kLongestBusySeconds));
}

// Splits a list into objects. Kubernetes leaves kind and apiVersion out of items; they are derived
// from the list's.
ListReply ToListReply(Reply reply) {
  ListReply list;
  if (!reply.ok()) {
    list.error = reply.error;
    return list;
  }
  const api::Value root = reply.object->root();
  std::string_view list_kind = root["kind"].str();
  if (list_kind.ends_with("List")) list_kind.remove_suffix(4);
  list.resource_version = ParseInt64(root["metadata"]["resourceVersion"].str()).value_or(0);
  list.continue_token = root["metadata"]["continue"].str();
  for (api::Value item : root["items"].elements()) {
    if (item["kind"].has_value()) {
      list.items.push_back(std::make_shared<const api::Object>(api::CopyTree(item)));
      continue;
    }
    api::Draft draft(item);
    draft["kind"] = list_kind;
    draft["apiVersion"] = root["apiVersion"].str();
    list.items.push_back(std::make_shared<const api::Object>(draft.Freeze()));
  }
  return list;
}

// Whether the server, or a proxy in front of it, cannot serve at the moment. A busy one says when
// to retry.
bool CannotServe(int status, bool says_when) {
  return (status == 503 || status == 504) && !says_when;
}
bool IsNoAnswer(const Error& error) {
  return error.code == ErrorCode::kUnavailable || error.code == ErrorCode::kDeadlineExceeded;
}

class HttpWatch final : public WatchHandle, private net::StreamSink {
 public:
  // Those that have not ended, oldest first.
  struct Open {
    std::map<std::uint64_t, HttpWatch*> watches;
    std::uint64_t last = 0;
  };
  struct Options {
    std::string server;
    std::shared_ptr<Open> open;  // the watch is in there until it has ended
    FieldSets field_sets;
    std::function<void()> on_unauthorized;
    std::function<void(const Error&)> on_no_answer;
    std::function<void()> on_unable;
  };
  HttpWatch(WatchCallbacks callbacks, Options options)
      : callbacks_(std::make_shared<const WatchCallbacks>(std::move(callbacks))),
        options_(std::move(options)),
        reader_(ReadOptionsFor(options_.field_sets)) {
    options_.open->watches.emplace(id_, this);
  }
  ~HttpWatch() override { options_.open->watches.erase(id_); }

  void Start(net::HttpClient& http, net::ClientRequest request) {
    handle_ = http.Stream(std::move(request), *this);
  }
  const std::string& server() const { return options_.server; }
  void End(Error error) {
    handle_.reset();
    Close(std::move(error));
  }

 private:
  void OnResponse(int status, const net::Headers& headers) override {
    status_ = status;
    says_when_ = !headers.Get("retry-after").empty();
  }

  void OnData(std::string_view bytes) override {
    if (closed_) return;
    if (status_ >= 400) {  // a Status, complete at the end
      refusal_ += bytes.substr(0, WatchReader::kMaxEventBytes - refusal_.size());
      return;
    }
    std::vector<WatchEvent> events;
    std::optional<Error> error = reader_.Read(bytes, events);
    // The callback may destroy this watch, and must not be destroyed while it runs.
    const Lifetime::Observer watch = lifetime_.Observe();
    const std::shared_ptr<const WatchCallbacks> callbacks = callbacks_;
    if (!events.empty()) callbacks->on_events(std::move(events));
    if (error && watch.alive()) Close(std::move(*error));
  }

  void OnEnd(Result<void> result) override {
    if (status_ >= 400) {
      if (status_ == 401) options_.on_unauthorized();
      if (CannotServe(status_, says_when_)) options_.on_unable();
      Result<api::TreePtr> tree = api::ParseJson(refusal_);
      return Close(FailureOf(status_, tree.ok() ? *tree : nullptr, refusal_));
    }
    if (!result.ok()) options_.on_no_answer(result.error());
    Close(result.ok() ? Error{ErrorCode::kUnavailable, "the server ended the watch"}
                      : result.error());
  }

  void Close(Error error) {
    if (closed_) return;
    closed_ = true;
    options_.open->watches.erase(id_);
    const std::shared_ptr<const WatchCallbacks> callbacks = callbacks_;  // as in OnData
    callbacks->on_closed(std::move(error));
  }

  const std::shared_ptr<const WatchCallbacks> callbacks_;
  const Options options_;
  const std::uint64_t id_ = ++options_.open->last;
  int status_ = 0;
  bool says_when_ = false;
  bool closed_ = false;
  WatchReader reader_;
  std::string refusal_;
  std::unique_ptr<net::RequestHandle> handle_;
  Lifetime lifetime_;
};

class HttpApiClient final : public Client {
 public:
  HttpApiClient(UvLoop& loop, const ClusterAccess& access, std::string user_agent,
                FileSystem& files, FieldSets field_sets, Fence fence,
                std::function<void(const std::string&)> on_server)
      : loop_(loop),
        servers_(ServersOf(access)),
        read_servers_(access.read_servers),
        on_server_(std::move(on_server)),
        token_(access.token, access.token_file, files, loop.clock(), access.live_token),
        user_agent_(std::move(user_agent)),
        field_sets_(field_sets),
        fence_(std::move(fence)),
        http_(loop, HttpOptionsFor(access)) {}

  void Get(ResourceRef ref, ReplyCallback done) override {
    Call(net::Method::kGet, PathOf(ref), "", "", std::move(done));
  }

  void List(ResourceRef ref, ListOptions options, std::function<void(ListReply)> done) override {
    QueryBuilder query;
    AddListOptions(query, options);
    Call(net::Method::kGet, PathOf(ref) + query.text(), "", "",
         [done = std::move(done)](Reply reply) { done(ToListReply(std::move(reply))); });
  }

  void Create(ResourceRef ref, api::TreePtr body, WriteOptions options,
              ReplyCallback done) override {
    Write(net::Method::kPost, ref, "application/json", Encode(ref, body), options, std::move(done));
  }

  void Update(ResourceRef ref, api::TreePtr body, WriteOptions options,
              ReplyCallback done) override {
    Write(net::Method::kPut, ref, "application/json", Encode(ref, body), options, std::move(done));
  }

  void Patch(ResourceRef ref, PatchType type, std::string body, WriteOptions options,
             ReplyCallback done) override {
    Write(net::Method::kPatch, ref, ContentTypeOf(type), std::move(body), options, std::move(done));
  }

  void Delete(ResourceRef ref, DeleteOptions options, ReplyCallback done) override {
    Call(net::Method::kDelete, PathOf(ref), "application/json", EncodeDelete(options),
         std::move(done));
  }

  void DeleteCollection(ResourceRef ref, ListOptions list, DeleteOptions options,
                        ReplyCallback done) override {
    QueryBuilder query;
    AddListOptions(query, list);
    Call(net::Method::kDelete, PathOf(ref) + query.text(), "application/json",
         EncodeDelete(options), std::move(done));
  }

  std::unique_ptr<WatchHandle> Watch(ResourceRef ref, WatchOptions options,
                                     WatchCallbacks callbacks) override {
    QueryBuilder query;
    query.Add("watch", "true")
        .Add("labelSelector", options.label_selector)
        .Add("fieldSelector", options.field_selector)
        .Add("resourceVersion", std::to_string(options.resource_version));
    if (options.bookmarks) query.Add("allowWatchBookmarks", "true");
    // The caller watches again, with the newer token.
    const std::string server = servers_.current();
    auto watch = std::make_unique<HttpWatch>(
        std::move(callbacks),
        HttpWatch::Options{
            .server = server,
            .open = watches_,
            .field_sets = field_sets_,
            .on_unauthorized = [this, used = token_.Get()] { token_.Replace(used); },
            .on_no_answer =
                [this, server](const Error& error) {
                  if (IsNoAnswer(error)) LeaveServer(server, /*answered=*/false);
                },
            .on_unable = [this, server] { LeaveServer(server, /*answered=*/true); }});
    watch->Start(http_, MakeRequest(net::Method::kGet, PathOf(ref) + query.text(), "", ""));
    return watch;
  }

  void Discover(std::function<void(Result<ServedKinds>)> done) override {
    auto found = std::make_shared<ServedKinds>();
    found->fixed = false;
    ReadDiscovery("/api", found, [this, found, done = std::move(done)](Result<void> read) {
      if (!read.ok()) return done(read.error());
      ReadDiscovery("/apis", found, [found, done](Result<void> groups) {
        if (!groups.ok()) return done(groups.error());
        done(std::move(*found));
      });
    });
  }

 private:
  void ReadDiscovery(std::string path, std::shared_ptr<ServedKinds> into,
                     std::function<void(Result<void>)> done) {
    net::ClientRequest request = MakeRequest(net::Method::kGet, path, "", "");
    request.headers.Set("Accept", std::string(kDiscoveryType));
    request.timeout = kCallTimeout;
    Send(std::move(request), {servers_.current(), servers_.size()},
         [this, path, into, done = std::move(done)](Reply reply) {
           Result<void> read =
               reply.ok() ? catalog_.Read(reply.object->root(), *into) : Result<void>(*reply.error);
           done(read.ok() ? Ok()
                          : Result<void>(read.error().Prefixed(StrCat("discovery of ", path))));
         });
  }

  static void AddListOptions(QueryBuilder& query, const ListOptions& options) {
    query.Add("labelSelector", options.label_selector)
        .Add("fieldSelector", options.field_selector)
        .Add("continue", options.continue_token);
    if (options.limit > 0) query.Add("limit", std::to_string(options.limit));
  }

  // The server requires kind and apiVersion in the body.
  static std::string Encode(const ResourceRef& ref, const api::TreePtr& body) {
    if (!body->root()["kind"].str().empty()) return api::WriteJson(body->root());
    api::Draft draft(body);
    const bool is_binding = ref.subresource == "binding";
    draft["kind"] = is_binding ? std::string_view("Binding") : ref.kind->kind;
    draft["apiVersion"] = ref.kind->group.empty() ? std::string(ref.kind->version)
                                                  : StrCat(ref.kind->group, "/", ref.kind->version);
    return api::WriteJson(draft.Freeze()->root());
  }

  static std::string EncodeDelete(const DeleteOptions& options) {
    api::Draft draft = api::Draft::Object();
    draft["kind"] = "DeleteOptions";
    draft["apiVersion"] = "v1";
    if (options.grace_period_seconds) draft["gracePeriodSeconds"] = *options.grace_period_seconds;
    if (!options.propagation_policy.empty()) {
      draft["propagationPolicy"] = options.propagation_policy;
    }
    if (!options.precondition_uid.empty()) {
      draft["preconditions"]["uid"] = options.precondition_uid;
    }
    if (!options.precondition_resource_version.empty()) {
      draft["preconditions"]["resourceVersion"] = options.precondition_resource_version;
    }
    return api::WriteJson(draft.Freeze()->root());
  }

  void Write(net::Method method, const ResourceRef& ref, std::string_view content_type,
             std::string body, const WriteOptions& options, ReplyCallback done) {
    QueryBuilder query;
    query.Add("fieldManager", options.field_manager);
    if (options.dry_run) query.Add("dryRun", "All");
    if (options.force) query.Add("force", "true");
    Call(method, PathOf(ref) + query.text(), content_type, std::move(body), std::move(done));
  }

  net::ClientRequest MakeRequest(net::Method method, const std::string& path,
                                 std::string_view content_type, std::string body) {
    net::ClientRequest request;
    request.method = method;
    request.url = servers_.current() + path;
    request.headers.Add("Accept", "application/json");
    request.headers.Add("User-Agent", user_agent_);
    if (const std::string& token = token_.Get(); !token.empty()) {
      request.headers.Add("Authorization", kBearer + token);
    }
    if (!content_type.empty()) request.headers.Add("Content-Type", std::string(content_type));
    if (method != net::Method::kGet && fence_ != nullptr && !fence_->empty()) {
      request.headers.Add(kFenceHeader, *fence_);
    }
    request.body = std::move(body);
    return request;
  }

  void Call(net::Method method, const std::string& path, std::string_view content_type,
            std::string body, ReplyCallback done) {
    net::ClientRequest request = MakeRequest(method, path, content_type, std::move(body));
    request.timeout = kCallTimeout;
    Send(std::move(request), {servers_.current(), servers_.size()}, std::move(done));
  }

  // What to do about a failed request.
  struct Retries {
    std::string server;            // that the request is for
    std::size_t servers_left = 1;  // that it may be sent to
    int busy_answers_left = kMaxBusyAnswers;
    bool token_replaced = false;
  };

  void Send(net::ClientRequest request, Retries retries, ReplyCallback done) {
    // Another server may be in use since the request was made.
    if (retries.server != servers_.current()) {
      request.url = servers_.current() + request.url.substr(retries.server.size());
    }
    retries.server = servers_.current();
    --retries.servers_left;
    net::ClientRequest again = request;
    http_.Do(std::move(request), [this, again = std::move(again), retries,
                                  done = std::move(done)](Result<net::Response> response) mutable {
      OnAnswer(std::move(again), std::move(retries), std::move(response), std::move(done));
    });
  }

  // `again` is the request that was answered, ready to be sent again.
  void OnAnswer(net::ClientRequest again, Retries retries, Result<net::Response> response,
                ReplyCallback done) {
    // A 401 means that the request was not processed: retry it if there is a newer token.
    if (!retries.token_replaced && response.ok() && response->status == 401 &&
        token_.Replace(TokenOf(again))) {
      again.headers.Set("Authorization", kBearer + token_.Get());
      retries.token_replaced = true;
      ++retries.servers_left;
      return Send(std::move(again), std::move(retries), std::move(done));
    }
    const std::optional<Duration> pause = BusyPause(response);
    if (pause && retries.busy_answers_left > 0) {
      const std::uint64_t id = ++last_pause_;
      --retries.busy_answers_left;
      ++retries.servers_left;
      pauses_[id] =
          loop_.RunAfter(*pause, [this, id, again = std::move(again), retries = std::move(retries),
                                  done = std::move(done)]() mutable {
            // A timer must not be destroyed from its own task.
            loop_.Post(lifetime_.Guard([this, id] { pauses_.erase(id); }));
            Send(std::move(again), std::move(retries), std::move(done));
          });
      return;
    }
    const bool no_answer = !response.ok() && IsNoAnswer(response.error());
    if (no_answer || (response.ok() && CannotServe(response->status, pause.has_value()))) {
      LeaveServer(retries.server, !no_answer);
      if (again.method == net::Method::kGet && retries.servers_left > 0 &&
          servers_.current() != retries.server) {
        return Send(std::move(again), std::move(retries), std::move(done));
      }
    }
    done(ToReply(std::move(response), field_sets_));
  }

  // It gave no answer, or answered that it cannot serve.
  void LeaveServer(const std::string& server, bool answered) {
    const MonotonicTime now = loop_.clock().Monotonic();
    if (read_servers_ && server == servers_.current() && now >= read_again_) {
      read_again_ = now + kSilence;
      servers_.Replace(read_servers_());
    }
    if (!(answered ? servers_.OnUnable(server, now) : servers_.OnNoAnswer(server, now))) return;
    kLog.Warning("the API server failed; using another one",
                 {{"server", server}, {"next", servers_.current()}});
    if (on_server_) on_server_(servers_.current());
    loop_.Post(lifetime_.Guard([this, server] { EndWatches(server); }));
  }

  // Their callbacks may end other watches.
  void EndWatches(const std::string& server) {
    const std::shared_ptr<HttpWatch::Open> watches = watches_;
    std::vector<std::uint64_t> leaving;
    for (const auto& [id, watch] : watches->watches) {
      if (watch->server() == server) leaving.push_back(id);
    }
    for (const std::uint64_t id : leaving) {
      const auto found = watches->watches.find(id);
      if (found != watches->watches.end()) found->second->End(Unavailable("the API server failed"));
    }
  }

  UvLoop& loop_;
  ServerList servers_;
  const std::function<std::vector<std::string>()> read_servers_;  // may be null
  const std::function<void(const std::string&)> on_server_;       // may be null
  MonotonicTime read_again_ = MonotonicTime::min();
  const std::shared_ptr<HttpWatch::Open> watches_ = std::make_shared<HttpWatch::Open>();
  BearerToken token_;
  const std::string user_agent_;
  const FieldSets field_sets_;
  const Fence fence_;  // may be null
  KindCatalog catalog_;
  std::uint64_t last_pause_ = 0;
  std::map<std::uint64_t, TimerHandle> pauses_;  // one per waiting request
  net::HttpClient http_;
  Lifetime lifetime_;
};

}  // namespace

std::string PathOf(const ResourceRef& ref) {
  std::string path = ref.kind->group.empty()
                         ? StrCat("/api/", ref.kind->version)
                         : StrCat("/apis/", ref.kind->group, "/", ref.kind->version);
  if (ref.kind->namespaced && !ref.namespace_.empty()) {
    path += StrCat("/namespaces/", net::PercentEncode(ref.namespace_));
  }
  path += StrCat("/", ref.kind->plural);
  if (!ref.name.empty()) path += StrCat("/", net::PercentEncode(ref.name));
  if (!ref.subresource.empty()) path += StrCat("/", ref.subresource);
  return path;
}

net::HttpClientOptions HttpOptionsFor(const ClusterAccess& access) {
  net::HttpClientOptions options;
  options.tls.ca_pem = access.ca_pem;
  options.tls.certificate_pem = access.client_certificate_pem;
  options.tls.key_pem = access.client_key_pem;
  options.tls.source = access.client_certificate;
  options.tls.server_name = access.server_name;
  options.tls.insecure = access.insecure_skip_verify;
  if (!access.other_servers.empty()) {
    options.connect_timeout = kSilence;
    options.ping_after = kSilence;
    options.ping_timeout = kSilence;
    options.unacknowledged_timeout = kSilence;
  }
  return options;
}

std::unique_ptr<Client> MakeHttpClient(UvLoop& loop, const ClusterAccess& access,
                                       std::string user_agent, FileSystem& files,
                                       FieldSets field_sets, Fence fence,
                                       std::function<void(const std::string&)> on_server) {
  return std::make_unique<HttpApiClient>(loop, access, std::move(user_agent), files, field_sets,
                                         std::move(fence), std::move(on_server));
}

}  // namespace drakkar::client
