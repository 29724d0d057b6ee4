#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/exec/event_loop.h"
#include "base/exec/lifetime.h"
#include "base/exec/worker_pool.h"
#include "node/runtime/images/image_store.h"

namespace drakkar::node {

// When images are removed. The names are those of a kubelet's settings.
struct ImageCollection {
  int high_percent = 85;  // of the disk; 100: never
  int low_percent = 80;
  Duration min_age = std::chrono::minutes(2);  // since an image was last used
  Duration max_age{};  // unused for longer, it is removed though there is space; zero: never
};

struct DiskUsage {
  std::uint64_t used_bytes = 0;
  std::uint64_t total_bytes = 0;
};
Result<DiskUsage> ReadDiskUsage(const std::string& path);

struct RemovedImages {
  std::vector<std::string> names;  // or ids, of images without a name
  std::uint64_t freed_bytes = 0;
  std::uint64_t wanted_bytes = 0;  // more than freed: the rest of the images is in use
};

// Removes images that no container has used for max_age. If the disk is still fuller than
// high_percent, removes those that no container uses, the longest unused first, until usage drops
// to low_percent. Imported images are kept, because they cannot be pulled again. Blocking.
Result<RemovedImages> CollectImages(ImageStore& images, const DiskUsage& disk,
                                    const ImageCollection& settings, WallTime now);
// Removes every image that no container uses; with `imported`, imported ones as well.
Result<RemovedImages> PruneImages(ImageStore& images, bool imported);

// Calls CollectImages every five minutes, on a worker.
class ImageCollector {
 public:
  static constexpr Duration kPeriod = std::chrono::minutes(5);
  struct Options {
    EventLoop& loop;
    WorkerPool& workers;
    ImageStore& images;
    std::string directory;  // on the disk that is measured
    ImageCollection settings;
    std::function<void(const std::string&)> log;
    // Reports, as a sentence for an event, that the disk is full and nothing more can be removed.
    std::function<void(const std::string&)> on_full;
  };
  explicit ImageCollector(Options options) : options_(std::move(options)) {}
  void Start();

 private:
  void Collect();
  void Done(Result<RemovedImages> removed);

  const Options options_;
  TimerHandle timer_;
  Lifetime lifetime_;
};

}  // namespace drakkar::node
