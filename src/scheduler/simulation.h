#pragma once

#include <string>
#include <vector>

#include "api/meta/object.h"
#include "base/result/result.h"
#include "features/gates/feature_gates.h"
#include "scheduler/framework/profile.h"

namespace drakkar {
class EventLoop;
class Random;
}  // namespace drakkar
namespace drakkar::device {
class ExpressionCompiler;
}
namespace drakkar::features {
class Framework;
}

namespace drakkar::scheduler {

// Whether a hypothetical cluster could run a pod: one attempt of the scheduler's own plugins and
// allocator over the given objects, without writing anything. For autoscalers (KEP-5328: scale from
// zero).
struct Simulation {
  std::vector<api::ObjectPtr> nodes;
  std::vector<api::ObjectPtr> slices;
  std::vector<api::ObjectPtr> classes;
  std::vector<api::ObjectPtr> taint_rules;
  std::vector<api::ObjectPtr> claims;      // with uid and resourceVersion
  std::vector<api::ObjectPtr> pods;        // other pods, bound or nominated
  std::vector<api::ObjectPtr> namespaces;  // for selectors in pod affinity
  std::vector<api::ObjectPtr> pod_groups;
  std::vector<api::ObjectPtr> leases;  // of the nodes, for ExplainPod; empty: every node is alive
  api::ObjectPtr pod;
};

struct SimulatedDevice {
  std::string claim;  // name; empty for the pod's extended resources
  std::string request;
  std::string driver, pool, device;
};

struct SimulationAnswer {
  bool fits = false;
  std::string node;                      // where the pod would go
  std::string message;                   // why it fits nowhere, worded as in FailedScheduling
  std::vector<SimulatedDevice> devices;  // devices that its claims have or would get
};

struct SimulationOptions {
  EventLoop& loop;  // only its clock is used
  Random& random;
  device::ExpressionCompiler& compiler;
  FeatureGates gates;
  const features::Framework* declared_features = nullptr;  // null: the catalog
  ProfileConfig profile = {};
};

// A pod that does not fit is not an error.
Result<SimulationAnswer> Simulate(const Simulation& simulation, SimulationOptions options);

}  // namespace drakkar::scheduler
