#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/env/file_system.h"
#include "base/result/result.h"

namespace drakkar::node {

// What volumes need of the machine beyond files: mounts, groups, sizes. Calls block but are short,
// except Usage and UnmountBelow, which belong on a worker.
class VolumeHost {
 public:
  virtual ~VolumeHost() = default;

  // Mounts a tmpfs on a directory unless one is mounted there, which stays as it is.
  // `size_bytes` 0: the kernel's default.
  virtual Result<void> MountMemory(const std::string& path, std::uint64_t size_bytes,
                                   std::optional<std::uint32_t> group) = 0;
  virtual Result<void> SetGroup(const std::string& path, std::uint32_t group) = 0;
  // A path to mount what `sub_path` names inside the volume, which nothing that happens in the
  // volume afterwards leads elsewhere: it is bound to `target`, where no container can write.
  // Containers write the volume, so links in it lead around inside of it and never out. What is
  // not there becomes a directory.
  virtual Result<std::string> BindInside(const std::string& volume, const std::string& sub_path,
                                         const std::string& target) = 0;
  // Of everything mounted on or below it. Nothing is fine.
  virtual Result<void> UnmountBelow(const std::string& path) = 0;
  // What a directory takes on disk, in bytes.
  virtual Result<std::uint64_t> Usage(const std::string& path) = 0;
};

// The machine's. Needs root.
VolumeHost& RealVolumeHost();
// For simulation: directories and files alone, nothing is mounted and nothing has a size.
std::unique_ptr<VolumeHost> MakePlainVolumeHost(FileSystem& files);

}  // namespace drakkar::node
