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

// An open process handle: the pid cannot be reused while it is held.
class ProcessHandle {
 public:
  ProcessHandle() = default;
  ProcessHandle(ProcessHandle&& other) noexcept;
  ProcessHandle& operator=(ProcessHandle&& other) noexcept;
  ~ProcessHandle();

  // kNotFound if the process is gone, or if `start_ticks` is given and the pid was reused.
  static Result<ProcessHandle> Open(int pid, std::optional<std::uint64_t> start_ticks = {});

  bool ok() const { return fd_ >= 0; }
  int descriptor() const { return fd_; }  // readable once the process has ended
  bool HasEnded() const;
  Result<void> Signal(int signal) const;  // kNotFound if it has ended

 private:
  int fd_ = -1;
};

// When a process started, in clock ticks since boot. Together with the pid this identifies a
// process.
Result<std::uint64_t> ProcessStartTicks(int pid);
// The conmon, runc and crun processes with `argument` on their command line: a container's
// supervisors.
Result<std::vector<int>> FindSupervisors(const std::string& argument);
bool IsSupervisor(int pid, const std::string& argument);

Result<void> MountOverlay(const std::string& lower, const std::string& upper,
                          const std::string& work, const std::string& target);
Result<void> MountTmpfs(const std::string& target, const std::string& options);
// Also unmounts everything below it, deepest first. No mount is no error.
Result<void> UnmountAll(const std::string& path);

// Creates the requested namespaces and pins them with bind mounts, without any process: the calling
// thread enters them, pins them and returns to its own.
struct NamespacePins {
  std::string uts_path;  // empty: do not create
  std::string hostname;
  std::string ipc_path;
  std::string network_path;  // its loopback interface is up
};
Result<void> PinNamespaces(const NamespacePins& pins);
// Unpins a namespace and removes the file. No such file is no error.
Result<void> UnpinNamespace(const std::string& path);
// False after a reboot: the file exists, but nothing is mounted on it.
Result<bool> IsPinnedNamespace(const std::string& path);

HostLimits ProbeHostLimits();
// Fills in type, major and minor from the host's node where they are not given.
Result<DeviceNode> ResolveDevice(DeviceNode device);
// All device nodes under /dev, for privileged containers.
std::vector<DeviceNode> ListHostDevices();

Result<WallTime> ModifiedTime(const std::string& path);

// Releases a container that `runc create` left waiting: its init waits for a reader of this fifo.
// `runc start` does nothing else, but takes 6 ms for another process. kNotFound: no such fifo.
Result<void> ReleaseExecFifo(const std::string& fifo, const ProcessHandle& init);

}  // namespace drakkar::node
