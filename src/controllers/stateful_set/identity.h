#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/meta/object.h"
#include "api/tree/draft.h"

// The identity of a StatefulSet's pod: its ordinal, its name, and its volume claims. Pure
// functions.
namespace drakkar::controllers {

// The label of a pod with the name of the revision whose template it has.
inline constexpr std::string_view kPodRevisionLabel = "controller-revision-hash";

// The ordinal in a pod's name if it is "<set>-<ordinal>"; nullopt otherwise.
std::optional<std::int64_t> OrdinalOf(const api::Object& set, const api::Object& pod);
// The first ordinal, and the first one after the last.
std::int64_t StartOrdinal(const api::Object& set);
std::int64_t EndOrdinal(const api::Object& set);
std::string PodNameOf(const api::Object& set, std::int64_t ordinal);

// The pod with an ordinal, from a current or former template of the set.
api::TreePtr StatefulPod(const api::ObjectPtr& set, api::Value pod_template,
                         std::string_view revision, std::int64_t ordinal);

// Whether a pod has the labels that identify it. `WithIdentity` adds them.
bool HasIdentity(const api::Object& set, const api::Object& pod);
api::TreePtr WithIdentity(const api::Object& set, const api::Object& pod);

// The volume claims of an ordinal.
struct StatefulClaim {
  std::string name;
  api::TreePtr body;
};
std::vector<StatefulClaim> ClaimsOf(const api::Object& set, std::int64_t ordinal);

// Whether the claim belonged to an earlier pod of that name and is about to be deleted with it, so
// that a new pod must wait.
bool IsStaleClaim(const api::Object& set, const api::Object& claim, std::string_view pod_name,
                  std::string_view pod_uid);

// The claim with the owners that the set's persistentVolumeClaimRetentionPolicy demands; null if it
// has them, or if another controller owns it.
api::TreePtr WithOwners(const api::Object& set, const api::Object& pod, const api::Object& claim);

}  // namespace drakkar::controllers
