#pragma once

#include <memory>
#include <string>

namespace drakkar::client {

// Names the Lease that the sender of a write holds, "NAMESPACE/LEASE HOLDER". Our API server
// carries the write out only while that is true, so that a leader that was paused and has been
// replaced can do no harm when it goes on. A kube-apiserver ignores it.
inline constexpr char kFenceHeader[] = "Drakkar-Leader";

// The value for the writes of a client, shared with whoever knows when the Lease is held. Empty:
// writes are sent without. Both live on the client's loop.
using Fence = std::shared_ptr<std::string>;

inline std::string FenceValue(const std::string& lease_namespace, const std::string& lease_name,
                              const std::string& holder) {
  return lease_namespace + "/" + lease_name + " " + holder;
}

}  // namespace drakkar::client
