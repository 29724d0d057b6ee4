#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/env/file_system.h"
#include "base/result/result.h"
#include "node/runtime/images/image_store.h"
#include "node/runtime/oci/cgroups.h"
#include "node/runtime/oci/oci_spec.h"
#include "node/runtime/oci/record.h"

namespace drakkar::node {

// Where everything of the embedded runtime is on disk.
struct OciPaths {
  std::string root;           // <data>/runtime
  std::string runtime_state;  // what `runc --root` gets

  std::string Sandboxes() const { return root + "/sandboxes"; }
  std::string Containers() const { return root + "/containers"; }
  std::string Exits() const { return root + "/exits"; }
  std::string Sandbox(const std::string& id) const { return Sandboxes() + "/" + id; }
  std::string Container(const std::string& id) const { return Containers() + "/" + id; }
  std::string ExitFile(const std::string& id) const { return Exits() + "/" + id; }
  std::string ExecFifo(const std::string& id) const {
    return runtime_state + "/" + id + "/exec.fifo";
  }
};

// Pods are in /drakkar/pod<uid> unless they name a parent of their own.
inline constexpr char kCgroupRoot[] = "/drakkar";

// The blocking half of the runtime: everything that makes and removes files, mounts and control
// groups of one sandbox or container. Each step can be repeated, and each Destroy finishes what any
// interrupted Build or Destroy left. Used from workers, one sandbox or container at a time.
class BundleBuilder {
 public:
  BundleBuilder(FileSystem& files, ImageStore& images, OciPaths paths, Cgroups cgroups,
                HostLimits limits)
      : files_(files),
        images_(images),
        paths_(std::move(paths)),
        cgroups_(std::move(cgroups)),
        limits_(std::move(limits)) {}

  const OciPaths& paths() const { return paths_; }

  Result<void> Save(const SandboxRecord& record);
  Result<void> Save(const ContainerRecord& record);

  Result<SandboxRecord> BuildSandbox(SandboxRecord record, const PodSandboxConfig& config);
  Result<void> ReleaseSandbox(const std::string& id);  // its mounts; the record stays
  Result<void> DestroySandbox(const SandboxRecord& record);
  // Once no sandbox is left: the control group above them.
  void ReleaseRoot() { cgroups_.RemoveIfEmpty(kCgroupRoot); }
  // False when its namespaces did not survive (a reboot).
  Result<bool> IsSandboxIntact(const SandboxRecord& record) const;

  struct Built {
    ContainerRecord record;
    std::vector<std::string> warnings;
  };
  Result<Built> BuildContainer(ContainerRecord record, const SandboxRecord& sandbox,
                               const ContainerConfig& config);
  // New limits for a running container and for the pod around it.
  Result<void> Resize(const ContainerRecord& record, const SandboxRecord& sandbox,
                      const ResourceUpdate& update);
  // After the exit: kills what is left of it, removes control group and runtime state.
  Result<void> ReleaseContainer(const ContainerRecord& record);
  // Everything but the log. kUnavailable: the kernel is still busy with it, try again.
  Result<void> DestroyContainer(const ContainerRecord& record);

  struct Found {
    std::vector<SandboxRecord> sandboxes;
    std::vector<ContainerRecord> containers;
    std::vector<std::string> notes;  // what was cleaned up, for the log
  };
  // Reads what is there, removes what is half-made and settles what was being started: such a
  // container runs, or is as it was before the start. What cannot be read is an error, never taken
  // for half-made: it may run. kUnavailable: try again, something could not be read or removed just
  // now; on the last try what cannot be removed is only noted.
  Result<Found> Scan(bool is_last_try = false);

  // How a container ended according to conmon's exit file; kNotFound while it has not.
  Result<void> ReadExit(ContainerRecord& record) const;

 private:
  Result<void> MakeRootfs(const std::string& directory, const std::string& lower,
                          std::vector<std::string>& warnings);
  Result<OciSpecInput> SpecInput(const ContainerRecord& record, const SandboxRecord& sandbox,
                                 const ContainerConfig& config, const StoredImage& image);
  Result<void> WriteSandboxFiles(const SandboxRecord& record, const PodSandboxConfig& config);
  Result<void> RemoveDirectory(const std::string& directory);
  Result<void> SettleStart(ContainerRecord& record);
  Result<void> ScanContainers(Found& found, bool is_last_try);
  Result<void> ScanSandboxes(Found& found, bool is_last_try);
  Result<void> RemoveRest(const ContainerRecord& record, const std::string& why, Found& found,
                          bool is_last_try);
  // Of a container whose record is lost: where its bundle says that its processes are.
  Result<ContainerRecord> RecordFromBundle(const std::string& id) const;
  static constexpr std::size_t kRecordBytes = 4096;
  Result<void> SaveRecord(const std::string& path, std::string text);
  std::optional<int> ConmonPid(const std::string& id) const;

  FileSystem& files_;
  ImageStore& images_;
  OciPaths paths_;
  Cgroups cgroups_;
  HostLimits limits_;
};

// "SIGTERM", "TERM" or "15"; nothing for an unknown one.
std::optional<int> SignalNumber(std::string_view name);

}  // namespace drakkar::node
