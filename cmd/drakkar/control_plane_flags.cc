#include "cmd/drakkar/control_plane_flags.h"

#include "api/meta/quantity.h"
#include "api/meta/time.h"
#include "base/text/text.h"
#include "net/tls/certificates.h"
#include "net/tls/jws.h"
#include "telemetry/log/log.h"

namespace drakkar::cmd {
namespace {

// The largest size that a flag accepts: more than any machine has.
constexpr std::int64_t kMaxFlagBytes = std::int64_t{1} << 40;
constexpr Logger kLog("drakkar");

}  // namespace

cli::Flag SkipFormFlag() {
  return {.name = "skip-node-operations-form",
          .help =
              "How skipNodeOperations is returned: as written, or always as a list, because Go "
              "clients cannot decode a boolean.",
          .default_value = "written",
          .placeholder = "written|list"};
}

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
           .help = "Maximum number of events. Beyond it, the oldest are deleted.",
           .default_value = std::to_string(defaults.count_max),
           .placeholder = "N"},
          {.name = "max-event-bytes",
           .help = "Maximum total size of events. Beyond it, the oldest are deleted.",
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

std::vector<cli::Flag> InFlightFlags() {
  const apiserver::InFlightLimits defaults;
  return {
      {.name = "max-requests-inflight",
       .help = "Maximum number of concurrent reads by users other than administrators. One user "
               "gets at most a quarter; further requests wait.",
       .default_value = std::to_string(defaults.reads),
       .placeholder = "N"},
      {.name = "max-mutating-requests-inflight",
       .help = "The same for writes.",
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

std::vector<cli::Flag> TokenKeyFlags() {
  return {{.name = "service-account-key-file",
           .type = cli::FlagType::kRepeated,
           .help = "Key (P-256 or RSA, public or private) whose service account tokens are "
                   "accepted in addition to those of the signing key. May be repeated.",
           .placeholder = "FILE"},
          {.name = "service-account-issuer",
           .type = cli::FlagType::kRepeated,
           .help = "Issuer of service account tokens, usually a URL. May be repeated: the first "
                   "one issues new tokens, and tokens of all are accepted. Defaults to "
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

std::vector<cli::Flag> FrontProxyFlags() {
  const auto headers = [](std::string name, std::string help, std::string standard) {
    return cli::Flag{.name = std::move(name),
                     .help = std::move(help),
                     .default_value = std::move(standard),
                     .placeholder = "LIST"};
  };
  return {{.name = "requestheader-client-ca-file",
           .help = "CA of the certificates of front proxies. Whoever presents one is trusted to "
                   "name its client in headers. Without it, such headers have no effect.",
           .placeholder = "FILE"},
          {.name = "requestheader-allowed-names",
           .help = "Common names that such a certificate may have, separated by commas; by "
                   "default any.",
           .placeholder = "LIST"},
          headers("requestheader-username-headers",
                  "Headers with the user's name, separated by commas. The first that is there "
                  "counts.",
                  "X-Remote-User"),
          headers("requestheader-uid-headers", "The same for the user's UID.", "X-Remote-Uid"),
          headers("requestheader-group-headers",
                  "Headers with the user's groups, separated by commas. All of them count.",
                  "X-Remote-Group"),
          headers("requestheader-extra-headers-prefix",
                  "Beginnings of the names of headers with further facts about the user, separated "
                  "by commas.",
                  "X-Remote-Extra-")};
}

Result<apiserver::FrontProxies> ReadFrontProxies(const cli::Arguments& arguments) {
  apiserver::FrontProxies proxies;
  const auto read = [&](const std::string& flag, std::vector<std::string>& into) -> Result<void> {
    into.clear();
    if (arguments.Text(flag).empty()) return Ok();
    for (const std::string_view each : Split(arguments.Text(flag), ',')) {
      if (Trim(each).empty()) return InvalidArgument(StrCat("--", flag, " has an empty name"));
      into.emplace_back(Trim(each));
    }
    return Ok();
  };
  RETURN_IF_ERROR(read("requestheader-allowed-names", proxies.allowed_names));
  RETURN_IF_ERROR(read("requestheader-username-headers", proxies.headers.user));
  RETURN_IF_ERROR(read("requestheader-uid-headers", proxies.headers.uid));
  RETURN_IF_ERROR(read("requestheader-group-headers", proxies.headers.group));
  RETURN_IF_ERROR(read("requestheader-extra-headers-prefix", proxies.headers.extra_prefix));
  const std::string& file = arguments.Text("requestheader-client-ca-file");
  if (file.empty()) return proxies;
  ASSIGN_OR_RETURN(proxies.ca_pem, RealFileSystem().ReadFile(file));
  if (Result<void> checked = net::CheckCertificates(proxies.ca_pem); !checked.ok()) {
    return checked.error().Prefixed(StrCat("--requestheader-client-ca-file ", file));
  }
  return proxies;
}

std::vector<cli::Flag> ReachFlags() {
  return {{.name = "advertise-address",
           .help = "Address at which nodes and clients reach the API server; used in kubeconfigs, "
                   "certificates and the Service kubernetes. Default: --address.",
           .placeholder = "IP"},
          {.name = "tls-san",
           .help = "Additional names and IP addresses for the API server's certificate, separated "
                   "by commas.",
           .placeholder = "LIST"}};
}

std::vector<std::string> ReadAlternativeNames(const cli::Arguments& arguments) {
  std::vector<std::string> names;
  for (const std::string_view name : Split(arguments.Text("tls-san"), ',')) {
    if (!Trim(name).empty()) names.emplace_back(Trim(name));
  }
  return names;
}

cli::Flag ControllersFlag() {
  return {.name = "controllers",
          .help =
              "Controllers to run, separated by commas: * for all, NAME for one, -NAME to leave "
              "one out. Names are those of kube-controller-manager.",
          .default_value = "*",
          .placeholder = "LIST"};
}

cli::Flag AccountsFlag() {
  return {.name = "use-service-account-credentials",
          .type = cli::FlagType::kBool,
          .help =
              "Give each controller a service account of its own, for which the kubeconfig's "
              "user requests tokens. With false, that user's permissions apply to all.",
          .default_value = "true"};
}

Result<controllers::Selection> ReadControllers(const cli::Arguments& arguments) {
  std::vector<std::string> words;
  for (std::string_view word : Split(arguments.Text("controllers"), ',')) {
    if (!Trim(word).empty()) words.emplace_back(Trim(word));
  }
  return controllers::Selection::Parse(words);
}

std::vector<cli::Flag> SigningFlags() {
  return {
      {.name = "cluster-signing-cert-file",
       .help = "Certificate of the CA that signs certificates, usually pki/ca.crt in the API "
               "server's data directory. Without it, approved CertificateSigningRequests wait for "
               "another signer.",
       .placeholder = "FILE"},
      {.name = "cluster-signing-key-file",
       .help = "Private key of that CA.",
       .placeholder = "FILE"},
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

}  // namespace drakkar::cmd
