#pragma once

#include "answers/cluster/snapshot.h"
#include "scheduler/state.h"

namespace drakkar::answers {

// The scheduler's knowledge as a snapshot. It has no leases, events or health.
inline Snapshot SnapshotOf(scheduler::SchedulerState state, WallTime now) {
  Snapshot snapshot;
  snapshot.now = now;
  snapshot.nodes = std::move(state.cluster.nodes);
  snapshot.pods = std::move(state.cluster.pods);
  snapshot.claims = std::move(state.cluster.claims);
  snapshot.slices = std::move(state.cluster.slices);
  snapshot.classes = std::move(state.cluster.classes);
  snapshot.taint_rules = std::move(state.cluster.taint_rules);
  snapshot.namespaces = std::move(state.cluster.namespaces);
  snapshot.pod_groups = std::move(state.cluster.pod_groups);
  return snapshot;
}

}  // namespace drakkar::answers
