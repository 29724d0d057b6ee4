#include "node/stats/usage_collector.h"

#include <algorithm>
#include <utility>

#include "base/text/text.h"
#include "node/runtime/oci/cgroup_usage.h"

namespace drakkar::node {
namespace {

void Add(Count& to, const Count& amount) {
  if (amount) to = to.value_or(0) + *amount;
}

// For machines without counters of their own, such as simulated ones.
void SumUp(NodeUsage& usage) {
  MachineUsage& machine = usage.machine;
  if (!machine.cpu.total_ns) {
    machine.cpu.time = machine.time;
    machine.cpu.total_ns = 0;
    for (const PodUsage& pod : usage.pods) Add(machine.cpu.total_ns, pod.cpu.total_ns);
  }
  if (!machine.memory.working_set_bytes) {
    machine.memory.time = machine.time;
    machine.memory.usage_bytes = machine.memory.working_set_bytes = 0;
    for (const PodUsage& pod : usage.pods) {
      Add(machine.memory.usage_bytes, pod.memory.usage_bytes);
      Add(machine.memory.working_set_bytes, pod.memory.working_set_bytes);
    }
  }
  const std::uint64_t used = machine.memory.working_set_bytes.value_or(0);
  if (usage.memory_capacity_bytes > 0) {
    machine.memory.available_bytes =
        usage.memory_capacity_bytes - std::min(used, usage.memory_capacity_bytes);
  }
}

void ReadDisks(const DiskProbe& probe, const std::string& root, const std::string& images,
               const std::string& containers, NodeUsage& usage) {
  if (!probe) return;
  auto read = [&](const std::string& path, DiskSpace fallback) {
    if (path.empty()) return fallback;
    auto space = probe(path);
    return space.ok() ? *space : fallback;
  };
  usage.node_fs = read(root, {});
  usage.image_fs = read(images, usage.node_fs);
  usage.container_fs = read(containers, usage.image_fs);
}

void ReadAllPods(FileSystem& files, const Cgroups& cgroups, const std::string& group, WallTime now,
                 NodeUsage& usage) {
  if (group.empty()) return;
  const CgroupUsage all = ReadCgroupUsage(files, cgroups, group, now);
  if (!all.cpu.total_ns && !all.memory.usage_bytes) return;
  PodUsage& pods = usage.all_pods.emplace();
  pods.cgroup = group;
  pods.cpu = all.cpu;
  pods.memory = all.memory;
}

}  // namespace

UsageCollector::UsageCollector(Options options) : options_(std::move(options)) {}

// A copy, because a worker may still use it when this object is gone.
std::optional<Cgroups> UsageCollector::FindCgroups() {
  if (!std::exchange(looked_for_cgroups_, true)) {
    auto found = Cgroups::Detect(options_.files);
    if (found.ok()) cgroups_ = *std::move(found);
  }
  return cgroups_;
}

std::shared_ptr<NodeUsage> UsageCollector::NewUsage() const {
  auto usage = std::make_shared<NodeUsage>();
  usage->memory_capacity_bytes = options_.memory_capacity_bytes;
  usage->cpu_count = options_.cpu_count;
  return usage;
}

void UsageCollector::Get(Done done) {
  const MonotonicTime now = options_.loop.clock().Monotonic();
  if (last_ != nullptr && now < collected_at_ + kMaxAge) return done(last_);
  if (waiting_.size() >= kMaxWaiting) {
    return done(Error{ErrorCode::kResourceExhausted, "too many requests for statistics"});
  }
  waiting_.push_back(std::move(done));
  if (!std::exchange(collecting_, true)) Collect();
}

void UsageCollector::GetMachine(Done done) {
  std::shared_ptr<NodeUsage> usage = NewUsage();
  options_.work.Run(
      [&files = options_.files, cgroups = FindCgroups(), disk = options_.disk,
       root = options_.root_directory, images = image_path_, containers = container_path_,
       group = options_.pods_cgroup, now = options_.loop.clock().Now(), usage]() -> Result<void> {
        usage->machine = ReadMachineUsage(files, cgroups ? &*cgroups : nullptr, now);
        ReadDisks(disk, root, images, containers, *usage);
        if (cgroups) ReadAllPods(files, *cgroups, group, now, *usage);
        return Ok();
      },
      lifetime_.Guard([usage, done = std::move(done)](Result<void> read) {
        if (!read.ok()) return done(read.error());
        SumUp(*usage);
        done(NodeUsagePtr(usage));
      }));
}

void UsageCollector::Collect() {
  options_.runtime.ReadUsage(
      UsageScope::kWithoutFiles, lifetime_.Guard([this](Result<RuntimeUsage> pods) {
        auto usage = NewUsage();
        if (pods.ok()) image_path_ = pods->images.path;
        if (pods.ok()) container_path_ = pods->containers.path;
        auto shared = std::make_shared<Result<RuntimeUsage>>(std::move(pods));
        options_.work.Run(
            [&files = options_.files, cgroups = FindCgroups(), disk = options_.disk,
             root = options_.root_directory, images = image_path_, containers = container_path_,
             group = options_.pods_cgroup, now = options_.loop.clock().Now(),
             usage]() -> Result<void> {
              usage->machine = ReadMachineUsage(files, cgroups ? &*cgroups : nullptr, now);
              ReadDisks(disk, root, images, containers, *usage);
              if (auto stat = files.ReadFile("/proc/stat"); stat.ok()) {
                for (std::string_view line : Split(*stat, '\n')) {
                  if (!line.starts_with("btime ")) continue;
                  const auto seconds = ParseInt64(Trim(line.substr(6)));
                  if (seconds) usage->boot_time = WallTime(std::chrono::seconds(*seconds));
                }
              }
              if (cgroups) ReadAllPods(files, *cgroups, group, now, *usage);
              return Ok();
            },
            lifetime_.Guard([this, usage, shared](Result<void> read) {
              if (!read.ok()) return Finish(read.error(), usage);
              Finish(std::move(*shared), usage);
            }));
      }));
}

void UsageCollector::Finish(Result<RuntimeUsage> pods, const std::shared_ptr<NodeUsage>& usage) {
  collecting_ = false;
  const std::vector<Done> waiting = std::exchange(waiting_, {});
  if (!pods.ok()) {
    for (const Done& done : waiting) done(pods.error());
    return;
  }
  usage->pods = std::move(pods->pods);
  std::sort(usage->pods.begin(), usage->pods.end(), [](const PodUsage& a, const PodUsage& b) {
    return std::tie(a.namespace_name, a.name, a.uid) < std::tie(b.namespace_name, b.name, b.uid);
  });
  usage->images = pods->images.files;
  usage->containers = pods->containers.files;
  SumUp(*usage);
  SetRates(*usage);
  for (PodUsage& pod : usage->pods) {
    for (ContainerUsage& each : pod.containers) {
      const auto found = files_.containers.find(each.id);
      if (found != files_.containers.end() && !each.root_fs.used_bytes)
        each.root_fs = found->second;
    }
    const auto volumes = files_.volumes.find(pod.uid);
    if (volumes != files_.volumes.end()) usage->volumes[pod.uid] = volumes->second;
  }
  last_ = usage;
  collected_at_ = options_.loop.clock().Monotonic();
  Measure(*usage);
  for (const Done& done : waiting) done(last_);
}

void UsageCollector::Rate(const std::string& key, CpuUsage& cpu,
                          std::map<std::string, Sample>& next) {
  if (!cpu.total_ns) return;
  const Sample now{cpu.time, *cpu.total_ns};
  const auto before = samples_.find(key);
  if (before == samples_.end() || before->second.total_ns > now.total_ns) {
    next[key] = now;
    return;
  }
  const Duration elapsed = std::chrono::duration_cast<Duration>(now.time - before->second.time);
  if (elapsed < kLeastRateInterval) {
    next[key] = before->second;
    return;
  }
  if (!cpu.nano_cores) {
    cpu.nano_cores =
        static_cast<std::uint64_t>(static_cast<double>(now.total_ns - before->second.total_ns) /
                                   std::chrono::duration<double>(elapsed).count());
  }
  next[key] = now;
}

void UsageCollector::SetRates(NodeUsage& usage) {
  std::map<std::string, Sample> next;
  Rate("/", usage.machine.cpu, next);
  if (usage.all_pods) Rate("pods", usage.all_pods->cpu, next);
  for (PodUsage& pod : usage.pods) {
    Rate(StrCat("pod ", pod.sandbox_id), pod.cpu, next);
    for (ContainerUsage& each : pod.containers) {
      Rate(StrCat("container ", each.id), each.cpu, next);
    }
  }
  samples_ = std::move(next);
}

void UsageCollector::Measure(const NodeUsage& usage) {
  const MonotonicTime begun = options_.loop.clock().Monotonic();
  if (measuring_ || begun < measure_due_) return;
  measuring_ = true;
  std::vector<std::string> uids;
  for (const PodUsage& pod : usage.pods) uids.push_back(pod.uid);
  options_.runtime.ReadUsage(
      UsageScope::kWithFiles,
      lifetime_.Guard([this, begun, uids = std::move(uids)](Result<RuntimeUsage> read) {
        auto files = std::make_shared<Files>();
        if (read.ok()) {
          for (const PodUsage& pod : read->pods) {
            for (const ContainerUsage& each : pod.containers) {
              if (each.root_fs.used_bytes) files->containers[each.id] = each.root_fs;
            }
          }
        }
        options_.work.Run(
            [&file_system = options_.files, measure = options_.measure,
             root = options_.root_directory, uids, files]() -> Result<void> {
              if (!measure) return Ok();
              for (const std::string& uid : uids) {
                const std::string home = StrCat(root, "/pods/", uid, "/volumes");
                auto plugins = file_system.ListDirectory(home);
                if (!plugins.ok()) continue;
                for (const std::string& plugin : *plugins) {
                  auto names = file_system.ListDirectory(JoinPath(home, plugin));
                  if (!names.ok()) continue;
                  for (const std::string& name : *names) {
                    auto used = measure(JoinPath(JoinPath(home, plugin), name));
                    if (!used.ok()) continue;
                    files->volumes[uid].push_back({name, plugin, {.used_bytes = *used}});
                  }
                }
              }
              return Ok();
            },
            lifetime_.Guard([this, begun, files](Result<void>) {
              measuring_ = false;
              const MonotonicTime now = options_.loop.clock().Monotonic();
              measure_due_ = now + std::max<Duration>(kMeasureEvery, 10 * (now - begun));
              files_ = std::move(*files);
            }));
      }));
}

}  // namespace drakkar::node
