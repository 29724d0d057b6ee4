#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "api/meta/object.h"
#include "api/tree/draft.h"

// What the claim controller decides, without doing it: pure functions of the objects.
namespace drakkar::controllers {

// Finds an object by "namespace/name"; null if it is not known.
using Lookup = std::function<api::ObjectPtr(const std::string&)>;

// What a pod needs for its claims.
struct PodPlan {
  struct Create {
    std::string entry;  // name in spec.resourceClaims
    std::string template_name;
  };
  std::vector<Create> create;
  // The complete status.resourceClaimStatuses once nothing is to be created, sorted by name;
  // nullopt when it already says so. Entries still to be created are not in it.
  std::optional<std::vector<std::pair<std::string, std::string>>> statuses;
  // Claims ("namespace/name") to reserve: allocated ones of a pod that was bound without us.
  std::vector<std::string> reserve;
};

// `made` are claims that were created for this pod but that `find_claim` may not show yet: entry to
// name.
PodPlan PlanPod(const api::Object& pod, const Lookup& find_claim,
                const std::vector<api::ObjectPtr>& owned,
                const std::vector<std::pair<std::string, std::string>>& made);

// The claim a template makes for a pod's entry.
api::TreePtr ClaimFromTemplate(const api::Object& pod, std::string_view entry,
                               const api::Object& claim_template);

// "<pod>-<entry>-", shortened evenly when it would leave no room for the suffix.
std::string ClaimGenerateName(std::string_view pod, std::string_view entry);

// What is to be done about a claim's consumers.
struct ClaimPlan {
  std::vector<std::string> drop_uids;     // entries of reservedFor that are over
  std::vector<std::string> unknown_pods;  // "namespace/name" to look up first: not in our copy
  bool deallocate = false;                // clear the allocation in the same write
  bool remove_finalizer = false;          // after that
  // Its pod is gone or done and nobody uses it. With nothing to clear: before the finalizer goes.
  bool delete_claim = false;
};

// What is known of a consumer besides our copy: confirmed by asking the server.
enum class Confirmed { kUnknown, kGone };

ClaimPlan PlanClaim(const api::Object& claim, const Lookup& pods,
                    const std::function<Confirmed(const std::string& pod)>& confirmed);

bool IsPodTerminal(const api::Object& pod);  // Succeeded or Failed

}  // namespace drakkar::controllers
