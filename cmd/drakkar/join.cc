// `drakkar node --join`: from a token to a node's certificates.
#include "cmd/drakkar/join.h"

#include <algorithm>

#include "api/json/reader.h"
#include "api/scheme/scheme.h"
#include "base/exec/backoff.h"
#include "base/hash/base64.h"
#include "base/text/text.h"
#include "bootstrap/cluster_info.h"
#include "bootstrap/token.h"
#include "client/http_client.h"
#include "client/server_list.h"
#include "net/http/url.h"
#include "net/socket/address_kind.h"
#include "node/join/kept_certificate.h"
#include "telemetry/log/log.h"

namespace drakkar::cmd {
namespace {

constexpr Logger kLog("join");
constexpr char kAgent[] = "drakkar-node";
// How long to keep trying a server that cannot be reached.
constexpr Duration kReachTimeout = std::chrono::minutes(5);
constexpr Duration kRequestTimeout = std::chrono::seconds(20);
// How often a node that has joined refreshes its list of API servers.
constexpr Duration kLearnInterval = std::chrono::minutes(5);
// cluster-info comes from a server that is not verified yet.
constexpr std::size_t kMaxInfoBytes = 1 << 20;

std::string ClientCertificatePath(const std::string& data_dir) {
  return JoinPath(data_dir, "pki/node-client.pem");
}
std::string ServingCertificatePath(const std::string& data_dir) {
  return JoinPath(data_dir, "pki/node-serving.pem");
}

// The kubeconfig of a node that has joined. Paths in it are relative to it.
Result<void> WriteKubeconfig(const std::string& data_dir, const std::vector<std::string>& servers,
                             const std::string& ca_pem) {
  const std::string text =
      StrCat("apiVersion: v1\nkind: Config\nclusters:\n- name: cluster\n  cluster:\n    server: ",
             Join(servers, ","), "\n    certificate-authority-data: ", Base64Encode(ca_pem),
             "\nusers:\n- name: node\n  user:\n    client-certificate: pki/node-client.pem\n"
             "    client-key: pki/node-client.pem\ncontexts:\n- name: cluster\n  context:\n"
             "    cluster: cluster\n    user: node\ncurrent-context: cluster\n");
  return RealFileSystem().WriteFileAtomically(JoinedKubeconfigPath(data_dir), text, 0600);
}

// The existing API servers, beginning with the first known one. If the cluster does not list them:
// the known ones.
void LearnServers(client::Client& client, std::vector<std::string> known,
                  std::function<void(std::vector<std::string>)> done) {
  client.Get({api::FindKind("", "v1", "Endpoints"), "default", "kubernetes", ""},
             [known = std::move(known), done = std::move(done)](const client::Reply& reply) {
               done(reply.ok() ? client::MergeServers(known, reply.object->root()) : known);
             });
}

// "https://HOST:PORT" of any of the accepted forms.
Result<std::string> ServerUrl(const std::string& given) {
  std::string text = given;
  if (text.find("://") == std::string::npos) {
    if (net::KindOfAddress(text) != net::AddressKind::kNoAddress &&
        text.find(':') != std::string::npos) {
      text = StrCat("[", text, "]");
    }
    const std::size_t colon = text.rfind(':');
    const bool has_port = colon != std::string::npos && text.find(']', colon) == std::string::npos;
    text = StrCat("https://", text, has_port ? "" : ":6443");
  }
  const Result<net::Url> url = net::ParseUrl(text);
  if (!url.ok() || url->scheme != "https") {
    return InvalidArgument(
        StrCat("--join must be the API server's address, https://HOST:PORT, not ", Quote(given)));
  }
  while (text.ends_with('/')) text.pop_back();
  return text;
}

// The CA in a reply to GET cluster-info, if it has the hash.
Result<std::string> CaOf(const net::Response& response, const std::string& hash) {
  if (response.status != 200) {
    return FailedPrecondition(
        StrCat("reading the cluster's CA (kube-public/cluster-info) failed with status ",
               response.status));
  }
  ASSIGN_OR_RETURN(const api::TreePtr map, api::ParseJson(response.body));
  ASSIGN_OR_RETURN(
      const bootstrap::ClusterInfo info,
      bootstrap::ReadClusterInfo(map->root()["data"].Entry(bootstrap::kInfoKubeconfig).str()));
  return bootstrap::SelectCa(info.ca_pem, hash);
}

// Runs on its own loop until the CA is verified and the certificate has been issued.
class Joining {
 public:
  Joining(UvLoop& loop, const JoinOptions& options)
      : loop_(loop), options_(options), deadline_(loop.clock().Monotonic() + kReachTimeout) {}

  std::optional<Result<void>> result;

  // Step one: the server is not trusted yet and gets no credentials.
  void FetchCa() {
    net::HttpClientOptions http;
    http.tls.insecure = true;
    http_ = std::make_unique<net::HttpClient>(loop_, std::move(http));
    net::ClientRequest request;
    // Every attempt uses the next server.
    const std::string& server = options_.servers[attempts_++ % options_.servers.size()];
    request.url = StrCat(server, "/api/v1/namespaces/", bootstrap::kInfoNamespace, "/configmaps/",
                         bootstrap::kInfoName);
    request.timeout = kRequestTimeout;
    request.max_response_bytes = kMaxInfoBytes;
    request.headers.Add("Accept", "application/json");
    http_->Do(std::move(request), [this, server](Result<net::Response> response) {
      if (!response.ok()) return Retry(response.error());
      Result<std::string> ca = CaOf(*response, options_.ca_hash);
      if (!ca.ok()) return Finish(ca.error());
      ca_pem_ = std::move(*ca);
      kLog.Info("verified the cluster's CA", {{"server", server}});
      RequestCertificate(server);
    });
  }

 private:
  client::ClusterAccess AccessTo(const std::string& server) const {
    client::ClusterAccess access;
    access.server = server;
    access.ca_pem = ca_pem_;
    return access;
  }

  // Step two: with the token, over a connection verified by this CA.
  void RequestCertificate(const std::string& server) {
    client::ClusterAccess access = AccessTo(server);
    access.token = options_.token;
    client_ = client::MakeHttpClient(loop_, access, kAgent);
    request_ = std::make_unique<node::CertificateRequest>(
        node::CertificateRequest::Options{.loop = loop_,
                                          .random = RealRandom(),
                                          .client = *client_,
                                          .signer = node::kNodeClientSigner,
                                          .subject = node::NodeSubject(options_.node_name),
                                          .usages = node::NodeClientUsages()},
        [this, server](Result<net::CertificateAndKey> issued) {
          if (issued.ok()) return FindOthers(server, *issued);
          if (issued.error().code == ErrorCode::kUnauthenticated) {
            return Finish(FailedPrecondition(
                "the server does not accept the token, which may have expired; create another one "
                "with `drakkar token create --print-join-command`"));
          }
          if (issued.error().code == ErrorCode::kUnavailable) return Retry(issued.error());
          Finish(issued.error());
        });
  }

  // Step three: as the node, get the list of other API servers.
  void FindOthers(const std::string& server, const net::CertificateAndKey& issued) {
    client::ClusterAccess access = AccessTo(server);
    access.client_certificate_pem = issued.certificate_pem;
    access.client_key_pem = issued.key_pem;
    node_client_ = client::MakeHttpClient(loop_, access, kAgent);
    LearnServers(*node_client_, options_.servers,
                 [this, issued](const std::vector<std::string>& servers) {
                   kLog.Info("found API servers", {{"servers", Join(servers, ",")}});
                   Finish(Keep(issued, servers));
                 });
  }

  Result<void> Keep(const net::CertificateAndKey& issued,
                    const std::vector<std::string>& servers) const {
    RETURN_IF_ERROR(node::WriteCertificateFile(RealFileSystem(),
                                               ClientCertificatePath(options_.data_dir), issued));
    // The kubeconfig is written last: it marks a node that has joined.
    return WriteKubeconfig(options_.data_dir, servers, ca_pem_);
  }

  void Retry(const Error& error) {
    if (loop_.clock().Monotonic() >= deadline_) return Finish(error);
    if (backoff_.failures() == 0) {
      kLog.Warning("the API server cannot be reached; trying again", {{"error", error.message}});
    }
    retry_ = loop_.RunAfter(backoff_.Next(), [this] {
      request_.reset();
      client_.reset();
      node_client_.reset();
      FetchCa();
    });
  }

  void Finish(Result<void> outcome) {
    result = std::move(outcome);
    loop_.Stop();
  }

  UvLoop& loop_;
  const JoinOptions& options_;
  const MonotonicTime deadline_;
  std::size_t attempts_ = 0;
  std::string ca_pem_;
  Backoff backoff_{{.initial = std::chrono::milliseconds(500), .max = std::chrono::seconds(10)}};
  TimerHandle retry_;
  std::unique_ptr<net::HttpClient> http_;
  std::unique_ptr<client::Client> client_;
  std::unique_ptr<client::Client> node_client_;
  std::unique_ptr<node::CertificateRequest> request_;
};

class KeptCertificatesPart final : public CertificatesPart {
 public:
  KeptCertificatesPart(CertificatesOptions options, net::CertificateAndKey meanwhile)
      : options_(std::move(options)),
        client_(client::MakeHttpClient(options_.main_loop, options_.access, kAgent)) {
    const net::CertificateSubject subject = node::NodeSubject(options_.node_name);
    client_certificate_ = std::make_unique<node::KeptCertificate>(
        Kept(ClientCertificatePath(options_.data_dir), node::kNodeClientSigner,
             node::NodeClientUsages(), subject, {}));
    net::CertificateSubject served = subject;
    served.dns_names = {options_.node_name};
    served.ip_addresses = {options_.address};
    serving_ = std::make_unique<node::KeptCertificate>(
        Kept(ServingCertificatePath(options_.data_dir), node::kNodeServingSigner,
             node::NodeServingUsages(), std::move(served), std::move(meanwhile)));
  }

  std::string_view name() const override { return "certificates"; }
  void Start(std::function<void(Result<void>)> done) override {
    client_certificate_->Start();
    serving_->Start();
    Learn();
    done(Ok());
  }
  void Stop(std::function<void()> done) override {
    learn_.reset();
    client_certificate_.reset();
    serving_.reset();
    client_.reset();
    done();
  }
  std::shared_ptr<net::CertificateSource> serving() const override { return serving_->source(); }

 private:
  // Keeps the addresses of the API servers in the kubeconfig, from which clients read them again
  // when a server fails.
  void Learn() {
    const Result<client::ClusterAccess> now =
        client::LoadKubeconfig(RealFileSystem(), JoinedKubeconfigPath(options_.data_dir));
    if (now.ok()) {
      const std::vector<std::string> known = ServersOf(*now);
      LearnServers(*client_, known, [this, known](const std::vector<std::string>& servers) {
        if (servers == known) return;
        kLog.Info("the API servers have changed", {{"servers", Join(servers, ",")}});
        const Result<void> written =
            WriteKubeconfig(options_.data_dir, servers, options_.access.ca_pem);
        if (!written.ok()) {
          kLog.Warning("could not write the kubeconfig", {{"error", written.error().message}});
        }
      });
    }
    learn_ = options_.main_loop.RunAfter(kLearnInterval, [this] { Learn(); });
  }

  node::KeptCertificate::Options Kept(std::string path, std::string signer,
                                      std::vector<std::string> usages,
                                      net::CertificateSubject subject,
                                      net::CertificateAndKey meanwhile) {
    return {.loop = options_.main_loop,
            .random = RealRandom(),
            .files = RealFileSystem(),
            .client = *client_,
            .path = std::move(path),
            .signer = std::move(signer),
            .usages = std::move(usages),
            .subject = std::move(subject),
            .meanwhile = std::move(meanwhile)};
  }

  const CertificatesOptions options_;
  std::unique_ptr<client::Client> client_;
  std::unique_ptr<node::KeptCertificate> client_certificate_;
  std::unique_ptr<node::KeptCertificate> serving_;
  TimerHandle learn_;
};

// Self-signed, so no client trusts it.
Result<net::CertificateAndKey> TemporaryCertificate(const std::string& node_name) {
  const WallTime now = RealClock().Now();
  const net::Validity validity{now, now + std::chrono::hours(24 * 365)};
  ASSIGN_OR_RETURN(const net::CertificateAndKey ca, net::CreateCa("temporary", validity));
  return net::IssueCertificate(ca, node::NodeSubject(node_name), net::CertificateUse::kServer,
                               validity);
}

}  // namespace

std::vector<cli::Flag> JoinFlags() {
  return {{.name = "join",
           .help = "API servers of the cluster to join, as https://HOST:PORT, separated by "
                   "commas. The node gets its certificates and the addresses of the other API "
                   "servers from the cluster and keeps them in its data directory; later starts "
                   "need neither this flag nor the next two.",
           .placeholder = "SERVERS"},
          {.name = "token",
           .help = "Bootstrap token from `drakkar token create`.",
           .placeholder = "TOKEN"},
          {.name = "ca-hash",
           .help = "Hash of the cluster's CA, as printed by `drakkar token create "
                   "--print-join-command`. The token is never sent to another cluster.",
           .placeholder = "sha256:HASH"}};
}

std::string JoinedKubeconfigPath(const std::string& data_dir) {
  return JoinPath(data_dir, "node.kubeconfig");
}

Result<JoinOptions> ReadJoinFlags(const cli::Arguments& arguments, const std::string& data_dir) {
  JoinOptions options;
  const std::string& servers = arguments.Text("join");
  options.token = arguments.Text("token");
  options.ca_hash = arguments.Text("ca-hash");
  options.node_name = arguments.Text("node-name");
  options.data_dir = data_dir;
  if (servers.empty()) {
    if (options.token.empty() && options.ca_hash.empty()) return options;
    return InvalidArgument("--token and --ca-hash need --join, the API server's address");
  }
  if (!arguments.Text("kubeconfig").empty()) {
    return InvalidArgument(
        "--join and --kubeconfig cannot be combined: a node that joins gets its own kubeconfig");
  }
  for (const std::string& each : client::SplitServers(servers)) {
    ASSIGN_OR_RETURN(std::string url, ServerUrl(each));
    options.servers.push_back(std::move(url));
  }
  if (options.servers.empty()) return InvalidArgument("--join names no server");
  if (options.servers.size() > client::kMaxServers) {
    return InvalidArgument(StrCat("--join names more than ", client::kMaxServers, " servers"));
  }
  return options;
}

Result<void> JoinCluster(const JoinOptions& options) {
  const std::string kubeconfig = JoinedKubeconfigPath(options.data_dir);
  FileSystem& files = RealFileSystem();
  if (files.Exists(kubeconfig)) {
    const Result<client::ClusterAccess> access = client::LoadKubeconfig(files, kubeconfig);
    if (access.ok()) {
      const std::vector<std::string> known = ServersOf(*access);
      const bool is_same = std::ranges::any_of(options.servers, [&](const std::string& each) {
        return std::ranges::find(known, each) != known.end();
      });
      if (!is_same) {
        return FailedPrecondition(StrCat("this node has joined ", Join(known, ","), "; remove ",
                                         kubeconfig, " to join ", Join(options.servers, ",")));
      }
    }
    if (access.ok() && !client::WhyExpired(*access, RealClock().Now(), kubeconfig)) return Ok();
    kLog.Warning("the node's certificate is no longer usable; joining again",
                 {{"kubeconfig", kubeconfig}});
  }
  if (!bootstrap::ParseToken(options.token)) {
    return InvalidArgument(
        options.token.empty()
            ? "--join needs --token; create one with `drakkar token create --print-join-command`"
            : "--token is not a token: six characters, a dot and sixteen characters");
  }
  if (options.ca_hash.empty()) {
    return InvalidArgument(
        "--join needs --ca-hash, which identifies the cluster before the token is sent; `drakkar "
        "token create --print-join-command` prints it");
  }
  UvLoop loop;
  Joining joining(loop, options);
  joining.FetchCa();
  if (!joining.result) loop.Run();
  if (!joining.result->ok()) return joining.result->error().Prefixed("join");
  kLog.Info("joined the cluster",
            {{"servers", Join(options.servers, ",")}, {"node", options.node_name}});
  return Ok();
}

Result<std::unique_ptr<CertificatesPart>> MakeCertificatesPart(CertificatesOptions options) {
  ASSIGN_OR_RETURN(net::CertificateAndKey meanwhile, TemporaryCertificate(options.node_name));
  return std::unique_ptr<CertificatesPart>(
      std::make_unique<KeptCertificatesPart>(std::move(options), std::move(meanwhile)));
}

}  // namespace drakkar::cmd
