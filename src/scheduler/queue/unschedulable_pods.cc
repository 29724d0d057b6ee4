#include "scheduler/queue/unschedulable_pods.h"

#include <algorithm>

namespace drakkar::scheduler {
namespace {

// Removes duplicates.
void SortBySequence(std::vector<QueuedPod*>& pods) {
  std::sort(pods.begin(), pods.end(),
            [](const QueuedPod* a, const QueuedPod* b) { return a->sequence < b->sequence; });
  pods.erase(std::unique(pods.begin(), pods.end()), pods.end());
}

}  // namespace

void UnschedulablePods::Add(QueuedPod* pod) {
  by_age_.emplace(std::pair(pod->queued_at, pod->sequence), pod);
  ByPlugin& by_plugin = pod->gated ? gated_ : tried_;
  for (std::size_t i = 0; i < kMaxPlugins; ++i) {
    if ((pod->rejected_by & OnlyPlugin(static_cast<PluginId>(i))) != 0) {
      by_plugin[i].emplace(pod->sequence, pod);
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
  for (BySequence& pods : pod->gated ? gated_ : tried_) pods.erase(pod->sequence);
  for (const PodClaim& claim : pod->info->claims) {
    const auto found = by_claim_.find(pod->info->ClaimKey(claim));
    if (found == by_claim_.end()) continue;
    found->second.erase(pod->sequence);
    if (found->second.empty()) by_claim_.erase(found);
  }
}

void UnschedulablePods::Collect(const ByPlugin& from, PluginSet plugins,
                                std::vector<QueuedPod*>& pods) {
  int lists = 0;
  for (std::size_t i = 0; i < kMaxPlugins; ++i) {
    if ((plugins & OnlyPlugin(static_cast<PluginId>(i))) == 0 || from[i].empty()) continue;
    ++lists;
    for (const auto& [sequence, pod] : from[i]) pods.push_back(pod);
  }
  if (lists > 1) SortBySequence(pods);
}

std::vector<QueuedPod*> UnschedulablePods::FindTried(PluginSet plugins) const {
  std::vector<QueuedPod*> pods;
  Collect(tried_, plugins, pods);
  return pods;
}

std::vector<QueuedPod*> UnschedulablePods::Find(PluginSet plugins,
                                                const std::string& only_claim) const {
  std::vector<QueuedPod*> pods;
  if (only_claim.empty()) {
    Collect(tried_, plugins, pods);
    const std::size_t tried = pods.size();
    Collect(gated_, plugins, pods);
    if (tried > 0 && pods.size() > tried) SortBySequence(pods);
    return pods;
  }
  const auto found = by_claim_.find(only_claim);
  if (found == by_claim_.end()) return pods;
  for (const auto& [sequence, pod] : found->second) {
    if ((pod->rejected_by & plugins) != 0) pods.push_back(pod);
  }
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
