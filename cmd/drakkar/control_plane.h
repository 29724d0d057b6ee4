#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "apiserver/pki/pki.h"
#include "apiserver/server.h"
#include "client/fence.h"
#include "cmd/drakkar/daemon.h"
#include "cmd/drakkar/status_port.h"
#include "controllers/certificates/signer.h"
#include "controllers/selection.h"
#include "net/socket/socket.h"
#include "scheduler/config/configuration.h"
#include "storage/open_store.h"
#include "storage/sqlite/directory_lock.h"
#include "telemetry/metrics/metrics.h"

namespace drakkar::cmd {

// The API server on the main loop, on the embedded store in `data_dir` or on etcd.
class ApiServerPart final : public Part {
 public:
  struct Options {
    UvLoop& loop;
    std::string data_dir;
    storage::StoreLocation store = {};  // without a directory: in `data_dir`
    apiserver::StoreLayout layout = {};
    net::Address address;
    // The address under which pods with a network of their own reach the server; empty: `address`.
    std::string pod_gateway = {};
    // The address that nodes and clients use, if `address` is a wildcard or behind something else.
    std::string advertise_address = {};
    // Further names and addresses for the server's certificate.
    std::vector<std::string> alternative_names = {};
    FeatureGates gates;
    bool skip_operations_as_list = false;
    apiserver::EventLimits events = {};
    apiserver::InFlightLimits in_flight = {};
    bool low_latency = false;      // keep idle processors awake during writes
    std::string driver_node = {};  // the node whose driver gets a kubeconfig; empty for none
    // PEM of the key that signs service account tokens (empty: that of the data directory), and of
    // further keys whose tokens are accepted.
    std::string token_signing_key = {};
    std::vector<std::string> token_keys = {};
    apiserver::TokenNames token_names = {};
    apiserver::FrontProxies front_proxies = {};
  };
  // Loads or creates the cluster's CA and opens the store. This does everything that can fail
  // before the server runs.
  static Result<std::unique_ptr<ApiServerPart>> Open(Options options);
  ~ApiServerPart() override;

  std::string_view name() const override { return "API server"; }
  void Start(std::function<void(Result<void>)> done) override;
  void Stop(std::function<void()> done) override;

  apiserver::Core& core() { return server_->core(); }
  apiserver::ApiServer& server() { return *server_; }
  const apiserver::Pki& pki() const { return pki_; }
  // For example "https://127.0.0.1:6443"; valid after Start.
  std::string url() const;
  // The administrator's kubeconfig; written by Start.
  std::string kubeconfig_path() const;
  // The kubeconfig for a driver on `driver_node`, with only the permissions that such a driver
  // needs.
  std::string driver_kubeconfig_path() const;
  ClientFactory DirectClients();

 private:
  // Makes all servers on a shared store use the same CA and keys. Runs the loop.
  static Result<void> ShareKeys(const Options& options, storage::Store& store,
                                const std::string& directory);
  ApiServerPart(Options options, apiserver::Pki pki)
      : options_(std::move(options)), pki_(std::move(pki)) {}
  // A kubeconfig whose certificate is renewed while the server runs.
  struct Kubeconfig {
    std::string path;
    std::string user;
    apiserver::Pki::Source source;
    std::shared_ptr<const net::CertificateAndKey> written;
  };
  Result<void> WriteKubeconfigs();
  Result<void> AddKubeconfig(std::string path, std::string user, std::vector<std::string> groups);
  Result<void> WriteKubeconfig(Kubeconfig& file);
  void RenewKubeconfigs();

  Options options_;
  apiserver::Pki pki_;
  std::unique_ptr<storage::DirectoryLock> lock_;  // null: the store has its own
  Metrics metrics_;
  // Shared with the proxies, which run on other loops.
  const std::shared_ptr<std::atomic<std::uint16_t>> own_port_ =
      std::make_shared<std::atomic<std::uint16_t>>(0);
  std::vector<Kubeconfig> kubeconfigs_;
  TimerHandle renewal_;
  std::unique_ptr<apiserver::ApiServer> server_;
};

// Makes the client of a service account in kube-system. `own` is the component's client.
using AccountClients = std::function<std::unique_ptr<client::Client>(
    UvLoop& loop, client::Client& own, std::string_view account)>;

// Leader election and the status port.
struct ComponentOptions {
  client::LeaderElectionConfig election{.leader_elect = false};
  StatusPortOptions status = {};
  std::string ca_pem = {};  // published in every namespace unless empty
  // The CA that signs certificates; without it none are signed.
  std::optional<controllers::SigningAuthority> signing = {};
  client::Fence fence = nullptr;  // of the clients; set while the Lease is held
  controllers::Selection controllers = {};
  bool pod_group_claims = false;  // see Controllers::Options
  // The controllers' clients, each of its own account; null: all use the component's.
  AccountClients account_clients = nullptr;
};
std::unique_ptr<Part> MakeControllersPart(UvLoop& main_loop, ClientFactory clients,
                                          ComponentOptions component = {});
std::unique_ptr<Part> MakeSchedulerPart(UvLoop& main_loop, ClientFactory clients,
                                        FeatureGates gates, scheduler::Configuration configuration,
                                        StatusPortOptions status = {},
                                        client::Fence fence = nullptr);

}  // namespace drakkar::cmd
