#pragma once

#include <memory>
#include <string>

namespace drakkar::client {

// Names the Lease that the sender of a write holds, "NAMESPACE/LEASE HOLDER". Our API server
// performs the write only while that is true, so that a leader that was paused and replaced can do
// no harm when it resumes. A kube-apiserver ignores it.
inline constexpr char kFenceHeader[] = "Drakkar-Leader";

// The value to send with a client's writes, shared with the code that knows when the Lease is held.
// Empty: writes are sent without it. Both live on the client's loop.
using Fence = std::shared_ptr<std::string>;

inline std::string FenceValue(const std::string& lease_namespace, const std::string& lease_name,
                              const std::string& holder) {
  return lease_namespace + "/" + lease_name + " " + holder;
}

}  // namespace drakkar::client
