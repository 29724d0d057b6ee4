#include "scheduler/queue/unschedulable_pods.h"

namespace drakkar::scheduler {

void UnschedulablePods::Add(QueuedPod* pod) {
  by_age_.emplace(std::pair(pod->queued_at, pod->sequence), pod);
  for (std::size_t i = 0; i < kMaxPlugins; ++i) {
    if ((pod->rejected_by & OnlyPlugin(static_cast<PluginId>(i))) != 0) {
      by_plugin_[i].emplace(pod->sequence, pod);
    }
  }
  for (const PodClaim& claim : pod->info->claims) {
    if (!claim.claim_name.empty()) {
      by_claim_[pod->info->ClaimKey(claim)].emplace(pod->sequence, pod);
    }
  }
}

void UnschedulablePods::Remove(QueuedPod* pod) {
  by_age_.erase(std::pair(pod->queued_at, pod->sequence));
  for (BySequence& pods : by_plugin_) pods.erase(pod->sequence);
  for (const PodClaim& claim : pod->info->claims) {
    const auto found = by_claim_.find(pod->info->ClaimKey(claim));
    if (found == by_claim_.end()) continue;
    found->second.erase(pod->sequence);
    if (found->second.empty()) by_claim_.erase(found);
  }
}

std::vector<QueuedPod*> UnschedulablePods::Find(PluginSet plugins,
                                                const std::string& only_claim) const {
  std::vector<QueuedPod*> pods;
  if (!only_claim.empty()) {
    const auto found = by_claim_.find(only_claim);
    if (found == by_claim_.end()) return pods;
    for (const auto& [sequence, pod] : found->second) {
      if ((pod->rejected_by & plugins) != 0) pods.push_back(pod);
    }
    return pods;
  }
  BySequence all;
  for (std::size_t i = 0; i < kMaxPlugins; ++i) {
    if ((plugins & OnlyPlugin(static_cast<PluginId>(i))) == 0) continue;
    all.insert(by_plugin_[i].begin(), by_plugin_[i].end());
  }
  pods.reserve(all.size());
  for (const auto& [sequence, pod] : all) pods.push_back(pod);
  return pods;
}

std::vector<QueuedPod*> UnschedulablePods::OlderThan(MonotonicTime limit) const {
  std::vector<QueuedPod*> pods;
  for (const auto& [key, pod] : by_age_) {
    if (key.first >= limit) break;
    pods.push_back(pod);
  }
  return pods;
}

}  // namespace drakkar::scheduler
