#include "cmd/drakkar/control_plane.h"

#include "apiserver/direct/direct_client.h"
#include "apiserver/http/node_proxy.h"
#include "apiserver/http/pod_stream_proxy.h"
#include "apiserver/http/scheduler_proxy.h"
#include "apiserver/http/workload_proxy.h"
#include "apiserver/pki/cluster_keys.h"
#include "apiserver/request/node_identity.h"
#include "base/exec/processors.h"
#include "base/text/text.h"
#include "net/socket/address_kind.h"
#include "storage/etcd/endpoint.h"
#include "storage/open_store.h"
#include "telemetry/log/log.h"

namespace drakkar::cmd {
namespace {

constexpr Logger kLog("drakkar");
// How often the kubeconfigs are looked at. Their certificates are renewed a month ahead.
constexpr Duration kRenewalInterval = std::chrono::hours(1);
constexpr std::string_view kEmbedded = "sqlite";
// Where servers on a shared store record their CA and keys, after the layout's root.
constexpr char kKeysRecord[] = "drakkar.io/cluster-keys";

std::vector<std::pair<std::string, std::uint16_t>> StoreAddresses(
    const storage::StoreLocation& store) {
  std::vector<std::pair<std::string, std::uint16_t>> addresses;
  for (const std::string& url : store.etcd_servers) {
    // Opening the store has checked them.
    const auto endpoint = storage::ParseEtcdEndpoint(url, !store.etcd_ca_file.empty());
    if (endpoint.ok()) addresses.emplace_back(endpoint->host, endpoint->port);
  }
  return addresses;
}

}  // namespace

Result<std::unique_ptr<ApiServerPart>> ApiServerPart::Open(Options options) {
  FileSystem& files = RealFileSystem();
  RETURN_IF_ERROR(files.MakeDirectories(options.data_dir, 0700));
  apiserver::Pki::Options pki_options;
  pki_options.directory = JoinPath(options.data_dir, "pki");
  // Keep a second process out of the data directory first. The embedded store has a lock for that.
  std::unique_ptr<storage::DirectoryLock> lock;
  if (options.store.engine == kEmbedded) {
    options.store.directory = JoinPath(options.data_dir, "store");
  } else {
    ASSIGN_OR_RETURN(lock, storage::DirectoryLock::Take(options.data_dir));
  }
  Result<std::unique_ptr<storage::Store>> store = storage::OpenStore(options.loop, options.store);
  if (!store.ok()) return store.error();
  if ((*store)->is_shared()) {
    RETURN_IF_ERROR(ShareKeys(options, **store, pki_options.directory));
  }
  const std::string& host = options.address.host;
  if (!host.empty() && host != "0.0.0.0" && host != "::") {
    pki_options.server_addresses.push_back(host);
  }
  std::vector<std::string> others = options.alternative_names;
  if (!options.advertise_address.empty()) others.push_back(options.advertise_address);
  for (std::string& other : others) {
    const bool is_address = net::KindOfAddress(other) != net::AddressKind::kNoAddress;
    (is_address ? pki_options.server_addresses : pki_options.server_names)
        .push_back(std::move(other));
  }
  if (!options.pod_gateway.empty()) {
    pki_options.server_addresses.push_back(options.pod_gateway);
    // A wildcard address includes it.
    if (host.empty() || host == "0.0.0.0" || host == "::") options.pod_gateway.clear();
  }
  Result<apiserver::Pki> pki = apiserver::Pki::Open(files, RealClock(), pki_options);
  if (!pki.ok()) return pki.error().Prefixed("certificates");
  std::unique_ptr<ApiServerPart> part(new ApiServerPart(std::move(options), std::move(*pki)));
  part->lock_ = std::move(lock);
  part->server_ = std::make_unique<apiserver::ApiServer>(apiserver::ApiServer::Options{
      .loop = part->options_.loop,
      .gates = part->options_.gates,
      .metrics = part->metrics_,
      .store = std::move(*store),
      .layout = part->options_.layout,
      .pki = part->pki_,
      .address = part->options_.address,
      .second_host = part->options_.pod_gateway,
      .advertise_address = part->options_.advertise_address,
      .http_loops = apiserver::ApiServer::DefaultHttpLoops(ProcessorCount()),
      .skip_operations_as_list = part->options_.skip_operations_as_list,
      .events = part->options_.events,
      .low_latency = part->options_.low_latency,
      .in_flight = part->options_.in_flight,
      .token_signing_key = part->options_.token_signing_key,
      .token_keys = part->options_.token_keys,
      .token_names = part->options_.token_names,
      .front_proxies = part->options_.front_proxies,
  });
  return part;
}

ApiServerPart::~ApiServerPart() = default;

Result<void> ApiServerPart::ShareKeys(const Options& options, storage::Store& store,
                                      const std::string& directory) {
  std::optional<Result<void>> shared;
  apiserver::ShareClusterKeys(store, apiserver::RootPrefix(options.layout) + kKeysRecord,
                              RealFileSystem(), RealClock(), directory, [&](Result<void> result) {
                                shared = std::move(result);
                                options.loop.Stop();
                              });
  if (!shared) options.loop.Run();
  if (!shared->ok()) return shared->error().Prefixed("the cluster's keys");
  return Ok();
}

void ApiServerPart::Start(std::function<void(Result<void>)> done) {
  Result<apiserver::Pki::Source> identity =
      pki_.ClientSource(std::string(apiserver::kNodeClientUser), {});
  if (!identity.ok()) return done(identity.error());
  net::TlsClientOptions tls;
  tls.ca_pem = pki_.ca().certificate_pem;
  tls.source = *identity;
  own_port_->store(options_.address.port);
  const apiserver::IsOwnAddress is_own = apiserver::OwnAddress(own_port_);
  server_->AddProxy({"pods/log"}, [tls, is_own](UvLoop& loop) {
    return std::make_unique<apiserver::PodLogProxy>(loop, tls, is_own);
  });
  auto open_streams = std::make_shared<apiserver::PodStreamProxy::Count>(0);
  server_->AddProxy(
      {"pods/exec", "pods/attach", "pods/portforward"}, [tls, is_own, open_streams](UvLoop& loop) {
        return std::make_unique<apiserver::PodStreamProxy>(loop, tls, is_own, open_streams);
      });
  server_->AddProxy({"nodes/proxy"}, [tls, is_own](UvLoop& loop) {
    return std::make_unique<apiserver::NodeProxy>(loop, tls, is_own);
  });
  server_->AddProxy(
      {"pods/proxy", "services/proxy"},
      [is_ours = apiserver::OwnAddressOr(is_own, StoreAddresses(options_.store))](UvLoop& loop) {
        return std::make_unique<apiserver::WorkloadProxy>(loop, is_ours);
      });
  server_->AddProxy({"pods/why", "resourceclaims/why"}, [tls, is_own](UvLoop& loop) {
    return std::make_unique<apiserver::SchedulerProxy>(loop, tls, is_own);
  });
  server_->Start([this, done = std::move(done)](Result<void> started) {
    own_port_->store(server_->port());
    if (started.ok()) started = WriteKubeconfigs();
    done(std::move(started));
  });
}

void ApiServerPart::Stop(std::function<void()> done) {
  renewal_.reset();
  server_->Stop(std::move(done));
}

std::string ApiServerPart::url() const {
  std::string host =
      options_.advertise_address.empty() ? options_.address.host : options_.advertise_address;
  if (host.empty() || host == "0.0.0.0") host = "127.0.0.1";
  if (host == "::") host = "::1";
  if (host.find(':') != std::string::npos) host = StrCat("[", host, "]");
  return StrCat("https://", host, ":", server_->port());
}

std::string ApiServerPart::kubeconfig_path() const {
  return JoinPath(options_.data_dir, "admin.kubeconfig");
}

std::string ApiServerPart::driver_kubeconfig_path() const {
  return JoinPath(options_.data_dir, "driver.kubeconfig");
}

Result<void> ApiServerPart::WriteKubeconfigs() {
  RETURN_IF_ERROR(AddKubeconfig(kubeconfig_path(), "kubernetes-admin", {"system:masters"}));
  RETURN_IF_ERROR(AddKubeconfig(JoinPath(options_.data_dir, "scheduler.kubeconfig"),
                                "system:kube-scheduler", {}));
  if (!options_.driver_node.empty()) {
    RETURN_IF_ERROR(AddKubeconfig(driver_kubeconfig_path(),
                                  StrCat(apiserver::kNodeDriverPrefix, options_.driver_node),
                                  {std::string(apiserver::kNodeDriversGroup)}));
  }
  RenewKubeconfigs();
  return Ok();
}

Result<void> ApiServerPart::AddKubeconfig(std::string path, std::string user,
                                          std::vector<std::string> groups) {
  ASSIGN_OR_RETURN(apiserver::Pki::Source source, pki_.ClientSource(user, std::move(groups)));
  kubeconfigs_.push_back({std::move(path), std::move(user), std::move(source), nullptr});
  return WriteKubeconfig(kubeconfigs_.back());
}

Result<void> ApiServerPart::WriteKubeconfig(Kubeconfig& file) {
  const std::shared_ptr<const net::CertificateAndKey> current = file.source->Current();
  if (current == file.written) return Ok();
  RETURN_IF_ERROR(RealFileSystem().WriteFileAtomically(
      file.path, apiserver::MakeKubeconfig(url(), pki_.ca().certificate_pem, *current, file.user),
      0600, /*sync=*/false));
  file.written = current;
  return Ok();
}

void ApiServerPart::RenewKubeconfigs() {
  for (Kubeconfig& file : kubeconfigs_) {
    if (Result<void> written = WriteKubeconfig(file); !written.ok()) {
      kLog.Error("could not renew a kubeconfig; its certificate expires within a month",
                 {{"file", file.path}, {"error", written.error().message}});
    }
  }
  renewal_ = options_.loop.RunAfter(kRenewalInterval, [this] { RenewKubeconfigs(); });
}

ClientFactory ApiServerPart::DirectClients() {
  return
      [this](UvLoop& loop, std::string user, std::vector<std::string> groups, storage::Mark mark) {
        groups.emplace_back(apiserver::kAuthenticatedGroup);
        return apiserver::MakeDirectClient(
            loop, core(), apiserver::UserInfo{.name = std::move(user), .groups = std::move(groups)},
            mark);
      };
}

}  // namespace drakkar::cmd
