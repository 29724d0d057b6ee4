#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/env/file_system.h"
#include "base/result/result.h"
#include "base/text/text.h"
#include "node/runtime/images/image_store.h"
#include "node/runtime/oci/cgroups.h"
#include "node/runtime/oci/oci_spec.h"
#include "node/runtime/oci/record.h"

namespace drakkar::node {

// The embedded runtime's paths on disk.
struct OciPaths {
  std::string root;           // <data>/runtime
  std::string runtime_state;  // passed to `runc --root`
  // Where drivers and network plugins that run in pods expect network namespaces: they mount it.
  std::string network_namespaces = "/run/netns";

  std::string Sandboxes() const { return root + "/sandboxes"; }
  std::string Containers() const { return root + "/containers"; }
  std::string Exits() const { return root + "/exits"; }
  std::string Sandbox(const std::string& id) const { return Sandboxes() + "/" + id; }
  std::string Container(const std::string& id) const { return Containers() + "/" + id; }
  std::string NetworkNamespace(const std::string& id) const {
    return network_namespaces + "/drakkar-" + id;
  }
  std::string ExitFile(const std::string& id) const { return Exits() + "/" + id; }
  std::string ExecFifo(const std::string& id) const {
    return runtime_state + "/" + id + "/exec.fifo";
  }
};

// The blocking half of the runtime: creates and removes the files, mounts and cgroups of one
// sandbox or container. Every step can be repeated, and every Destroy completes what an interrupted
// Build or Destroy left. Used from workers, for one sandbox or container at a time.
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
  const Cgroups& cgroups() const { return cgroups_; }

  Result<void> Save(const SandboxRecord& record);
  Result<void> Save(const ContainerRecord& record);

  // A sandbox with a network namespace of its own is still being created afterwards: the caller
  // connects it and saves it as running.
  Result<SandboxRecord> BuildSandbox(SandboxRecord record, const PodSandboxConfig& config);
  Result<void> ReleaseSandbox(const SandboxRecord& record);  // its mounts; the record stays
  Result<void> DestroySandbox(const SandboxRecord& record);
  // Removes the pod's cgroup once no sandbox is left.
  void ReleaseRoot() {
    for (const char* below : {"/kubepods/burstable", "/kubepods/besteffort", "/kubepods", ""}) {
      cgroups_.RemoveIfEmpty(StrCat(kPodsCgroup, below));
    }
  }
  // False if its namespaces did not survive (after a reboot).
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
  Result<void> ChangeCgroup(const ContainerRecord& record, const CgroupChanges& changes);
  // After the exit: kills remaining processes, removes the cgroup and the runtime state.
  Result<void> ReleaseContainer(const ContainerRecord& record);
  // Removes everything except the log. kUnavailable: the kernel is still busy; try again.
  Result<void> DestroyContainer(const ContainerRecord& record);

  struct Found {
    std::vector<SandboxRecord> sandboxes;
    std::vector<ContainerRecord> containers;
    std::vector<std::string> notes;  // what was cleaned up, for the log
  };
  // Reads the existing state, removes what is incomplete and settles containers that were starting:
  // each one either runs or is as it was before the start. A read error is reported, never treated
  // as incomplete state, because the container may be running. kUnavailable: something could not be
  // read or removed right now; try again. On the last attempt, a failed removal only adds a note.
  Result<Found> Scan(bool is_last_try = false);

  // A container's exit according to conmon's exit file; kNotFound while it is running.
  Result<void> ReadExit(ContainerRecord& record) const;

 private:
  Result<void> MakeRootfs(const std::string& directory, const std::string& lower,
                          std::vector<std::string>& warnings);
  Result<void> ResolveImageMounts(const std::string& user, std::vector<Mount>& mounts);
  Result<OciSpecInput> SpecInput(const ContainerRecord& record, const SandboxRecord& sandbox,
                                 const ContainerConfig& config, const StoredImage& image);
  Result<void> WriteSandboxFiles(const SandboxRecord& record, const PodSandboxConfig& config);
  Result<void> RemoveDirectory(const std::string& directory);
  std::string PidNamespace(const std::string& sandbox_id) const;
  Result<void> EndProcesses(const std::string& sandbox_id);
  Result<void> SettleStart(ContainerRecord& record);
  Result<void> ScanContainers(Found& found, bool is_last_try);
  Result<void> ScanSandboxes(Found& found, bool is_last_try);
  Result<void> RemoveRest(const ContainerRecord& record, const std::string& why, Found& found,
                          bool is_last_try);
  // The cgroup named in the bundle of a container whose record is lost.
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

// "SIGTERM", "TERM" or "15"; nothing for an unknown signal.
std::optional<int> SignalNumber(std::string_view name);

}  // namespace drakkar::node
