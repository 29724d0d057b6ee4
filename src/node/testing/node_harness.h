#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/testing/seeded_loop.h"
#include "node/checkpoint/blocking_work.h"
#include "node/hollow/hollow_host.h"
#include "node/node_agent.h"
#include "node/pods/volume_host.h"
#include "node/testing/fake_network_prober.h"
#include "node/testing/faulty_client.h"
#include "rpc/testing/fake_dra_plugin.h"
#include "telemetry/metrics/metrics.h"
#include "tests/support/api_server.h"

namespace drakkar::node {

// A driver as a separate process would be: a fake plugin behind a socket in the registry.
class FakeDriver {
 public:
  FakeDriver(class NodeHarness& harness, std::string name, std::string socket);
  ~FakeDriver();
  void Start();
  void Stop();
  void Kill();  // leaves its socket files behind
  rpc::FakeDraPlugin plugin;

 private:
  class NodeHarness& harness_;
  std::string socket_;
  std::unique_ptr<rpc::Server> server_;
};

// Members of a pod spec with one container that uses claim "c" and is not restarted.
inline constexpr char kUsesClaim[] =
    R"("restartPolicy":"Never","containers":[{"name":"a","image":"busybox:1","resources":{"claims":[{"name":"c"}]}}])";

// An API server, a node agent on a simulated machine and drivers, all on one seeded loop. The agent
// can be killed and restarted while the machine, the files and the API server keep running.
class NodeHarness {
 public:
  explicit NodeHarness(FeatureGates gates = DefaultGates());
  ~NodeHarness();

  static FeatureGates DefaultGates();

  void StartAgent();
  void KillAgent();
  Result<void> started = Internal("not started");

  // Creates a claim that is allocated to `devices` ("driver/device") and not reserved.
  // "driver/device!" skips all node operations, "driver/device!OPERATION" that one, and `skip`
  // applies to all devices.
  void CreateClaim(const std::string& name, const std::vector<std::string>& devices,
                   const std::string& skip = "");
  // Creates a pod, reserves its claims for it and binds it to this node.
  api::ObjectPtr CreatePod(const std::string& name, const std::string& spec_members,
                           const std::vector<std::string>& claims = {});
  // Claim "c" of one device of gpu.example.com, and pod "p" that uses it.
  void CreatePodWithClaim();
  api::ObjectPtr Pod(const std::string& name) { return api.Get("Pod", "default/" + name); }
  std::string Phase(const std::string& name);
  std::vector<std::string> Events(const std::string& reason);
  void DeletePod(const std::string& name);

  void Run() { loop.RunUntilIdle(); }
  void Advance(Duration by) { loop.Advance(by); }

  // Containers exit on their own after this time.
  void RunFor(Duration time, int exit_code = 0);

  // Containers of the machine by pod and container name, newest last.
  std::vector<const HollowContainer*> Containers(const std::string& pod, const std::string& name);

  SeededLoop loop;
  FeatureGates gates;
  testing::TestApiServer api;
  HollowHost host;
  MemoryFileSystem& files = host.files;
  MemoryFileWatcher& watcher = host.watcher;
  rpc::MemoryTransport& transport = host.transport;
  HollowMachine& machine = host.machine;
  FakeNetworkProber prober{loop};
  Metrics metrics;
  NodeFeatureOptions features;
  std::map<std::string, std::string> service_variables;      // of agents started later
  Wakefulness* wakefulness = nullptr;                        // of agents started later
  VolumeHost* volume_host = nullptr;                         // of agents started later
  PodNetwork* network = nullptr;                             // of agents started later
  std::map<std::string, std::string> pod_network_variables;  // of agents started later
  DnsSettings dns;                                           // of agents started later
  std::map<std::string, std::int64_t> huge_pages;            // of agents started later
  NodeRegistration registration;                             // of agents started later
  LogLimits logs;                                            // of agents started later
  PullLimits pulls;                                          // of agents started later
  Duration longest_crash_backoff = std::chrono::minutes(5);  // of agents started later
  bool watch_sources = true;                                 // of agents started later
  std::optional<CpuManager> cpu_manager;                     // of agents started later
  std::vector<ShutdownPeriod> shutdown_periods;              // of agents started later
  // What happened, in order: "prepare c", "unprepare c", "start a", "end a", "pod gone".
  std::vector<std::string> history;

  // Also used for the clients of agents started later.
  std::function<std::optional<Error>(const std::string& what)> api_fault;

  std::unique_ptr<FaultyClient> client;
  std::unique_ptr<BlockingWork> work;
  std::unique_ptr<Runtime> runtime;
  std::unique_ptr<NodeAgent> agent;
};

// The value of a variable of a container, or "(none)".
std::string EnvironmentOf(const HollowContainer& container, const std::string& name);

// A harness with the agent and one driver running.
struct GpuNode : NodeHarness {
  explicit GpuNode(FeatureGates with = DefaultGates());
  FakeDriver driver;
};

}  // namespace drakkar::node
