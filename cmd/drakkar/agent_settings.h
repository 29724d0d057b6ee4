#pragma once

#include <cstdint>
#include <string>

#include "api/tree/value.h"
#include "base/result/result.h"
#include "node/pods/image_pull_queue.h"
#include "node/pods/log_rotation.h"
#include "node/status/node_registrar.h"

namespace drakkar::cmd {

// A KubeletConfiguration's settings for the node agent itself; without one, a kubelet's defaults,
// except that images are pulled in parallel.
struct AgentSettings {
  node::NodeRegistration registration;
  node::LogLimits logs;
  node::PullLimits pulls;
  Duration longest_crash_backoff = std::chrono::minutes(5);
  std::string pod_logs_directory;  // empty: in the data directory
  std::int64_t pods_per_core = 0;  // 0: no limit
  bool fail_swap_on = false;
};

Result<AgentSettings> ReadAgentSettings(api::Value root);

// The most pods that the node runs; `max_pods` 0: the default.
std::int64_t MaxPods(const AgentSettings& settings, std::int64_t max_pods,
                     const node::NodeFacts& facts);

}  // namespace drakkar::cmd
