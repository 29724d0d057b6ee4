#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "api/tree/value.h"
#include "base/result/result.h"

namespace drakkar::node {

// The data that the downward API exposes about a pod and its node.
struct DownwardInput {
  api::Value pod;
  std::string node_name;
  std::string host_ip;
  std::vector<std::string> pod_ips;
  std::int64_t allocatable_cpu_milli = 0;
  std::int64_t allocatable_memory_bytes = 0;
  std::int64_t allocatable_storage_bytes = 0;
};

// "metadata.name", "metadata.labels['k']", "status.podIP", "spec.nodeName" ... In a volume,
// "metadata.labels" and "metadata.annotations" give all entries.
Result<std::string> ReadFieldRef(const DownwardInput& input, std::string_view field_path);
// "limits.cpu", "requests.memory" ... divided by `divisor` and rounded up.
Result<std::string> ReadResourceFieldRef(const DownwardInput& input, api::Value container,
                                         std::string_view resource, std::string_view divisor);

}  // namespace drakkar::node
