#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "api/meta/object.h"
#include "api/tree/draft.h"
#include "api/tree/value.h"

// Rules for ResourceClaim objects. A `claim` parameter is the whole object.
namespace drakkar::claims {

// Keeps an allocated claim in the API until the claim controller has deallocated it.
inline constexpr std::string_view kFinalizer = "resource.kubernetes.io/delete-protection";
// Annotation on a claim made from a template: the name of the pod's entry it was made for.
inline constexpr std::string_view kPodClaimAnnotation = "resource.kubernetes.io/pod-claim-name";
// Annotation "true" on a claim that the scheduler made for a pod's extended resources (KEP-5004).
inline constexpr std::string_view kExtendedResourceAnnotation =
    "resource.kubernetes.io/extended-resource-claim";

bool IsAllocated(api::Value claim);

// Whether an entry of status.reservedFor is a pod. Other kinds of consumers are not ours to judge.
bool IsPod(api::Value consumer);
bool IsReservedFor(api::Value claim, std::string_view pod_uid);
// Whether nobody but this pod has reserved the claim. Also true if nobody has.
bool IsReservedForNoneBut(api::Value claim, std::string_view pod_uid);

// Who a claim is reserved for.
struct Consumer {
  std::string name;
  std::string uid;
  bool is_group = false;  // a PodGroup, not a pod
};
void AddReservation(api::Draft& claim, const Consumer& consumer);
// Removes the entries of status.reservedFor whose uid `is_over` accepts.
void RemoveReservations(api::Draft& claim,
                        const std::function<bool(std::string_view uid)>& is_over);
// Removes the allocation and the status of its devices. Reservations stay.
void ClearAllocation(api::Draft& claim);

// The object that controls the claim, which is the one it was made for.
struct Owner {
  std::string key;  // namespace/name
  std::string uid;
};
std::optional<Owner> FindOwnerPod(api::Value claim);
// The reference that makes the pod the claim's controller.
api::Draft OwnerReference(std::string_view pod_name, std::string_view pod_uid);
// Whether the scheduler made the claim for a pod's extended resources.
bool IsForExtendedResources(api::Value claim);
// Whether the claim was made for the pod with this uid.
bool IsMadeFor(api::Value claim, std::string_view pod_uid);

// The entry of status.devices for an entry of status.allocation.devices.results, or an absent
// value. Driver, pool, device and share must all be the same.
api::Value FindDeviceStatus(api::Value claim, api::Value result);
api::Value FindDeviceStatus(api::Value claim, std::string_view driver, std::string_view pool,
                            std::string_view device, std::string_view share_id);

// As in the STATE column of kubectl: "pending", "allocated,reserved", "deleted,allocated" ...
std::string StateText(api::Value claim);

}  // namespace drakkar::claims
