#include "node/stats/summary.h"

#include "api/json/writer.h"
#include "api/meta/time.h"
#include "api/tree/draft.h"

namespace drakkar::node {
namespace {

using api::Draft;

Draft Number(const Count& count) {
  return count ? Draft(static_cast<std::int64_t>(*count)) : Draft();
}

Draft Time(WallTime time) {
  return api::FormatTime(time);
}

Draft LineOf(const Pressure::Line& line) {
  return {{"total", line.total_us},
          {"avg10", line.avg10},
          {"avg60", line.avg60},
          {"avg300", line.avg300}};
}

Draft PressureOf(const std::optional<Pressure>& pressure) {
  if (!pressure) return {};
  return {{"full", LineOf(pressure->full)}, {"some", LineOf(pressure->some)}};
}

Draft CpuOf(const CpuUsage& cpu) {
  if (!cpu.total_ns && !cpu.nano_cores) return {};
  return {{"time", Time(cpu.time)},
          {"usageNanoCores", Number(cpu.nano_cores)},
          {"usageCoreNanoSeconds", Number(cpu.total_ns)},
          {"psi", PressureOf(cpu.pressure)}};
}

Draft MemoryOf(const MemoryUsage& memory) {
  if (!memory.working_set_bytes && !memory.usage_bytes) return {};
  return {{"time", Time(memory.time)},
          {"availableBytes", Number(memory.available_bytes)},
          {"usageBytes", Number(memory.usage_bytes)},
          {"workingSetBytes", Number(memory.working_set_bytes)},
          {"rssBytes", Number(memory.rss_bytes)},
          {"pageFaults", Number(memory.page_faults)},
          {"majorPageFaults", Number(memory.major_page_faults)},
          {"psi", PressureOf(memory.pressure)}};
}

Draft SwapOf(const MemoryUsage& memory) {
  if (!memory.swap_bytes && !memory.swap_available_bytes) return {};
  return {{"time", Time(memory.time)},
          {"swapAvailableBytes", Number(memory.swap_available_bytes)},
          {"swapUsageBytes", Number(memory.swap_bytes)}};
}

Draft IoOf(const std::optional<Pressure>& pressure, WallTime time) {
  if (!pressure) return {};
  return {{"time", Time(time)}, {"psi", PressureOf(pressure)}};
}

Draft NetworkOf(const std::vector<InterfaceUsage>& interfaces, WallTime time) {
  if (interfaces.empty()) return {};
  Draft list = Draft::Array();
  for (const InterfaceUsage& each : interfaces) {
    list.Append({{"name", each.name},
                 {"rxBytes", Number(each.rx_bytes)},
                 {"rxErrors", Number(each.rx_errors)},
                 {"txBytes", Number(each.tx_bytes)},
                 {"txErrors", Number(each.tx_errors)}});
  }
  const InterfaceUsage& first = interfaces.front();
  return {{"time", Time(time)},
          {"name", first.name},
          {"rxBytes", Number(first.rx_bytes)},
          {"rxErrors", Number(first.rx_errors)},
          {"txBytes", Number(first.tx_bytes)},
          {"txErrors", Number(first.tx_errors)},
          {"interfaces", std::move(list)}};
}

// `used` is a part of the file system `space`.
Draft FilesOf(const DiskSpace& space, const FileUsage& used, WallTime time) {
  if (!space.capacity_bytes && !used.used_bytes) return {};
  return {{"time", Time(time)},
          {"availableBytes", Number(space.available_bytes)},
          {"capacityBytes", Number(space.capacity_bytes)},
          {"usedBytes", Number(used.used_bytes)},
          {"inodesFree", Number(space.inodes_free)},
          {"inodes", Number(space.inodes)},
          {"inodesUsed", Number(used.inodes_used)}};
}

FileUsage WholeOf(const DiskSpace& space) {
  FileUsage used{.used_bytes = space.used_bytes, .inodes_used = {}};
  if (space.inodes && space.inodes_free) used.inodes_used = *space.inodes - *space.inodes_free;
  return used;
}

void Add(Count& to, const Count& amount) {
  if (amount) to = to.value_or(0) + *amount;
}

Draft ContainerOf(const ContainerUsage& container, const NodeUsage& usage, bool brief) {
  Draft draft = {{"name", container.name},
                 {"startTime", Time(container.started_at)},
                 {"cpu", CpuOf(container.cpu)},
                 {"memory", MemoryOf(container.memory)},
                 {"swap", SwapOf(container.memory)}};
  if (brief) return draft;
  const WallTime time = container.cpu.time;
  draft["io"] = IoOf(container.io_pressure, time);
  draft["rootfs"] = FilesOf(usage.container_fs, container.root_fs, time);
  draft["logs"] = FilesOf(usage.node_fs, container.log, time);
  return draft;
}

Draft PodOf(const PodUsage& pod, const NodeUsage& usage, bool brief) {
  Draft containers = Draft::Array();
  for (const ContainerUsage& each : pod.containers) {
    containers.Append(ContainerOf(each, usage, brief));
  }
  Draft draft = {
      {"podRef", Draft{{"name", pod.name}, {"namespace", pod.namespace_name}, {"uid", pod.uid}}},
      {"startTime", Time(pod.started_at)},
      {"containers", std::move(containers)},
      {"cpu", CpuOf(pod.cpu)},
      {"memory", MemoryOf(pod.memory)},
      {"swap", SwapOf(pod.memory)}};
  if (brief) return draft;
  const WallTime time = usage.machine.time;
  draft["io"] = IoOf(pod.io_pressure, time);
  draft["network"] = NetworkOf(pod.interfaces, time);
  FileUsage ephemeral;
  for (const ContainerUsage& each : pod.containers) {
    Add(ephemeral.used_bytes, each.root_fs.used_bytes);
    Add(ephemeral.used_bytes, each.log.used_bytes);
    Add(ephemeral.inodes_used, each.root_fs.inodes_used);
    Add(ephemeral.inodes_used, each.log.inodes_used);
  }
  if (const auto volumes = usage.volumes.find(pod.uid); volumes != usage.volumes.end()) {
    Draft list = Draft::Array();
    for (const VolumeUsage& each : volumes->second) {
      Draft volume = FilesOf(usage.node_fs, each.files, time);
      volume["name"] = each.name;
      list.Append(std::move(volume));
      if (each.is_ephemeral()) Add(ephemeral.used_bytes, each.files.used_bytes);
    }
    draft["volume"] = std::move(list);
  }
  draft["ephemeral-storage"] = FilesOf(usage.node_fs, ephemeral, time);
  if (pod.processes) draft["process_stats"]["process_count"] = Number(pod.processes);
  return draft;
}

}  // namespace

std::string WriteSummary(const NodeUsage& usage, const std::string& node_name, bool brief) {
  const MachineUsage& machine = usage.machine;
  Draft node = {{"nodeName", node_name},
                {"startTime", Time(usage.boot_time)},
                {"cpu", CpuOf(machine.cpu)},
                {"memory", MemoryOf(machine.memory)},
                {"swap", SwapOf(machine.memory)}};
  if (usage.all_pods) {
    Draft all = {{"name", "pods"},
                 {"startTime", Time(usage.boot_time)},
                 {"cpu", CpuOf(usage.all_pods->cpu)},
                 {"memory", MemoryOf(usage.all_pods->memory)},
                 {"swap", SwapOf(usage.all_pods->memory)}};
    node["systemContainers"].Append(std::move(all));
  }
  if (!brief) {
    node["io"] = IoOf(machine.io_pressure, machine.time);
    node["network"] = NetworkOf(machine.interfaces, machine.time);
    node["fs"] = FilesOf(usage.node_fs, WholeOf(usage.node_fs), machine.time);
    node["runtime"] = {
        {"imageFs", FilesOf(usage.image_fs, usage.images, machine.time)},
        {"containerFs", FilesOf(usage.container_fs, usage.containers, machine.time)}};
    node["rlimit"] = {{"time", Time(machine.time)},
                      {"maxpid", Number(machine.max_processes)},
                      {"curproc", Number(machine.processes)}};
  }
  Draft pods = Draft::Array();
  for (const PodUsage& pod : usage.pods) pods.Append(PodOf(pod, usage, brief));
  const Draft summary = {{"node", std::move(node)}, {"pods", std::move(pods)}};
  return api::WriteJson(summary.Freeze()->root());
}

}  // namespace drakkar::node
