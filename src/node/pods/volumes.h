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

// Where the volumes of one pod are on the host: "<root>/pods/<uid>/volumes/<kind>/<name>".
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
  // Of an emptyDir on disk: a pod whose volume takes more is evicted.
  std::optional<std::uint64_t> size_limit_bytes;
};
using PreparedVolumes = std::map<std::string, PreparedVolume>;

// What ConfigMaps, Secrets and the like may bring into one pod's volumes altogether. A pod can name
// the same one many times.
inline constexpr std::size_t kMaxVolumeContentBytes = 64 << 20;

// Makes directories and writes files: emptyDir, hostPath, configMap, secret, downwardAPI,
// projected. Doing it again brings the files up to date, one by one, and touches nothing else.
// Kinds this node does not have are refused by name.
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

// Takes down what PrepareVolumes and MakeMounts made, mounts first. Blocks: belongs on a worker.
Result<void> RemoveVolumes(FileSystem& files, VolumeHost& host, const std::string& pod_directory);

}  // namespace drakkar::node
