#include "cmd/drakkar/status_port.h"

#include <unistd.h>

#include <algorithm>

#include "base/env/file_system.h"
#include "base/ids/uuid.h"
#include "base/text/text.h"
#include "net/socket/address_kind.h"
#include "net/tls/certificate_source.h"
#include "telemetry/log/log.h"

namespace drakkar::cmd {
namespace {

constexpr Logger kLog("drakkar");

}  // namespace

std::vector<cli::Flag> ComponentFlags(std::uint16_t port, const std::string& lease_name) {
  const client::LeaderElectionConfig defaults;
  return {
      {.name = "bind-address",
       .help = "Address of the status port.",
       .default_value = "127.0.0.1",
       .placeholder = "IP"},
      {.name = "advertise-address",
       .help =
           "IP address under which the API server reaches the status port, if it listens on all "
           "addresses. Defaults to --bind-address.",
       .placeholder = "IP"},
      {.name = "secure-port",
       .type = cli::FlagType::kInt,
       .help = "Port of /healthz, /livez, /readyz, /metrics and /configz, and of the scheduler's "
               "/why; 0 disables it.",
       .default_value = std::to_string(port),
       .placeholder = "PORT"},
      {.name = "tls-cert-file",
       .help = "Certificate of the status port. Defaults to a self-signed one.",
       .placeholder = "FILE"},
      {.name = "tls-private-key-file",
       .help = "Private key of that certificate.",
       .placeholder = "FILE"},
      {.name = "client-ca-file",
       .help = "CA for client certificates on /metrics and /configz. Bearer tokens are always "
               "accepted.",
       .placeholder = "FILE"},
      {.name = "authorization-always-allow-paths",
       .help = "Paths that need no authorization; for others the API server decides whether the "
               "user may get them.",
       .default_value = "/healthz,/readyz,/livez",
       .placeholder = "PATHS"},
      {.name = "leader-elect",
       .type = cli::FlagType::kBool,
       .help = "Be active only while holding the Lease.",
       .default_value = "true"},
      {.name = "leader-elect-lease-duration",
       .type = cli::FlagType::kDuration,
       .help = "How long a standby waits before it takes over from a leader that no longer renews.",
       .default_value = "15s",
       .placeholder = "TIME"},
      {.name = "leader-elect-renew-deadline",
       .type = cli::FlagType::kDuration,
       .help = "How long the leader stays active if it cannot renew.",
       .default_value = "10s",
       .placeholder = "TIME"},
      {.name = "leader-elect-retry-period",
       .type = cli::FlagType::kDuration,
       .help = "Interval between attempts to acquire or renew the Lease.",
       .default_value = "2s",
       .placeholder = "TIME"},
      {.name = "leader-elect-resource-name",
       .help = "Name of the Lease.",
       .default_value = lease_name,
       .placeholder = "NAME"},
      {.name = "leader-elect-resource-namespace",
       .help = "Namespace of the Lease.",
       .default_value = defaults.lease_namespace,
       .placeholder = "NAME"},
  };
}

Result<StatusPortOptions> ReadStatusPort(const cli::Arguments& arguments) {
  StatusPortOptions options;
  const std::int64_t port = arguments.Int("secure-port");
  if (port < 0 || port > 65535) {
    return InvalidArgument(StrCat("--secure-port must be a port between 0 and 65535, not ", port));
  }
  options.address = {.host = arguments.Text("bind-address"),
                     .port = static_cast<std::uint16_t>(port)};
  options.advertised_host = arguments.Text("advertise-address");
  if (!options.advertised_host.empty() &&
      net::KindOfAddress(options.advertised_host) == net::AddressKind::kNoAddress) {
    return InvalidArgument(
        StrCat("--advertise-address must be an IP address, not ", Quote(options.advertised_host)));
  }
  const bool has_certificate = !arguments.Text("tls-cert-file").empty();
  if (has_certificate != !arguments.Text("tls-private-key-file").empty()) {
    return InvalidArgument("--tls-cert-file and --tls-private-key-file must be given together");
  }
  FileSystem& files = RealFileSystem();
  if (has_certificate) {
    ASSIGN_OR_RETURN(
        options.serving,
        net::WatchedCertificate::Make(
            RealClock(), net::FromFiles(RealFileSystem(), arguments.Text("tls-cert-file"),
                                        arguments.Text("tls-private-key-file"))));
  }
  if (!arguments.Text("client-ca-file").empty()) {
    ASSIGN_OR_RETURN(options.client_ca_pem, files.ReadFile(arguments.Text("client-ca-file")));
  }
  for (const std::string_view path :
       Split(arguments.Text("authorization-always-allow-paths"), ',')) {
    if (!path.starts_with('/')) {
      return InvalidArgument(StrCat(
          "--authorization-always-allow-paths must be comma-separated paths, not ", Quote(path)));
    }
    options.open_paths.emplace_back(path);
  }
  return options;
}

Result<void> ReadLeaderElection(const cli::Arguments& arguments,
                                client::LeaderElectionConfig& config) {
  if (arguments.Has("leader-elect")) config.leader_elect = arguments.Bool("leader-elect");
  if (arguments.Has("leader-elect-lease-duration")) {
    config.lease_duration = arguments.Time("leader-elect-lease-duration");
  }
  if (arguments.Has("leader-elect-renew-deadline")) {
    config.renew_deadline = arguments.Time("leader-elect-renew-deadline");
  }
  if (arguments.Has("leader-elect-retry-period")) {
    config.retry_period = arguments.Time("leader-elect-retry-period");
  }
  if (arguments.Has("leader-elect-resource-name") || config.lease_name.empty()) {
    config.lease_name = arguments.Text("leader-elect-resource-name");
  }
  if (arguments.Has("leader-elect-resource-namespace")) {
    config.lease_namespace = arguments.Text("leader-elect-resource-namespace");
  }
  return client::CheckLeaderElection(config);
}

std::string LeaderIdentity() {
  char name[256] = {};
  if (::gethostname(name, sizeof(name) - 1) != 0) name[0] = 0;
  return StrCat(name, "_", NewUuid(RealRandom()));
}

StatusPort::StatusPort(UvLoop& loop, client::Client& client, std::vector<std::string> open_paths,
                       net::HttpServerOptions options, net::StatusPages::Options pages)
    : reviewer_(loop, client),
      open_paths_(std::move(open_paths)),
      pages_([&] {
        pages.authorize = [this](const net::ServerRequest& request,
                                 std::function<void(int, std::string)> done) {
          Authorize(request, std::move(done));
        };
        return std::move(pages);
      }()),
      server_(loop, std::move(options), pages_) {}

void StatusPort::Authorize(const net::ServerRequest& request,
                           std::function<void(int, std::string)> done) {
  if (std::find(open_paths_.begin(), open_paths_.end(), request.path) != open_paths_.end()) {
    return done(0, "");
  }
  // A page of the component is reviewed as a whole: "/why/pods/a/b" as "/why".
  const std::string path = request.path.substr(0, request.path.find('/', 1));
  reviewer_.Review(
      client::AccessReviewer::CredentialsOf(request), {{.path = path}},
      [done = std::move(done)](std::optional<client::AccessReviewer::Refusal> refusal) {
        refusal ? done(refusal->status, refusal->reason) : done(0, "");
      });
}

Result<std::unique_ptr<StatusPort>> StatusPort::Open(UvLoop& loop, client::Client& client,
                                                     const StatusPortOptions& options,
                                                     net::StatusPages::Options pages) {
  if (options.address.port == 0) return std::unique_ptr<StatusPort>();
  net::TlsServerOptions tls;
  tls.client_ca_pem = options.client_ca_pem;
  tls.source = options.serving;
  std::string own_ca_pem;
  const std::string host =
      options.advertised_host.empty() ? options.address.host : options.advertised_host;
  if (tls.source == nullptr) {
    const WallTime start = RealClock().Now();
    ASSIGN_OR_RETURN(const net::CertificateAndKey ca,
                     net::CreateCa("drakkar-status", {start - std::chrono::hours(1),
                                                      start + std::chrono::hours(24 * 3650)}));
    own_ca_pem = ca.certificate_pem;
    const auto issue = [host, ca]() -> Result<net::CertificateAndKey> {
      const WallTime now = RealClock().Now();
      const net::Validity validity{now - std::chrono::hours(1), now + std::chrono::hours(24 * 365)};
      return net::IssueCertificate(ca,
                                   {.common_name = "drakkar-status",
                                    .organizations = {},
                                    .dns_names = {"localhost"},
                                    .ip_addresses = {host}},
                                   net::CertificateUse::kServer, validity);
    };
    ASSIGN_OR_RETURN(tls.source, net::RenewedCertificate::Make(RealClock(), issue));
  }
  net::HttpServerOptions server;
  server.address = options.address;
  ASSIGN_OR_RETURN(server.tls, net::TlsContext::Server(tls));
  std::unique_ptr<StatusPort> port(
      new StatusPort(loop, client, options.open_paths, std::move(server), std::move(pages)));
  if (Result<void> started = port->server_.Start(); !started.ok()) {
    if (options.flag_if_taken.empty()) return started.error();
    kLog.Warning("status port disabled: could not listen", {{"address", options.address.ToText()},
                                                            {"err", started.error().message},
                                                            {"flag", options.flag_if_taken}});
    return std::unique_ptr<StatusPort>();
  }
  const net::AddressKind kind = net::KindOfAddress(host);
  if (kind == net::AddressKind::kLoopback || kind == net::AddressKind::kOther) {
    port->url_ = StrCat("https://", net::Address{host, options.address.port}.ToText());
  }
  port->own_ca_pem_ = std::move(own_ca_pem);
  kLog.Info("serving status port", {{"address", options.address.ToText()}});
  return port;
}

}  // namespace drakkar::cmd
