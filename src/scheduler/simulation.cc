#include "scheduler/simulation.h"

#include "scheduler/simulated_world.h"

namespace drakkar::scheduler {

Result<SimulationAnswer> Simulate(const Simulation& simulation, SimulationOptions options) {
  SimulatedWorld world(simulation, options);
  SimulationAnswer answer;
  Cycle cycle;
  cycle.pod = MakePodInfo(simulation.pod);
  answer.message = world.PreEnqueue(*cycle.pod);
  if (!answer.message.empty()) return answer;
  const Decision decision = world.framework.Decide(cycle, kNoNode);
  if (decision.status.IsRejected()) {
    answer.message = decision.diagnosis.Message(world.nodes.node_count());
    return answer;
  }
  if (!decision.status.ok()) return Internal(decision.status.Message());
  cycle.node = decision.node;
  cycle.node_name = world.nodes.name(decision.node);
  if (const Status reserved = world.framework.Reserve(cycle); !reserved.ok()) {
    return Internal(reserved.Message());
  }
  answer.fits = true;
  answer.node = cycle.node_name;
  for (const PodClaim& each : cycle.pod->claims) {
    const CachedClaim* claim = world.claims.Find(cycle.pod->ClaimKey(each));
    if (claim == nullptr || claim->counted == nullptr) continue;
    for (const auto& result : claim->counted->results) {
      answer.devices.push_back(
          {each.claim_name, result.request, result.id.driver, result.id.pool, result.id.device});
    }
  }
  if (const AllocationPtr held = world.claims.FindHold(cycle.pod->uid); held != nullptr) {
    for (const auto& result : held->results) {
      answer.devices.push_back(
          {{}, result.request, result.id.driver, result.id.pool, result.id.device});
    }
  }
  return answer;
}

}  // namespace drakkar::scheduler
