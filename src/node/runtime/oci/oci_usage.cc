#include <set>

#include "base/env/tree_walk.h"
#include "node/runtime/oci/cgroup_usage.h"
#include "node/runtime/oci/oci_runtime_impl.h"

namespace drakkar::node {
namespace {

// Files with several names are remembered up to this number, because a container can make as many
// as its disk has room for.
constexpr std::size_t kMaxSeen = 500'000;

// Counts a file with several names once; beyond kMaxSeen such files, once for each name.
FileUsage MeasureTree(const std::string& path) {
  std::set<std::pair<dev_t, ino_t>> seen;
  FileUsage usage{.used_bytes = 0, .inodes_used = 0};
  auto count = [&](int, const std::string&, const struct stat& info) -> Result<void> {
    if (info.st_nlink > 1 && !S_ISDIR(info.st_mode)) {
      const std::pair file(info.st_dev, info.st_ino);
      if (seen.contains(file)) return Ok();
      if (seen.size() < kMaxSeen) seen.insert(file);
    }
    *usage.used_bytes += static_cast<std::uint64_t>(info.st_blocks) * 512;
    ++*usage.inodes_used;
    return Ok();
  };
  // If a container changes the tree meanwhile, the next measurement corrects the result.
  const auto walked =
      WalkTree(path, {.on_entry = count, .on_directory = count, .skip_mounts = true});
  return walked.ok() ? usage : FileUsage{};
}

struct ContainerTarget {
  ContainerUsage usage;
  std::string log_path;
  std::string writable_layer;
};

struct PodTarget {
  PodUsage usage;
  int network_pid = 0;  // a process in the pod's own network; 0: it has none
  std::vector<ContainerTarget> containers;
};

void Read(FileSystem& files, const Cgroups& cgroups, UsageScope scope, WallTime now,
          PodTarget& target) {
  PodUsage& pod = target.usage;
  CgroupUsage group = ReadCgroupUsage(files, cgroups, pod.cgroup, now);
  pod.cpu = group.cpu;
  pod.memory = group.memory;
  pod.io_pressure = group.io_pressure;
  pod.processes = group.processes;
  if (target.network_pid > 0) pod.interfaces = ReadInterfaces(files, target.network_pid);
  for (ContainerTarget& each : target.containers) {
    ContainerUsage& container = each.usage;
    group = ReadCgroupUsage(files, cgroups, container.cgroup, now);
    container.cpu = group.cpu;
    container.memory = group.memory;
    container.io_pressure = group.io_pressure;
    container.processes = group.processes;
    if (auto log = files.Stat(each.log_path); log.ok()) {
      container.log = {.used_bytes = log->size_bytes, .inodes_used = 1};
    }
    if (scope == UsageScope::kWithFiles) container.root_fs = MeasureTree(each.writable_layer);
    pod.containers.push_back(std::move(container));
  }
}

}  // namespace

void OciRuntime::ReadUsage(UsageScope scope, RuntimeCallback<RuntimeUsage> done) {
  if (!is_open_)
    return Answer<RuntimeUsage>(std::move(done), Unavailable("the runtime is not open"));
  std::map<std::string, PodTarget> targets;  // by sandbox
  for (const auto& [id, container] : containers_) {
    const ContainerRecord& record = container->record;
    const auto found = sandboxes_.find(record.sandbox_id);
    if (record.phase != Phase::kRunning || found == sandboxes_.end()) continue;
    const SandboxRecord& sandbox = found->second->record;
    PodTarget& target = targets[sandbox.id];
    PodUsage& pod = target.usage;
    pod.sandbox_id = sandbox.id;
    pod.name = sandbox.name;
    pod.namespace_name = sandbox.namespace_name;
    pod.uid = sandbox.uid;
    pod.cgroup = sandbox.cgroup_parent;
    pod.started_at = sandbox.created_at;
    if (!sandbox.network_namespace.empty()) target.network_pid = record.pid;
    ContainerTarget each;
    each.usage.id = id;
    each.usage.name = record.name;
    each.usage.image = record.image;
    each.usage.cgroup = record.cgroup_path;
    each.usage.started_at = record.started_at;
    each.log_path = record.log_path;
    each.writable_layer = builder_->paths().Container(id) + "/upper";
    target.containers.push_back(std::move(each));
  }
  StoreUsage images{.path = options_.root, .files = {.used_bytes = 0, .inodes_used = {}}};
  for (const Image& image : ListImages()) *images.files.used_bytes += image.size_bytes;
  Blocking<RuntimeUsage>(
      [&files = files_, builder = builder_, targets = std::move(targets), scope,
       now = loop_.clock().Now(), images, root = options_.root]() mutable -> Result<RuntimeUsage> {
        RuntimeUsage usage;
        usage.images = images;
        usage.containers.path = root;
        for (auto& [id, target] : targets) {
          Read(files, builder->cgroups(), scope, now, target);
          usage.pods.push_back(std::move(target.usage));
        }
        return usage;
      },
      [done = std::move(done)](Result<RuntimeUsage> usage) mutable { done(std::move(usage)); });
}

}  // namespace drakkar::node
