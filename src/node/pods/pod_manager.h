#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "base/env/random.h"
#include "client/informer.h"
#include "node/pods/pod_worker.h"

namespace drakkar::node {

// The pods bound to this node: one worker each, plus workers that remove what deleted pods left in
// the runtime. Loop-bound; bounded by what the API and the runtime hold for this node.
class PodManager {
 public:
  PodManager(PodContext& context, Random& random);
  ~PodManager();

  // Call after the runtime is open. `on_synced` runs once, when ActivePods has an answer.
  void Start(std::function<void()> on_synced = nullptr);

  // A driver became usable: pods waiting for one retry.
  void DriverUsable();
  // Something that any pod may be waiting for has become available.
  void SyncAll();
  // See PodWorker::Evict. Pods that are not here are ignored.
  void Evict(const std::string& uid, PodVerdict verdict, Duration grace);
  // What the pod's volumes show may have changed.
  void VolumesChanged(const std::string& pod_uid);
  // The device health of this pod may have changed.
  void HealthChanged(const std::string& pod_uid);

  // UIDs of pods that exist or are still being removed; nothing before the first list.
  std::optional<std::set<std::string>> ActivePods() const;
  bool has_synced() const { return orphans_found_; }
  const std::map<std::string, std::unique_ptr<PodWorker>>& workers() const { return workers_; }
  // Looks up "namespace/name"; null if the pod is not on this node.
  const PodWorker* Find(const std::string& qualified_name) const;

 private:
  void ForEachWorker(const std::function<void(PodWorker&)>& visit);
  PodRequests OthersRequests(const std::string& uid) const;
  NodeAmounts AdmittedRequests(const std::string& uid) const;
  PodWorker& Worker(const std::string& uid);
  void FindOrphans();

  PodContext& context_;
  client::Informer informer_;
  std::map<std::string, std::unique_ptr<PodWorker>> workers_;  // by UID
  bool orphans_found_ = false;
};

}  // namespace drakkar::node
