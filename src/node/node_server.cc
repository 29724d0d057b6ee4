#include "node/node_server.h"

#include "api/json/writer.h"
#include "api/meta/time.h"
#include "api/tree/draft.h"
#include "base/text/text.h"
#include "net/http/status.h"
#include "node/health/health_monitor.h"
#include "node/node_agent.h"
#include "node/pods/pod_manager.h"
#include "telemetry/metrics/metrics.h"

namespace drakkar::node {
namespace {

const net::Headers& PlainText() {
  static const net::Headers headers = {{"Content-Type", "text/plain; charset=utf-8"}};
  return headers;
}

// Where the log is, and the container it belongs to.
struct LogTarget {
  std::string path;
  std::string container_id;
};

Result<LogTarget> FindLog(const NodeAgent& agent, const Runtime& runtime, const std::string& home,
                          const std::string& pod, const std::string& container, bool previous) {
  const PodWorker* worker = agent.pods().Find(StrCat(home, "/", pod));
  if (worker == nullptr) return NotFound(StrCat("pod ", Quote(pod), " not found on this node"));
  const PodFacts facts = CollectFacts(worker->pod()->root(), worker->uid(), runtime);
  for (const auto* list : {&facts.init, &facts.regular}) {
    for (const ContainerFacts& each : *list) {
      if (each.name != container) continue;
      if (previous && !each.previous) {
        return InvalidArgument(StrCat("previous terminated container ", Quote(container), " in pod ",
                                      Quote(pod), " not found"));
      }
      const auto& status = previous ? each.previous : each.current;
      if (!status || status->state == ContainerState::kCreated) {
        return InvalidArgument(StrCat("container ", Quote(container), " in pod ", Quote(pod),
                                      " is waiting to start: ContainerCreating"));
      }
      return LogTarget{status->log_path, status->id};
    }
  }
  return InvalidArgument(StrCat("container ", container, " is not valid for pod ", pod));
}

Result<std::optional<std::int64_t>> Number(const net::Query& query, const char* name) {
  const auto text = query.Find(name);
  if (!text || text->empty()) return std::optional<std::int64_t>();
  auto number = ParseInt64(*text);
  if (!number || *number < 0) {
    return InvalidArgument(StrCat(name, ": ", Quote(*text), " is not a number of at least 0"));
  }
  return number;
}

bool Flag(const net::Query& query, const char* name) {
  const auto text = query.Find(name);
  return text && (*text == "true" || *text == "1");
}

}  // namespace

Result<LogOptions> ParseLogOptions(const net::Query& query, WallTime now) {
  LogOptions options;
  ASSIGN_OR_RETURN(options.tail_lines, Number(query, "tailLines"));
  ASSIGN_OR_RETURN(options.limit_bytes, Number(query, "limitBytes"));
  ASSIGN_OR_RETURN(const auto seconds, Number(query, "sinceSeconds"));
  if (seconds) options.since = now - std::chrono::seconds(*seconds);
  if (const auto time = query.Find("sinceTime"); time && !time->empty()) {
    ASSIGN_OR_RETURN(options.since, api::ParseTime(*time));
  }
  options.timestamps = Flag(query, "timestamps");
  options.previous = Flag(query, "previous");
  options.follow = Flag(query, "follow");
  if (const auto stream = query.Find("stream")) options.stream = std::string(*stream);
  return options;
}

struct NodeServer::Follower {
  std::shared_ptr<net::ResponseWriter> writer;
  LogStream log;
  bool follow = false;
  std::string container_id;
  TimerHandle timer;
};

NodeServer::NodeServer(Options options) : options_(std::move(options)) {}
NodeServer::~NodeServer() = default;

void NodeServer::Handle(net::ServerRequest request, std::shared_ptr<net::ResponseWriter> writer) {
  options_.loop.AssertInLoop();
  if (request.method != net::Method::kGet) {
    return writer->Send(405, PlainText(), std::string("only GET is served here\n"));
  }
  if (request.path == "/healthz" || request.path == "/healthz/ping") {
    return writer->Send(200, PlainText(), std::string("ok"));
  }
  if (!options_.is_allowed || !options_.is_allowed(*request.connection)) {
    return writer->Send(401, PlainText(), std::string("Unauthorized\n"));
  }
  if (request.path == "/metrics") {
    return writer->Send(200, {{"Content-Type", "text/plain; version=0.0.4; charset=utf-8"}},
                        options_.metrics != nullptr ? options_.metrics->Text() : std::string());
  }
  if (request.path == "/pods" || request.path == "/pods/") {
    std::string body = R"({"kind":"PodList","apiVersion":"v1","metadata":{},"items":[)";
    bool first = true;
    for (const auto& [uid, worker] : options_.agent.pods().workers()) {
      if (worker->pod() == nullptr) continue;
      if (!first) body += ',';
      first = false;
      body += *worker->pod()->json();
    }
    return writer->Send(200, {{"Content-Type", "application/json"}}, body + "]}");
  }
  if (request.path == "/devices") {
    const api::Draft list = {{"kind", api::Draft("DeviceList")},
                             {"items", options_.agent.health().ListDevices()}};
    return writer->Send(200, {{"Content-Type", "application/json"}}, api::WriteJson(list.Freeze()->root()));
  }
  const std::vector<std::string_view> parts = Split(request.path, '/');
  if (parts.size() == 5 && parts[1] == "containerLogs") {
    return SendLogs(request, std::string(parts[2]), std::string(parts[3]), std::string(parts[4]), writer);
  }
  writer->Send(404, PlainText(), std::string("404 page not found\n"));
}

void NodeServer::SendLogs(const net::ServerRequest& request, const std::string& namespace_name,
                          const std::string& pod, const std::string& container,
                          const std::shared_ptr<net::ResponseWriter>& writer) {
  auto fail = [&](const Error& error) {
    writer->Send(net::HttpStatusOf(error.code), PlainText(), error.message);
  };
  if (!request.query().ok()) return fail(request.query().error());
  auto options = ParseLogOptions(*request.query(), options_.loop.clock().Now());
  if (!options.ok()) return fail(options.error());
  auto target = FindLog(options_.agent, options_.runtime, namespace_name, pod, container, options->previous);
  if (!target.ok()) return fail(target.error());
  if (followers_.size() >= kMaxLogStreams) {
    return fail({ErrorCode::kResourceExhausted, "too many logs are being read on this node"});
  }
  const std::uint64_t id = next_id_++;
  const bool follow = options->follow;
  followers_[id] = std::make_unique<Follower>(
      Follower{writer, LogStream(options_.files, target->path, std::move(*options)), follow,
               target->container_id, nullptr});
  writer->StartStream(200, PlainText());
  // Ends the reading, never the writer it is called from.
  writer->OnClosed([this, id](bool) {
    auto found = followers_.find(id);
    if (found == followers_.end()) return;
    options_.loop.Post([kept = std::shared_ptr<Follower>(std::move(found->second))] {});
    followers_.erase(found);
  });
  writer->OnDrained([this, id] { Pump(id); });
  Pump(id);
}

void NodeServer::Pump(std::uint64_t id) {
  auto found = followers_.find(id);
  if (found == followers_.end()) return;
  Follower& follower = *found->second;
  follower.timer.reset();
  const std::shared_ptr<net::ResponseWriter> writer = follower.writer;
  while (writer->pending_bytes() < kMaxPending) {
    // Asked before reading: what the container wrote before it ended is then read for sure.
    auto status = options_.runtime.GetContainerStatus(follower.container_id);
    const bool runs = status.ok() && status->state == ContainerState::kRunning;
    auto text = follower.log.Read();
    if (!text.ok()) {
      followers_.erase(found);
      return writer->Abort();
    }
    if (!text->empty()) {
      writer->Write(net::MakeSegment(std::move(*text)));
      if (!followers_.contains(id)) return;
      if (!follower.log.is_exhausted()) continue;
    } else if (follower.follow && runs && !follower.log.is_exhausted()) {
      follower.timer = options_.loop.RunAfter(kFollowEvery, [this, id] { Pump(id); });
      return;
    }
    followers_.erase(found);
    return writer->Finish();
  }
}

}  // namespace drakkar::node
