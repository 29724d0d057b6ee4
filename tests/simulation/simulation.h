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

// A whole cluster from one seed: API server, scheduler, controllers, nodes with hollow containers
// and drivers, a binding controller, and users that make and delete pods; each component on a lane
// of its own, all of them subject to faults. After every step the state is checked against what
// must never happen (design, section 7).
class Simulation {
 public:
  struct Options {
    std::uint64_t seed = 1;
    // A scheduler that forgets what is allocated when it restarts: the checks must find it.
    bool plant_double_allocation = false;
    // A scheduler that does not wait for binding conditions: the same.
    bool plant_no_wait = false;
  };
  explicit Simulation(Options options);
  ~Simulation();

  // One thing happens, the loop goes on a little, everything is checked.
  void Step();
  // Faults end, everybody is up; what is possible must have happened after a while.
  void Settle();

  const std::vector<std::string>& violations() const { return server_.violations; }
  // A summary of what is stored, to compare runs.
  std::string Fingerprint();
  std::size_t bound_pods() const { return bound_ever_.size(); }
  // How many containers were seen that see metadata, and how many pods ran without a driver.
  std::size_t metadata_seen() const { return metadata_seen_.size(); }
  std::size_t driverless_pods() const { return driverless_.size(); }

 private:
  static constexpr int kMaxPods = 8;
  static constexpr Duration kBindingTimeout = std::chrono::seconds(30);
  static constexpr int kSettleTurns = 20;  // of 15 seconds
  static constexpr int kPatience = 5;      // turns in which a pod may wait for what is free

  void SetUp();
  void CreateObject(std::string_view group, std::string_view version, std::string_view kind,
                    const std::string& json);
  void StartScheduler();
  void StartControllers();
  void StartFabric();
  void KillSomething();
  void StartWhatIsDown();
  // What the nodes' drivers do: an agent that starts removes the slices of its node.
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
  std::set<std::string> attempted_;     // names of all pods ever
  std::map<std::string, int> in_vain_;  // turns that a pod has waited for a free device
  // By pod uid, once bound: the claims that drivers prepare, and what each container may see.
  struct Use {
    std::vector<std::string> claims;                        // uids
    std::map<std::string, std::set<std::string>> metadata;  // by container: "<claim>/<request>"
    bool is_complete = true;                                // a claim was gone already
  };
  std::map<std::string, Use> uses_;
  std::map<std::string, api::ObjectPtr> known_claims_;  // by uid, the last version
  std::set<std::string> bound_ever_;
  std::set<std::string> metadata_seen_;  // pod uid and container
  std::set<std::string> driverless_;     // uids of pods that ran with a device no driver prepares
  int step_ = 0;
};

}  // namespace drakkar::simulation
