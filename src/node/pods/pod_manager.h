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

// The pods bound to this node: a worker for each, and one for whatever the runtime still has of
// pods that are gone. Loop-bound; bounded by what the API and the runtime hold for this node.
class PodManager {
 public:
  PodManager(PodContext& context, Random& random);
  ~PodManager();

  // After the runtime was opened. `on_synced` is called once, when ActivePods has an answer.
  void Start(std::function<void()> on_synced = nullptr);

  // A driver became usable: pods that wait for one try again.
  void DriverUsable();
  // What all pods may wait for has come.
  void SyncAll();
  // The device health of this pod may have changed.
  void HealthChanged(const std::string& pod_uid);

  // UIDs of pods that exist or are still being taken down; nothing before the first list.
  std::optional<std::set<std::string>> ActivePods() const;
  bool has_synced() const { return orphans_found_; }
  const std::map<std::string, std::unique_ptr<PodWorker>>& workers() const { return workers_; }
  // By "namespace/name"; null if it is not on this node.
  const PodWorker* Find(const std::string& qualified_name) const;

 private:
  void ForEachWorker(const std::function<void(PodWorker&)>& visit);
  PodRequests OthersRequests(const std::string& uid) const;
  PodWorker& Worker(const std::string& uid);
  void FindOrphans();

  PodContext& context_;
  client::Informer informer_;
  std::map<std::string, std::unique_ptr<PodWorker>> workers_;  // by UID
  bool orphans_found_ = false;
};

}  // namespace drakkar::node
