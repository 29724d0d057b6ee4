#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/env/clock.h"
#include "base/result/result.h"
#include "node/runtime/oci/oci_spec.h"

namespace drakkar::node {

// The kernel calls behind the embedded runtime: mounts, namespaces, processes, devices. Blocking
// but short. Everything here needs root.

// An open process: the number cannot be reused under us while we hold it.
class ProcessHandle {
 public:
  ProcessHandle() = default;
  ProcessHandle(ProcessHandle&& other) noexcept;
  ProcessHandle& operator=(ProcessHandle&& other) noexcept;
  ~ProcessHandle();

  // kNotFound if it is gone, or if `start_ticks` is given and another process has the number now.
  static Result<ProcessHandle> Open(int pid, std::optional<std::uint64_t> start_ticks = {});

  bool ok() const { return fd_ >= 0; }
  int descriptor() const { return fd_; }  // readable once the process has ended
  bool HasEnded() const;
  Result<void> Signal(int signal) const;  // kNotFound if it has ended

 private:
  int fd_ = -1;
};

// When a process started, in clock ticks since boot: with the pid it names a process for ever.
Result<std::uint64_t> ProcessStartTicks(int pid);
// conmon, runc and crun processes that have `argument` among theirs: a container's supervisors.
Result<std::vector<int>> FindSupervisors(const std::string& argument);
bool IsSupervisor(int pid, const std::string& argument);

Result<void> MountOverlay(const std::string& lower, const std::string& upper,
                          const std::string& work, const std::string& target);
Result<void> MountTmpfs(const std::string& target, const std::string& options);
// Also what is mounted below it, deepest first. Nothing mounted there is fine.
Result<void> UnmountAll(const std::string& path);

// A new namespace of each wanted kind, kept alive by a bind mount on a file, without any process:
// the calling thread enters new ones, pins them and returns to its own.
struct NamespacePins {
  std::string uts_path;  // empty: not wanted
  std::string hostname;
  std::string ipc_path;
};
Result<void> PinNamespaces(const NamespacePins& pins);
// False after a reboot: the file is there, what was mounted on it is not.
Result<bool> IsPinnedNamespace(const std::string& path);

HostLimits ProbeHostLimits();
// Type, major and minor from the host's node where they are not given.
Result<DeviceNode> ResolveDevice(DeviceNode device);
// All device nodes under /dev, for privileged containers.
std::vector<DeviceNode> ListHostDevices();

Result<WallTime> ModifiedTime(const std::string& path);

// Lets a container that `runc create` has left waiting run: its init waits for a reader of this
// fifo. This is all that `runc start` does, without 6 ms for another process. kNotFound: no such
// fifo.
Result<void> ReleaseExecFifo(const std::string& fifo, const ProcessHandle& init);

}  // namespace drakkar::node
