#pragma once

#include <optional>
#include <string>

#include "base/env/file_system.h"
#include "cli/command.h"
#include "cmd/drakkar/agent_settings.h"
#include "cmd/drakkar/resource_settings.h"
#include "node/admission/node_features.h"
#include "node/admission/pod_fit.h"
#include "node/eviction/thresholds.h"
#include "node/runtime/images/image_collector.h"
#include "node/shutdown/shutdown_manager.h"

namespace drakkar::cmd {

// A node's settings for declared features (KEP-5328), from its KubeletConfiguration and flags.
struct KubeletSettings {
  std::string feature_gates;                   // from the file; flags take precedence
  std::optional<std::int64_t> pod_pids_limit;  // from the file, like all below
  std::string runtime_endpoint;
  bool seccomp_default = false;
  std::vector<std::string> cluster_dns;
  std::string cluster_domain;
  std::string resolv_conf;
  node::ImageCollection image_collection;
  node::EvictionSettings eviction;
  ResourceSettings resources;
  std::vector<node::ShutdownPeriod> shutdown_periods;
  node::AllowedSysctls sysctls;
  std::int64_t max_pods = 0;  // 0: not set
  AgentSettings agent;
  node::NodeFeatureOptions features;
};

// For a node without a KubeletConfiguration, often somebody's own machine: like a kubelet, but it
// may fill the disk up to 95 %.
node::EvictionSettings EvictionWithoutConfiguration();

// --config and --runtime-features.
std::vector<cli::Flag> KubeletConfigFlags();
// Accepts any KubeletConfiguration that a kubelet accepts. Unknown fields and wrong types are
// rejected with line and column; settings without effect on this node are logged once.
Result<KubeletSettings> ReadKubeletSettings(const cli::Arguments& arguments, FileSystem& files);

}  // namespace drakkar::cmd
