#pragma once

#include <memory>
#include <optional>
#include <string>

#include "base/exec/event_loop.h"
#include "base/exec/lifetime.h"
#include "client/client.h"
#include "client/informer.h"
#include "client/work_queue.h"

namespace drakkar::controllers {

// Deletes pods that nothing else deletes: pods bound to a node that no longer exists, terminating
// pods that were never scheduled, and the oldest finished pods if there are too many.
class PodGarbageCollector {
 public:
  // Limit for finished pods. Beyond it the oldest are deleted.
  static constexpr std::size_t kMaxFinishedPods = 12'500;
  // A missing node may come back under the same name, so its pods are kept this long.
  static constexpr Duration kNodeQuarantine = std::chrono::seconds(40);

  PodGarbageCollector(EventLoop& loop, Random& random, client::Client& client,
                      client::Informer& pods, client::Informer& nodes);

 private:
  using Done = client::WorkQueue::Done;
  void Sync(const std::string& key, Done done);
  void Delete(const api::ObjectPtr& pod, Done done);
  void OnPod(const api::ObjectPtr& pod);
  void OnNodeGone(const std::string& node);

  EventLoop& loop_;
  client::Client& client_;
  client::Informer& pods_;
  client::Informer& nodes_;
  client::WorkQueue queue_;
  std::map<std::string, MonotonicTime>
      missing_since_;  // nodes that pods are bound to but that do not exist
  std::set<std::pair<std::string, std::string>> finished_;  // (creation time, key)
  std::map<std::string, std::string> finished_key_;
  Lifetime lifetime_;
};

}  // namespace drakkar::controllers
