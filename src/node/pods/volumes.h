#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/env/file_system.h"
#include "node/pods/downward.h"
#include "node/pods/pod_sources.h"
#include "node/runtime/runtime_config.h"

namespace drakkar::node {

// Where the volumes of one pod are on the host: "<root>/pods/<uid>/volumes/<kind>/<name>".
struct VolumeInput {
  FileSystem& files;
  std::string pod_directory;
  DownwardInput downward;
  const PodSources& sources;
};

// A volume that containers can mount.
struct PreparedVolume {
  std::string host_path;
  bool memory = false;     // an emptyDir in memory: a tmpfs of its own in each container
  std::string size_limit;  // of such a one, in bytes; empty: the kernel's default
  bool always_read_only = false;
};
using PreparedVolumes = std::map<std::string, PreparedVolume>;

// Makes directories and writes files: emptyDir, hostPath, configMap, secret, downwardAPI,
// projected. Doing it again brings the files up to date, one by one, and touches nothing else.
// Kinds this node does not have are refused by name.
Result<PreparedVolumes> PrepareVolumes(const VolumeInput& input);

// The mounts of one container. `environment` is for subPathExpr.
Result<std::vector<Mount>> MakeMounts(FileSystem& files, const PreparedVolumes& volumes,
                                      api::Value container,
                                      const std::map<std::string, std::string>& environment);

}  // namespace drakkar::node
