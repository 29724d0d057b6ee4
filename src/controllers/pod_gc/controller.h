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

// Deletes pods nobody would delete otherwise: those bound to a node that does not exist any more,
// those being deleted that never got a node, and the oldest of too many finished ones.
class PodGarbageCollector {
 public:
  // Finished pods kept; more are deleted, oldest first.
  static constexpr std::size_t kMaxFinishedPods = 12'500;
  // A node that vanished may come back (a restart under the same name): its pods wait this long.
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
  std::map<std::string, MonotonicTime> missing_since_;      // nodes that pods name but nobody has
  std::set<std::pair<std::string, std::string>> finished_;  // (creation time, key)
  std::map<std::string, std::string> finished_key_;
  Lifetime lifetime_;
};

}  // namespace drakkar::controllers
