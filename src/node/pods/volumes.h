#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/env/device_node.h"
#include "base/env/file_system.h"
#include "node/pods/downward.h"
#include "node/pods/pod_sources.h"
#include "node/pods/volume_host.h"
#include "node/runtime/runtime_config.h"

namespace drakkar::node {

// The directory of one pod's volumes on the host: "<root>/pods/<uid>/volumes/<kind>/<name>".
struct VolumeInput {
  FileSystem& files;
  VolumeHost& host;
  DeviceNodeProbe& device_probe;
  std::string pod_directory;
  DownwardInput downward;
  const PodSources& sources;
};

// A volume that containers can mount.
struct PreparedVolume {
  std::string host_path;
  bool always_read_only = false;
  std::string image;  // instead of host_path: the files of this image
  // For an emptyDir on disk: the pod is evicted if the volume grows beyond this.
  std::optional<std::uint64_t> size_limit_bytes;
};
using PreparedVolumes = std::map<std::string, PreparedVolume>;

// Byte limit for all ConfigMap, Secret and similar content in one pod's volumes. A pod can name the
// same source many times.
inline constexpr std::size_t kMaxVolumeContentBytes = 64 << 20;

// Creates the volumes: emptyDir, hostPath, configMap, secret, downwardAPI, projected, image.
// Calling it again switches each of the volumes made of files to its new content and touches
// nothing else. Unsupported kinds are refused by name.
Result<PreparedVolumes> PrepareVolumes(const VolumeInput& input);

// The mounts of one container. `environment` is for subPathExpr.
struct MountInput {
  VolumeHost& host;
  std::string pod_directory;
  const PreparedVolumes& volumes;
  api::Value container;
  const std::map<std::string, std::string>& environment;
};
Result<std::vector<Mount>> MakeMounts(const MountInput& input);

// Removes what PrepareVolumes and MakeMounts created, mounts first. Blocks: belongs on a worker.
Result<void> RemoveVolumes(FileSystem& files, VolumeHost& host, const std::string& pod_directory);

}  // namespace drakkar::node
