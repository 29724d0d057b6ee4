#pragma once

namespace drakkar::features {

// What the container runtime must offer; stated in the node's configuration like everything else.
struct RuntimeFeatures {
  bool user_namespaces_host_network = false;
  bool mount_options = false;
  bool operator==(const RuntimeFeatures&) const = default;
};

}  // namespace drakkar::features
