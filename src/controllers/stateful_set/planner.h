#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "api/meta/object.h"
#include "api/tree/draft.h"
#include "base/env/clock.h"
#include "controllers/stateful_set/identity.h"

// The decisions of the StatefulSet controller. Pure functions.
namespace drakkar::controllers {

struct StatefulState {
  api::ObjectPtr set;
  api::ObjectPtr current;            // the revision that the set had before the update in progress
  api::ObjectPtr update;             // the revision of its template
  std::vector<api::ObjectPtr> pods;  // its pods, with valid names
  // The PersistentVolumeClaim of this name in the set's namespace, or null.
  std::function<api::ObjectPtr(const std::string& name)> find_claim;
  WallTime now{};
};

// At most this many pods are created or deleted at a time (only with podManagementPolicy Parallel;
// otherwise one).
inline constexpr std::size_t kMaxStatefulBurst = 500;
struct StatefulPlan {
  struct Change {
    api::ObjectPtr object;
    api::TreePtr body;
  };
  // In this order. Claims come before the pods that use them.
  std::vector<StatefulClaim> claims;
  std::vector<Change> claim_owners;
  std::vector<Change> pods;  // labels that identify the pod
  std::vector<api::TreePtr> create;
  std::vector<api::ObjectPtr> remove;
  // A claim that is being deleted, for which a pod has to wait; empty if there is none.
  std::string blocked_by;
  // The status as it should be; nullopt if it is already correct.
  std::optional<api::Draft> status;
  // When a ready pod becomes available.
  std::optional<Duration> look_again;
};

StatefulPlan PlanStateful(const StatefulState& state);

}  // namespace drakkar::controllers
