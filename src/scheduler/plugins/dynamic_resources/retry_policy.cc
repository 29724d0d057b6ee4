#include "scheduler/plugins/dynamic_resources/retry_policy.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace drakkar::scheduler {

bool RetryPolicy::NoteDevice(const std::string& pod_uid, const device::DeviceId& device) {
  Pod& pod = pods_[pod_uid];
  const bool is_full = pod.devices.size() >= kMaxFailedDevices;
  const auto [at, is_new] = pod.devices.try_emplace(device);
  at->second = pod.next++;
  if (is_new && is_full) {
    pod.devices.erase(
        std::min_element(pod.devices.begin(), pod.devices.end(),
                         [](const auto& a, const auto& b) { return a.second < b.second; }));
  }
  // Above the limit, old failures are forgotten, so they must not be treated as new repeatedly.
  return is_new && !is_full;
}

void RetryPolicy::NoteNode(const std::string& pod_uid, const std::string& node_name) {
  Pod& pod = pods_[pod_uid];
  NodeFailures& failures = pod.nodes[node_name];
  failures.last = pod.next++;
  ++failures.count;
  if (pod.nodes.size() <= kMaxFailedNodes) return;
  pod.nodes.erase(
      std::min_element(pod.nodes.begin(), pod.nodes.end(),
                       [](const auto& a, const auto& b) { return a.second.last < b.second.last; }));
}

std::vector<const device::DeviceId*> RetryPolicy::FailedDevices(const std::string& pod_uid) const {
  std::vector<const device::DeviceId*> devices;
  const auto found = pods_.find(pod_uid);
  if (found == pods_.end()) return devices;
  for (const auto& [id, failure] : found->second.devices) {
    if (failure >= found->second.round_began) devices.push_back(&id);
  }
  return devices;
}

void RetryPolicy::BeginRound(const std::string& pod_uid) {
  Pod& pod = pods_[pod_uid];
  pod.round_began = pod.next;
}

NodeSet RetryPolicy::Untried(const std::string& pod_uid, const NodeTable& table,
                             NodeSet nodes) const {
  const auto found = pods_.find(pod_uid);
  if (found == pods_.end()) return nodes;
  for (const auto& [name, failures] : found->second.nodes) {
    const NodeIndex node = table.Find(name);
    if (nodes.Contains(node)) nodes.Remove(node);
  }
  return nodes;
}

void RetryPolicy::PreferUntried(const std::string& pod_uid, const NodeTable& table,
                                NodeSet& nodes) const {
  const auto found = pods_.find(pod_uid);
  if (found == pods_.end() || found->second.nodes.empty()) return;
  if (NodeSet untried = Untried(pod_uid, table, nodes); !untried.IsEmpty()) {
    nodes = std::move(untried);
    return;
  }
  NodeIndex oldest = kNoNode;
  std::uint64_t oldest_failure = std::numeric_limits<std::uint64_t>::max();
  for (const auto& [name, failures] : found->second.nodes) {
    const NodeIndex node = table.Find(name);
    if (!nodes.Contains(node) || failures.last >= oldest_failure) continue;
    oldest = node;
    oldest_failure = failures.last;
  }
  if (oldest == kNoNode) return;
  nodes.Clear();
  nodes.Add(oldest);
}

bool RetryPolicy::HasFailedOften(const std::string& pod_uid, const std::string& node_name) const {
  const auto found = pods_.find(pod_uid);
  if (found == pods_.end()) return false;
  const auto here = found->second.nodes.find(node_name);
  return here != found->second.nodes.end() && here->second.count >= kFailuresToLeaveNode;
}

RetryPolicy::Decision RetryPolicy::Decide(const Failure& failure, const Prospects& now,
                                          const std::function<Prospects()>& with_failed) {
  const auto pod = pods_.find(failure.pod_uid);
  const bool was_tried_at_once =
      pod != pods_.end() && std::exchange(pod->second.was_tried_at_once, false);
  const bool ready = now.fits_ready && !was_tried_at_once;
  const bool failed_often = HasFailedOften(failure.pod_uid, failure.node_name);
  Decision decision;
  if (now.fits && (ready || !(failed_often && now.fits_alone_untried))) {
    if (failure.is_node_lost || ready) {
      decision.when = Retry::When::kAtOnce;
      if (pod != pods_.end()) pod->second.was_tried_at_once = true;
    } else if (failure.is_news) {
      decision.when = Retry::When::kSoon;
    }
    return decision;
  }
  // If devices fit only where the pod's other claims cannot be used, the pod gives those claims up.
  // Once every device has been tried, failed devices count again for a node that has no others.
  decision.gives_up_claims = now.fits_alone || (failed_often && with_failed().fits_alone_untried);
  if (!decision.gives_up_claims) return decision;
  decision.when = failure.is_node_lost ? Retry::When::kAtOnce
                  : failure.is_news    ? Retry::When::kSoon
                                       : Retry::When::kLater;
  return decision;
}

}  // namespace drakkar::scheduler
