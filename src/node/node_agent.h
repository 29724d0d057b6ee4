#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/env/file_system.h"
#include "base/env/file_watcher.h"
#include "base/env/random.h"
#include "base/exec/event_loop.h"
#include "client/client.h"
#include "features/gates/feature_gates.h"
#include "node/status/node_facts.h"
#include "node/status/node_features.h"
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
class Runtime;
class VolumeHost;

// The node agent: registers its Node, keeps its Lease, registers drivers, prepares claims, and runs
// the pods bound to the node. Everything lives on one loop; every door to the world is handed in.
//
// Stop leaves containers running: an agent started afterwards on the same directories and runtime
// adopts them. Nothing happens after Stop; it is idempotent, and destroying the agent stops it.
class NodeAgent {
 public:
  struct Options {
    EventLoop& loop;
    Random& random;
    FileSystem& files;
    FileWatcher& watcher;
    BlockingWork& blocking;     // for writes that sync
    BlockingWork& removing;     // for files of pods that went, which no pod's start may wait for
    client::Client& client;     // as the user system:node:<name>
    rpc::Transport& transport;  // gRPC, or memory in a simulation
    Runtime& runtime;           // not opened yet
    DeviceNodeProbe& device_probe;
    FeatureGates gates;
    Metrics* metrics = nullptr;
    Wakefulness* wakefulness = nullptr;  // null: processors sleep while claims are prepared
    std::string node_name;
    NodeFacts facts;
    std::map<std::string, std::string> labels;
    NodeFeatureOptions features;                      // what decides about declared features
    std::string root_directory = "/var/lib/kubelet";  // checkpoints, volumes
    std::string registry_directory;                   // empty: <root>/plugins_registry
    std::string log_directory = "/var/log/pods";
    std::vector<std::string> cdi_directories;              // empty: /etc/cdi, /var/run/cdi
    std::map<std::string, std::string> service_variables;  // where the API server is
    int port = 10250;
    std::int64_t pod_pids_limit = 0;    // processes and threads of each pod; 0: any number
    bool seccomp_default = false;       // RuntimeDefault for who names no profile
    VolumeHost* volume_host = nullptr;  // null: volumes are plain directories, as in simulation
    NetworkProber* prober = nullptr;    // null: probes over the network are reported, not run
  };

  explicit NodeAgent(Options options);
  ~NodeAgent();
  NodeAgent(const NodeAgent&) = delete;
  NodeAgent& operator=(const NodeAgent&) = delete;

  // `done` runs once: after the runtime is open and pods are being worked on, or with why the agent
  // cannot run (a checkpoint that is corrupt, a runtime that is missing).
  void Start(std::function<void(Result<void>)> done);
  void Stop();

  // Brings metrics up to date that are counted only when somebody reads them.
  void UpdateGauges() const;

  // For the HTTP port, metrics and tests; valid between Start and Stop.
  const PodManager& pods() const;
  const DraManager& dra() const;
  const PluginStore& plugins() const;
  const HealthMonitor& health() const;

 private:
  struct Parts;
  void Drop();

  const Options options_;
  std::unique_ptr<Parts> parts_;
};

}  // namespace drakkar::node
