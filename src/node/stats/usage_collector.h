#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/env/file_system.h"
#include "base/exec/event_loop.h"
#include "base/exec/lifetime.h"
#include "node/checkpoint/blocking_work.h"
#include "node/runtime/runtime.h"
#include "node/stats/machine_usage.h"

namespace drakkar::node {

struct VolumeUsage {
  std::string name;
  std::string plugin;  // "kubernetes.io~empty-dir"
  FileUsage files;
  bool is_ephemeral() const { return plugin == "kubernetes.io~empty-dir"; }
};

// The usage of a node at one moment.
struct NodeUsage {
  WallTime boot_time{};  // zero: not known
  std::uint64_t memory_capacity_bytes = 0;
  std::int64_t cpu_count = 0;
  MachineUsage machine;
  DiskSpace node_fs;
  DiskSpace image_fs;
  DiskSpace container_fs;
  FileUsage images;
  FileUsage containers;
  std::vector<PodUsage> pods;
  std::map<std::string, std::vector<VolumeUsage>> volumes;  // by pod uid; those measured so far
  std::optional<PodUsage> all_pods;                         // the cgroup around them
};
using NodeUsagePtr = std::shared_ptr<const NodeUsage>;

// Collects the usage of the node, its pods and containers on request. Loop-bound; reads files on a
// worker.
//
// However many callers there are, one collection runs at a time, and at most one every kMaxAge; all
// callers get the same answer. Rates come from the last two collections that are at least
// kLeastRateInterval apart. Files of containers and volumes are measured in the background, at most
// every kMeasureEvery, and less often if that takes long; until then their usage is not set.
class UsageCollector {
 public:
  struct Options {
    EventLoop& loop;
    FileSystem& files;
    BlockingWork& work;
    Runtime& runtime;
    DiskProbe disk;              // null: disks are not reported
    std::string root_directory;  // of the kubelet: its disk is the node's
    std::uint64_t memory_capacity_bytes = 0;
    std::int64_t cpu_count = 0;
    std::string pods_cgroup;  // around all pods; empty: none
    // Disk usage of a directory; null: volumes are not measured. Called on a worker.
    std::function<Result<std::uint64_t>(const std::string&)> measure;
  };
  static constexpr Duration kMaxAge = std::chrono::seconds(3);
  static constexpr Duration kLeastRateInterval = std::chrono::seconds(1);
  static constexpr Duration kMeasureEvery = std::chrono::minutes(1);
  static constexpr std::size_t kMaxWaiting = 1'000;  // more fail with kResourceExhausted

  explicit UsageCollector(Options options);

  // `done` may run inside the call.
  using Done = std::function<void(Result<NodeUsagePtr>)>;
  void Get(Done done);
  // The machine without its pods: cheap, and never cached.
  void GetMachine(Done done);

 private:
  struct Sample {
    WallTime time{};
    std::uint64_t total_ns = 0;
  };
  struct Files {
    std::map<std::string, FileUsage> containers;              // by id
    std::map<std::string, std::vector<VolumeUsage>> volumes;  // by pod uid
  };
  void Collect();
  void Finish(Result<RuntimeUsage> pods, const std::shared_ptr<NodeUsage>& usage);
  void SetRates(NodeUsage& usage);
  void Rate(const std::string& key, CpuUsage& cpu, std::map<std::string, Sample>& next);
  void Measure(const NodeUsage& usage);
  std::shared_ptr<NodeUsage> NewUsage() const;
  std::optional<Cgroups> FindCgroups();

  const Options options_;
  std::optional<Cgroups> cgroups_;
  bool looked_for_cgroups_ = false;
  std::string image_path_;  // as the runtime reported it last
  std::string container_path_;
  NodeUsagePtr last_;
  MonotonicTime collected_at_{};
  std::vector<Done> waiting_;
  bool collecting_ = false;
  std::map<std::string, Sample> samples_;  // of what was there in the last collection
  Files files_;
  bool measuring_ = false;
  MonotonicTime measure_due_{};
  Lifetime lifetime_;
};

}  // namespace drakkar::node
