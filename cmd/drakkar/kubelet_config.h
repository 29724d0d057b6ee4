#pragma once

#include <optional>
#include <string>

#include "base/env/file_system.h"
#include "cli/command.h"
#include "node/admission/node_features.h"

namespace drakkar::cmd {

// What a node takes from its KubeletConfiguration and its flags about declared features (KEP-5328).
struct KubeletSettings {
  std::string feature_gates;                   // of the file; those of the flags win
  std::optional<std::int64_t> pod_pids_limit;  // of the file, as are all here
  bool seccomp_default = false;
  node::NodeFeatureOptions features;
};

// --config and --runtime-features.
std::vector<cli::Flag> KubeletConfigFlags();
// Takes any KubeletConfiguration that a kubelet takes. Fields that do not exist or have another
// type are refused with line and column; settings without effect on this node are logged, once.
Result<KubeletSettings> ReadKubeletSettings(const cli::Arguments& arguments, FileSystem& files);

}  // namespace drakkar::cmd
