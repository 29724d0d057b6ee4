// up: from flags to parts.
#include "base/env/absolute_path.h"
#include "base/text/text.h"
#include "cmd/drakkar/command_groups.h"
#include "cmd/drakkar/control_plane_flags.h"
#include "cmd/drakkar/daemon_flags.h"
#include "cmd/drakkar/dashboard.h"
#include "cmd/drakkar/etcd_flags.h"
#include "cmd/drakkar/kubelet_config.h"
#include "cmd/drakkar/node_flags.h"
#include "cmd/drakkar/node_part.h"
#include "cmd/drakkar/registry_flags.h"
#include "cmd/drakkar/separate.h"

namespace drakkar::cmd {
namespace {

// The status port of a component of `up`. It authenticates requests by certificate or token and
// lets the API server authorize them, as the ports of separate processes do.
Result<StatusPortOptions> UpStatusPort(const cli::Arguments& arguments, const std::string& flag,
                                       const std::string& name, const apiserver::Pki& pki) {
  StatusPortOptions options;
  ASSIGN_OR_RETURN(const std::uint16_t port, ReadPort(arguments, flag));
  options.address = {.host = arguments.Text("address"), .port = port};
  if (port == 0) return options;
  ASSIGN_OR_RETURN(options.serving,
                   pki.ServerSource(name, {"localhost"}, {arguments.Text("address")}));
  options.client_ca_pem = pki.ca().certificate_pem;
  if (!arguments.Has(flag)) options.flag_if_taken = StrCat("--", flag);
  return options;
}

// Nothing unless the flag was given.
Result<std::optional<std::uint16_t>> ReadDashboardPort(const cli::Arguments& arguments) {
  const std::string& text = arguments.Text("dashboard-port");
  if (text.empty()) return std::optional<std::uint16_t>();
  const std::optional<std::int64_t> port = ParseInt64(text);
  if (!port || *port < 0 || *port > 65535) {
    return InvalidArgument(
        StrCat("--dashboard-port must be a port between 0 and 65535, not ", Quote(text)));
  }
  return std::optional<std::uint16_t>(static_cast<std::uint16_t>(*port));
}

// In this process a name is enough.
AccountClients DirectAccounts(ClientFactory clients) {
  return [clients = std::move(clients)](UvLoop& loop, client::Client&, std::string_view account) {
    return clients(loop, StrCat("system:serviceaccount:kube-system:", account),
                   {"system:serviceaccounts", "system:serviceaccounts:kube-system"},
                   storage::Mark::kApplied);
  };
}

cli::Flag DevicesFlag() {
  return {.name = "devices",
          .help = "YAML file that describes the simulated devices. Defaults to four devices.",
          .placeholder = "FILE"};
}

cli::Flag MetadataFlag() {
  return {.name = "enable-device-metadata",
          .type = cli::FlagType::kBool,
          .help = "Write device metadata files for containers (KEP-5304).",
          .default_value = "false"};
}

int RunUp(const cli::Arguments& arguments, cli::Console& console) {
  if (arguments.Bool("separate-processes")) return RunSeparately(arguments, console);
  // `up` turns on the gates of the five proposals, even if they are off by default in the release.
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
  Result<apiserver::EventLimits> events = ReadEventLimits(arguments);
  if (!events.ok()) return Fail(console, events.error());
  Result<apiserver::InFlightLimits> in_flight = ReadInFlightLimits(arguments);
  if (!in_flight.ok()) return Fail(console, in_flight.error());
  Result<std::int64_t> pids_limit = ReadPidsLimit(arguments);
  if (!pids_limit.ok()) return Fail(console, pids_limit.error());
  Result<EtcdFlagValues> etcd = ReadEtcdFlags(arguments);
  if (!etcd.ok()) return Fail(console, etcd.error());
  // Another `up`, or other controllers and schedulers, may work on the same etcd.
  const bool elects = arguments.Has("etcd-servers");
  Result<std::optional<std::uint16_t>> dashboard_port = ReadDashboardPort(arguments);
  if (!dashboard_port.ok()) return Fail(console, dashboard_port.error());
  UvLoop loop;
  const std::string data_dir = AbsolutePath(arguments.Text("data-dir"));
  Result<PodNetworkOptions> network = PodNetworkOptions{.shares_host = true};
  if (arguments.Bool("node")) network = ReadPodNetwork(arguments, RealFileSystem(), data_dir);
  if (!network.ok()) return Fail(console, network.error());
  Result<node::RegistrySettings> registries = ReadRegistrySettings(arguments, RealFileSystem());
  if (!registries.ok()) return Fail(console, registries.error());
  const std::string pod_gateway = network->built_in ? network->built_in->gateway : "";
  Result<std::unique_ptr<ApiServerPart>> opened =
      ApiServerPart::Open({.loop = loop,
                           .data_dir = data_dir,
                           .store = std::move(etcd->location),
                           .layout = std::move(etcd->layout),
                           .address = {.host = arguments.Text("address"), .port = *port},
                           .pod_gateway = pod_gateway,
                           .advertise_address = arguments.Text("advertise-address"),
                           .alternative_names = ReadAlternativeNames(arguments),
                           .gates = *gates,
                           .skip_operations_as_list = *as_list,
                           .events = *events,
                           .in_flight = *in_flight,
                           .low_latency = arguments.Bool("low-latency"),
                           .driver_node = arguments.Text("node-name")});
  if (!opened.ok()) return Fail(console, opened.error());
  ApiServerPart* server = opened->get();
  std::vector<std::unique_ptr<Part>> parts;
  parts.push_back(std::move(*opened));
  Result<StatusPortOptions> controllers_status =
      UpStatusPort(arguments, "controllers-port", "system:kube-controller-manager", server->pki());
  if (!controllers_status.ok()) return Fail(console, controllers_status.error());
  Result<StatusPortOptions> scheduler_status =
      UpStatusPort(arguments, "scheduler-port", "system:kube-scheduler", server->pki());
  if (!scheduler_status.ok()) return Fail(console, scheduler_status.error());
  Result<controllers::Selection> selection = ReadControllers(arguments);
  if (!selection.ok()) return Fail(console, selection.error());
  parts.push_back(MakeControllersPart(
      loop, server->DirectClients(),
      {.election = {.leader_elect = elects, .lease_name = "kube-controller-manager"},
       .status = std::move(*controllers_status),
       .ca_pem = server->pki().ca().certificate_pem,
       .signing = controllers::SigningAuthority{server->pki().ca()},
       .controllers = std::move(*selection),
       .pod_group_claims = gates->Enabled(Gate::kDRAWorkloadResourceClaims),
       .account_clients = DirectAccounts(server->DirectClients())}));
  scheduler->leader_election.leader_elect = elects;
  parts.push_back(MakeSchedulerPart(loop, server->DirectClients(), *gates, std::move(*scheduler),
                                    std::move(*scheduler_status)));
  if (arguments.Bool("node")) {
    const Result<std::string> runtime_socket =
        ReadRuntimeEndpoint(arguments.Text("container-runtime-endpoint"));
    if (!runtime_socket.ok()) return Fail(console, runtime_socket.error());
    const std::string node_name = arguments.Text("node-name");
    Result<apiserver::Pki::Source> serving = server->pki().ServerSource(
        "system:node:" + node_name, {node_name, "localhost"}, {arguments.Text("address")});
    if (!serving.ok()) return Fail(console, serving.error());
    Result<std::map<std::string, std::string>> handlers = ReadRuntimeHandlers(arguments);
    if (!handlers.ok()) return Fail(console, handlers.error());
    Result<NriOptions> nri =
        ReadNriFlags(arguments, data_dir, RootDirectory(arguments), *runtime_socket);
    if (!nri.ok()) return Fail(console, nri.error());
    parts.push_back(MakeNodePart({.main_loop = loop,
                                  .clients = server->DirectClients(),
                                  .gates = *gates,
                                  .node_name = node_name,
                                  .address = arguments.Text("address"),
                                  .port = *node_port,
                                  .data_dir = data_dir,
                                  .root_dir = RootDirectory(arguments),
                                  .runtime = arguments.Text("runtime"),
                                  .runtime_handlers = std::move(*handlers),
                                  .runtime_endpoint = *runtime_socket,
                                  .nri = std::move(*nri),
                                  .pod_pids_limit = *pids_limit,
                                  .seccomp_default = arguments.Bool("seccomp-default"),
                                  .beside_api_server = true,
                                  .api_host = arguments.Text("address"),
                                  .api_port = std::to_string(*port),
                                  .network = std::move(*network),
                                  .registries = std::move(*registries),
                                  .eviction = EvictionWithoutConfiguration(),
                                  .pod_api_host = pod_gateway,
                                  .client_ca_pem = server->pki().ca().certificate_pem,
                                  .serving = std::move(*serving),
                                  .low_latency = arguments.Bool("low-latency")}));
    if (arguments.Bool("driver")) {
      parts.push_back(
          MakeDriverPart(loop, {.node_name = node_name,
                                .kubeconfig = server->driver_kubeconfig_path(),
                                .data_dir = data_dir,
                                .root_dir = RootDirectory(arguments),
                                .devices = arguments.Text("devices"),
                                .device_metadata = arguments.Bool("enable-device-metadata")}));
    }
  }
  const std::string url_file = JoinPath(data_dir, "dashboard.url");
  if (*dashboard_port) {
    parts.push_back(MakeDashboardPart({.main_loop = loop,
                                       .console = console,
                                       .kubeconfig = server->kubeconfig_path(),
                                       .port = **dashboard_port,
                                       .url_file = url_file}));
  }
  return RunParts(loop, std::move(parts), console, [&, server] {
    console.Out(StrCat(
        "drakkar is ready at ", server->url(), "\n",
        gates->Enabled(Gate::kDRAOptionalNodePreparation)
            ? "feature gates enabled in addition to the defaults: DRAOptionalNodePreparation\n"
            : "",
        "to use it, run: export KUBECONFIG=", server->kubeconfig_path(), "\n",
        *dashboard_port ? StrCat("the URL of the dashboard is in ", url_file, "\n") : ""));
  });
}

}  // namespace

void AddUpCommand(cli::App& app) {
  app.Add({.name = "up",
           .summary = "Run a whole cluster in one process",
           .help = "Runs the API server, the controllers, the scheduler, a node agent and the "
                   "reference driver (as a separate process) on this machine, and writes a "
                   "kubeconfig. Running pods requires root, runc and conmon. Stop it with Ctrl-C; "
                   "pods keep running and are adopted at the next start.",
           .examples = "  # a control plane with one node\n"
                       "  drakkar up --data-dir /tmp/demo\n"
                       "  # only the control plane\n"
                       "  drakkar up --node=false\n",
           .flags = DaemonFlags(
               {{DataDirectoryFlag(),
                 AddressFlag("Address to listen on."),
                 PortFlag("port", "Port of the API server; 0 chooses a free one.", "6443"),
                 {.name = "node",
                  .type = cli::FlagType::kBool,
                  .help = "Run a node agent.",
                  .default_value = "true"},
                 {.name = "driver",
                  .type = cli::FlagType::kBool,
                  .help = "Run the reference driver.",
                  .default_value = "true"},
                 NodeNameFlag(),
                 PortFlag("node-port", "Port of the node agent; 0 chooses a free one.", "10250"),
                 PortFlag("scheduler-port",
                          "Port of the scheduler's /healthz, /livez, /readyz, "
                          "/metrics and /configz; 0 disables it.",
                          "10259"),
                 PortFlag("controllers-port",
                          "Port of the same pages of the controllers; 0 disables it.", "10257"),
                 {.name = "dashboard-port",
                  .help = "Port of the web page (see drakkar dashboard) on 127.0.0.1; 0 chooses a "
                          "free one. Without this flag, the page is not served.",
                  .placeholder = "PORT"},
                 ControllersFlag(),
                 {.name = "scheduler-config",
                  .help = "KubeSchedulerConfiguration file.",
                  .placeholder = "FILE"},
                 RuntimeFlag(),
                 RuntimeHandlersFlag(),
                 RuntimeEndpointFlag(),
                 PidsLimitFlag(),
                 SeccompDefaultFlag(),
                 RootDirectoryFlag(),
                 DevicesFlag(),
                 MetadataFlag(),
                 SkipFormFlag(),
                 LowLatencyFlag(),
                 {.name = "separate-processes",
                  .type = cli::FlagType::kBool,
                  .help = "Run every component in its own process. One that crashes or runs out "
                          "of memory is restarted while the others keep running. Uses more memory "
                          "and halves the scheduling rate.",
                  .default_value = "false"}},
                PodNetworkFlags(),
                NriFlags(),
                RegistryFlags(),
                EventFlags(),
                InFlightFlags(),
                ReachFlags(),
                EtcdFlags()}),
           .max_arguments = 0,
           .section = kRunSection,
           .run = RunUp});
}

}  // namespace drakkar::cmd
