#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/env/file_system.h"
#include "base/result/result.h"
#include "node/pods/volume_content.h"

namespace drakkar::node {

// Operations on the machine that volumes need besides files: mounts, groups, sizes. Calls block,
// but not for long, except Usage and UnmountBelow, which belong on a worker.
class VolumeHost {
 public:
  virtual ~VolumeHost() = default;

  // Mounts a tmpfs on a directory; no-op if one is mounted there. `size_bytes` 0: the kernel's
  // default.
  virtual Result<void> MountMemory(const std::string& path, std::uint64_t size_bytes,
                                   std::optional<std::uint32_t> group) = 0;
  // Mounts huge pages of one size, "2M", on a directory; no-op if something is mounted there.
  virtual Result<void> MountHugePages(const std::string& path, const std::string& page_size,
                                      std::optional<std::uint32_t> group) = 0;
  virtual Result<void> SetGroup(const std::string& path, std::uint32_t group) = 0;
  // Makes the directory show exactly these files, which belong to the group if there is one:
  // ShowVolumeFiles, or its outcome.
  virtual Result<void> ShowFiles(const std::string& directory, const VolumeFiles& files,
                                 std::optional<std::uint32_t> group) = 0;
  // Resolves `sub_path` inside the volume and returns a path to mount. The result is bind-mounted
  // at `target`, where no container can write, so later changes in the volume cannot redirect it.
  // Containers write to the volume, so symlinks are resolved inside it and never lead out. Missing
  // directories are created.
  virtual Result<std::string> BindInside(const std::string& volume, const std::string& sub_path,
                                         const std::string& target) = 0;
  // Reads a regular file of the volume, with links resolved inside it; larger ones are an error.
  virtual Result<std::string> ReadInside(const std::string& volume, const std::string& path,
                                         std::size_t max_bytes) = 0;
  // Unmounts everything on or below the directory. No mounts is no error.
  virtual Result<void> UnmountBelow(const std::string& path) = 0;
  // Disk usage of a directory in bytes.
  virtual Result<std::uint64_t> Usage(const std::string& path) = 0;
};

// The real machine. Needs root.
VolumeHost& RealVolumeHost();
// For simulation: plain directories and files, without mounts, links, groups or sizes.
std::unique_ptr<VolumeHost> MakePlainVolumeHost(FileSystem& files);

}  // namespace drakkar::node
