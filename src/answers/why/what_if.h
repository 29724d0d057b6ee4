#pragma once

#include <cstdint>
#include <set>
#include <string>

#include "scheduler/simulation.h"

namespace drakkar::answers {

// Whether the pod of a simulation would fit one node if something were different: the scheduler's
// own code over that node, its devices and the pools that it shares with others.
class WhatIf {
 public:
  WhatIf(const scheduler::Simulation& whole, const std::string& node,
         const scheduler::SimulationOptions& options);

  // Claims by "namespace/name": they hold nothing, and the pods that use them are gone.
  bool FitsWithout(const std::set<std::string>& claims) const;
  // A request of a claim, "request" or "request/subrequest", asks for `count` devices.
  bool FitsWithCount(const std::string& claim, const std::string& request,
                     std::int64_t count) const;
  // The node is not cordoned.
  bool FitsUncordoned() const;

 private:
  bool Fits(const scheduler::Simulation& simulation) const;

  const scheduler::SimulationOptions options_;
  scheduler::Simulation simulation_;
};

}  // namespace drakkar::answers
