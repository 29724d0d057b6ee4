#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/env/file_system.h"
#include "base/env/random.h"
#include "base/exec/event_loop.h"
#include "base/os/file_watcher.h"
#include "client/client.h"
#include "features/gates/feature_gates.h"
#include "node/admission/node_features.h"
#include "node/admission/pod_fit.h"
#include "node/cpus/cpu_manager.h"
#include "node/eviction/thresholds.h"
#include "node/pods/image_pull_queue.h"
#include "node/pods/log_rotation.h"
#include "node/pods/pod_dns.h"
#include "node/resources/pod_cgroups.h"
#include "node/shutdown/shutdown_manager.h"
#include "node/stats/summary.h"
#include "node/status/node_facts.h"
#include "node/status/node_registrar.h"
#include "rpc/transport/transport.h"

namespace drakkar {
class DeviceNodeProbe;
class Metrics;
class Wakefulness;
}  // namespace drakkar

namespace drakkar::node {

class BlockingWork;
class DraManager;
class HealthMonitor;
class NetworkProber;
class PluginStore;
class PodManager;
class PodNetwork;
class Runtime;
class VolumeHost;

// The node agent: registers its Node, renews its Lease, registers drivers, prepares claims, and
// runs the pods bound to the node. Everything runs on one loop and all I/O is injected.
//
// Stop leaves containers running: the next agent started on the same directories and runtime adopts
// them. Nothing happens after Stop, which is idempotent; the destructor calls it.
class NodeAgent {
 public:
  struct Options {
    EventLoop& loop;
    Random& random;
    FileSystem& files;
    FileWatcher& watcher;
    BlockingWork& blocking;     // for writes that sync
    BlockingWork& removing;     // removes files of deleted pods; must not delay pod starts
    client::Client& client;     // as the user system:node:<name>
    rpc::Transport& transport;  // gRPC, or memory in a simulation
    Runtime& runtime;           // must not be open yet
    DeviceNodeProbe& device_probe;
    FeatureGates gates;
    Metrics* metrics = nullptr;
    Wakefulness* wakefulness = nullptr;  // null: processors may sleep while claims are prepared
    std::string node_name;
    NodeFacts facts;
    std::map<std::string, std::string> labels;
    NodeFeatureOptions features;                      // determines the declared features
    std::string root_directory = "/var/lib/kubelet";  // checkpoints, volumes
    bool checkpoint_side_file = true;                 // see CheckpointFile
    std::string registry_directory;                   // empty: <root>/plugins_registry
    std::string log_directory = "/var/log/pods";
    std::vector<std::string> cdi_directories;                  // empty: /etc/cdi, /var/run/cdi
    std::map<std::string, std::string> service_variables;      // address of the API server
    std::map<std::string, std::string> pod_network_variables;  // see PodContext
    DnsSettings dns;
    PodNetwork* network = nullptr;  // of the runtime; null: pods share the host's network
    int port = 10250;
    NodeResources resources = {};  // its LimitRules are completed by the facts
    std::optional<CpuManager> cpu_manager = std::nullopt;  // not set: containers share all CPUs
    Duration cpu_reconcile_every = std::chrono::seconds(10);
    AllowedSysctls sysctls = {};
    std::vector<ShutdownPeriod> shutdown_periods = {};  // none: pods are not ended in order
    std::function<void()> on_shutdown_done = nullptr;   // the machine may go down
    bool seccomp_default = false;       // RuntimeDefault for containers without a profile
    VolumeHost* volume_host = nullptr;  // null: volumes are plain directories, as in simulation
    NetworkProber* prober = nullptr;    // null: network probes are reported as unsupported
    DiskProbe disk = nullptr;           // null: disks are not reported
    std::vector<Threshold> eviction_thresholds = {};  // none: nothing is evicted
    Duration eviction_transition_period = std::chrono::minutes(5);
    std::int64_t eviction_max_pod_grace_seconds = 0;
    // Removes images that nobody uses, when the disk is nearly full. Null: there are none.
    std::function<void(std::function<void()> done)> free_images = nullptr;
    NodeReservation reserved = {};  // for the system and for hard thresholds
    NodeRegistration registration = {};
    LogLimits logs = {};
    PullLimits pulls = {};
    Duration longest_crash_backoff = std::chrono::minutes(5);
    // Volumes show changed ConfigMaps and Secrets at once, not only when they are refreshed.
    bool watch_sources = true;
  };

  explicit NodeAgent(Options options);
  ~NodeAgent();
  NodeAgent(const NodeAgent&) = delete;
  NodeAgent& operator=(const NodeAgent&) = delete;

  // `done` runs once: when the runtime is open and pods are handled, or with the reason why the
  // agent cannot run (corrupt checkpoint, missing runtime).
  void Start(std::function<void(Result<void>)> done);
  void Stop();
  // Publishes the port that was chosen, if Options.port is 0. Call it after Start.
  void SetPort(int port);
  // The variables by which containers that start from now on find the API server. Call it after
  // Start.
  void SetServiceVariables(std::map<std::string, std::string> variables);

  // The machine shuts down, or stays after all. Valid between Start and Stop.
  void BeginShutdown();
  void CancelShutdown();

  // Updates the metrics that are computed on demand.
  void UpdateGauges() const;

  // For the HTTP port, metrics and tests; valid between Start and Stop.
  const PodManager& pods() const;
  const DraManager& dra() const;
  const PluginStore& plugins() const;
  const HealthMonitor& health() const;
  UsageCollector& usage() const;
  MachineIdentity identity() const;
  // The registered drivers and the CDI specs that cannot be read, as JSON. Rereads the specs.
  std::string DescribeDrivers() const;

 private:
  struct Parts;
  void Drop();

  const Options options_;
  std::unique_ptr<Parts> parts_;
};

}  // namespace drakkar::node
