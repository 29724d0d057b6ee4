#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "api/meta/object.h"
#include "api/tree/draft.h"

// The decisions of the claim controller, as pure functions of the objects.
namespace drakkar::controllers {

// Finds an object by "namespace/name"; null if it is not known.
using Lookup = std::function<api::ObjectPtr(const std::string&)>;

// What to do for the claims of a pod.
struct PodPlan {
  struct Create {
    std::string entry;  // name in spec.resourceClaims
    std::string template_name;
  };
  std::vector<Create> create;
  // The complete status.resourceClaimStatuses, sorted by name, without entries that are still to be
  // created. Nothing if it is already up to date.
  std::optional<std::vector<std::pair<std::string, std::string>>> statuses;
  // Allocated claims ("namespace/name") to reserve for a pod that was bound without the scheduler.
  std::vector<std::string> reserve;
};

// `made` are claims that were created for this pod but that `find_claim` may not show yet: entry to
// name.
PodPlan PlanPod(const api::Object& pod, const Lookup& find_claim,
                const std::vector<api::ObjectPtr>& owned,
                const std::vector<std::pair<std::string, std::string>>& made);

// The claim that a template produces for an entry of a pod.
api::TreePtr ClaimFromTemplate(const api::Object& pod, std::string_view entry,
                               const api::Object& claim_template);

// "<pod>-<entry>-", with both parts shortened evenly if there is no room for the suffix.
std::string ClaimGenerateName(std::string_view pod, std::string_view entry);

// What to do with a claim and its consumers.
struct ClaimPlan {
  std::vector<std::string> drop_uids;     // entries of reservedFor to remove
  std::vector<std::string> unknown_pods;  // "namespace/name"; look them up on the server first
  bool deallocate = false;                // clear the allocation in the same write
  bool remove_finalizer = false;          // after that
  // Its pod is gone or done and it has no consumers. If there is no allocation to clear, it is
  // deleted before the finalizer is removed.
  bool delete_claim = false;
};

// What the server confirmed about a consumer that is not in our copy.
enum class Confirmed { kUnknown, kGone };

ClaimPlan PlanClaim(const api::Object& claim, const Lookup& pods,
                    const std::function<Confirmed(const std::string& pod)>& confirmed);

bool IsPodTerminal(const api::Object& pod);  // Succeeded or Failed

}  // namespace drakkar::controllers
