#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/exec/event_loop.h"
#include "base/exec/lifetime.h"
#include "node/runtime/images/image_collector.h"
#include "node/runtime/runtime.h"

namespace drakkar::node {

// Removes images of a CRI runtime that no container uses when their disk is nearly full, the
// longest unused first, as a kubelet does. Loop-bound.
//
// The runtime does not report when an image was last used, so that is counted from the moment this
// process first saw it. Pinned images, such as the sandbox's, stay.
class CriImageCollector {
 public:
  static constexpr Duration kPeriod = std::chrono::minutes(5);
  struct Options {
    EventLoop& loop;
    Runtime& runtime;
    ImageCollection settings;
    std::function<Result<DiskUsage>(const std::string& path)> disk = ReadDiskUsage;
    std::function<void(const std::string&)> log;
    // Reports, as a sentence for an event, that the disk is full and nothing more can be removed.
    std::function<void(const std::string&)> on_full;
  };
  explicit CriImageCollector(Options options) : options_(std::move(options)) {}
  void Start();
  // Removes every image that no container uses now.
  void RemoveUnused(std::function<void()> done);

 private:
  struct Removal;
  void Collect();
  // Updates when each image was last used, and returns those that no container uses and that were
  // not used for `min_age`, the longest unused first.
  // Removes those that were unused for longer than max_age from the machine and from the list.
  void RemoveOld(std::vector<Image>& candidates);
  std::vector<Image> Candidates(Duration min_age);
  void RemoveNext(const std::shared_ptr<Removal>& removal);

  const Options options_;
  std::map<std::string, WallTime> last_used_;  // by id, of the images that exist
  TimerHandle timer_;
  Lifetime lifetime_;
};

}  // namespace drakkar::node
