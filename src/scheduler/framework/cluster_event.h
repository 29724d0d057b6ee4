#pragma once

#include <cstdint>
#include <string>

#include "api/meta/object.h"

namespace drakkar::scheduler {

// Changes in the cluster that may let a pending pod fit.
enum class EventKind : std::uint8_t {
  kNodeAdd,
  kNodeRemove,
  kNodeAllocatable,  // changed
  kNodeLabel,
  kNodeTaint,  // taints or unschedulable
  kNodeDeclaredFeatures,
  kBoundPodAdd,
  kBoundPodLabel,    // labels changed, or deletion began
  kBoundPodRemove,   // deleted or finished; also a pod that gives up its nomination
  kBoundPodShrink,   // it requests less than before
  kTargetPodChange,  // the pending pod itself: spec, labels or generated claims
  kClaimAdd,
  kClaimUpdate,
  kClaimDelete,
  kSliceChange,     // added or changed, taint rules included
  kClassChange,     // added or changed
  kNamespaceLabel,  // added, or its labels changed
  kPodGroupChange,  // added or changed
  kCount,
};
std::string_view EventName(EventKind kind);  // as the queue's metrics spell it

using EventMask = std::uint32_t;
constexpr EventMask MaskOf(EventKind kind) {
  return EventMask{1} << static_cast<unsigned>(kind);
}
template <typename... Kinds>
constexpr EventMask MaskOf(EventKind kind, Kinds... more) {
  return MaskOf(kind) | MaskOf(more...);
}

struct ClusterEvent {
  EventKind kind;
  api::ObjectPtr before;  // null for an addition
  api::ObjectPtr after;   // null for a deletion
  // Set if the event can only help pods that use this claim (namespace/name).
  std::string only_claim;
};

}  // namespace drakkar::scheduler
