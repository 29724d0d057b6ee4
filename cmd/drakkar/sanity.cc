// sanity: conformance checks for a DRA driver in any language.
#include "sanity/sanity.h"

#include <signal.h>
#include <stdlib.h>

#include <algorithm>

#include "api/scheme/scheme.h"
#include "api/tree/draft.h"
#include "base/env/random.h"
#include "base/os/process.h"
#include "base/text/text.h"
#include "client/http_client.h"
#include "cmd/drakkar/command_groups.h"
#include "cmd/drakkar/control_plane.h"
#include "rpc/transport/transport.h"
#include "telemetry/log/log.h"

namespace drakkar::cmd {
namespace {

// Runs the loop until `condition` holds, checking it after each iteration.
bool RunUntil(UvLoop& loop, const std::function<bool()>& condition, Duration limit) {
  if (condition()) return true;
  bool over = false;
  TimerHandle end = loop.RunAfter(limit, [&] {
    over = true;
    loop.Stop();
  });
  TimerHandle look;
  std::function<void()> again = [&] {
    if (condition()) return loop.Stop();
    look = loop.RunAfter(std::chrono::milliseconds(2), again);
  };
  look = loop.RunAfter(std::chrono::milliseconds(1), again);
  while (!over && !condition()) loop.Run();
  return condition();
}

// The driver as a child of this process, which ends with it.
class DriverChild {
 public:
  DriverChild(UvLoop& loop, std::vector<std::string> command, std::vector<std::string> environment)
      : loop_(loop),
        spawner_(MakeSpawner(loop)),
        command_(std::move(command)),
        environment_(std::move(environment)) {}
  ~DriverChild() { Stop(SIGTERM); }

  Result<void> Start() {
    ended_ = false;
    ProcessOptions options;
    // Standard output is for the report; send the driver's output to standard error.
    options.arguments = {"/bin/sh", "-c", "exec \"$@\" 1>&2", "sh"};
    options.arguments.insert(options.arguments.end(), command_.begin(), command_.end());
    options.environment = environment_;
    options.capture_output = false;
    ASSIGN_OR_RETURN(process_,
                     spawner_->Spawn(std::move(options), [this](ProcessExit) { ended_ = true; }));
    return Ok();
  }
  // Kills the driver and starts it again.
  Result<void> Restart() {
    Stop(SIGKILL);
    return Start();
  }
  // Terminates the driver as a DaemonSet would.
  Result<void> End() {
    Stop(SIGTERM);
    return Ok();
  }
  bool ended() const { return ended_; }

 private:
  void Stop(int signal) {
    if (process_ == nullptr || ended_) return;
    static_cast<void>(process_->Signal(signal));
    if (!RunUntil(
            loop_, [this] { return ended_; }, std::chrono::seconds(10))) {
      static_cast<void>(process_->Signal(SIGKILL));
      RunUntil(
          loop_, [this] { return ended_; }, std::chrono::seconds(5));
    }
    process_.reset();
  }

  UvLoop& loop_;
  std::unique_ptr<Spawner> spawner_;
  const std::vector<std::string> command_;
  const std::vector<std::string> environment_;
  std::unique_ptr<Process> process_;
  bool ended_ = true;
};

// UIDs of the pods of the two instances in a rolling update.
constexpr char kFirstUid[] = "5a91f0de-0000-4000-8000-000000000001";
constexpr char kSecondUid[] = "5a91f0de-0000-4000-8000-000000000002";

// Replaces "{kubeconfig}" and so on in a word of the driver's command.
std::string Fill(std::string word, const std::vector<std::pair<std::string, std::string>>& values) {
  for (const auto& [name, value] : values) {
    for (std::size_t at = word.find(name); at != std::string::npos;
         at = word.find(name, at + value.size())) {
      word.replace(at, name.size(), value);
    }
  }
  return word;
}

// Everything that one run needs; destroyed in reverse order.
class SanityRun {
 public:
  SanityRun(const cli::Arguments& arguments, cli::Console& console)
      : arguments_(arguments), console_(console) {}
  ~SanityRun() {
    second_.reset();
    child_.reset();
    client_.reset();
    transport_.reset();
    if (server_ != nullptr) {
      bool stopped = false;
      server_->Stop([&] { stopped = true; });
      RunUntil(
          loop_, [&] { return stopped; }, std::chrono::seconds(10));
      server_.reset();
    }
    if (!directory_.empty()) static_cast<void>(RealFileSystem().RemoveTree(directory_));
  }

  Result<sanity::Report> Run() {
    kubeconfig_ = arguments_.Text("kubeconfig");
    node_name_ = arguments_.Text("node-name");
    if (node_name_.empty() && !arguments_.positionals().empty()) node_name_ = "sanity";
    std::vector<std::string> cdi = arguments_.List("cdi-dir");
    socket_ = arguments_.Text("driver-socket");
    const std::vector<std::string>& command = arguments_.positionals();
    if (socket_.empty() && command.empty()) {
      return InvalidArgument("--driver-socket is required, or the driver's command after --");
    }
    if (kubeconfig_.empty() && command.empty()) {
      return InvalidArgument("--kubeconfig is required, for the API server that the driver uses");
    }
    RETURN_IF_ERROR(MakeDirectory());
    if (kubeconfig_.empty()) RETURN_IF_ERROR(StartServer());
    ASSIGN_OR_RETURN(const client::ClusterAccess access,
                     client::LoadKubeconfig(RealFileSystem(), kubeconfig_));
    client_ = client::MakeHttpClient(loop_, access, "drakkar-sanity");
    transport_ = rpc::MakeGrpcTransport(loop_);
    if (server_ != nullptr) RETURN_IF_ERROR(CreateNode());
    const std::string registry = JoinPath(directory_, "plugins_registry");
    if (!command.empty()) {
      if (cdi.empty()) cdi = {JoinPath(directory_, "cdi")};
      RETURN_IF_ERROR(StartDriver(command, registry, cdi.back()));
      if (socket_.empty()) {
        ASSIGN_OR_RETURN(socket_, FindSocket(*child_, registry, ""));
      }
    }
    sanity::Options options{
        .loop = loop_,
        .random = RealRandom(),
        .files = RealFileSystem(),
        .client = *client_,
        .transport = *transport_,
        .wait_until = [this](const std::function<bool()>& condition,
                             Duration limit) { return RunUntil(loop_, condition, limit); },
        .driver_socket = socket_,
        .driver_name = arguments_.Text("driver-name"),
        .node_name = node_name_,
        .namespace_name = arguments_.Text("namespace"),
        .cdi_directories = cdi,
        .timeout = arguments_.Time("timeout"),
        .slow = arguments_.Bool("slow")};
    const std::string& restart = arguments_.Text("restart-command");
    if (!restart.empty()) {
      options.restart_driver = [this, restart] { return RunCommand(restart); };
    } else if (child_ != nullptr) {
      options.restart_driver = [this] { return child_->Restart(); };
    }
    if (child_ != nullptr && HasPodUid(command)) {
      options.start_second = [this, registry, cdi = cdi.back()]() -> Result<std::string> {
        ASSIGN_OR_RETURN(second_, StartChild(arguments_.positionals(), registry, cdi, kSecondUid));
        return FindSocket(*second_, registry, socket_);
      };
      options.stop_first = [this] { return child_->End(); };
    }
    if (console_.err_is_terminal()) {
      options.on_result = [this](const sanity::CheckResult& result) {
        console_.Err(StrCat(result.id, "\n"));
      };
    }
    return sanity::RunSanity(options);
  }

 private:
  Result<void> MakeDirectory() {
    const char* place = std::getenv("TMPDIR");
    std::string pattern =
        StrCat(place != nullptr && *place != '\0' ? place : "/tmp", "/drakkar-sanity-XXXXXX");
    if (::mkdtemp(pattern.data()) == nullptr) {
      return Internal(
          StrCat("could not create a directory ", pattern, "; set TMPDIR to a writable directory"));
    }
    directory_ = pattern;
    return Ok();
  }

  Result<void> StartServer() {
    ASSIGN_OR_RETURN(FeatureGates gates,
                     FeatureGates::Create({.emulated = kOurVersion,
                                           .turned_on = {Gate::kNodeDeclaredFeatures,
                                                         Gate::kDRAOptionalNodePreparation}}));
    ASSIGN_OR_RETURN(server_, ApiServerPart::Open({.loop = loop_,
                                                   .data_dir = JoinPath(directory_, "apiserver"),
                                                   .address = {.host = "127.0.0.1", .port = 0},
                                                   .gates = gates}));
    std::optional<Result<void>> started;
    server_->Start([&](Result<void> result) { started = std::move(result); });
    if (!RunUntil(
            loop_, [&] { return started.has_value(); }, std::chrono::seconds(20))) {
      return Internal("the API server did not start in time");
    }
    if (!started->ok()) return std::move(*started).error();
    kubeconfig_ = server_->kubeconfig_path();
    return Ok();
  }

  // Creates the driver's node, and the service account of the pods that claims are reserved for,
  // because no controllers run with this server.
  Result<void> CreateNode() {
    RETURN_IF_ERROR(CreateNamed("Node", "", node_name_));
    return CreateNamed("ServiceAccount", "default", "default");
  }

  Result<void> CreateNamed(std::string_view kind, std::string_view namespace_name,
                           const std::string& name) {
    api::Draft object{{"apiVersion", "v1"}, {"kind", kind}, {"metadata", {{"name", name}}}};
    std::optional<client::Reply> reply;
    client_->Create(
        {.kind = api::FindKind("", "v1", kind), .namespace_ = std::string(namespace_name)},
        object.Freeze(), {}, [&](client::Reply got) { reply = std::move(got); });
    if (!RunUntil(
            loop_, [&] { return reply.has_value(); }, std::chrono::seconds(10))) {
      return Internal("the API server does not answer");
    }
    if (!reply->ok()) return reply->error->Prefixed(StrCat("create ", kind, " ", name));
    return Ok();
  }

  Result<void> StartDriver(const std::vector<std::string>& command, const std::string& registry,
                           const std::string& cdi) {
    for (const std::string& directory : {registry, cdi}) {
      RETURN_IF_ERROR(RealFileSystem().MakeDirectories(directory, 0750));
    }
    ASSIGN_OR_RETURN(child_, StartChild(command, registry, cdi, kFirstUid));
    return Ok();
  }

  static bool HasPodUid(const std::vector<std::string>& command) {
    return std::any_of(command.begin(), command.end(), [](const std::string& word) {
      return word.find("{pod-uid}") != std::string::npos;
    });
  }

  Result<std::unique_ptr<DriverChild>> StartChild(const std::vector<std::string>& command,
                                                  const std::string& registry,
                                                  const std::string& cdi,
                                                  const std::string& pod_uid) {
    std::vector<std::string> words;
    for (const std::string& word : command) {
      words.push_back(Fill(word, {{"{kubeconfig}", kubeconfig_},
                                  {"{node}", node_name_},
                                  {"{registry}", registry},
                                  {"{plugins}", JoinPath(directory_, "plugins")},
                                  {"{cdi}", cdi},
                                  {"{pod-uid}", pod_uid}}));
    }
    std::vector<std::string> environment;
    for (char** each = environ; *each != nullptr; ++each) {
      if (!std::string_view(*each).starts_with("KUBECONFIG=")) environment.emplace_back(*each);
    }
    environment.push_back("KUBECONFIG=" + kubeconfig_);
    environment.push_back("NODE_NAME=" + node_name_);
    auto child = std::make_unique<DriverChild>(loop_, std::move(words), std::move(environment));
    auto started = child->Start();
    if (!started.ok()) return std::move(started).error().Prefixed("start the driver");
    return child;
  }

  // Waits for the registration socket that the driver creates, ignoring those that already exist.
  Result<std::string> FindSocket(const DriverChild& child, const std::string& registry,
                                 const std::string& known) {
    std::string found;
    RunUntil(
        loop_,
        [&] {
          const auto names = RealFileSystem().ListDirectory(registry);
          for (const std::string& name : names.ok() ? *names : std::vector<std::string>()) {
            // A driver may bind a hidden name and rename it once it accepts connections.
            if (name.starts_with('.')) continue;
            const auto info = RealFileSystem().Stat(JoinPath(registry, name));
            const std::string path = JoinPath(registry, name);
            if (info.ok() && info->type == FileType::kSocket && path != known) found = path;
          }
          return !found.empty() || child.ended();
        },
        arguments_.Time("timeout"));
    if (!found.empty()) return found;
    return FailedPrecondition(
        child.ended() ? "the driver exited before it registered"
                      : StrCat("the driver created no registration socket in ", registry));
  }

  Result<void> RunCommand(const std::string& command) {
    std::unique_ptr<Spawner> spawner = MakeSpawner(loop_);
    std::optional<ProcessExit> exit;
    ProcessOptions options;
    options.arguments = {"/bin/sh", "-c", command};
    ASSIGN_OR_RETURN(
        std::unique_ptr<Process> process,
        spawner->Spawn(std::move(options), [&](ProcessExit ended) { exit = std::move(ended); }));
    if (!RunUntil(
            loop_, [&] { return exit.has_value(); }, std::chrono::minutes(2))) {
      static_cast<void>(process->Signal(SIGKILL));
      RunUntil(
          loop_, [&] { return exit.has_value(); }, std::chrono::seconds(5));
      return Error{ErrorCode::kDeadlineExceeded, "--restart-command took more than two minutes"};
    }
    if (exit->exit_code == 0) return Ok();
    return FailedPrecondition(
        StrCat("--restart-command exited with ", exit->exit_code, ": ", Trim(exit->error_output)));
  }

  const cli::Arguments& arguments_;
  cli::Console& console_;
  UvLoop loop_;
  std::string directory_;
  std::string kubeconfig_;
  std::string node_name_;
  std::string socket_;
  std::unique_ptr<ApiServerPart> server_;
  std::unique_ptr<client::Client> client_;
  std::unique_ptr<rpc::Transport> transport_;
  std::unique_ptr<DriverChild> child_;
  std::unique_ptr<DriverChild> second_;  // of a rolling update
};

int RunSanityCommand(const cli::Arguments& arguments, cli::Console& console) {
  const std::string& output = arguments.Text("output");
  if (output != "table" && output != "json") {
    console.Error(StrCat("--output must be table or json, not ", Quote(output)));
    return cli::kExitUsage;
  }
  ConfigureLogging(LogFormat::kText, LogLevel::kError, RealClock());
  SanityRun run(arguments, console);
  Result<sanity::Report> report = run.Run();
  if (!report.ok()) {
    console.Error(report.error().message);
    return cli::kExitFailure;
  }
  console.Out(output == "json" ? sanity::RenderJson(*report) : sanity::RenderTable(*report));
  return report->ok() ? cli::kExitOk : cli::kExitFailure;
}

}  // namespace

void AddSanityCommand(cli::App& app) {
  app.Add(
      {.name = "sanity",
       .arguments = "[-- DRIVER ARGUMENT...]",
       .summary = "Check that a DRA driver, in any language, conforms",
       .help = "Acts as the driver's node agent and checks registration, versions, slices, "
               "prepare and unprepare (repeated, unknown claims, concurrent calls), CDI specs, "
               "the health stream, restarts and rolling updates. With a command after --, it "
               "starts its own API server and the driver. In the command, {kubeconfig}, {node}, "
               "{registry}, {plugins}, {cdi} and {pod-uid} are replaced, and KUBECONFIG and "
               "NODE_NAME are set; using {pod-uid} enables the rolling update checks. Without a "
               "command, it checks a running driver through its socket and the API server it "
               "uses. Exits with 1 if a check fails.",
       .examples =
           "  # the reference driver, with everything it needs\n"
           "  drakkar sanity -- drakkar driver --kubeconfig={kubeconfig} --node-name={node} "
           "--registry-dir={registry} --cdi-dir={cdi}\n"
           "  # a driver that is running on this node\n"
           "  drakkar sanity "
           "--driver-socket=/var/lib/kubelet/plugins_registry/gpu.example.com-reg.sock "
           "--kubeconfig=admin.conf --node-name=n1 --cdi-dir=/var/run/cdi\n",
       .flags =
           {{.name = "driver-socket",
             .help = "The driver's registration socket, or its DRA service socket.",
             .placeholder = "FILE"},
            {.name = "kubeconfig",
             .help = "Kubeconfig of the API server that the driver uses. Defaults to starting one.",
             .placeholder = "FILE"},
            {.name = "node-name",
             .help = "Node that the driver publishes for. Defaults to sanity if the driver "
                     "is started, otherwise to the only node it has published for.",
             .placeholder = "NAME"},
            {.name = "driver-name",
             .help = "Name of the driver; required with a DRA service socket, which does not "
                     "report it.",
             .placeholder = "NAME"},
            {.name = "namespace",
             .short_name = 'n',
             .help = "Namespace in which claims are created.",
             .default_value = "default",
             .placeholder = "NAME"},
            {.name = "cdi-dir",
             .type = cli::FlagType::kRepeated,
             .help = "Directory of the driver's CDI specs; may be repeated.",
             .placeholder = "DIR"},
            {.name = "restart-command",
             .help = "Shell command that restarts the driver.",
             .placeholder = "COMMAND"},
            {.name = "timeout",
             .type = cli::FlagType::kDuration,
             .help = "How long to wait for a response.",
             .default_value = "10s",
             .placeholder = "TIME"},
            {.name = "slow",
             .type = cli::FlagType::kBool,
             .help = "Also run checks that take up to half a minute.",
             .default_value = "false"},
            {.name = "output",
             .short_name = 'o',
             .help = "Output format: table or json.",
             .default_value = "table",
             .placeholder = "FORMAT"}},
       .section = "Run",
       .run = RunSanityCommand});
}

}  // namespace drakkar::cmd
