#pragma once

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "node/checkpoint/blocking_work.h"
#include "node/hollow/hollow_host.h"
#include "node/node_agent.h"
#include "rpc/testing/fake_dra_plugin.h"
#include "telemetry/metrics/metrics.h"
#include "tests/simulation/sim_server.h"

namespace drakkar::simulation {

// A machine with containers that run for a while, files, drivers that remember what they prepared,
// and an agent that can be killed and restarted. Has its own lane.
class SimNode {
 public:
  SimNode(SeededLoop& loop, SimServer& server, const Faults& faults, FeatureGates gates,
          std::string name, const std::vector<std::string>& drivers);
  ~SimNode();

  void StartAgent();
  void KillAgent();
  bool is_running() const { return agent_ != nullptr; }
  const std::string& name() const { return name_; }

  // A running container.
  struct Running {
    std::string pod_uid;
    std::string pod_name;
    std::string container;
    // "<claim>/<request>" of the metadata files that it sees.
    std::vector<std::string> metadata;
  };
  std::vector<Running> RunningContainers() const;
  // UIDs of the claims that the driver has prepared.
  const std::set<std::string>& prepared(const std::string& driver) const {
    return drivers_.at(driver)->prepared;
  }
  std::vector<std::string> driver_names() const;
  std::string Checkpoint() const;
  // The claims that a pod's containers use; drivers check this before they unprepare.
  std::function<std::vector<std::string>(const std::string& pod_uid)> claims_of;

 private:
  struct Driver {
    explicit Driver(const std::string& driver) : plugin(driver) {}
    rpc::FakeDraPlugin plugin;
    std::set<std::string> prepared;
    std::unique_ptr<rpc::Server> server;
  };
  rpc::PrepareResult Prepare(const std::string& driver, const rpc::ClaimReference& claim);
  rpc::UnprepareResult Unprepare(const std::string& driver, const rpc::ClaimReference& claim);

  SeededLoop& loop_;
  EventLoop& lane_;
  SimServer& server_;
  const Faults& faults_;
  const FeatureGates gates_;
  const std::string name_;
  mutable node::HollowHost host_;
  Metrics metrics_;
  std::map<std::string, std::unique_ptr<Driver>> drivers_;
  std::unique_ptr<SimClient> client_;
  std::unique_ptr<node::BlockingWork> work_;
  std::unique_ptr<node::Runtime> runtime_;
  std::unique_ptr<node::NodeAgent> agent_;
};

}  // namespace drakkar::simulation
