#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "api/meta/object.h"
#include "node/eviction/thresholds.h"
#include "node/resources/pod_amounts.h"

namespace drakkar::node {

// The pods in the order in which a kubelet evicts them to reclaim the signal's resource: those that
// use more than they request first, then lower priority, then the largest excess. For PIDs: lower
// priority, then the most processes. Ties keep the given order.
std::vector<api::ObjectPtr> RankForEviction(std::vector<api::ObjectPtr> pods,
                                            const NodeUsage& usage, Signal signal);

// status.message of an evicted pod, in Kubernetes' words, because tools parse it.
std::string EvictionMessage(api::Value pod, const NodeUsage& usage, const Threshold& threshold,
                            const Observation& observation);

}  // namespace drakkar::node
