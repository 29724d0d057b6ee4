#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/testing/seeded_loop.h"
#include "client/informer.h"
#include "controllers/controllers.h"
#include "device/cel_expressions.h"
#include "examples/fabric/fabric_controller.h"
#include "scheduler/scheduler.h"
#include "telemetry/metrics/metrics.h"
#include "tests/simulation/sim_node.h"
#include "tests/simulation/sim_server.h"

namespace drakkar::simulation {

// A whole cluster from one seed: API server, scheduler, controllers, nodes with simulated
// containers and drivers, a binding controller, and users who create and delete pods. Each
// component has its own lane, and all are subject to faults. After every step the state is checked
// against what must never happen (design, section 7).
class Simulation {
 public:
  struct Options {
    std::uint64_t seed = 1;
    // A scheduler that forgets allocations when it restarts; the checks must detect it.
    bool plant_double_allocation = false;
    // A scheduler that does not wait for binding conditions; the checks must detect it.
    bool plant_no_wait = false;
  };
  explicit Simulation(Options options);
  ~Simulation();

  // Performs one random action, runs the loop for a while, and checks everything.
  void Step();
  // Ends the faults and restarts every component; everything that is possible must then happen
  // within a while.
  void Settle();

  const std::vector<std::string>& violations() const { return server_.violations; }
  // A summary of the stored state, to compare runs.
  std::string Fingerprint();
  std::size_t bound_pods() const { return bound_ever_.size(); }
  // The number of containers that saw metadata, and of pods that ran without a driver.
  std::size_t metadata_seen() const { return metadata_seen_.size(); }
  std::size_t driverless_pods() const { return driverless_.size(); }

 private:
  static constexpr int kMaxPods = 8;
  static constexpr Duration kBindingTimeout = std::chrono::seconds(30);
  static constexpr int kSettleTurns = 20;  // of 15 seconds each
  static constexpr int kPatience = 5;      // rounds that a pod may wait for a free device

  void SetUp();
  void CreateObject(std::string_view group, std::string_view version, std::string_view kind,
                    const std::string& json);
  void StartScheduler();
  void StartControllers();
  void StartFabric();
  void KillSomething();
  void StartWhatIsDown();
  // What the nodes' drivers do: an agent that starts deletes the slices of its node.
  void PublishSlices();
  void CreatePod();
  void DeletePod();
  void Run(std::uint64_t tasks);

  void Check();
  void CheckDevices(const std::vector<api::ObjectPtr>& claims);
  void CheckReservations(const std::vector<api::ObjectPtr>& claims,
                         const std::vector<api::ObjectPtr>& pods);
  void CheckNodes();
  void CheckProgress();
  void CheckSettled();
  void NoteUse(const api::Object& pod);
  void Violation(std::string sentence);

  const Options options_;
  SeededLoop loop_;
  Faults faults_;
  Faults scheduler_faults_;
  FeatureGates gates_;
  SimServer server_;
  EventLoop& user_lane_;
  EventLoop& scheduler_lane_;
  EventLoop& controllers_lane_;
  EventLoop& fabric_lane_;
  Metrics metrics_;
  device::CelExpressions compiler_;

  std::unique_ptr<SimClient> user_;
  std::unique_ptr<client::Informer> watched_pods_, watched_claims_;  // a bystander's copy
  std::vector<std::unique_ptr<SimNode>> nodes_;
  std::unique_ptr<SimClient> scheduler_client_, controllers_client_, fabric_client_;
  std::unique_ptr<scheduler::Scheduler> scheduler_;
  std::unique_ptr<controllers::Controllers> controllers_;
  std::unique_ptr<fabric::FabricController> fabric_;
  std::vector<fabric::FabricDevice> fabric_devices_;

  int next_pod_ = 0;
  int next_claim_ = 0;
  std::set<std::string> live_;          // names of pods that nobody has deleted
  std::set<std::string> attempted_;     // names of all pods so far
  std::map<std::string, int> in_vain_;  // rounds that a pod has waited for a free device
  // By pod UID, once bound: the claims that drivers prepare, and what each container may see.
  struct Use {
    std::vector<std::string> claims;                        // UIDs
    std::map<std::string, std::set<std::string>> metadata;  // by container: "<claim>/<request>"
    bool is_complete = true;                                // false if a claim was already gone
  };
  std::map<std::string, Use> uses_;
  std::map<std::string, api::ObjectPtr> known_claims_;  // by UID, the last version
  std::set<std::string> bound_ever_;
  std::set<std::string> metadata_seen_;  // pod UID and container
  std::set<std::string> driverless_;  // UIDs of pods that ran with a device that no driver prepares
  int step_ = 0;
};

}  // namespace drakkar::simulation
