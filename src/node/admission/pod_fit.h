#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "api/tree/value.h"
#include "base/result/result.h"
#include "node/admission/pod_verdict.h"

namespace drakkar::node {

// Which sysctls pods may set: those that only affect the pod itself, and what the node's owner
// allows besides. An entry that ends in '*' stands for all names that begin so.
class AllowedSysctls {
 public:
  AllowedSysctls() = default;
  // `unsafe` is allowedUnsafeSysctls; an error for names that have no namespace of their own.
  static Result<AllowedSysctls> Make(const std::vector<std::string>& unsafe);

  // Why the pod must not run; nothing if it may.
  std::optional<PodVerdict> Check(api::Value pod) const;

 private:
  std::vector<std::string> unsafe_;
};

// The operating system that the pod asks for.
std::optional<PodVerdict> CheckOperatingSystem(api::Value pod);

struct NodeAmounts {
  std::int64_t cpu_milli = 0;
  std::int64_t memory_bytes = 0;
  std::map<std::string, std::int64_t> huge_pages;  // bytes by page size, "2Mi"
  std::int64_t ephemeral_storage_bytes = 0;
  std::int64_t pods = 0;
};
// Whether the pod fits beside what is `used`. The scheduler has seen to that; a pod that somebody
// bound to the node by hand may exceed it. Amounts of 0 are not known and limit nothing, except of
// huge pages.
std::optional<PodVerdict> CheckRoom(api::Value pod, const NodeAmounts& allocatable,
                                    const NodeAmounts& used);

}  // namespace drakkar::node
