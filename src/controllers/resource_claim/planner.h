#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "api/meta/object.h"
#include "api/tree/draft.h"
#include "claims/claim.h"

// The decisions of the claim controller, as pure functions of the objects.
namespace drakkar::controllers {

// Finds an object by "namespace/name"; null if it is not known.
using Lookup = std::function<api::ObjectPtr(const std::string&)>;

// What to do for the claims of a pod or a PodGroup, its owner.
struct OwnerPlan {
  struct Create {
    std::string entry;  // name in spec.resourceClaims
    std::string template_name;
  };
  std::vector<Create> create;
  // The complete status.resourceClaimStatuses, sorted by name, without entries that are still to be
  // created. Nothing if it is already up to date.
  std::optional<std::vector<std::pair<std::string, std::string>>> statuses;
  // Allocated claims to reserve for a pod that was bound without the scheduler, or for its group.
  struct Reserve {
    std::string claim;  // namespace/name
    claims::Consumer consumer;
  };
  std::vector<Reserve> reserve;
};

// What is known about the claims of an owner. `made` are claims that were created for it but that
// `find` may not show yet: entry to name.
struct KnownClaims {
  Lookup find;
  std::vector<api::ObjectPtr> owned;
  std::vector<std::pair<std::string, std::string>> made = {};
};

// `group` is the PodGroup that the pod names; null if it names none, or if groups share no claims.
OwnerPlan PlanPod(const api::Object& pod, const api::ObjectPtr& group, const KnownClaims& known);
OwnerPlan PlanPodGroup(const api::Object& group, const KnownClaims& known);

// The claim that a template produces for an entry of its owner.
api::TreePtr ClaimFromTemplate(const api::Object& owner, std::string_view entry,
                               const api::Object& claim_template);

// "<owner>-<entry>-", with both parts shortened evenly if there is no room for the suffix.
std::string ClaimGenerateName(std::string_view owner, std::string_view entry);

// A pod or a PodGroup.
struct OwnerKey {
  bool is_group = false;
  std::string key;  // namespace/name
  auto operator<=>(const OwnerKey&) const = default;
};

// What to do with a claim and its consumers.
struct ClaimPlan {
  std::vector<std::string> drop_uids;  // entries of reservedFor to remove
  std::vector<OwnerKey> unknown;       // look them up on the server first
  bool deallocate = false;             // clear the allocation in the same write
  bool remove_finalizer = false;       // after that
  // Its pod is gone or done and it has no consumers. If there is no allocation to clear, it is
  // deleted before the finalizer is removed.
  bool delete_claim = false;
};

// What the server confirmed about a consumer that is not in our copy.
enum class Confirmed { kUnknown, kGone };
// Whether reservations for PodGroups that are gone are removed.
enum class GroupConsumers { kKept, kChecked };

ClaimPlan PlanClaim(const api::Object& claim,
                    const std::function<api::ObjectPtr(const OwnerKey&)>& find,
                    const std::function<Confirmed(const OwnerKey&)>& confirmed,
                    GroupConsumers groups);

bool IsPodTerminal(const api::Object& pod);  // Succeeded or Failed

}  // namespace drakkar::controllers
