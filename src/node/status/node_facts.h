#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/env/file_system.h"

namespace drakkar::node {

// What a node reports about its machine.
struct NodeFacts {
  std::string hostname;
  std::vector<std::string> addresses;  // the first is the node's and its pods' address
  std::int64_t cpu_count = 1;
  std::int64_t memory_bytes = 0;
  std::int64_t swap_bytes = 0;
  std::int64_t ephemeral_storage_bytes = 0;        // 0: not known
  std::map<std::string, std::int64_t> huge_pages;  // by page size, "2Mi": bytes of all its pages
  std::int64_t max_pods = 110;
  std::string architecture;  // "amd64"
  std::string kernel_version;
  std::string os_image;
  std::string machine_id;
  std::string boot_id;
  std::string system_uuid;
  std::string runtime_version;  // "drakkar://0.1.0"
  std::string agent_version;    // "v1.37.0-drakkar"
};

// What pods cannot have.
struct NodeReservation {
  std::int64_t cpu_milli = 0;
  std::int64_t memory_bytes = 0;
  std::int64_t ephemeral_storage_bytes = 0;
  std::int64_t pids = 0;
};

// Read from /proc, /sys and /etc; what cannot be read stays empty. The caller fills in addresses,
// storage and versions.
NodeFacts ReadNodeFacts(FileSystem& files);

}  // namespace drakkar::node
