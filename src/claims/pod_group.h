#pragma once

#include <string_view>

#include "api/meta/object.h"
#include "api/tree/draft.h"
#include "api/tree/value.h"
#include "claims/claim.h"

// Claims that the pods of a PodGroup share (gate DRAWorkloadResourceClaims). An entry of a pod's
// spec.resourceClaims that equals one of its group's refers to the group's claim, which is made for
// the group and reserved for it. A `pod` or `claim` parameter is the whole object.
namespace drakkar::claims {

inline constexpr std::string_view kPodGroupApi = "scheduling.k8s.io";

// The name of the group that the pod belongs to, in its namespace; "" if it belongs to none.
std::string_view PodGroupOf(api::Value pod);
// Whether the entry of a pod of the group refers to a claim of the group.
bool IsEntryOfGroup(api::Value group, api::Value entry);

// Whether an entry of status.reservedFor is a PodGroup.
bool IsPodGroup(api::Value consumer);
// A pod knows only the name of its group. False for "".
bool IsReservedForGroup(api::Value claim, std::string_view group_name);
bool IsMadeForGroup(api::Value claim, std::string_view group_name);
// The PodGroup that controls the claim.
std::optional<Owner> FindOwnerGroup(api::Value claim);

}  // namespace drakkar::claims
