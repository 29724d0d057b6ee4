#include "node/runtime/cri/cri_usage.h"

#include <rpc_proto/cri.pb.h>

#include "base/text/text.h"
#include "node/runtime/cri/cri_runtime_impl.h"

namespace drakkar::node {
namespace cri {
namespace {

namespace wire = rpc::cri_wire;

template <typename T>
Result<T> Parse(const std::string& bytes, const char* name) {
  T message;
  if (!message.ParseFromString(bytes)) {
    return Internal(StrCat("the container runtime sent a malformed ", name));
  }
  return message;
}

WallTime TimeOf(std::int64_t nanoseconds) {
  return WallTime(
      std::chrono::duration_cast<WallTime::duration>(std::chrono::nanoseconds(nanoseconds)));
}

// Not set in the message: the runtime does not measure it.
Count CountOf(bool present, const wire::UInt64Value& value) {
  return present ? Count(value.value()) : std::nullopt;
}
#define COUNT_OF(message, field) CountOf((message).has_##field(), (message).field())

CpuUsage CpuOf(const wire::CpuUsage& from) {
  CpuUsage cpu;
  cpu.time = TimeOf(from.timestamp());
  cpu.total_ns = COUNT_OF(from, usage_core_nano_seconds);
  cpu.nano_cores = COUNT_OF(from, usage_nano_cores);
  return cpu;
}

MemoryUsage MemoryOf(const wire::MemoryUsage& from) {
  MemoryUsage memory;
  memory.time = TimeOf(from.timestamp());
  memory.usage_bytes = COUNT_OF(from, usage_bytes);
  memory.working_set_bytes = COUNT_OF(from, working_set_bytes);
  memory.available_bytes = COUNT_OF(from, available_bytes);
  memory.rss_bytes = COUNT_OF(from, rss_bytes);
  memory.page_faults = COUNT_OF(from, page_faults);
  memory.major_page_faults = COUNT_OF(from, major_page_faults);
  return memory;
}

FileUsage FilesOf(const wire::FilesystemUsage& from) {
  return {.used_bytes = COUNT_OF(from, used_bytes), .inodes_used = COUNT_OF(from, inodes_used)};
}

ContainerUsage ContainerOf(const wire::ContainerStats& from) {
  ContainerUsage container;
  container.id = from.attributes().id();
  container.name = from.attributes().metadata().name();
  container.cpu = CpuOf(from.cpu());
  container.memory = MemoryOf(from.memory());
  container.root_fs = FilesOf(from.writable_layer());
  if (from.has_swap()) {
    container.memory.swap_bytes = COUNT_OF(from.swap(), swap_usage_bytes);
    container.memory.swap_available_bytes = COUNT_OF(from.swap(), swap_available_bytes);
  }
  return container;
}

InterfaceUsage InterfaceOf(const wire::NetworkInterfaceUsage& from) {
  InterfaceUsage each;
  each.name = from.name();
  each.rx_bytes = COUNT_OF(from, rx_bytes);
  each.rx_errors = COUNT_OF(from, rx_errors);
  each.tx_bytes = COUNT_OF(from, tx_bytes);
  each.tx_errors = COUNT_OF(from, tx_errors);
  return each;
}
#undef COUNT_OF

}  // namespace

Result<std::vector<PodUsage>> DecodeListPodSandboxStats(const std::string& bytes) {
  ASSIGN_OR_RETURN(const auto message,
                   Parse<wire::ListPodSandboxStatsResponse>(bytes, "ListPodSandboxStatsResponse"));
  std::vector<PodUsage> pods;
  for (const wire::PodSandboxStats& from : message.stats()) {
    const auto uid = from.attributes().labels().find(kPodUidLabel);
    if (uid == from.attributes().labels().end()) continue;
    PodUsage pod;
    pod.sandbox_id = from.attributes().id();
    pod.name = from.attributes().metadata().name();
    pod.namespace_name = from.attributes().metadata().namespace_();
    pod.uid = uid->second;
    pod.cpu = CpuOf(from.linux().cpu());
    pod.memory = MemoryOf(from.linux().memory());
    if (from.linux().process().has_process_count()) {
      pod.processes = from.linux().process().process_count().value();
    }
    if (from.linux().network().has_default_interface()) {
      pod.interfaces.push_back(InterfaceOf(from.linux().network().default_interface()));
    }
    for (const wire::NetworkInterfaceUsage& each : from.linux().network().interfaces()) {
      if (pod.interfaces.empty() || pod.interfaces.front().name != each.name()) {
        pod.interfaces.push_back(InterfaceOf(each));
      }
    }
    for (const wire::ContainerStats& each : from.linux().containers()) {
      pod.containers.push_back(ContainerOf(each));
    }
    pods.push_back(std::move(pod));
  }
  return pods;
}

Result<std::vector<ContainerUsage>> DecodeListContainerStats(const std::string& bytes) {
  ASSIGN_OR_RETURN(const auto message,
                   Parse<wire::ListContainerStatsResponse>(bytes, "ListContainerStatsResponse"));
  std::vector<ContainerUsage> containers;
  for (const wire::ContainerStats& from : message.stats()) containers.push_back(ContainerOf(from));
  return containers;
}

Result<ImageFsInfo> DecodeImageFsInfo(const std::string& bytes) {
  ASSIGN_OR_RETURN(const auto message,
                   Parse<wire::ImageFsInfoResponse>(bytes, "ImageFsInfoResponse"));
  auto store = [](const auto& list) {
    if (list.empty()) return StoreUsage{};
    return StoreUsage{.path = list[0].fs_id().mountpoint(), .files = FilesOf(list[0])};
  };
  return ImageFsInfo{.images = store(message.image_filesystems()),
                     .containers = store(message.container_filesystems())};
}

}  // namespace cri

namespace {
constexpr Duration kUsageWithin = std::chrono::seconds(10);
}  // namespace

void CriRuntimeImpl::ReadUsage(UsageScope, RuntimeCallback<RuntimeUsage> done) {
  if (auto refusal = Refuse()) return Reply<RuntimeUsage>(std::move(done), *refusal);
  auto finish = std::make_shared<RuntimeCallback<RuntimeUsage>>(std::move(done));
  auto with_images = [this, finish](RuntimeUsage usage) {
    CompleteUsage(usage);
    Ask(cri::kImageFsInfo, "", kUsageWithin,
        [finish, usage = std::move(usage)](Result<std::string> bytes) mutable {
          // Usage of pods is useful even without it.
          if (bytes.ok()) {
            if (auto info = cri::DecodeImageFsInfo(*bytes); info.ok()) {
              usage.images = std::move(info->images);
              usage.containers = std::move(info->containers);
            }
          }
          (*finish)(std::move(usage));
        });
  };
  Ask(cri::kListPodSandboxStats, "", kUsageWithin,
      [this, finish, with_images](Result<std::string> bytes) {
        if (bytes.ok()) {
          auto pods = cri::DecodeListPodSandboxStats(*bytes);
          if (!pods.ok()) return (*finish)(std::move(pods).error());
          RuntimeUsage usage;
          usage.pods = *std::move(pods);
          return with_images(std::move(usage));
        }
        if (bytes.error().code != ErrorCode::kUnimplemented) return (*finish)(bytes.error());
        Ask(cri::kListContainerStats, "", kUsageWithin,
            [this, finish, with_images](Result<std::string> list) {
              if (!list.ok()) return (*finish)(list.error());
              auto containers = cri::DecodeListContainerStats(*list);
              if (!containers.ok()) return (*finish)(std::move(containers).error());
              with_images(PodsOf(*std::move(containers)));
            });
      });
}

// Groups containers by pod, for runtimes that measure only containers. A pod's usage is the sum of
// its containers'.
RuntimeUsage CriRuntimeImpl::PodsOf(std::vector<ContainerUsage> containers) const {
  std::map<std::string, PodUsage> pods;
  auto add = [](Count& to, const Count& amount) {
    if (amount) to = to.value_or(0) + *amount;
  };
  for (ContainerUsage& each : containers) {
    const auto known = containers_.find(each.id);
    if (known == containers_.end()) continue;
    const auto sandbox = sandboxes_.find(known->second.status.sandbox_id);
    if (sandbox == sandboxes_.end()) continue;
    const PodSandbox& details = sandbox->second.details.sandbox;
    PodUsage& pod = pods[details.id];
    pod.sandbox_id = details.id;
    pod.name = details.name;
    pod.namespace_name = details.namespace_name;
    pod.uid = details.uid;
    pod.cpu.time = each.cpu.time;
    pod.memory.time = each.memory.time;
    add(pod.cpu.total_ns, each.cpu.total_ns);
    add(pod.memory.usage_bytes, each.memory.usage_bytes);
    add(pod.memory.working_set_bytes, each.memory.working_set_bytes);
    add(pod.memory.rss_bytes, each.memory.rss_bytes);
    add(pod.memory.swap_bytes, each.memory.swap_bytes);
    pod.containers.push_back(std::move(each));
  }
  RuntimeUsage usage;
  for (auto& [id, pod] : pods) usage.pods.push_back(std::move(pod));
  return usage;
}

// Adds what only the cache knows, and drops entries that are not running.
void CriRuntimeImpl::CompleteUsage(RuntimeUsage& usage) const {
  for (PodUsage& pod : usage.pods) {
    const auto sandbox = sandboxes_.find(pod.sandbox_id);
    if (sandbox != sandboxes_.end()) {
      pod.started_at = sandbox->second.details.sandbox.created_at;
      pod.cgroup = cri::CgroupParentOf(sandbox->second.details.config);
    }
    std::erase_if(pod.containers, [this](const ContainerUsage& each) {
      const auto known = containers_.find(each.id);
      return known == containers_.end() || known->second.status.state != ContainerState::kRunning;
    });
    Count swap;
    for (ContainerUsage& each : pod.containers) {
      const ContainerStatus& status = containers_.find(each.id)->second.status;
      each.started_at = status.started_at;
      each.image = status.image;
      if (!pod.cgroup.empty()) each.cgroup = StrCat(pod.cgroup, "/", each.id);
      if (each.memory.swap_bytes) swap = swap.value_or(0) + *each.memory.swap_bytes;
    }
    if (!pod.memory.swap_bytes) pod.memory.swap_bytes = swap;
  }
  std::erase_if(usage.pods, [](const PodUsage& pod) { return pod.containers.empty(); });
}

}  // namespace drakkar::node
