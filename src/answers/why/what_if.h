#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "scheduler/simulation.h"

namespace drakkar::answers {

// Whether the simulated pod would fit a node if something were different. Runs the scheduler's own
// code over that node, its devices and the pools that it shares with other nodes.
class WhatIf {
 public:
  WhatIf(const scheduler::Simulation& whole, const std::string& node,
         const scheduler::SimulationOptions& options);

  // Whether it fits if these claims ("namespace/name") hold nothing and the pods that use them are
  // deleted.
  bool FitsWithout(const std::set<std::string>& claims) const;
  // Whether it fits if a request of a claim ("request" or "request/subrequest") asks for `count`
  // devices.
  bool FitsWithCount(const std::string& claim, const std::string& request,
                     std::int64_t count) const;
  // Whether it fits if the node is not cordoned.
  bool FitsUncordoned() const;
  // The scheduler has these gates.
  bool FitsWithGates(const FeatureGates& gates) const;
  // The node declares these features too (names and aliases).
  bool FitsDeclaring(const std::vector<std::string>& features) const;

 private:
  bool Fits(const scheduler::Simulation& simulation) const;
  bool Fits(const scheduler::Simulation& simulation,
            const scheduler::SimulationOptions& options) const;

  const scheduler::SimulationOptions options_;
  scheduler::Simulation simulation_;
};

}  // namespace drakkar::answers
