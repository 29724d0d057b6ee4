#pragma once

#include <array>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "scheduler/framework/plugin.h"
#include "scheduler/queue/queued_pod.h"

namespace drakkar::scheduler {

// Rejected pods that wait for an event, indexed by the plugins that rejected them and by their
// claims, so that an event visits only pods that it may affect.
class UnschedulablePods {
 public:
  void Add(QueuedPod* pod);
  void Remove(QueuedPod* pod);
  std::size_t size() const { return by_age_.size(); }
  bool empty() const { return by_age_.empty(); }

  // Pods rejected by one of `plugins`, in order of arrival. If `only_claim` is set, only its users.
  std::vector<QueuedPod*> Find(PluginSet plugins, const std::string& only_claim) const;
  // The same without gated pods.
  std::vector<QueuedPod*> FindTried(PluginSet plugins) const;
  // Pods queued before `limit`, oldest first.
  std::vector<QueuedPod*> OlderThan(MonotonicTime limit) const;

 private:
  using BySequence = std::map<std::uint64_t, QueuedPod*>;
  using ByPlugin = std::array<BySequence, kMaxPlugins>;
  static void Collect(const ByPlugin& from, PluginSet plugins, std::vector<QueuedPod*>& pods);

  ByPlugin tried_;
  ByPlugin gated_;
  std::map<std::string, BySequence, std::less<>> by_claim_;
  std::map<std::pair<MonotonicTime, std::uint64_t>, QueuedPod*> by_age_;
};

}  // namespace drakkar::scheduler
