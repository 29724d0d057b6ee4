#pragma once

#include <string>
#include <string_view>

#include "api/tree/value.h"
#include "base/result/result.h"

namespace drakkar::node {

// What the downward API can tell about a pod and the node it is on.
struct DownwardInput {
  api::Value pod;
  std::string node_name;
  std::string host_ip;
  std::string pod_ip;
  std::int64_t allocatable_cpu_milli = 0;
  std::int64_t allocatable_memory_bytes = 0;
};

// "metadata.name", "metadata.labels['k']", "status.podIP", "spec.nodeName" ... As a volume's file,
// "metadata.labels" and "metadata.annotations" are whole too.
Result<std::string> ReadFieldRef(const DownwardInput& input, std::string_view field_path);
// "limits.cpu", "requests.memory" ... divided by `divisor` and rounded up.
Result<std::string> ReadResourceFieldRef(const DownwardInput& input, api::Value container,
                                         std::string_view resource, std::string_view divisor);

}  // namespace drakkar::node
