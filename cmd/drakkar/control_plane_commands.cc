// apiserver, controllers, scheduler: from flags to parts.
#include "base/env/absolute_path.h"
#include "base/text/text.h"
#include "client/account_client.h"
#include "client/http_client.h"
#include "cmd/drakkar/command_groups.h"
#include "cmd/drakkar/control_plane_flags.h"
#include "cmd/drakkar/daemon_flags.h"
#include "cmd/drakkar/etcd_flags.h"
#include "telemetry/log/log.h"

namespace drakkar::cmd {
namespace {

constexpr Logger kLog("drakkar");

int RunApiServer(const cli::Arguments& arguments, cli::Console& console) {
  Result<FeatureGates> gates = ReadCommonFlags(arguments);
  if (!gates.ok()) return Fail(console, gates.error());
  Result<std::uint16_t> port = ReadPort(arguments, "port");
  if (!port.ok()) return Fail(console, port.error());
  Result<bool> as_list = ReadSkipForm(arguments);
  if (!as_list.ok()) return Fail(console, as_list.error());
  Result<apiserver::EventLimits> events = ReadEventLimits(arguments);
  if (!events.ok()) return Fail(console, events.error());
  Result<apiserver::InFlightLimits> in_flight = ReadInFlightLimits(arguments);
  if (!in_flight.ok()) return Fail(console, in_flight.error());
  Result<EtcdFlagValues> etcd = ReadEtcdFlags(arguments);
  if (!etcd.ok()) return Fail(console, etcd.error());
  std::string token_signing_key;
  std::vector<std::string> token_keys;
  if (auto read = ReadTokenKeys(arguments, token_signing_key, token_keys); !read.ok()) {
    return Fail(console, read.error());
  }
  Result<apiserver::TokenNames> token_names = ReadTokenNames(arguments);
  if (!token_names.ok()) return Fail(console, token_names.error());
  Result<apiserver::FrontProxies> front_proxies = ReadFrontProxies(arguments);
  if (!front_proxies.ok()) return Fail(console, front_proxies.error());
  UvLoop loop;
  Result<std::unique_ptr<ApiServerPart>> opened =
      ApiServerPart::Open({.loop = loop,
                           .data_dir = AbsolutePath(arguments.Text("data-dir")),
                           .store = std::move(etcd->location),
                           .layout = std::move(etcd->layout),
                           .address = {.host = arguments.Text("address"), .port = *port},
                           .advertise_address = arguments.Text("advertise-address"),
                           .alternative_names = ReadAlternativeNames(arguments),
                           .gates = *gates,
                           .skip_operations_as_list = *as_list,
                           .events = *events,
                           .in_flight = *in_flight,
                           .low_latency = arguments.Bool("low-latency"),
                           .token_signing_key = std::move(token_signing_key),
                           .token_keys = std::move(token_keys),
                           .token_names = *std::move(token_names),
                           .front_proxies = *std::move(front_proxies)});
  if (!opened.ok()) return Fail(console, opened.error());
  ApiServerPart* server = opened->get();
  std::vector<std::unique_ptr<Part>> parts;
  parts.push_back(std::move(*opened));
  return RunParts(loop, std::move(parts), console, [&, server] {
    console.Out(StrCat("the API server is ready at ", server->url(),
                       "\nkubeconfig: ", server->kubeconfig_path(), "\n"));
  });
}

// Tokens for the accounts, which the user of the kubeconfig requests.
AccountClients HttpAccounts(client::ClusterAccess access, const client::Fence& fence) {
  access.client_certificate_pem.clear();
  access.client_key_pem.clear();
  access.client_certificate = nullptr;
  access.token.clear();
  access.token_file.clear();
  return [access = std::move(access), fence](UvLoop& loop, client::Client& own,
                                             std::string_view account) {
    const auto connect = [&loop, access, fence, agent = StrCat("drakkar-controllers/", account)](
                             std::shared_ptr<const std::string> token) {
      client::ClusterAccess with_token = access;
      with_token.live_token = std::move(token);
      return client::MakeHttpClient(loop, with_token, agent, RealFileSystem(),
                                    client::FieldSets::kOpaque, fence);
    };
    return std::make_unique<client::AccountClient>(loop, own, std::string(account), connect);
  };
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
  Result<controllers::Selection> selection = ReadControllers(arguments);
  if (!selection.ok()) return Fail(console, selection.error());
  component.controllers = std::move(*selection);
  component.pod_group_claims = gates->Enabled(Gate::kDRAWorkloadResourceClaims);
  Result<std::optional<controllers::SigningAuthority>> signing = ReadSigning(arguments);
  if (!signing.ok()) return Fail(console, signing.error());
  component.signing = std::move(*signing);
  component.fence = std::make_shared<std::string>();
  Result<ClientFactory> clients =
      HttpClients(arguments.Text("kubeconfig"), "drakkar-controllers", component.fence);
  if (!clients.ok()) return Fail(console, clients.error());
  // Pods get the CA that this process trusts itself.
  Result<client::ClusterAccess> access =
      client::LoadKubeconfig(RealFileSystem(), arguments.Text("kubeconfig"));
  if (!access.ok()) return Fail(console, access.error());
  component.ca_pem = access->ca_pem;
  if (arguments.Bool("use-service-account-credentials")) {
    component.account_clients = HttpAccounts(*access, component.fence);
  }
  UvLoop loop;
  std::vector<std::unique_ptr<Part>> parts;
  parts.push_back(MakeControllersPart(loop, std::move(*clients), std::move(component)));
  return RunParts(loop, std::move(parts), console, [] {
    kLog.Info("running", {{"part", "controllers"}});
  });
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
  if (!arguments.Text("kubeconfig").empty())
    configuration->kubeconfig = arguments.Text("kubeconfig");
  const auto fence = std::make_shared<std::string>();
  Result<ClientFactory> clients =
      HttpClients(configuration->kubeconfig, "drakkar-scheduler", fence);
  if (!clients.ok()) return Fail(console, clients.error());
  UvLoop loop;
  std::vector<std::unique_ptr<Part>> parts;
  parts.push_back(MakeSchedulerPart(loop, std::move(*clients), *gates, std::move(*configuration),
                                    std::move(*status), fence));
  return RunParts(loop, std::move(parts), console, [] {
    kLog.Info("running", {{"part", "scheduler"}});
  });
}

}  // namespace

void AddControlPlaneCommands(cli::App& app) {
  app.Add(
      {.name = "apiserver",
       .summary = "Run the API server",
       .help = "Serves the API over HTTPS and writes an administrator's kubeconfig to the data "
               "directory. Objects are kept in an embedded store in that directory or, with "
               "--etcd-servers, in etcd, which several API servers, including kube-apiserver, can "
               "share.",
       .examples = "  # on an etcd cluster with TLS\n"
                   "  drakkar apiserver --etcd-servers https://etcd-0:2379,https://etcd-1:2379 "
                   "\\\n    --etcd-cafile ca.crt --etcd-certfile client.crt --etcd-keyfile "
                   "client.key\n",
       .flags = DaemonFlags({{DataDirectoryFlag(), AddressFlag("Address to listen on."),
                              PortFlag("port", "Port to listen on; 0 chooses a free one.", "6443"),
                              SkipFormFlag(), LowLatencyFlag()},
                             EtcdFlags(),
                             EventFlags(),
                             TokenKeyFlags(),
                             FrontProxyFlags(),
                             InFlightFlags(),
                             ReachFlags()}),
       .max_arguments = 0,
       .section = kRunSection,
       .run = RunApiServer});
  app.Add({.name = "controllers",
           .summary = "Run the controllers",
           .help = "Runs the controllers of claims, workloads (Deployments, Jobs and others), "
                   "nodes, quotas and certificates, and the garbage collector. If several "
                   "instances run, only the one that holds the Lease is active. Each controller "
                   "acts under its own service account in kube-system.",
           .flags = DaemonFlags({{KubeconfigFlag(), ControllersFlag(), AccountsFlag()},
                                 SigningFlags(),
                                 ComponentFlags(10257, "kube-controller-manager")}),
           .max_arguments = 0,
           .section = kRunSection,
           .run = RunControllers});
  app.Add({.name = "scheduler",
           .summary = "Run the scheduler",
           .help = "Assigns nodes and devices to pods. If several instances run, only the one that "
                   "holds the Lease is active.",
           .examples =
               "  # stop waiting for fabric devices after a minute\n"
               "  drakkar scheduler --kubeconfig admin.kubeconfig --config scheduler.yaml\n",
           .flags = DaemonFlags(
               {{KubeconfigFlag(),
                 {.name = "config",
                  .help = "KubeSchedulerConfiguration file (kubescheduler.config.k8s.io/v1).",
                  .placeholder = "FILE"}},
                ComponentFlags(10259, "kube-scheduler")}),
           .max_arguments = 0,
           .section = kRunSection,
           .run = RunScheduler});
}

}  // namespace drakkar::cmd
