#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "api/meta/object.h"
#include "api/tree/draft.h"
#include "base/env/clock.h"
#include "controllers/workload/scaled_value.h"

// The decisions of the Deployment controller: which ReplicaSets to create, resize and delete, and
// the resulting status. Pure functions.
namespace drakkar::controllers {

struct DeploymentState {
  const api::Object& deployment;
  std::vector<api::ObjectPtr> sets;  // ReplicaSets that the Deployment controls
  // Whether a set other than `but` (null: any set) has pods that have not finished. Called only for
  // Recreate.
  std::function<bool(const api::Object* but)> has_other_pods;
  WallTime now{};
};

struct DeploymentPlan {
  struct Create {
    api::TreePtr set;
    std::string name;
    std::int64_t replicas = 0;
  };
  struct Update {
    api::ObjectPtr set;
    api::TreePtr body;
    std::int64_t from = 0;  // replicas; equal if only annotations change
    std::int64_t to = 0;
  };
  std::optional<Create> create;
  std::vector<Update> update;
  std::vector<api::ObjectPtr> remove;  // old sets beyond the history limit

  // The Deployment with the status and revision it should have after these steps; null if they are
  // already correct.
  api::TreePtr status;
  // When to check for progress again.
  std::optional<Duration> look_again;
};

DeploymentPlan PlanDeployment(const DeploymentState& state);

// The status after creating the new ReplicaSet failed, and after its name was taken by a set with
// another template; null if nothing changes.
api::TreePtr WithCreateError(const api::Object& deployment, const std::string& message,
                             WallTime now);
api::TreePtr WithCollision(const api::Object& deployment);

// Whether the templates are equal, except for the hash in their labels.
bool IsSameTemplate(api::Value a, api::Value b);

// How many pods a rollout may have above the desired number, and how many may be unavailable.
struct RolloutBounds {
  std::int64_t surge = 0;
  std::int64_t unavailable = 0;
};
RolloutBounds BoundsOf(const api::Object& deployment);

}  // namespace drakkar::controllers
