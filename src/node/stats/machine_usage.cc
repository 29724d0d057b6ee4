#include "node/stats/machine_usage.h"

#include <sys/statvfs.h>

#include <algorithm>
#include <cerrno>

#include "base/text/text.h"
#include "node/runtime/oci/cgroup_usage.h"

namespace drakkar::node {
namespace {

Count ReadNumber(FileSystem& files, const std::string& path) {
  auto text = files.ReadFile(path);
  if (!text.ok()) return std::nullopt;
  const auto number = ParseInt64(Trim(*text));
  if (!number || *number < 0) return std::nullopt;
  return static_cast<std::uint64_t>(*number);
}

}  // namespace

Result<DiskSpace> ReadDiskSpace(const std::string& path) {
  struct statvfs info {};
  if (::statvfs(path.c_str(), &info) != 0) return ErrnoError(errno, path);
  DiskSpace space;
  space.capacity_bytes = static_cast<std::uint64_t>(info.f_blocks) * info.f_frsize;
  space.available_bytes = static_cast<std::uint64_t>(info.f_bavail) * info.f_frsize;
  space.used_bytes = static_cast<std::uint64_t>(info.f_blocks - info.f_bfree) * info.f_frsize;
  space.inodes = info.f_files;
  space.inodes_free = info.f_ffree;
  return space;
}

MachineUsage ReadMachineUsage(FileSystem& files, const Cgroups* cgroups, WallTime now) {
  MachineUsage machine;
  machine.time = now;
  const Cgroups none = Cgroups::Parse(files, "");
  const CgroupUsage usage = ReadCgroupUsage(files, cgroups != nullptr ? *cgroups : none, "/", now);
  machine.cpu = usage.cpu;
  machine.memory = usage.memory;
  machine.io_pressure = usage.io_pressure;
  // A limit of the outermost cgroup that is visible (inside a container) is not the machine's.
  machine.memory.limit_bytes.reset();
  machine.memory.available_bytes.reset();
  machine.interfaces = ReadInterfaces(files, 1);
  machine.max_processes = ReadNumber(files, "/proc/sys/kernel/pid_max");
  if (const Count threads = ReadNumber(files, "/proc/sys/kernel/threads-max");
      threads && machine.max_processes) {
    machine.max_processes = std::min(*machine.max_processes, *threads);
  }
  // "0.20 0.18 0.12 1/80 11206": the fourth field has the number of tasks.
  if (auto load = files.ReadFile("/proc/loadavg"); load.ok()) {
    const auto words = Split(*load, ' ');
    if (words.size() >= 4) {
      const std::size_t slash = words[3].find('/');
      const auto count = ParseInt64(words[3].substr(std::min(slash + 1, words[3].size())));
      if (count && *count >= 0) machine.processes = static_cast<std::uint64_t>(*count);
    }
  }
  return machine;
}

}  // namespace drakkar::node
