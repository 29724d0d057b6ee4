#pragma once

namespace drakkar::features {

// Features of the container runtime, stated in the node's configuration.
struct RuntimeFeatures {
  bool user_namespaces_host_network = false;
  bool mount_options = false;
  bool operator==(const RuntimeFeatures&) const = default;
};

}  // namespace drakkar::features
