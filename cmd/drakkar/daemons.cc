// up, apiserver, controllers, scheduler, node, driver: flags in, parts out.
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/env/absolute_path.h"
#include "base/text/text.h"
#include "client/http_client.h"
#include "cmd/drakkar/command_groups.h"
#include "cmd/drakkar/control_plane.h"
#include "cmd/drakkar/input_lines.h"
#include "cmd/drakkar/kubelet_config.h"
#include "cmd/drakkar/node_part.h"
#include "rpc/transport/transport.h"
#include "sdk/driver/host/driver_endpoint.h"
#include "sdk/driver/reference/reference_driver.h"
#include "telemetry/log/log.h"
#include "telemetry/metrics/metrics.h"

namespace drakkar::cmd {
namespace {

constexpr Logger kLog("drakkar");

std::string HostName() {
  char name[256] = {};
  if (::gethostname(name, sizeof(name) - 1) != 0) return "node";
  return ToLower(name);
}

cli::Flag DataDirectoryFlag() {
  return {.name = "data-dir",
          .help = "Where everything is kept.",
          .default_value = kDefaultDataDirectory,
          .placeholder = "DIR"};
}

cli::Flag SkipFormFlag() {
  return {.name = "skip-node-operations-form",
          .help = "How skipNodeOperations is given out: as it was written, or always as a list, "
                  "which is all that Go clients can read.",
          .default_value = "written",
          .placeholder = "written|list"};
}

// True for "list".
Result<bool> ReadSkipForm(const cli::Arguments& arguments) {
  const std::string& form = arguments.Text("skip-node-operations-form");
  if (form == "list") return true;
  if (form == "written") return false;
  return InvalidArgument(
      StrCat("--skip-node-operations-form must be written or list, not ", Quote(form)));
}

std::vector<cli::Flag> With(std::vector<cli::Flag> flags, std::vector<cli::Flag> more = {}) {
  for (cli::Flag& flag : more) flags.push_back(std::move(flag));
  for (cli::Flag& flag : CommonFlags()) flags.push_back(std::move(flag));
  return flags;
}

std::vector<cli::Flag> And(std::vector<cli::Flag> flags, std::vector<cli::Flag> more) {
  for (cli::Flag& flag : more) flags.push_back(std::move(flag));
  return flags;
}

Result<std::uint16_t> ReadPort(const cli::Arguments& arguments, std::string_view flag) {
  const std::int64_t port = arguments.Int(flag);
  if (port < 0 || port > 65535) {
    return InvalidArgument(StrCat("--", flag, " must be a port between 0 and 65535, not ", port));
  }
  return static_cast<std::uint16_t>(port);
}

int Fail(cli::Console& console, const Error& error) {
  console.Error(error.message);
  return cli::kExitFailure;
}

// Clients of a server elsewhere, by kubeconfig. The user is whom the kubeconfig says.
Result<ClientFactory> HttpClients(const std::string& kubeconfig, const std::string& agent) {
  if (kubeconfig.empty()) {
    return InvalidArgument("--kubeconfig is needed: the file that says where the API server is");
  }
  ASSIGN_OR_RETURN(client::ClusterAccess access,
                   client::LoadKubeconfig(RealFileSystem(), kubeconfig));
  return ClientFactory([access, agent](UvLoop& loop, std::string, std::vector<std::string>,
                                       storage::Mark) {
    return client::MakeHttpClient(loop, access, agent);
  });
}

// The file, or the defaults if there is none.
Result<scheduler::Configuration> ReadSchedulerConfiguration(const std::string& path,
                                                            const FeatureGates& gates) {
  if (path.empty()) return scheduler::Configuration{};
  ASSIGN_OR_RETURN(const std::string text, RealFileSystem().ReadFile(path));
  Result<scheduler::Configuration> configuration = scheduler::ParseConfiguration(text, gates);
  if (!configuration.ok()) return configuration.error().Prefixed(path);
  for (const std::string& remark : configuration->remarks) {
    kLog.Warning("in the configuration", {{"file", path}, {"remark", remark}});
  }
  return configuration;
}

int RunUp(const cli::Arguments& arguments, cli::Console& console) {
  // The gates of the five proposals are on here, whatever their release's default.
  Result<FeatureGates> gates = ReadCommonFlags(
      arguments, {Gate::kNodeDeclaredFeatures, Gate::kDRAOptionalNodePreparation,
                  Gate::kDRADeviceBindingConditions, Gate::kDRAResourceClaimDeviceStatus,
                  Gate::kResourceHealthStatus, Gate::kResourceHealthStatusMessage});
  if (!gates.ok()) return Fail(console, gates.error());
  Result<std::uint16_t> port = ReadPort(arguments, "port");
  Result<std::uint16_t> node_port = ReadPort(arguments, "node-port");
  if (!port.ok()) return Fail(console, port.error());
  if (!node_port.ok()) return Fail(console, node_port.error());
  Result<scheduler::Configuration> scheduler =
      ReadSchedulerConfiguration(arguments.Text("scheduler-config"), *gates);
  if (!scheduler.ok()) return Fail(console, scheduler.error());
  Result<bool> as_list = ReadSkipForm(arguments);
  if (!as_list.ok()) return Fail(console, as_list.error());
  UvLoop loop;
  const std::string data_dir = AbsolutePath(arguments.Text("data-dir"));
  Result<std::unique_ptr<ApiServerPart>> opened = ApiServerPart::Open(
      {.loop = loop,
       .data_dir = data_dir,
       .address = {.host = arguments.Text("address"), .port = *port},
       .gates = *gates,
       .skip_operations_as_list = *as_list});
  if (!opened.ok()) return Fail(console, opened.error());
  ApiServerPart* server = opened->get();
  std::vector<std::unique_ptr<Part>> parts;
  parts.push_back(std::move(*opened));
  parts.push_back(MakeControllersPart(loop, server->DirectClients(),
                                      {.ca_pem = server->pki().ca().certificate_pem}));
  scheduler->leader_election.leader_elect = false;
  parts.push_back(MakeSchedulerPart(loop, server->DirectClients(), *gates, std::move(*scheduler)));
  if (arguments.Bool("node")) {
    const std::string node_name = arguments.Text("node-name");
    Result<net::CertificateAndKey> serving = server->pki().IssueServer(
        "system:node:" + node_name, {node_name, "localhost"}, {arguments.Text("address")});
    if (!serving.ok()) return Fail(console, serving.error());
    parts.push_back(MakeNodePart({.main_loop = loop,
                                  .clients = server->DirectClients(),
                                  .gates = *gates,
                                  .node_name = node_name,
                                  .address = arguments.Text("address"),
                                  .port = *node_port,
                                  .data_dir = data_dir,
                                  .runtime = arguments.Text("runtime"),
                                  .api_host = arguments.Text("address"),
                                  .api_port = std::to_string(*port),
                                  .client_ca_pem = server->pki().ca().certificate_pem,
                                  .serving = std::move(*serving)}));
    if (arguments.Bool("driver")) {
      parts.push_back(MakeDriverPart(loop, {.node_name = node_name,
                                            .kubeconfig = server->kubeconfig_path(),
                                            .data_dir = data_dir,
                                            .devices = arguments.Text("devices"),
                                            .device_metadata =
                                                arguments.Bool("enable-device-metadata")}));
    }
  }
  return RunParts(loop, std::move(parts), console, [&, server] {
    console.Out(StrCat("drakkar is ready at ", server->url(), "\n",
                       "on besides the defaults: DRAOptionalNodePreparation\n",
                       "use it with: export KUBECONFIG=", server->kubeconfig_path(), "\n"));
  });
}

int RunApiServer(const cli::Arguments& arguments, cli::Console& console) {
  Result<FeatureGates> gates = ReadCommonFlags(arguments);
  if (!gates.ok()) return Fail(console, gates.error());
  Result<std::uint16_t> port = ReadPort(arguments, "port");
  if (!port.ok()) return Fail(console, port.error());
  Result<bool> as_list = ReadSkipForm(arguments);
  if (!as_list.ok()) return Fail(console, as_list.error());
  UvLoop loop;
  Result<std::unique_ptr<ApiServerPart>> opened = ApiServerPart::Open(
      {.loop = loop,
       .data_dir = AbsolutePath(arguments.Text("data-dir")),
       .address = {.host = arguments.Text("address"), .port = *port},
       .gates = *gates,
       .skip_operations_as_list = *as_list});
  if (!opened.ok()) return Fail(console, opened.error());
  ApiServerPart* server = opened->get();
  std::vector<std::unique_ptr<Part>> parts;
  parts.push_back(std::move(*opened));
  return RunParts(loop, std::move(parts), console, [&, server] {
    console.Out(StrCat("the API server is ready at ", server->url(), "\nkubeconfig: ",
                       server->kubeconfig_path(), "\n"));
  });
}

int RunControllers(const cli::Arguments& arguments, cli::Console& console) {
  Result<FeatureGates> gates = ReadCommonFlags(arguments);
  if (!gates.ok()) return Fail(console, gates.error());
  ComponentOptions component;
  component.election.leader_elect = true;
  if (auto read = ReadLeaderElection(arguments, component.election); !read.ok()) {
    return Fail(console, read.error());
  }
  Result<StatusPortOptions> status = ReadStatusPort(arguments);
  if (!status.ok()) return Fail(console, status.error());
  component.status = std::move(*status);
  Result<ClientFactory> clients =
      HttpClients(arguments.Text("kubeconfig"), "drakkar-controllers");
  if (!clients.ok()) return Fail(console, clients.error());
  UvLoop loop;
  std::vector<std::unique_ptr<Part>> parts;
  parts.push_back(MakeControllersPart(loop, std::move(*clients), std::move(component)));
  return RunParts(loop, std::move(parts), console,
                  [] { kLog.Info("running", {{"part", "controllers"}}); });
}

int RunScheduler(const cli::Arguments& arguments, cli::Console& console) {
  Result<FeatureGates> gates = ReadCommonFlags(arguments);
  if (!gates.ok()) return Fail(console, gates.error());
  Result<scheduler::Configuration> configuration =
      ReadSchedulerConfiguration(arguments.Text("config"), *gates);
  if (!configuration.ok()) return Fail(console, configuration.error());
  if (auto read = ReadLeaderElection(arguments, configuration->leader_election); !read.ok()) {
    return Fail(console, read.error());
  }
  Result<StatusPortOptions> status = ReadStatusPort(arguments);
  if (!status.ok()) return Fail(console, status.error());
  if (!arguments.Text("kubeconfig").empty()) configuration->kubeconfig = arguments.Text("kubeconfig");
  Result<ClientFactory> clients = HttpClients(configuration->kubeconfig, "drakkar-scheduler");
  if (!clients.ok()) return Fail(console, clients.error());
  UvLoop loop;
  std::vector<std::unique_ptr<Part>> parts;
  parts.push_back(MakeSchedulerPart(loop, std::move(*clients), *gates, std::move(*configuration),
                                    std::move(*status)));
  return RunParts(loop, std::move(parts), console,
                  [] { kLog.Info("running", {{"part", "scheduler"}}); });
}

int RunNode(const cli::Arguments& arguments, cli::Console& console) {
  Result<KubeletSettings> settings = ReadKubeletSettings(arguments, RealFileSystem());
  if (!settings.ok()) return Fail(console, settings.error());
  Result<FeatureGates> gates = ReadCommonFlags(arguments, {}, settings->feature_gates);
  if (!gates.ok()) return Fail(console, gates.error());
  Result<std::uint16_t> port = ReadPort(arguments, "port");
  if (!port.ok()) return Fail(console, port.error());
  Result<ClientFactory> clients = HttpClients(arguments.Text("kubeconfig"), "drakkar-node");
  if (!clients.ok()) return Fail(console, clients.error());
  FileSystem& files = RealFileSystem();
  auto read = [&](std::string_view flag) -> Result<std::string> {
    const std::string& path = arguments.Text(flag);
    if (path.empty()) return InvalidArgument(StrCat("--", flag, " is needed"));
    return files.ReadFile(path);
  };
  Result<std::string> ca = read("client-ca-file");
  Result<std::string> certificate = read("tls-cert-file");
  Result<std::string> key = read("tls-private-key-file");
  for (const Result<std::string>* each : {&ca, &certificate, &key}) {
    if (!each->ok()) return Fail(console, each->error());
  }
  Result<client::ClusterAccess> access =
      client::LoadKubeconfig(files, arguments.Text("kubeconfig"));
  if (!access.ok()) return Fail(console, access.error());
  Result<net::Url> url = net::ParseUrl(access->server);
  if (!url.ok()) return Fail(console, url.error());
  UvLoop loop;
  std::vector<std::unique_ptr<Part>> parts;
  parts.push_back(MakeNodePart({.main_loop = loop,
                                .clients = std::move(*clients),
                                .gates = *gates,
                                .features = settings->features,
                                .node_name = arguments.Text("node-name"),
                                .address = arguments.Text("address"),
                                .port = *port,
                                .data_dir = AbsolutePath(arguments.Text("data-dir")),
                                .runtime = arguments.Text("runtime"),
                                .api_host = url->host,
                                .api_port = std::to_string(url->port),
                                .client_ca_pem = *ca,
                                .serving = {*certificate, *key}}));
  return RunParts(loop, std::move(parts), console, [] { kLog.Info("the node agent is running"); });
}

std::vector<std::string> MetadataVersions(const cli::Arguments& arguments) {
  std::vector<std::string> versions;
  for (const std::string_view version : Split(arguments.Text("device-metadata-versions"), ',')) {
    versions.push_back(StrCat("metadata.resource.k8s.io/", version));
  }
  return versions;
}

Result<driver::DeviceConfig> ReadDevices(const std::string& path) {
  // Without a file there are four plain devices.
  std::string description;
  if (!path.empty()) {
    ASSIGN_OR_RETURN(description, RealFileSystem().ReadFile(path));
  }
  auto devices = driver::ParseDeviceConfig(description);
  if (!devices.ok()) return devices.error().Prefixed(path);
  return devices;
}

// The reference driver: one loop, no parts. Reads its devices again when told by SIGHUP.
class DriverProcess final : public Part {
 public:
  DriverProcess(UvLoop& loop, const cli::Arguments& arguments, driver::DeviceConfig devices,
                std::unique_ptr<client::Client> client)
      : loop_(loop),
        devices_path_(arguments.Text("devices")),
        http_endpoint_(arguments.Text("http-endpoint")),
        node_name_(arguments.Text("node-name")),
        takes_input_(arguments.Bool("control")),
        client_(std::move(client)),
        transport_(rpc::MakeGrpcTransport(loop)),
        driver_({.loop = loop,
                 .random = RealRandom(),
                 .files = RealFileSystem(),
                 .client = *client_,
                 .transport = *transport_,
                 .node_name = arguments.Text("node-name"),
                 .driver_name = arguments.Text("driver-name"),
                 .registry_directory = AbsolutePath(arguments.Text("registry-dir")),
                 .plugin_directory = AbsolutePath(arguments.Text("plugin-dir")),
                 .cdi_directory = AbsolutePath(arguments.Text("cdi-dir")),
                 .pod_uid = arguments.Text("pod-uid"),
                 .device_metadata = arguments.Bool("enable-device-metadata"),
                 .metadata_versions = MetadataVersions(arguments),
                 .metadata_dialect = arguments.Text("device-metadata-rules") == "kubernetes"
                                         ? metadata::Dialect::kKubernetes
                                         : metadata::Dialect::kKep,
                 .devices = std::move(devices),
                 .metrics = &metrics_,
                 .on_fatal = [](const Error& error) {
                   kLog.Error("the driver cannot go on", {{"error", error.message}});
                   ::kill(::getpid(), SIGTERM);
                 }}) {}

  std::string_view name() const override { return "driver"; }
  void Start(std::function<void(Result<void>)> done) override {
    hangup_ = loop_.OnSignal(SIGHUP, [this] { Reload(); });
    if (takes_input_) {
      input_ = std::make_unique<InputLines>(loop_, [this](const std::string& line) { Obey(line); });
    }
    Result<void> started = driver_.Start();
    if (started.ok() && !http_endpoint_.empty()) started = Listen();
    done(std::move(started));
  }
  void Stop(std::function<void()> done) override {
    hangup_.reset();
    input_.reset();
    endpoint_.reset();
    driver_.Stop();
    done();
  }

 private:
  Result<void> Listen() {
    endpoint_ = std::make_unique<driver::DriverEndpoint>(driver::DriverEndpoint::Options{
        .loop = loop_,
        .address = http_endpoint_,
        .metrics = metrics_,
        .not_ready = [this] { return driver_.driver()->NotReadyReason(); },
        .before_metrics = [this] { driver_.driver()->UpdateMetrics(); }});
    auto started = endpoint_->Start();
    if (!started.ok()) return std::move(started).error().Prefixed("--http-endpoint");
    return Ok();
  }

  // "health DEVICE STATE [MESSAGE]"
  void Obey(const std::string& line) {
    const std::vector<std::string_view> words = Split(line, ' ');
    if (words.size() < 3 || words[0] != "health" || driver_.driver() == nullptr) return;
    const Result<void> reported = driver_.driver()->ReportHealth(
        {{.pool_name = node_name_,
          .device_name = std::string(words[1]),
          .health = rpc::ParseDeviceHealthState(words[2]),
          .message = Join(std::vector<std::string_view>(words.begin() + 3, words.end()), " ")}});
    if (!reported.ok()) kLog.Error("health cannot be reported", {{"error", reported.error().message}});
  }

  void Reload() {
    Result<driver::DeviceConfig> devices = ReadDevices(devices_path_);
    Result<void> set = devices.ok() ? driver_.SetDevices(std::move(*devices)) : devices.error();
    if (set.ok()) {
      kLog.Info("the devices were read again", {{"file", devices_path_}});
    } else {
      kLog.Error("the devices cannot be read again", {{"error", set.error().message}});
    }
  }

  UvLoop& loop_;
  const std::string devices_path_;
  const std::string http_endpoint_;
  const std::string node_name_;
  const bool takes_input_;
  TimerHandle hangup_;
  std::unique_ptr<InputLines> input_;
  Metrics metrics_;
  std::unique_ptr<client::Client> client_;
  std::unique_ptr<rpc::Transport> transport_;
  driver::ReferenceDriver driver_;
  std::unique_ptr<driver::DriverEndpoint> endpoint_;
};

int RunDriver(const cli::Arguments& arguments, cli::Console& console) {
  if (const std::int64_t parent = arguments.Int("parent-pid"); parent != 0) {
    // Even when the parent is killed: two drivers of one name must not be left behind.
    ::prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (::getppid() != parent) return cli::kExitFailure;
  }
  Result<FeatureGates> gates = ReadCommonFlags(arguments);
  if (!gates.ok()) return Fail(console, gates.error());
  Result<ClientFactory> clients = HttpClients(arguments.Text("kubeconfig"), "drakkar-driver");
  if (!clients.ok()) return Fail(console, clients.error());
  if (const std::string& rules = arguments.Text("device-metadata-rules");
      rules != "kep" && rules != "kubernetes") {
    return Fail(console, InvalidArgument("--device-metadata-rules is kep or kubernetes"));
  }
  Result<driver::DeviceConfig> devices = ReadDevices(arguments.Text("devices"));
  if (!devices.ok()) return Fail(console, devices.error());
  UvLoop loop;
  std::vector<std::unique_ptr<Part>> parts;
  parts.push_back(std::make_unique<DriverProcess>(
      loop, arguments, std::move(*devices),
      (*clients)(loop, "", {}, storage::Mark::kDurable)));
  return RunParts(loop, std::move(parts), console, [] { kLog.Info("the driver is running"); });
}

cli::Flag AddressFlag(std::string help) {
  return {.name = "address", .help = std::move(help), .default_value = "127.0.0.1", .placeholder = "IP"};
}

cli::Flag KubeconfigFlag() {
  return {.name = "kubeconfig", .help = "Where the API server is and who we are.", .placeholder = "FILE"};
}

cli::Flag RuntimeFlag() {
  return {.name = "runtime",
          .help = "What runs containers: runc, crun or a path. Default: what is there.",
          .placeholder = "NAME"};
}

cli::Flag NodeNameFlag() {
  return {.name = "node-name",
          .help = "The node's name in the API.",
          .default_value = HostName(),
          .placeholder = "NAME"};
}

cli::Flag DevicesFlag() {
  return {.name = "devices",
          .help = "A YAML file that describes the simulated devices; without it there are four.",
          .placeholder = "FILE"};
}

cli::Flag MetadataFlag() {
  return {.name = "enable-device-metadata",
          .type = cli::FlagType::kBool,
          .help = "Tell containers about their devices in files (KEP-5304).",
          .default_value = "false"};
}

constexpr char kSection[] = "Run";

}  // namespace

void AddDaemonCommands(cli::App& app) {
  app.Add({.name = "up",
           .summary = "Run everything in one process",
           .help = "Runs the API server, the controllers, the scheduler, a node agent and the "
                   "reference driver (as a process of its own) on this machine, and writes a "
                   "kubeconfig for kubectl. Needs root, runc and conmon to run pods. Stop it with "
                   "Ctrl-C; pods keep running and are found again at the next start.",
           .examples = "  # a whole control plane with one node\n"
                       "  drakkar up --data-dir /tmp/demo\n"
                       "  # only the control plane\n"
                       "  drakkar up --node=false\n",
           .flags = With({DataDirectoryFlag(),
                          AddressFlag("Where to listen."),
                          {.name = "port", .type = cli::FlagType::kInt, .help = "The API server's port; 0: any free one.", .default_value = "6443", .placeholder = "PORT"},
                          {.name = "node", .type = cli::FlagType::kBool, .help = "Run a node agent.", .default_value = "true"},
                          {.name = "driver", .type = cli::FlagType::kBool, .help = "Run the reference driver.", .default_value = "true"},
                          NodeNameFlag(),
                          {.name = "node-port", .type = cli::FlagType::kInt, .help = "The node agent's port.", .default_value = "10250", .placeholder = "PORT"},
                          {.name = "scheduler-config", .help = "A KubeSchedulerConfiguration for the scheduler.", .placeholder = "FILE"},
                          RuntimeFlag(), DevicesFlag(), MetadataFlag(), SkipFormFlag()}),
           .max_arguments = 0,
           .section = kSection,
           .run = RunUp});
  app.Add({.name = "apiserver",
           .summary = "Run the API server",
           .help = "Serves the API over HTTPS from an embedded store and writes an administrator's "
                   "kubeconfig into the data directory.",
           .flags = With({DataDirectoryFlag(),
                          AddressFlag("Where to listen."),
                          {.name = "port", .type = cli::FlagType::kInt, .help = "The port; 0: any free one.", .default_value = "6443", .placeholder = "PORT"},
                          SkipFormFlag()}),
           .max_arguments = 0,
           .section = kSection,
           .run = RunApiServer});
  app.Add({.name = "controllers",
           .summary = "Run the controllers",
           .help = "Makes claims from templates, releases them, collects what has no owner. Of "
                   "several instances the one that holds the Lease is active.",
           .flags = With(And({KubeconfigFlag()}, ComponentFlags(10257, "kube-controller-manager"))),
           .max_arguments = 0,
           .section = kSection,
           .run = RunControllers});
  app.Add({.name = "scheduler",
           .summary = "Run the scheduler",
           .help = "Gives pods a node and the devices they claim. Of several instances the one that "
                   "holds the Lease is active.",
           .examples = "  # pods that fabric devices keep waiting are given up after a minute\n"
                       "  drakkar scheduler --kubeconfig admin.kubeconfig --config scheduler.yaml\n",
           .flags = With(And({KubeconfigFlag(),
                              {.name = "config", .help = "A KubeSchedulerConfiguration (kubescheduler.config.k8s.io/v1).", .placeholder = "FILE"}},
                             ComponentFlags(10259, "kube-scheduler"))),
           .max_arguments = 0,
           .section = kSection,
           .run = RunScheduler});
  app.Add({.name = "node",
           .summary = "Run a node agent",
           .help = "Registers this machine as a node, prepares claims through DRA drivers and runs "
                   "pods with runc. Needs root, runc and conmon.",
           .flags = With({DataDirectoryFlag(), KubeconfigFlag(), NodeNameFlag(),
                          AddressFlag("This node's address, and where its port listens."),
                          {.name = "port", .type = cli::FlagType::kInt, .help = "The agent's port.", .default_value = "10250", .placeholder = "PORT"},
                          {.name = "client-ca-file", .help = "Who may use the agent's port.", .placeholder = "FILE"},
                          {.name = "tls-cert-file", .help = "The certificate of the agent's port.", .placeholder = "FILE"},
                          {.name = "tls-private-key-file", .help = "Its key.", .placeholder = "FILE"},
                          RuntimeFlag()}, KubeletConfigFlags()),
           .max_arguments = 0,
           .section = kSection,
           .run = RunNode});
  app.Add({.name = "driver",
           .summary = "Run the reference driver",
           .help = "Offers simulated accelerators, described by a small YAML file, and gives them to "
                   "containers by CDI: environment variables and a directory per device. Reads the file "
                   "again on SIGHUP.",
           .flags = With({KubeconfigFlag(), NodeNameFlag(), DevicesFlag(),
                          {.name = "driver-name", .help = "The driver's name; default: the file's.", .placeholder = "NAME"},
                          {.name = "registry-dir", .help = "Where the node agent looks for drivers.", .default_value = "/var/lib/kubelet/plugins_registry", .placeholder = "DIR"},
                          {.name = "plugin-dir", .help = "The driver's own directory; default: plugins/<driver> beside the registry.", .placeholder = "DIR"},
                          {.name = "cdi-dir", .help = "Where CDI specs go.", .default_value = "/var/run/cdi", .placeholder = "DIR"},
                          MetadataFlag(),
                          {.name = "device-metadata-versions", .help = "Versions of the metadata format to write, newest first.", .default_value = "v1alpha1", .placeholder = "VERSION,..."},
                          {.name = "device-metadata-rules", .help = "Whose rules count where they differ: kep or kubernetes.", .default_value = "kep", .placeholder = "RULES"},
                          {.name = "http-endpoint", .help = "Where /healthz, /readyz and /metrics are served, as 127.0.0.1:8080; default: nowhere.", .placeholder = "ADDRESS"},
                          {.name = "pod-uid", .help = "For rolling updates: the uid of the pod this runs in.", .placeholder = "UID"},
                          {.name = "control", .type = cli::FlagType::kBool, .help = "Take `health DEVICE STATE [MESSAGE]` from standard input.", .default_value = "false", .hidden = true},
                          {.name = "parent-pid", .type = cli::FlagType::kInt, .help = "End when this process, which must be the parent, ends.", .default_value = "0", .placeholder = "PID", .hidden = true}}),
           .max_arguments = 0,
           .section = kSection,
           .run = RunDriver});
}

}  // namespace drakkar::cmd
