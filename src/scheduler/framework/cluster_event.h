#pragma once

#include <cstdint>
#include <string>

#include "api/meta/object.h"

namespace drakkar::scheduler {

// Things that happen in the cluster and may let a pod fit that did not.
enum class EventKind : std::uint8_t {
  kNodeAdd,
  kNodeAllocatable,  // changed
  kNodeLabel,
  kNodeTaint,  // taints or unschedulable
  kNodeDeclaredFeatures,
  kBoundPodRemove,   // gone or ended; also one that gives up what was kept for it
  kBoundPodShrink,   // it asks for less than before
  kTargetPodChange,  // the waiting pod itself: spec, labels or its generated claims
  kClaimAdd,
  kClaimUpdate,
  kClaimDelete,
  kSliceChange,  // added or changed, taint rules included
  kClassChange,  // added or changed
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
  api::ObjectPtr before;  // null if it was not there
  api::ObjectPtr after;   // null if it is gone
  // Set if the event can help no pods but those that use this claim (namespace/name).
  std::string only_claim;
};

}  // namespace drakkar::scheduler
