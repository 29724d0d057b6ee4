#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/meta/object.h"
#include "api/tree/draft.h"
#include "base/env/clock.h"

// The decisions of the controller for ReplicaSets and ReplicationControllers. Pure functions.
namespace drakkar::controllers {

// How many pods to create, or which to delete; at most kMaxReplicaBurst at a time.
inline constexpr std::size_t kMaxReplicaBurst = 500;
struct ReplicaPlan {
  std::size_t create = 0;
  std::vector<api::ObjectPtr> remove;
};

// `active` are the set's own pods. `related` is the number of active pods per node over all sets of
// the same owner; a pod with many related pods on its node is deleted first.
ReplicaPlan PlanReplicas(std::int64_t wanted, const std::vector<api::ObjectPtr>& active,
                         const std::map<std::string, int, std::less<>>& related, WallTime now);

// Sorts pods so that those to delete come first: pods that are not assigned, not running or not
// ready, then by deletion cost, related pods on the node, time of readiness, restarts and age.
std::vector<api::ObjectPtr> InOrderOfDeletion(
    const std::vector<api::ObjectPtr>& pods, const std::map<std::string, int, std::less<>>& related,
    WallTime now);

// Input for the status of a set.
struct ReplicaCounts {
  const std::vector<api::ObjectPtr>& active;
  std::int64_t terminating = 0;
  bool reports_terminating = true;  // false for ReplicationControllers
  // Why pods could not be created or deleted, with the reason of the condition.
  std::string_view failure_reason = {};
  std::string failure = {};
};
// The whole status as it should be; nullopt if it is already correct.
std::optional<api::Draft> PlanReplicaStatus(const api::Object& set, const ReplicaCounts& counts,
                                            WallTime now);

// When the next ready pod becomes available; nullopt if no pod is waiting for that.
std::optional<Duration> NextAvailability(const api::Object& set,
                                         const std::vector<api::ObjectPtr>& active, WallTime now);

}  // namespace drakkar::controllers
