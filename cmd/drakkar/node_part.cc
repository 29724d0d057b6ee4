#include "cmd/drakkar/node_part.h"

#include <unistd.h>

#include <cstdlib>

#include "base/env/device_node.h"
#include "base/env/file_lock.h"
#include "base/exec/backoff.h"
#include "base/exec/wakefulness.h"
#include "base/exec/worker_pool.h"
#include "base/os/file_watcher.h"
#include "base/os/process.h"
#include "base/text/text.h"
#include "base/version.h"
#include "cdi/cache.h"
#include "client/access_reviewer.h"
#include "cmd/drakkar/cri_commands.h"
#include "cmd/drakkar/node_network.h"
#include "net/http/url.h"
#include "net/server/http_server.h"
#include "node/checkpoint/blocking_work.h"
#include "node/node_agent.h"
#include "node/node_server.h"
#include "node/nri/hooked_runtime.h"
#include "node/nri/nri_server.h"
#include "node/pods/container_config.h"
#include "node/pods/service_variables.h"
#include "node/pods/volume_host.h"
#include "node/probes/loop_prober.h"
#include "node/runtime/cri/cri_image_collector.h"
#include "node/runtime/cri/cri_runtime.h"
#include "node/runtime/cri/http_stream_dialer.h"
#include "node/runtime/images/image_store.h"
#include "node/runtime/oci/oci_runtime.h"
#include "node/runtime/registry/image_puller.h"
#include "node/shutdown/logind.h"
#include "telemetry/log/log.h"
#include "telemetry/metrics/metrics.h"

namespace drakkar::cmd {
namespace {

constexpr Logger kLog("node");
constexpr std::size_t kWorkers = 4;
// Separate threads, so that the checkpoint write, which a pod's start waits for, does not queue
// behind images and mounts.
constexpr std::size_t kSyncWorkers = 2;
constexpr std::size_t kMaxQueuedWork = 4'096;

std::vector<std::string> CdiDirectories(const std::string& data_dir) {
  return {"/etc/cdi", "/var/run/cdi", CdiDirectory(data_dir)};
}

std::string Environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// All objects of the node, created and destroyed on its loop. Members are declared in dependency
// order: each uses only earlier ones.
class NodeState {
 public:
  NodeState(UvLoop& loop, const NodeOptions& options)
      : loop_(loop),
        options_(options),
        lock_(NodeLockPath(options.data_dir)),
        wakefulness_(options.low_latency ? std::make_unique<Wakefulness>(loop) : nullptr),
        workers_(kWorkers, kMaxQueuedWork),
        sync_workers_(kSyncWorkers, kMaxQueuedWork),
        images_(RealFileSystem(), RealRandom(), ImageDirectory(options.data_dir)),
        registries_(loop, options.registries),
        puller_({.loop = loop,
                 .files = RealFileSystem(),
                 .workers = workers_,
                 .images = images_,
                 .directory = DownloadDirectory(options.data_dir),
                 .endpoints =
                     [this](const std::string& host) { return registries_.EndpointsOf(host); }}),
        collector_({.loop = loop,
                    .workers = workers_,
                    .images = images_,
                    .directory = options.data_dir,
                    .settings = options.image_collection,
                    .log = [](const std::string& line) { kLog.Info(line); },
                    .on_full = [](const std::string& line) { kLog.Warning(line); }}),
        cdi_(RealFileSystem(), {.directories = CdiDirectories(options.data_dir)}),
        client_(options.clients(loop, "system:node:" + options.node_name, {"system:nodes"},
                                storage::Mark::kDurable)),
        reviewer_(loop, *client_, client::AccessReviewer::Nobody::kIsRefused),
        blocking_(node::MakePooledWork(loop, sync_workers_)),
        removing_(node::MakePooledWork(loop, workers_)),
        transport_(rpc::MakeGrpcTransport(loop)),
        prober_(loop, *transport_, options.gates.emulated().ToString()) {}

  ~NodeState() {
    if (options_.on_server != nullptr) *options_.on_server = nullptr;
    // Tasks in these pools use the images, the runtime and the agent's files.
    workers_.Stop();
    sync_workers_.Stop();
    server_.reset();
    node_server_.reset();
    logind_.reset();
    agent_.reset();
    cri_collector_.reset();
    runtime_.reset();
    nri_.reset();
    network_.reset();
  }

  void Start(std::function<void(Result<void>)> done) {
    if (options_.on_server != nullptr) {
      *options_.on_server = [this](const std::string& server) { UseServer(server); };
    }
    Result<void> opened = Open();
    if (!opened.ok()) return done(std::move(opened));
    agent_->Start([this, done = std::move(done)](Result<void> started) {
      if (started.ok()) started = Listen();
      if (started.ok()) WatchForShutdown();
      done(std::move(started));
    });
  }

  void Stop(std::function<void()> done) {
    logind_.reset();
    if (agent_ != nullptr) agent_->Stop();
    if (server_ == nullptr) return done();
    server_->Stop(std::move(done));
  }

 private:
  // Containers find the API server that the node uses itself, also after the first one was lost.
  void UseServer(const std::string& server) {
    const Result<net::Url> url = net::ParseUrl(server);
    if (!url.ok() || agent_ == nullptr) return;
    agent_->SetServiceVariables(node::ApiServerVariables(url->host, std::to_string(url->port)));
  }

  Result<void> Open() {
    FileSystem& files = RealFileSystem();
    for (const std::string& directory :
         {options_.root_dir, RegistryDirectory(options_.root_dir),
          JoinPath(options_.root_dir, "plugins"), CdiDirectory(options_.data_dir)}) {
      RETURN_IF_ERROR(files.MakeDirectories(directory, 0750));
    }
    RETURN_IF_ERROR(files.MakeDirectories(DirectoryName(NodeLockPath(options_.data_dir)), 0700));
    ASSIGN_OR_RETURN(const bool locked, lock_.TryLock());
    if (!locked) {
      return FailedPrecondition(StrCat("another node agent is running in ", options_.data_dir,
                                       ": stop it, or choose another --data-dir"));
    }
    RETURN_IF_ERROR(images_.Open());
    RETURN_IF_ERROR(node::ImagePuller::RemoveOldDownloads(
        files, DownloadDirectory(options_.data_dir), loop_.clock().Now()));
    Result<std::unique_ptr<FileWatcher>> watcher = MakeFileWatcher(loop_);
    if (!watcher.ok()) return watcher.error();
    watcher_ = std::move(*watcher);
    // A separate watcher: reporting writes would wake all other users for every write.
    if (auto logs = MakeFileWatcher(loop_, {.reports_writes = true}); logs.ok()) {
      log_watcher_ = std::move(*logs);
    }
    RETURN_IF_ERROR(NoteRuntimeSocket(files, options_.data_dir, options_.runtime_endpoint));
    if (options_.runtime_endpoint.empty()) {
      RETURN_IF_ERROR(OpenEmbeddedRuntime());
    } else {
      OpenCriRuntime();
    }
    if (options_.runtime_endpoint.empty()) {
      collector_.Start();
    } else {
      cri_collector_ = std::make_unique<node::CriImageCollector>(node::CriImageCollector::Options{
          .loop = loop_,
          .runtime = *runtime_,
          .settings = options_.image_collection,
          .log = [](const std::string& line) { kLog.Info(line); },
          .on_full = [](const std::string& line) { kLog.Warning(line); }});
      cri_collector_->Start();
    }
    node::NodeFacts facts = node::ReadNodeFacts(files);
    if (const auto disk = node::ReadDiskSpace(options_.root_dir); disk.ok()) {
      facts.ephemeral_storage_bytes = static_cast<std::int64_t>(disk->capacity_bytes.value_or(0));
    }
    if (options_.agent.fail_swap_on && facts.swap_bytes > 0) {
      return FailedPrecondition(
          "this machine has swap, and failSwapOn is set: run swapoff -a, or set failSwapOn: false");
    }
    facts.max_pods = MaxPods(options_.agent, options_.max_pods, facts);
    ASSIGN_OR_RETURN(const std::vector<node::Threshold> thresholds,
                     node::ParseThresholds(options_.eviction));
    ASSIGN_OR_RETURN(const std::optional<node::CpuManager> cpu_manager,
                     MakeCpuManager(options_.resources, files));
    facts.addresses = {options_.address};
    facts.runtime_version = "drakkar://" DRAKKAR_VERSION;
    facts.agent_version = StrCat("v", options_.gates.emulated().ToString(), ".0-drakkar");
    agent_ = std::make_unique<node::NodeAgent>(node::NodeAgent::Options{
        .loop = loop_,
        .random = RealRandom(),
        .files = files,
        .watcher = *watcher_,
        .blocking = *blocking_,
        .removing = *removing_,
        .client = *client_,
        .transport = *transport_,
        .runtime = *runtime_,
        .device_probe = RealDeviceNodeProbe(),
        .gates = options_.gates,
        .metrics = &metrics_,
        .wakefulness = wakefulness_.get(),
        .node_name = options_.node_name,
        .facts = facts,
        .features = options_.features,
        .root_directory = options_.root_dir,
        .registry_directory = RegistryDirectory(options_.root_dir),
        .log_directory = options_.agent.pod_logs_directory.empty()
                             ? JoinPath(options_.data_dir, "logs")
                             : options_.agent.pod_logs_directory,
        .cdi_directories = CdiDirectories(options_.data_dir),
        .service_variables = node::ApiServerVariables(options_.api_host, options_.api_port),
        .pod_network_variables =
            options_.pod_api_host.empty()
                ? node::Variables()
                : node::ApiServerVariables(options_.pod_api_host, options_.api_port),
        .dns = options_.network.dns,
        .network = network_ != nullptr ? network_->network() : nullptr,
        .port = options_.port,
        .resources = MakeNodeResources(options_.resources, facts, LargestPid(files),
                                       options_.pod_pids_limit, Cgroups()),
        .cpu_manager = cpu_manager,
        .cpu_reconcile_every = options_.resources.cpu_reconcile_every,
        .sysctls = options_.sysctls,
        .shutdown_periods = options_.shutdown_periods,
        .on_shutdown_done =
            [this] {
              if (logind_ != nullptr) logind_->Release();
            },
        .seccomp_default = options_.seccomp_default,
        .volume_host = &node::RealVolumeHost(),
        .prober = &prober_,
        .disk = node::ReadDiskSpace,
        .eviction_thresholds = thresholds,
        .eviction_transition_period = options_.eviction.transition_period,
        .eviction_max_pod_grace_seconds = options_.eviction.max_pod_grace_seconds,
        .free_images = [this](std::function<void()> done) { FreeImages(std::move(done)); },
        .reserved = ReservationOf(thresholds, facts),
        .registration = options_.agent.registration,
        .logs = options_.agent.logs,
        .pulls = options_.agent.pulls,
        .longest_crash_backoff = options_.agent.longest_crash_backoff,
    });
    return Ok();
  }

  Result<void> OpenEmbeddedRuntime() {
    network_ = std::make_unique<NodeNetwork>(loop_, *watcher_, options_.network, options_.data_dir);
    network_->Start();
    runtime_ = node::MakeOciRuntime(
        loop_, workers_, RealFileSystem(), RealRandom(), images_,
        {.root = JoinPath(options_.data_dir, "runtime"),
         .runtime = options_.runtime,
         .handlers = options_.runtime_handlers,
         .max_log_bytes =
             std::max<std::uint64_t>(node::kMaxLogBytes, 2 * options_.agent.logs.max_bytes),
         .network = network_->network(),
         .log = [](const std::string& line) { kLog.Info(line); },
         .pull =
             [this](node::PullRequest request, node::RuntimeCallback<node::Image> done) {
               Pull(std::move(request), std::move(done));
             }});
    nri_ = std::make_unique<node::NriServer>(
        node::NriServer::Options{.loop = loop_,
                                 .socket_path = options_.nri.socket_path,
                                 .runtime_version = DRAKKAR_VERSION,
                                 .required_plugins = options_.nri.required_plugins,
                                 .request_timeout = options_.nri.request_timeout});
    runtime_ = node::MakeHookedRuntime(
        std::move(runtime_), *nri_, RealRandom(),
        [this](const std::vector<std::string>& names, node::ContainerConfig& config) {
          return node::ApplyCdi(cdi_, RealDeviceNodeProbe(), names, config);
        });
    RETURN_IF_ERROR(nri_->Start());
    return Ok();
  }

  static std::optional<node::Cgroups> Cgroups() {
    auto cgroups = node::Cgroups::Detect(RealFileSystem());
    if (cgroups.ok()) return *std::move(cgroups);
    kLog.Warning("pods have no limits", {{"err", cgroups.error().message}});
    return std::nullopt;
  }

  // As many processes as there can be on this machine.
  static std::int64_t LargestPid(FileSystem& files) {
    const auto text = files.ReadFile("/proc/sys/kernel/pid_max");
    return text.ok() ? ParseInt64(Trim(*text)).value_or(0) : 0;
  }

  // Pods end in order before the machine goes down. SIGTERM ends only this process: containers
  // keep running, and the next agent adopts them.
  void WatchForShutdown() {
    if (options_.shutdown_periods.empty()) return;
    logind_ = std::make_unique<node::Logind>(node::Logind::Options{
        .loop = loop_,
        .files = RealFileSystem(),
        .socket = node::SystemBusSocket(Environment("DBUS_SYSTEM_BUS_ADDRESS")),
        .wanted = node::Total(options_.shutdown_periods),
        .on_shutdown = [this](bool begins) {
          begins ? agent_->BeginShutdown() : agent_->CancelShutdown();
        }});
    logind_->Start();
  }

  // The runtime connects pods to their network, and has its own NRI.
  void OpenCriRuntime() {
    runtime_ = node::MakeCriRuntime(
        {.loop = loop_,
         .transport = *transport_,
         .files = RealFileSystem(),
         .socket_path = options_.runtime_endpoint,
         .reported_path = JoinPath(options_.data_dir, "runtime/reported-exits"),
         .dial = node::MakeHttpStreamDialer(loop_),
         .cgroups = Cgroups(),
         .credentials =
             [this](const std::string& image) {
               auto reference = node::ParseImageReference(image);
               return reference.ok() ? registries_.CredentialsOf(reference->host)
                                     : std::vector<node::RegistryCredential>();
             },
         .log = [](const std::string& line) { kLog.Info(line); }});
  }

  // For pods there is left what neither the system nor the hard thresholds keep back.
  node::NodeReservation ReservationOf(const std::vector<node::Threshold>& thresholds,
                                      const node::NodeFacts& facts) const {
    node::NodeReservation reserved = options_.resources.reserved();
    auto kept = [&](node::Signal signal, std::int64_t capacity) {
      return static_cast<std::int64_t>(
          node::HardReservation(thresholds, signal, static_cast<std::uint64_t>(capacity)));
    };
    reserved.memory_bytes += kept(node::Signal::kMemoryAvailable, facts.memory_bytes);
    reserved.ephemeral_storage_bytes +=
        kept(node::Signal::kNodeFsAvailable, facts.ephemeral_storage_bytes);
    return reserved;
  }

  // Removes every image that no container uses; those that were imported stay.
  void FreeImages(std::function<void()> done) {
    if (cri_collector_ != nullptr) return cri_collector_->RemoveUnused(std::move(done));
    removing_->Run(
        [this]() -> Result<void> {
          auto removed = node::PruneImages(images_, /*imported=*/false);
          if (!removed.ok()) return std::move(removed).error();
          return Ok();
        },
        [done = std::move(done)](Result<void> removed) {
          if (!removed.ok()) {
            kLog.Warning("could not remove unused images", {{"err", removed.error().message}});
          }
          done();
        });
  }

  // The pod's credentials first, then the node's own.
  void Pull(node::PullRequest request, node::RuntimeCallback<node::Image> done) {
    if (auto reference = node::ParseImageReference(request.image); reference.ok()) {
      for (auto& credential : registries_.CredentialsOf(reference->host)) {
        request.credentials.push_back(std::move(credential));
      }
    }
    puller_.Pull(std::move(request), nullptr, std::move(done));
  }

  Result<void> Listen() {
    net::TlsServerOptions tls;
    tls.source = options_.serving;
    tls.client_ca_pem = options_.client_ca_pem;
    ASSIGN_OR_RETURN(std::shared_ptr<const net::TlsContext> context, net::TlsContext::Server(tls));
    node_server_ = std::make_unique<node::NodeServer>(node::NodeServer::Options{
        .loop = loop_,
        .files = RealFileSystem(),
        .agent = *agent_,
        .runtime = *runtime_,
        .metrics = &metrics_,
        .log_watcher = log_watcher_.get(),
        .node_name = options_.node_name,
        .authorize = [this](const net::ServerRequest& request,
                            std::vector<client::AccessReviewer::Access> any_of,
                            client::AccessReviewer::Done done) {
          reviewer_.Review(client::AccessReviewer::CredentialsOf(request), std::move(any_of),
                           std::move(done));
        }});
    net::HttpServerOptions http;
    http.address.host = options_.address;
    http.address.port = options_.port;
    http.tls = std::move(context);
    server_ = std::make_unique<net::HttpServer>(loop_, std::move(http), *node_server_);
    RETURN_IF_ERROR(server_->Start());
    if (options_.port == 0) agent_->SetPort(server_->port());
    return Ok();
  }

  UvLoop& loop_;
  const NodeOptions& options_;
  FileLock lock_;
  Metrics metrics_;
  const std::unique_ptr<Wakefulness> wakefulness_;
  WorkerPool workers_;
  WorkerPool sync_workers_;
  node::ImageStore images_;
  node::Registries registries_;
  node::ImagePuller puller_;
  node::ImageCollector collector_;
  cdi::Cache cdi_;  // for devices that NRI plugins ask for
  std::unique_ptr<client::Client> client_;
  client::AccessReviewer reviewer_;
  std::unique_ptr<node::BlockingWork> blocking_;
  std::unique_ptr<node::BlockingWork> removing_;
  std::unique_ptr<rpc::Transport> transport_;
  node::LoopProber prober_;
  std::unique_ptr<FileWatcher> watcher_;
  std::unique_ptr<FileWatcher> log_watcher_;
  std::unique_ptr<NodeNetwork> network_;
  std::unique_ptr<node::NriServer> nri_;
  std::unique_ptr<node::Runtime> runtime_;
  std::unique_ptr<node::CriImageCollector> cri_collector_;
  std::unique_ptr<node::NodeAgent> agent_;
  std::unique_ptr<node::Logind> logind_;
  std::unique_ptr<node::NodeServer> node_server_;
  std::unique_ptr<net::HttpServer> server_;
};

class NodePart final : public Part {
 public:
  explicit NodePart(NodeOptions options) : options_(std::move(options)) {}

  std::string_view name() const override { return "node agent"; }
  bool is_vital() const override { return !options_.beside_api_server; }

  void Start(std::function<void(Result<void>)> done) override {
    thread_ = std::make_unique<LoopThread>("node");
    thread_->loop().Post([this, done = std::move(done)]() mutable {
      state_ = std::make_unique<NodeState>(thread_->loop(), options_);
      state_->Start([this, done = std::move(done)](Result<void> started) {
        options_.main_loop.Post([done, started = std::move(started)] { done(started); });
      });
    });
  }

  void Stop(std::function<void()> done) override {
    if (thread_ == nullptr) return done();
    thread_->loop().Post([this, done = std::move(done)]() mutable {
      auto finish = [this, done = std::move(done)]() mutable {
        thread_->loop().Post([this, done = std::move(done)]() mutable {
          state_.reset();
          options_.main_loop.Post([this, done = std::move(done)] {
            thread_.reset();
            done();
          });
        });
      };
      if (state_ == nullptr) return finish();
      state_->Stop(std::move(finish));
    });
  }

 private:
  NodeOptions options_;
  std::unique_ptr<LoopThread> thread_;
  std::unique_ptr<NodeState> state_;
};

// Runs `drakkar driver` and restarts it with back-off when it exits.
class DriverPart final : public Part {
 public:
  DriverPart(UvLoop& loop, DriverOptions options)
      : loop_(loop), options_(std::move(options)), spawner_(MakeSpawner(loop)) {}

  std::string_view name() const override { return "driver"; }

  void Start(std::function<void(Result<void>)> done) override { done(Spawn()); }

  void Stop(std::function<void()> done) override {
    stopping_ = true;
    restart_.reset();
    if (process_ == nullptr) return done();
    on_stopped_ = std::move(done);
    static_cast<void>(process_->Signal(15));
    // Kill a driver that ignores SIGTERM.
    kill_ = loop_.RunAfter(std::chrono::seconds(5), [this] {
      if (process_ != nullptr) static_cast<void>(process_->Signal(9));
    });
  }

 private:
  Result<void> Spawn() {
    char self[4096];
    const ssize_t length = ::readlink("/proc/self/exe", self, sizeof(self));
    if (length <= 0) return Internal("could not read the path of this binary");
    ProcessOptions process;
    process.arguments = {std::string(self, static_cast<std::size_t>(length)),
                         "driver",
                         "--node-name=" + options_.node_name,
                         "--kubeconfig=" + options_.kubeconfig,
                         "--registry-dir=" + RegistryDirectory(options_.root_dir),
                         "--cdi-dir=" + CdiDirectory(options_.data_dir),
                         StrCat("--parent-pid=", ::getpid())};
    if (options_.device_metadata) process.arguments.push_back("--enable-device-metadata");
    if (!options_.devices.empty()) process.arguments.push_back("--devices=" + options_.devices);
    process.capture_output = false;
    Result<std::unique_ptr<Process>> started =
        spawner_->Spawn(std::move(process), [this](ProcessExit exit) { OnExit(exit); });
    if (!started.ok()) return started.error();
    process_ = std::move(*started);
    return Ok();
  }

  void OnExit(const ProcessExit& exit) {
    process_.reset();
    kill_.reset();
    if (stopping_) {
      if (on_stopped_) std::exchange(on_stopped_, nullptr)();
      return;
    }
    const Duration delay = backoff_.Next();
    kLog.Warning("driver exited; restarting it",
                 {{"code", exit.exit_code}, {"attempt", backoff_.failures()}});
    restart_ = loop_.RunAfter(delay, [this] { static_cast<void>(Spawn()); });
  }

  UvLoop& loop_;
  const DriverOptions options_;
  std::unique_ptr<Spawner> spawner_;
  std::unique_ptr<Process> process_;
  std::function<void()> on_stopped_;
  TimerHandle restart_;
  TimerHandle kill_;
  Backoff backoff_{{.initial = std::chrono::milliseconds(200), .max = std::chrono::seconds(30)}};
  bool stopping_ = false;
};

}  // namespace

std::string ImageDirectory(const std::string& data_dir) {
  return JoinPath(data_dir, "images");
}
std::string DownloadDirectory(const std::string& data_dir) {
  return JoinPath(ImageDirectory(data_dir), "downloads");
}
std::string DefaultRootDirectory(const std::string& data_dir) {
  return JoinPath(data_dir, "kubelet");
}
std::string RegistryDirectory(const std::string& root_dir) {
  return JoinPath(root_dir, "plugins_registry");
}
std::string CdiDirectory(const std::string& data_dir) {
  return JoinPath(data_dir, "cdi");
}
std::string NodeLockPath(const std::string& data_dir) {
  return JoinPath(data_dir, "runtime/lock");
}

std::unique_ptr<Part> MakeNodePart(NodeOptions options) {
  return std::make_unique<NodePart>(std::move(options));
}

std::unique_ptr<Part> MakeDriverPart(UvLoop& main_loop, DriverOptions options) {
  return std::make_unique<DriverPart>(main_loop, std::move(options));
}

}  // namespace drakkar::cmd
