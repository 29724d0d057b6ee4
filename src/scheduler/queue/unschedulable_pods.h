#pragma once

#include <array>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "scheduler/framework/plugin.h"
#include "scheduler/queue/queued_pod.h"

namespace drakkar::scheduler {

// Pods that were refused and wait for an event that may help, found by the plugin that refused them
// and by the claims they use, so that an event costs what it can concern.
class UnschedulablePods {
 public:
  void Add(QueuedPod* pod);
  void Remove(QueuedPod* pod);
  std::size_t size() const { return by_age_.size(); }
  bool empty() const { return by_age_.empty(); }

  // Pods that one of `plugins` refused, in order of arrival; only users of the claim if one is
  // given.
  std::vector<QueuedPod*> Find(PluginSet plugins, const std::string& only_claim) const;
  // Of those, the ones that are not gated.
  std::vector<QueuedPod*> FindTried(PluginSet plugins) const;
  // Pods that came in before `limit`, oldest first.
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
