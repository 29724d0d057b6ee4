#pragma once

#include <string_view>

#include "api/meta/object.h"
#include "scheduler/framework/pod_state.h"
#include "scheduler/simulation.h"

namespace drakkar::scheduler {

struct CachedClaim;
class Placements;

// The scheduler's knowledge at one moment. Allocations that it has decided but not written yet are
// in the claims, and nodes that it has chosen but not written are in the pods. Objects are
// immutable and may be read on any thread.
struct SchedulerState {
  Simulation cluster;  // all pods; `pod` and `leases` are not set
  PodState pod;
};

// The newest version of a claim, with the allocation that is not written yet. `pod_name` is the pod
// that it is for; empty if unknown.
api::ObjectPtr WithPending(const CachedClaim& claim, std::string_view pod_name);
// A pod with the node that was chosen or nominated for it but not written yet.
api::ObjectPtr WithPlacement(const api::ObjectPtr& pod, const Placements& placements);

}  // namespace drakkar::scheduler
