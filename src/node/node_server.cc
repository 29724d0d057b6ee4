#include "node/node_server.h"

#include "api/json/writer.h"
#include "api/meta/bounded_seconds.h"
#include "api/meta/time.h"
#include "api/tree/draft.h"
#include "base/text/text.h"
#include "net/http/status.h"
#include "net/websocket/channels.h"
#include "net/websocket/handshake.h"
#include "node/health/health_monitor.h"
#include "node/node_access.h"
#include "node/node_agent.h"
#include "node/pods/pod_manager.h"
#include "node/stats/summary.h"
#include "node/streaming/port_forward.h"
#include "node/streaming/remote_command.h"
#include "node/streaming/spdy_command.h"
#include "telemetry/metrics/metrics.h"

namespace drakkar::node {
namespace {

const net::Headers& PlainText() {
  static const net::Headers headers = {{"Content-Type", "text/plain; charset=utf-8"}};
  return headers;
}

// The path of a log and the container it belongs to.
struct LogTarget {
  std::string path;
  std::string container_id;
};

Result<LogTarget> FindLog(const NodeAgent& agent, const Runtime& runtime, const std::string& home,
                          const std::string& pod, const std::string& container, bool previous) {
  const PodWorker* worker = agent.pods().Find(StrCat(home, "/", pod));
  if (worker == nullptr) return NotFound(StrCat("pod ", Quote(pod), " not found on this node"));
  const PodFacts facts = CollectFacts(worker->pod()->root(), worker->uid(), runtime);
  for (const auto* list : {&facts.init, &facts.regular, &facts.ephemeral}) {
    for (const ContainerFacts& each : *list) {
      if (each.name != container) continue;
      if (previous && !each.previous) {
        return InvalidArgument(StrCat("previous terminated container ", Quote(container),
                                      " in pod ", Quote(pod), " not found"));
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

constexpr std::string_view kTooManySessions =
    "too many exec, attach and port-forward sessions on this node; try again later";

// Answers a request for SPDY that offers `protocol` among others.
Result<std::unique_ptr<net::RawStream>> UpgradeToSpdy(const net::ServerRequest& request,
                                                      std::string_view protocol,
                                                      net::ResponseWriter& writer) {
  if (!request.headers.HasToken("connection", "upgrade") ||
      !net::EqualsIgnoreCase(request.headers.Get("upgrade"), "SPDY/3.1")) {
    return InvalidArgument("Upgrade request required: WebSocket or SPDY/3.1");
  }
  bool offered = false;
  std::string all;
  for (const auto& [name, value] : request.headers) {
    if (!net::EqualsIgnoreCase(name, "x-stream-protocol-version")) continue;
    for (const std::string_view each : Split(value, ',')) {
      offered |= Trim(each) == protocol;
      all += StrCat(all.empty() ? "" : ", ", Trim(each));
    }
  }
  if (!offered) {
    return InvalidArgument(StrCat("unable to negotiate protocol: client supports [", all,
                                  "], server supports [", protocol, "]"));
  }
  return writer.Upgrade(
      {{"Upgrade", "SPDY/3.1"}, {"X-Stream-Protocol-Version", std::string(protocol)}});
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
  if (seconds) options.since = now - api::BoundedSeconds(*seconds);
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
  std::unique_ptr<FileWatch> watch;
  bool woken = false;  // a read is already scheduled
};

NodeServer::NodeServer(Options options) : options_(std::move(options)) {}
NodeServer::~NodeServer() = default;

void NodeServer::Handle(net::ServerRequest request, std::shared_ptr<net::ResponseWriter> writer) {
  options_.loop.AssertInLoop();
  if (!options_.authorize) {
    return writer->Send(401, PlainText(), std::string("Unauthorized\n"));
  }
  const auto kept = std::make_shared<const net::ServerRequest>(std::move(request));
  options_.authorize(
      *kept, RequiredAccess(*kept, options_.node_name),
      lifetime_.Guard([this, kept, writer = std::move(writer)](
                          const std::optional<client::AccessReviewer::Refusal>& refusal) {
        if (writer->is_closed()) return;
        if (!refusal) return Serve(*kept, writer);
        writer->Send(refusal->status, PlainText(), StrCat(refusal->reason, "\n"));
      }));
}

void NodeServer::Serve(const net::ServerRequest& request,
                       const std::shared_ptr<net::ResponseWriter>& writer) {
  const std::vector<std::string_view> parts = Split(request.path, '/');
  const bool is_command = parts.size() == 5 && (parts[1] == "exec" || parts[1] == "attach");
  // A kubelet's path may end with the pod's uid.
  const bool is_forward = (parts.size() == 4 || parts.size() == 5) && parts[1] == "portForward";
  if (request.method != net::Method::kGet &&
      !((is_command || is_forward) && request.method == net::Method::kPost)) {
    return writer->Send(405, PlainText(), std::string("only GET is supported\n"));
  }
  if (request.path == "/healthz" || request.path == "/healthz/ping") {
    return writer->Send(200, PlainText(), std::string("ok"));
  }
  if (request.path == "/metrics") {
    options_.agent.UpdateGauges();
    return writer->Send(200, {{"Content-Type", "text/plain; version=0.0.4; charset=utf-8"}},
                        options_.metrics != nullptr ? options_.metrics->Text() : std::string());
  }
  if (request.path == "/stats/summary" || request.path == "/metrics/resource" ||
      request.path == "/metrics/cadvisor") {
    return ServeUsage(request, writer);
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
    return writer->Send(200, {{"Content-Type", "application/json"}},
                        api::WriteJson(list.Freeze()->root()));
  }
  if (request.path == "/drivers") {
    return writer->Send(200, {{"Content-Type", "application/json"}},
                        options_.agent.DescribeDrivers());
  }
  if (is_command) {
    return ServeCommand(request, parts[1], std::string(parts[2]), std::string(parts[3]),
                        std::string(parts[4]), *writer);
  }
  if (is_forward) {
    return ServePortForward(request, std::string(parts[2]), std::string(parts[3]), *writer);
  }
  if (parts.size() == 5 && parts[1] == "containerLogs") {
    return SendLogs(request, std::string(parts[2]), std::string(parts[3]), std::string(parts[4]),
                    writer);
  }
  writer->Send(404, PlainText(), std::string("404 page not found\n"));
}

void NodeServer::ServeUsage(const net::ServerRequest& request,
                            const std::shared_ptr<net::ResponseWriter>& writer) {
  const bool brief = request.query().ok() && Flag(*request.query(), "only_cpu_and_memory");
  options_.agent.usage().Get(
      lifetime_.Guard([this, writer, brief, path = request.path](Result<NodeUsagePtr> usage) {
        if (writer->is_closed()) return;
        if (!usage.ok()) {
          return writer->Send(net::HttpStatusOf(usage.error().code), PlainText(),
                              StrCat(usage.error().message, "\n"));
        }
        if (path == "/stats/summary") {
          return writer->Send(200, {{"Content-Type", "application/json"}},
                              WriteSummary(**usage, options_.node_name, brief));
        }
        writer->Send(200, {{"Content-Type", "text/plain; version=0.0.4; charset=utf-8"}},
                     path == "/metrics/resource"
                         ? WriteResourceMetrics(**usage)
                         : WriteCadvisorMetrics(**usage, options_.agent.identity()));
      }));
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
  auto target =
      FindLog(options_.agent, options_.runtime, namespace_name, pod, container, options->previous);
  if (!target.ok()) return fail(target.error());
  if (followers_.size() >= kMaxLogStreams) {
    return fail({ErrorCode::kResourceExhausted, "too many logs are being read on this node"});
  }
  const std::uint64_t id = next_id_++;
  const bool follow = options->follow;
  followers_[id] = std::make_unique<Follower>(
      Follower{writer, LogStream(options_.files, target->path, std::move(*options)), follow,
               target->container_id});
  writer->StartStream(200, PlainText());
  // Stops reading; never destroys the writer that calls this.
  writer->OnClosed([this, id](bool) {
    auto found = followers_.find(id);
    if (found == followers_.end()) return;
    options_.loop.Post([kept = std::shared_ptr<Follower>(std::move(found->second))] {});
    followers_.erase(found);
  });
  writer->OnDrained([this, id] { Pump(id); });
  // Watch before the first read, so that no write is missed.
  if (follow && options_.log_watcher != nullptr) WatchLog(id, target->path);
  Pump(id);
}

void NodeServer::WatchLog(std::uint64_t id, const std::string& path) {
  auto watch = options_.log_watcher->Watch(
      DirectoryName(path), [this, id, name = std::string(BaseName(path))](const FileEvent& event) {
        if (event.change != FileChange::kEventsLost && event.name != name) return;
        auto found = followers_.find(id);
        if (found == followers_.end() || std::exchange(found->second->woken, true)) return;
        // Coalesces many writes into one read.
        options_.loop.Post(lifetime_.Guard([this, id] {
          if (auto woken = followers_.find(id); woken != followers_.end())
            woken->second->woken = false;
          Pump(id);
        }));
      });
  if (watch.ok()) followers_[id]->watch = std::move(*watch);
}

void NodeServer::ServeCommand(const net::ServerRequest& request, std::string_view verb,
                              const std::string& namespace_name, const std::string& pod,
                              const std::string& container, net::ResponseWriter& writer) {
  auto refuse = [&](int status, std::string message) {
    writer.Send(status, PlainText(), std::move(message));
  };
  if (!request.query().ok()) return refuse(400, request.query().error().message);
  const net::Query& query = *request.query();
  const bool is_exec = verb == "exec";
  StreamOptions streams;
  streams.standard_input = Flag(query, "input");
  streams.standard_output = Flag(query, "output");
  streams.terminal = Flag(query, "tty");
  streams.error_output = Flag(query, "error") && !streams.terminal;
  if (!streams.standard_input && !streams.standard_output && !streams.error_output) {
    return refuse(400, "you must specify at least 1 of stdin, stdout, stderr");
  }
  std::vector<std::string> command;
  for (const auto& [name, value] : query) {
    if (name == "command") command.push_back(value);
  }
  if (is_exec && command.empty()) return refuse(400, "you must specify at least 1 command");
  const PodWorker* worker = options_.agent.pods().Find(StrCat(namespace_name, "/", pod));
  if (worker == nullptr) return refuse(404, "pod does not exist");
  std::string id;
  const PodFacts facts = CollectFacts(worker->pod()->root(), worker->uid(), options_.runtime);
  for (const auto* list : {&facts.init, &facts.regular, &facts.ephemeral}) {
    for (const ContainerFacts& each : *list) {
      if (each.name == container && each.running()) id = each.current->id;
    }
  }
  // A kubelet's wording, because clients display it verbatim.
  if (id.empty()) return refuse(500, StrCat("container not found (", Quote(container), ")"));
  if (open_sessions() >= kMaxRemoteCommands) return refuse(429, std::string(kTooManySessions));
  const std::uint64_t number = next_id_++;
  const std::string what = is_exec ? "executing command" : "attaching to container";
  auto start = [&runtime = options_.runtime, is_exec, id, command = std::move(command),
                streams](ProcessStreams::Events& events) {
    return is_exec ? runtime.Exec(id, command, streams, events)
                   : runtime.Attach(id, streams, events);
  };
  if (!net::websocket::IsUpgrade(request.headers)) {
    auto upgraded = UpgradeToSpdy(request, kSpdyCommandProtocol, writer);
    if (!upgraded.ok()) return refuse(400, upgraded.error().message);
    auto& spdy = spdy_commands_[number];
    spdy = std::make_unique<SpdyCommand>(
        SpdyCommand::Options{
            .loop = options_.loop,
            .streams = streams,
            .what = what,
            .starter = std::move(start),
            .on_gone = lifetime_.Guard([this, number] { spdy_commands_.erase(number); })},
        std::move(*upgraded));
    return spdy->Start();
  }
  static constexpr std::string_view kProtocols[] = {net::websocket::kChannelProtocolV5,
                                                    net::websocket::kChannelProtocolV4,
                                                    kFirstChannelProtocol};
  Result<net::websocket::Accepted> accepted = net::websocket::Accept(request.headers, kProtocols);
  if (!accepted.ok()) return refuse(400, accepted.error().message);
  Result<std::unique_ptr<net::RawStream>> upgraded = writer.Upgrade(accepted->headers);
  if (!upgraded.ok()) return refuse(400, upgraded.error().message);
  auto& session = commands_[number];
  session = std::make_unique<RemoteCommand>(
      RemoteCommand::Options{
          .loop = options_.loop,
          .streams = streams,
          .protocol = accepted->protocol,
          .what = what,
          .on_gone = lifetime_.Guard([this, number] { commands_.erase(number); })},
      std::move(*upgraded));
  session->Start(start);
}

std::size_t NodeServer::open_sessions() const {
  return commands_.size() + spdy_commands_.size() + port_forwards_.size();
}

void NodeServer::ServePortForward(const net::ServerRequest& request,
                                  const std::string& namespace_name, const std::string& pod,
                                  net::ResponseWriter& writer) {
  auto refuse = [&](int status, std::string message) {
    writer.Send(status, PlainText(), std::move(message));
  };
  const PodWorker* worker = options_.agent.pods().Find(StrCat(namespace_name, "/", pod));
  if (worker == nullptr) return refuse(404, "pod does not exist");
  const std::string uid = worker->uid();
  if (open_sessions() >= kMaxRemoteCommands) return refuse(429, std::string(kTooManySessions));
  auto upgraded = UpgradeToSpdy(request, kPortForwardProtocol, writer);
  if (!upgraded.ok()) return refuse(400, upgraded.error().message);
  const std::uint64_t number = next_id_++;
  auto& session = port_forwards_[number];
  session = std::make_unique<PortForward>(
      PortForward::Options{
          .loop = options_.loop,
          .pod = StrCat(pod, "_", namespace_name),
          // Looked up for each connection: the pod's sandbox may have been replaced.
          .connect = [&runtime = options_.runtime, uid](std::uint16_t port,
                                                        PortConnection::Events& events)
              -> Result<std::unique_ptr<PortConnection>> {
            for (const PodSandbox& sandbox : runtime.ListPodSandboxes()) {
              if (sandbox.uid == uid && sandbox.state == SandboxState::kReady) {
                return runtime.ConnectPort(sandbox.id, port, events);
              }
            }
            return FailedPrecondition("the pod is not running");
          },
          .on_gone = lifetime_.Guard([this, number] { port_forwards_.erase(number); })},
      std::move(*upgraded));
  session->Start();
}

void NodeServer::Pump(std::uint64_t id) {
  auto found = followers_.find(id);
  if (found == followers_.end()) return;
  Follower& follower = *found->second;
  follower.timer.reset();
  const std::shared_ptr<net::ResponseWriter> writer = follower.writer;
  while (writer->pending_bytes() < kMaxPending) {
    // Check this before reading, so that everything written before the exit is read.
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
      follower.timer = options_.loop.RunAfter(follower.watch ? kFollowWatchedEvery : kFollowEvery,
                                              [this, id] { Pump(id); });
      return;
    }
    followers_.erase(found);
    return writer->Finish();
  }
}

}  // namespace drakkar::node
