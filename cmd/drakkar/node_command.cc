// node: from flags to parts, real or hollow.
#include "base/env/absolute_path.h"
#include "base/text/text.h"
#include "client/http_client.h"
#include "cmd/drakkar/command_groups.h"
#include "cmd/drakkar/daemon_flags.h"
#include "cmd/drakkar/hollow_nodes.h"
#include "cmd/drakkar/join.h"
#include "cmd/drakkar/kubelet_config.h"
#include "cmd/drakkar/node_flags.h"
#include "cmd/drakkar/node_part.h"
#include "cmd/drakkar/registry_flags.h"
#include "net/http/url.h"
#include "telemetry/log/log.h"

namespace drakkar::cmd {
namespace {

constexpr Logger kLog("drakkar");

std::vector<cli::Flag> HollowFlags() {
  return {{.name = "hollow",
           .type = cli::FlagType::kInt,
           .help = "Run this many hollow nodes instead of a real one.",
           .default_value = "0",
           .placeholder = "N"},
          {.name = "hollow-devices",
           .type = cli::FlagType::kInt,
           .help = "Simulated devices of each hollow node.",
           .default_value = "0",
           .placeholder = "N"},
          {.name = "hollow-prefix",
           .help = "Prefix of the names of hollow nodes; a number is appended.",
           .default_value = "hollow-",
           .placeholder = "TEXT"},
          {.name = "hollow-health-changes-every",
           .type = cli::FlagType::kDuration,
           .help = "Interval at which one simulated device changes its health; 0 for never.",
           .default_value = "0s",
           .placeholder = "DURATION"}};
}

// Hollow nodes have neither ports nor files, so most flags of a node do not apply to them.
class HollowPart final : public Part {
 public:
  HollowPart(UvLoop& loop, const ClientFactory& clients, const FeatureGates& gates,
             const node::NodeFeatureOptions& features, const cli::Arguments& arguments)
      : client_(clients(loop, "", {}, storage::Mark::kDurable)),
        nodes_({.loop = loop,
                .random = RealRandom(),
                .client = *client_,
                .gates = gates,
                .features = features,
                .name_prefix = arguments.Text("hollow-prefix"),
                .count = static_cast<int>(arguments.Int("hollow")),
                .devices = static_cast<int>(arguments.Int("hollow-devices")),
                .health_changes_every = arguments.Time("hollow-health-changes-every")}) {}
  std::string_view name() const override { return "hollow nodes"; }
  void Start(std::function<void(Result<void>)> done) override {
    nodes_.Start();
    done(Ok());
  }
  void Stop(std::function<void()> done) override {
    nodes_.Stop();
    done();
  }

 private:
  std::unique_ptr<client::Client> client_;
  HollowNodes nodes_;
};

int RunHollow(const cli::Arguments& arguments, const FeatureGates& gates,
              const node::NodeFeatureOptions& features, cli::Console& console) {
  auto check = [&](const char* flag, std::int64_t least, std::int64_t most) -> Result<void> {
    const std::int64_t value = arguments.Int(flag);
    if (value >= least && value <= most) return Ok();
    return InvalidArgument(StrCat("--", flag, " must be between ", least, " and ", most));
  };
  for (const Result<void>& checked : {check("hollow", 1, HollowNodes::kMaxCount),
                                      check("hollow-devices", 0, HollowNodes::kMaxDevices)}) {
    if (!checked.ok()) return Fail(console, checked.error());
  }
  Result<ClientFactory> clients = HttpClients(arguments.Text("kubeconfig"), "drakkar-hollow");
  if (!clients.ok()) return Fail(console, clients.error());
  UvLoop loop;
  std::vector<std::unique_ptr<Part>> parts;
  parts.push_back(std::make_unique<HollowPart>(loop, *clients, gates, features, arguments));
  return RunParts(loop, std::move(parts), console, [] { kLog.Info("hollow nodes are starting"); });
}

int RunNode(const cli::Arguments& arguments, cli::Console& console) {
  Result<KubeletSettings> settings = ReadKubeletSettings(arguments, RealFileSystem());
  if (!settings.ok()) return Fail(console, settings.error());
  Result<FeatureGates> gates = ReadCommonFlags(arguments, {}, settings->feature_gates);
  if (!gates.ok()) return Fail(console, gates.error());
  if (arguments.Int("hollow") != 0) {
    return RunHollow(arguments, *gates, settings->features, console);
  }
  Result<std::uint16_t> port = ReadPort(arguments, "port");
  if (!port.ok()) return Fail(console, port.error());
  Result<std::int64_t> pids_limit = ReadPidsLimit(arguments, settings->pod_pids_limit);
  if (!pids_limit.ok()) return Fail(console, pids_limit.error());
  FileSystem& files = RealFileSystem();
  const std::string data_dir = AbsolutePath(arguments.Text("data-dir"));
  Result<JoinOptions> join = ReadJoinFlags(arguments, data_dir);
  if (!join.ok()) return Fail(console, join.error());
  if (!join->servers.empty()) {
    if (Result<void> joined = JoinCluster(*join); !joined.ok()) {
      return Fail(console, joined.error());
    }
  }
  // A node that has joined has its own kubeconfig and gets the rest from the cluster.
  std::string kubeconfig = arguments.Text("kubeconfig");
  const bool has_joined = kubeconfig.empty() && files.Exists(JoinedKubeconfigPath(data_dir));
  if (has_joined) kubeconfig = JoinedKubeconfigPath(data_dir);
  const auto on_server = std::make_shared<std::function<void(const std::string&)>>();
  Result<ClientFactory> clients =
      HttpClients(kubeconfig, "drakkar-node", nullptr, [on_server](const std::string& server) {
        if (*on_server) (*on_server)(server);
      });
  if (!clients.ok()) return Fail(console, clients.error());
  Result<client::ClusterAccess> access = client::LoadKubeconfig(files, kubeconfig);
  if (!access.ok()) return Fail(console, access.error());
  auto read = [&](std::string_view flag) -> Result<std::string> {
    const std::string& path = arguments.Text(flag);
    if (path.empty()) return InvalidArgument(StrCat("--", flag, " is required"));
    return files.ReadFile(path);
  };
  Result<std::string> ca = has_joined && arguments.Text("client-ca-file").empty()
                               ? Result<std::string>(access->ca_pem)
                               : read("client-ca-file");
  if (!ca.ok()) return Fail(console, ca.error());
  UvLoop loop;
  std::vector<std::unique_ptr<Part>> parts;
  std::shared_ptr<net::CertificateSource> serving;
  if (has_joined && arguments.Text("tls-cert-file").empty()) {
    Result<std::unique_ptr<CertificatesPart>> certificates =
        MakeCertificatesPart({.main_loop = loop,
                              .access = *access,
                              .node_name = arguments.Text("node-name"),
                              .address = arguments.Text("address"),
                              .data_dir = data_dir});
    if (!certificates.ok()) return Fail(console, certificates.error());
    serving = (*certificates)->serving();
    parts.push_back(std::move(*certificates));
  } else {
    for (const char* flag : {"tls-cert-file", "tls-private-key-file"}) {
      if (const Result<std::string> each = read(flag); !each.ok())
        return Fail(console, each.error());
    }
    Result<std::shared_ptr<net::WatchedCertificate>> watched = net::WatchedCertificate::Make(
        RealClock(), net::FromFiles(files, arguments.Text("tls-cert-file"),
                                    arguments.Text("tls-private-key-file")));
    if (!watched.ok()) return Fail(console, watched.error());
    serving = *watched;
  }
  Result<net::Url> url = net::ParseUrl(access->server);
  if (!url.ok()) return Fail(console, url.error());
  Result<PodNetworkOptions> network = ReadPodNetwork(arguments, files, data_dir);
  if (!network.ok()) return Fail(console, network.error());
  Result<node::RegistrySettings> registries = ReadRegistrySettings(arguments, files);
  if (!registries.ok()) return Fail(console, registries.error());
  if (!settings->cluster_dns.empty() && arguments.Text("cluster-dns").empty()) {
    network->dns.cluster_dns = settings->cluster_dns;
  }
  if (!settings->cluster_domain.empty() && !arguments.Has("cluster-domain")) {
    network->dns.cluster_domain = settings->cluster_domain;
  }
  if (!settings->resolv_conf.empty() && arguments.Text("resolv-conf").empty()) {
    network->dns.resolv_conf = settings->resolv_conf;
  }
  const Result<std::string> runtime_socket = ReadRuntimeEndpoint(
      arguments.Has("container-runtime-endpoint") ? arguments.Text("container-runtime-endpoint")
                                                  : settings->runtime_endpoint);
  if (!runtime_socket.ok()) return Fail(console, runtime_socket.error());
  Result<std::map<std::string, std::string>> handlers = ReadRuntimeHandlers(arguments);
  if (!handlers.ok()) return Fail(console, handlers.error());
  Result<NriOptions> nri =
      ReadNriFlags(arguments, data_dir, RootDirectory(arguments), *runtime_socket);
  if (!nri.ok()) return Fail(console, nri.error());
  parts.push_back(MakeNodePart(
      {.main_loop = loop,
       .clients = std::move(*clients),
       .gates = *gates,
       .features = settings->features,
       .node_name = arguments.Text("node-name"),
       .address = arguments.Text("address"),
       .port = *port,
       .data_dir = data_dir,
       .root_dir = RootDirectory(arguments),
       .runtime = arguments.Text("runtime"),
       .runtime_handlers = std::move(*handlers),
       .runtime_endpoint = *runtime_socket,
       .nri = std::move(*nri),
       .pod_pids_limit = *pids_limit,
       .seccomp_default = settings->seccomp_default || arguments.Bool("seccomp-default"),
       .api_host = url->host,
       .api_port = std::to_string(url->port),
       .on_server = on_server,
       .network = std::move(*network),
       .registries = std::move(*registries),
       .image_collection = settings->image_collection,
       .eviction = settings->eviction,
       .resources = settings->resources,
       .shutdown_periods = settings->shutdown_periods,
       .sysctls = settings->sysctls,
       .max_pods = settings->max_pods,
       .agent = settings->agent,
       .client_ca_pem = *ca,
       .serving = std::move(serving),
       .low_latency = arguments.Bool("low-latency")}));
  return RunParts(loop, std::move(parts), console, [] { kLog.Info("node agent started"); });
}

}  // namespace

void AddNodeCommand(cli::App& app) {
  app.Add({.name = "node",
           .summary = "Run a node agent",
           .help = "Registers this machine as a node, prepares claims through DRA drivers and "
                   "runs pods with runc. Requires root, runc and conmon. With --hollow it runs "
                   "many nodes with simulated machines, containers and devices instead, to load a "
                   "control plane; they need only an administrator's kubeconfig.",
           .examples = "  # on a new machine, as printed by `drakkar token create "
                       "--print-join-command`\n"
                       "  drakkar node --join https://10.0.0.1:6443 --token "
                       "abcdef.0123456789abcdef \\\n"
                       "    --ca-hash sha256:... --address 10.0.0.7\n"
                       "  # a thousand nodes with eight devices each\n"
                       "  drakkar node --hollow 1000 --hollow-devices 8 --kubeconfig "
                       "admin.kubeconfig\n",
           .flags = DaemonFlags({{DataDirectoryFlag(),
                                  KubeconfigFlag(),
                                  NodeNameFlag(),
                                  AddressFlag("Address of this node, on which its port listens."),
                                  PortFlag("port", "Port of the agent.", "10250"),
                                  {.name = "client-ca-file",
                                   .help = "CA for client certificates on the agent's port.",
                                   .placeholder = "FILE"},
                                  {.name = "tls-cert-file",
                                   .help = "Certificate of the agent's port.",
                                   .placeholder = "FILE"},
                                  {.name = "tls-private-key-file",
                                   .help = "Private key of that certificate.",
                                   .placeholder = "FILE"},
                                  RuntimeFlag(),
                                  RuntimeHandlersFlag(),
                                  RuntimeEndpointFlag(),
                                  PidsLimitFlag(),
                                  SeccompDefaultFlag(),
                                  RootDirectoryFlag(),
                                  LowLatencyFlag()},
                                 HollowFlags(),
                                 PodNetworkFlags(),
                                 NriFlags(),
                                 RegistryFlags(),
                                 KubeletConfigFlags(),
                                 JoinFlags()}),
           .max_arguments = 0,
           .section = kRunSection,
           .run = RunNode});
}

}  // namespace drakkar::cmd
