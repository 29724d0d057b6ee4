// up, apiserver, controllers, scheduler, node, driver: from flags to parts.
#include <signal.h>
#include <unistd.h>

#include "api/meta/quantity.h"
#include "api/meta/time.h"
#include "base/env/absolute_path.h"
#include "base/text/text.h"
#include "client/http_client.h"
#include "cmd/drakkar/command_groups.h"
#include "cmd/drakkar/control_plane.h"
#include "cmd/drakkar/dashboard.h"
#include "cmd/drakkar/etcd_flags.h"
#include "cmd/drakkar/hollow_nodes.h"
#include "cmd/drakkar/join.h"
#include "cmd/drakkar/kubelet_config.h"
#include "cmd/drakkar/node_part.h"
#include "cmd/drakkar/registry_flags.h"
#include "cmd/drakkar/separate.h"
#include "net/tls/jws.h"
#include "telemetry/log/log.h"

namespace drakkar::cmd {
namespace {

// Default per pod: more than programs need, less than the machine has.
constexpr std::int64_t kPodPidsLimit = 4'096;
// The largest size that a flag accepts: more than any machine has.
constexpr std::int64_t kMaxFlagBytes = std::int64_t{1} << 40;
constexpr Logger kLog("drakkar");

// The path of the socket; empty if none is given.
Result<std::string> ReadRuntimeEndpoint(const std::string& text) {
  constexpr std::string_view kScheme = "unix://";
  if (text.empty() || text.starts_with('/')) return text;
  if (text.starts_with(kScheme) && text.substr(kScheme.size()).starts_with('/')) {
    return text.substr(kScheme.size());
  }
  return InvalidArgument(
      StrCat("--container-runtime-endpoint must be unix:///PATH, not ", Quote(text)));
}

cli::Flag DataDirectoryFlag() {
  return {.name = "data-dir",
          .help = "Data directory.",
          .default_value = kDefaultDataDirectory,
          .placeholder = "DIR"};
}

cli::Flag SkipFormFlag() {
  return {.name = "skip-node-operations-form",
          .help =
              "How skipNodeOperations is returned: as written, or always as a list, for Go "
              "clients, which cannot decode a boolean.",
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

std::vector<cli::Flag> EventFlags() {
  const apiserver::EventLimits defaults;
  return {{.name = "event-ttl",
           .help = "How long events are kept after their last write.",
           .default_value = "1h0m0s",
           .placeholder = "DURATION"},
          {.name = "max-events",
           .help = "How many events are kept. Beyond that the oldest are deleted.",
           .default_value = std::to_string(defaults.count_max),
           .placeholder = "N"},
          {.name = "max-event-bytes",
           .help = "How many bytes of events are kept. Beyond that the oldest are deleted.",
           .default_value = "32Mi",
           .placeholder = "QUANTITY"}};
}

Result<apiserver::EventLimits> ReadEventLimits(const cli::Arguments& arguments) {
  apiserver::EventLimits limits;
  const std::string& text = arguments.Text("event-ttl");
  const Result<Duration> ttl = api::ParseDuration(text);
  if (!ttl.ok() || *ttl <= Duration::zero()) {
    return InvalidArgument(StrCat(
        "--event-ttl must be a duration greater than zero, such as 1h0m0s, not ", Quote(text)));
  }
  limits.ttl = *ttl;
  const std::string& count = arguments.Text("max-events");
  const std::optional<std::int64_t> events = ParseInt64(count);
  if (!events || *events <= 0) {
    return InvalidArgument(
        StrCat("--max-events must be a number greater than zero, not ", Quote(count)));
  }
  limits.count_max = static_cast<std::size_t>(*events);
  const std::string& size = arguments.Text("max-event-bytes");
  const Result<api::Quantity> bytes = api::Quantity::Parse(size);
  if (!bytes.ok() || bytes->Sign() <= 0 || bytes->CompareInt64(kMaxFlagBytes) > 0) {
    return InvalidArgument(StrCat(
        "--max-event-bytes must be a quantity between 1 and 1Ti, such as 32Mi, not ", Quote(size)));
  }
  limits.bytes_max = static_cast<std::size_t>(bytes->Value());
  return limits;
}

// The names and defaults of kube-apiserver.
std::vector<cli::Flag> InFlightFlags() {
  const apiserver::InFlightLimits defaults;
  return {
      {.name = "max-requests-inflight",
       .help = "How many reads of users other than administrators are handled at a time. One user "
               "gets a quarter of them; further ones wait.",
       .default_value = std::to_string(defaults.reads),
       .placeholder = "N"},
      {.name = "max-mutating-requests-inflight",
       .help = "The same for requests that write.",
       .default_value = std::to_string(defaults.writes),
       .placeholder = "N"}};
}

Result<apiserver::InFlightLimits> ReadInFlightLimits(const cli::Arguments& arguments) {
  apiserver::InFlightLimits limits;
  constexpr std::int64_t kMax = 100'000;
  for (const auto& [flag, limit] : {std::pair("max-requests-inflight", &limits.reads),
                                    std::pair("max-mutating-requests-inflight", &limits.writes)}) {
    const std::string& text = arguments.Text(flag);
    const std::optional<std::int64_t> number = ParseInt64(text);
    if (!number || *number <= 0 || *number > kMax) {
      return InvalidArgument(
          StrCat("--", flag, " must be a number between 1 and ", kMax, ", not ", Quote(text)));
    }
    *limit = static_cast<std::size_t>(*number);
  }
  return limits;
}

// Named as in kube-apiserver.
std::vector<cli::Flag> TokenKeyFlags() {
  return {{.name = "service-account-key-file",
           .type = cli::FlagType::kRepeated,
           .help = "Key (P-256 or RSA, public or private) whose service account tokens are "
                   "accepted in addition to those of the signing key. May be repeated.",
           .placeholder = "FILE"},
          {.name = "service-account-issuer",
           .type = cli::FlagType::kRepeated,
           .help = "Issuer of service account tokens, usually a URL. May be repeated: the first is "
                   "in new tokens, and tokens of all are accepted. Defaults to "
                   "https://kubernetes.default.svc.cluster.local.",
           .placeholder = "URL"},
          {.name = "api-audiences",
           .type = cli::FlagType::kRepeated,
           .help = "Audiences of the API server, separated by commas. A token must be for one of "
                   "them. Defaults to the first issuer.",
           .placeholder = "LIST"},
          {.name = "service-account-signing-key-file",
           .help = "Private key (P-256 or RSA) that signs service account tokens. Defaults to "
                   "pki/service-accounts.key in the data directory.",
           .placeholder = "FILE"}};
}

Result<void> ReadTokenKeys(const cli::Arguments& arguments, std::string& signing_key,
                           std::vector<std::string>& keys) {
  if (const std::string& path = arguments.Text("service-account-signing-key-file"); !path.empty()) {
    ASSIGN_OR_RETURN(signing_key, RealFileSystem().ReadFile(path));
  }
  for (const std::string& path : arguments.List("service-account-key-file")) {
    ASSIGN_OR_RETURN(std::string key, RealFileSystem().ReadFile(path));
    if (const auto read = net::JwsVerifier::Create(key); !read.ok()) {
      return read.error().Prefixed(StrCat("--service-account-key-file ", path));
    }
    keys.push_back(std::move(key));
  }
  return Ok();
}

Result<apiserver::TokenNames> ReadTokenNames(const cli::Arguments& arguments) {
  apiserver::TokenNames names;
  for (const std::string& issuer : arguments.List("service-account-issuer")) {
    // As in kube-apiserver: a text with a colon is a URL.
    if (issuer.empty() ||
        (issuer.find(':') != std::string::npos && issuer.find("://") == std::string::npos)) {
      return InvalidArgument(StrCat("--service-account-issuer ", Quote(issuer),
                                    " must be a URL or a text without a colon"));
    }
    names.issuers.push_back(issuer);
  }
  for (const std::string& list : arguments.List("api-audiences")) {
    for (const std::string_view each : Split(list, ',')) {
      if (each.empty()) return InvalidArgument("--api-audiences has an empty audience");
      names.audiences.emplace_back(each);
    }
  }
  return names;
}

cli::Flag LowLatencyFlag() {
  return {.name = "low-latency",
          .type = cli::FlagType::kBool,
          .help =
              "Keep idle processors awake during writes and while claims are prepared, and for a "
              "few milliseconds afterwards (through /dev/cpu_dma_latency, as root). Uses more "
              "power and, on a virtual machine, more of the host's CPU."};
}

cli::Flag ControllersFlag() {
  return {.name = "controllers",
          .help =
              "Controllers to run, separated by commas: * for all, NAME for one, -NAME to leave "
              "one out. Names are those of kube-controller-manager.",
          .default_value = "*",
          .placeholder = "LIST"};
}

// Named as in kube-controller-manager.
std::vector<cli::Flag> SigningFlags() {
  return {
      {.name = "cluster-signing-cert-file",
       .help = "The cluster's CA, for signing certificates: pki/ca.crt in the API server's data "
               "directory. Without it approved CertificateSigningRequests wait for another "
               "signer.",
       .placeholder = "FILE"},
      {.name = "cluster-signing-key-file", .help = "The key of that CA.", .placeholder = "FILE"},
      {.name = "cluster-signing-duration",
       .type = cli::FlagType::kDuration,
       .help = "How long signed certificates are valid, unless their request asks for less.",
       .default_value = "8760h",
       .placeholder = "DURATION"}};
}

Result<std::optional<controllers::SigningAuthority>> ReadSigning(const cli::Arguments& arguments) {
  const std::string& certificate = arguments.Text("cluster-signing-cert-file");
  const std::string& key = arguments.Text("cluster-signing-key-file");
  if (certificate.empty() && key.empty()) return std::optional<controllers::SigningAuthority>();
  if (certificate.empty() || key.empty()) {
    return InvalidArgument(
        "--cluster-signing-cert-file and --cluster-signing-key-file must be given together");
  }
  controllers::SigningAuthority authority;
  ASSIGN_OR_RETURN(authority.ca.certificate_pem, RealFileSystem().ReadFile(certificate));
  ASSIGN_OR_RETURN(authority.ca.key_pem, RealFileSystem().ReadFile(key));
  ASSIGN_OR_RETURN(const net::CertificateInfo info,
                   net::ParseCertificate(authority.ca.certificate_pem));
  if (!info.is_ca) return InvalidArgument(StrCat(certificate, " is not the certificate of a CA"));
  if (!net::BelongTogether(authority.ca)) {
    return InvalidArgument(StrCat(key, " is not the key of ", certificate));
  }
  authority.max_lifetime = arguments.Time("cluster-signing-duration");
  constexpr Duration kMinLifetime = std::chrono::minutes(10);
  if (authority.max_lifetime < kMinLifetime) {
    return InvalidArgument("--cluster-signing-duration must be at least 10m");
  }
  return std::optional<controllers::SigningAuthority>(std::move(authority));
}

Result<controllers::Selection> ReadControllers(const cli::Arguments& arguments) {
  std::vector<std::string> words;
  for (std::string_view word : Split(arguments.Text("controllers"), ',')) {
    if (!Trim(word).empty()) words.emplace_back(Trim(word));
  }
  return controllers::Selection::Parse(words);
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

// Clients for a server given by a kubeconfig.
Result<ClientFactory> HttpClients(const std::string& kubeconfig, const std::string& agent,
                                  client::Fence fence = nullptr) {
  if (kubeconfig.empty()) {
    return InvalidArgument(
        "--kubeconfig is required, with the API server's address and credentials");
  }
  ASSIGN_OR_RETURN(client::ClusterAccess access,
                   client::LoadKubeconfig(RealFileSystem(), kubeconfig));
  if (const auto why = client::WhyExpired(access, RealClock().Now(), kubeconfig)) return *why;
  return ClientFactory([access, agent, fence = std::move(fence)](
                           UvLoop& loop, std::string, std::vector<std::string>, storage::Mark) {
    return client::MakeHttpClient(loop, access, agent, RealFileSystem(), client::FieldSets::kOpaque,
                                  fence);
  });
}

// Reads the file, or returns the defaults if `path` is empty.
Result<scheduler::Configuration> ReadSchedulerConfiguration(const std::string& path,
                                                            const FeatureGates& gates) {
  if (path.empty()) return scheduler::Configuration{};
  ASSIGN_OR_RETURN(const std::string text, RealFileSystem().ReadFile(path));
  Result<scheduler::Configuration> configuration = scheduler::ParseConfiguration(text, gates);
  if (!configuration.ok()) return configuration.error().Prefixed(path);
  for (const std::string& remark : configuration->remarks) {
    kLog.Warning("scheduler configuration", {{"file", path}, {"remark", remark}});
  }
  return configuration;
}

std::string RootDirectory(const cli::Arguments& arguments) {
  const std::string given = arguments.Text("root-dir");
  return given.empty() ? DefaultRootDirectory(AbsolutePath(arguments.Text("data-dir")))
                       : AbsolutePath(given);
}

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

// Returns 0 for no limit.
Result<std::int64_t> ReadPidsLimit(const cli::Arguments& arguments,
                                   std::optional<std::int64_t> of_file = {}) {
  const std::string& text = arguments.Text("pod-pids-limit");
  std::optional<std::int64_t> limit = of_file.value_or(kPodPidsLimit);
  if (!text.empty()) limit = ParseInt64(text);
  if (!limit || *limit == 0 || *limit < -1) {
    return InvalidArgument(StrCat(
        "--pod-pids-limit must be greater than zero, or -1 for no limit, not ", Quote(text)));
  }
  return *limit < 0 ? 0 : *limit;
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

std::vector<std::string> ReadAlternativeNames(const cli::Arguments& arguments) {
  std::vector<std::string> names;
  for (const std::string_view name : Split(arguments.Text("tls-san"), ',')) {
    if (!Trim(name).empty()) names.emplace_back(Trim(name));
  }
  return names;
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
  parts.push_back(MakeControllersPart(loop, server->DirectClients(),
                                      {.status = std::move(*controllers_status),
                                       .ca_pem = server->pki().ca().certificate_pem,
                                       .signing = controllers::SigningAuthority{server->pki().ca()},
                                       .controllers = std::move(*selection),
                                       .account_clients = true}));
  scheduler->leader_election.leader_elect = false;
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
                           .token_names = *std::move(token_names)});
  if (!opened.ok()) return Fail(console, opened.error());
  ApiServerPart* server = opened->get();
  std::vector<std::unique_ptr<Part>> parts;
  parts.push_back(std::move(*opened));
  return RunParts(loop, std::move(parts), console, [&, server] {
    console.Out(StrCat("the API server is ready at ", server->url(),
                       "\nkubeconfig: ", server->kubeconfig_path(), "\n"));
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
  Result<controllers::Selection> selection = ReadControllers(arguments);
  if (!selection.ok()) return Fail(console, selection.error());
  component.controllers = std::move(*selection);
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

// Hollow nodes have neither ports nor files, so most flags of a node mean nothing to them.
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
  Result<ClientFactory> clients = HttpClients(kubeconfig, "drakkar-node");
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
       .runtime_endpoint = *runtime_socket,
       .nri = std::move(*nri),
       .pod_pids_limit = *pids_limit,
       .seccomp_default = settings->seccomp_default || arguments.Bool("seccomp-default"),
       .api_host = url->host,
       .api_port = std::to_string(url->port),
       .network = std::move(*network),
       .registries = std::move(*registries),
       .image_collection = settings->image_collection,
       .eviction = settings->eviction,
       .resources = settings->resources,
       .shutdown_periods = settings->shutdown_periods,
       .sysctls = settings->sysctls,
       .max_pods = settings->max_pods,
       .client_ca_pem = *ca,
       .serving = std::move(serving),
       .low_latency = arguments.Bool("low-latency")}));
  return RunParts(loop, std::move(parts), console, [] { kLog.Info("node agent started"); });
}

// How others reach the API server.
std::vector<cli::Flag> ReachFlags() {
  return {{.name = "advertise-address",
           .help = "Address under which nodes and clients reach the API server, for kubeconfigs, "
                   "certificates and the Service kubernetes. Default: --address.",
           .placeholder = "IP"},
          {.name = "tls-san",
           .help = "Further names and addresses for the API server's certificate, separated by "
                   "commas.",
           .placeholder = "LIST"}};
}

cli::Flag AddressFlag(std::string help) {
  return {.name = "address",
          .help = std::move(help),
          .default_value = "127.0.0.1",
          .placeholder = "IP"};
}

cli::Flag PortFlag(std::string name, std::string help, std::string port) {
  return {.name = std::move(name),
          .type = cli::FlagType::kInt,
          .help = std::move(help),
          .default_value = std::move(port),
          .placeholder = "PORT"};
}

cli::Flag KubeconfigFlag() {
  return {.name = "kubeconfig",
          .help = "Address of the API server and credentials.",
          .placeholder = "FILE"};
}

cli::Flag RuntimeFlag() {
  return {.name = "runtime",
          .help = "Container runtime: runc, crun or a path. Defaults to the one that is installed.",
          .placeholder = "NAME"};
}

cli::Flag RuntimeEndpointFlag() {
  return {.name = "container-runtime-endpoint",
          .help =
              "Socket of a container runtime with CRI, unix:///run/containerd/containerd.sock. "
              "It then pulls images and connects pods to their network; --runtime and the "
              "flags of networks and registries have no effect. Defaults to the built-in "
              "runtime.",
          .placeholder = "SOCKET"};
}

cli::Flag PidsLimitFlag() {
  return {
      .name = "pod-pids-limit",
      .help = StrCat("Maximum number of processes and threads per pod; -1 for no limit. Default: ",
                     kPodPidsLimit, "."),
      .placeholder = "N"};
}

cli::Flag SeccompDefaultFlag() {
  return {.name = "seccomp-default",
          .type = cli::FlagType::kBool,
          .help = "Use the RuntimeDefault seccomp profile for containers that specify none.",
          .default_value = "false"};
}

cli::Flag RootDirectoryFlag() {
  return {.name = "root-dir",
          .help =
              "Directory of plugins, their registration sockets and the claim checkpoint. Drivers "
              "built for a kubelet expect /var/lib/kubelet. Defaults to kubelet in the data "
              "directory.",
          .placeholder = "DIR"};
}

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
           .help = "Start of the names of hollow nodes; a number follows.",
           .default_value = "hollow-",
           .placeholder = "TEXT"},
          {.name = "hollow-health-changes-every",
           .type = cli::FlagType::kDuration,
           .help = "How often a device of some hollow node becomes unhealthy or healthy; 0 for "
                   "never.",
           .default_value = "0s",
           .placeholder = "DURATION"}};
}

cli::Flag NodeNameFlag() {
  return {.name = "node-name",
          .help = "Name of the Node object.",
          .default_value = HostName(),
          .placeholder = "NAME"};
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

constexpr char kSection[] = "Run";

}  // namespace

void AddDaemonCommands(cli::App& app) {
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
           .flags = With(
               {DataDirectoryFlag(),
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
                 .help = "Port of the web page (see drakkar dashboard) on 127.0.0.1; 0 "
                         "chooses a free one. Without this flag there is no page.",
                 .placeholder = "PORT"},
                ControllersFlag(),
                {.name = "scheduler-config",
                 .help = "KubeSchedulerConfiguration file.",
                 .placeholder = "FILE"},
                RuntimeFlag(),
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
                 .help = "Run every component in a process of its own. One that crashes or runs "
                         "out of memory is started again, and the others go on. Costs memory and "
                         "half of the scheduling rate.",
                 .default_value = "false"}},
               And(And(And(And(And(PodNetworkFlags(), NriFlags()), RegistryFlags()), EventFlags()),
                       InFlightFlags()),
                   ReachFlags())),
           .max_arguments = 0,
           .section = kSection,
           .run = RunUp});
  app.Add({.name = "apiserver",
           .summary = "Run the API server",
           .help = "Serves the API over HTTPS and writes an administrator's kubeconfig to the data "
                   "directory. The objects are in an embedded store in that directory, or with "
                   "--etcd-servers in etcd, where several API servers, kube-apiserver among them, "
                   "may share them.",
           .examples = "  # on an etcd cluster with TLS\n"
                       "  drakkar apiserver --etcd-servers https://etcd-0:2379,https://etcd-1:2379 "
                       "\\\n    --etcd-cafile ca.crt --etcd-certfile client.crt --etcd-keyfile "
                       "client.key\n",
           .flags = With({DataDirectoryFlag(), AddressFlag("Address to listen on."),
                          PortFlag("port", "Port to listen on; 0 chooses a free one.", "6443"),
                          SkipFormFlag(), LowLatencyFlag()},
                         And(And(And(EtcdFlags(), EventFlags()), TokenKeyFlags()),
                             And(InFlightFlags(), ReachFlags()))),
           .max_arguments = 0,
           .section = kSection,
           .run = RunApiServer});
  app.Add({.name = "controllers",
           .summary = "Run the controllers",
           .help = "Creates claims from templates, releases them, and garbage-collects objects "
                   "without an owner. If several instances run, the one that holds the Lease "
                   "is active.",
           .flags = With(And(And({KubeconfigFlag(), ControllersFlag()}, SigningFlags()),
                             ComponentFlags(10257, "kube-controller-manager"))),
           .max_arguments = 0,
           .section = kSection,
           .run = RunControllers});
  app.Add(
      {.name = "scheduler",
       .summary = "Run the scheduler",
       .help = "Assigns nodes and devices to pods. If several instances run, the one that holds "
               "the Lease is active.",
       .examples = "  # stop waiting for fabric devices after a minute\n"
                   "  drakkar scheduler --kubeconfig admin.kubeconfig --config scheduler.yaml\n",
       .flags =
           With(And({KubeconfigFlag(),
                     {.name = "config",
                      .help = "KubeSchedulerConfiguration file (kubescheduler.config.k8s.io/v1).",
                      .placeholder = "FILE"}},
                    ComponentFlags(10259, "kube-scheduler"))),
       .max_arguments = 0,
       .section = kSection,
       .run = RunScheduler});
  app.Add({.name = "node",
           .summary = "Run a node agent",
           .help = "Registers this machine as a node, prepares claims through DRA drivers and runs "
                   "pods with runc. Requires root, runc and conmon. With --hollow it runs many "
                   "nodes with simulated machines, containers and devices instead, to load a "
                   "control plane; they need nothing but a kubeconfig of an administrator.",
           .examples = "  # on a new machine, with what `drakkar token create "
                       "--print-join-command` printed\n"
                       "  drakkar node --join https://10.0.0.1:6443 --token "
                       "abcdef.0123456789abcdef \\\n"
                       "    --ca-hash sha256:... --address 10.0.0.7\n"
                       "  # a thousand nodes with eight devices each\n"
                       "  drakkar node --hollow 1000 --hollow-devices 8 --kubeconfig "
                       "admin.kubeconfig\n",
           .flags = With(
               {DataDirectoryFlag(),
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
                RuntimeEndpointFlag(),
                PidsLimitFlag(),
                SeccompDefaultFlag(),
                RootDirectoryFlag(),
                LowLatencyFlag()},
               And(HollowFlags(), And(And(And(And(PodNetworkFlags(), NriFlags()), RegistryFlags()),
                                          KubeletConfigFlags()),
                                      JoinFlags()))),
           .max_arguments = 0,
           .section = kSection,
           .run = RunNode});
  AddDriverCommand(app);
}

}  // namespace drakkar::cmd
