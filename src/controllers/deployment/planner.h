#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "api/meta/object.h"
#include "api/tree/draft.h"
#include "base/env/clock.h"

// What the controller of Deployments decides: which ReplicaSets to make, resize and remove, and the
// status that follows. Pure.
namespace drakkar::controllers {

struct DeploymentState {
  const api::Object& deployment;
  std::vector<api::ObjectPtr> sets;  // those it controls
  // Whether a set other than this (null: any) has pods that have not ended; asked for Recreate
  // only.
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
  std::vector<api::ObjectPtr> remove;  // old ones that history does not keep

  // The Deployment with status and revision as they should be once the above is done; null if they
  // are so already.
  api::TreePtr status;
  // When to look for progress again.
  std::optional<Duration> look_again;
};

DeploymentPlan PlanDeployment(const DeploymentState& state);

// The status after the new ReplicaSet could not be created, and after its name was taken by a set
// of another template; null if nothing changes.
api::TreePtr WithCreateError(const api::Object& deployment, const std::string& message,
                             WallTime now);
api::TreePtr WithCollision(const api::Object& deployment);

// Whether a set's template is the one, but for the hash in its labels.
bool IsSameTemplate(api::Value a, api::Value b);

// How many pods a rollout may have beyond the wanted number, and how many may be missing.
struct RolloutBounds {
  std::int64_t surge = 0;
  std::int64_t unavailable = 0;
};
RolloutBounds BoundsOf(const api::Object& deployment);

// A number, or that part of `total`, rounded up or down.
enum class Rounding { kUp, kDown };
std::int64_t ScaledValue(api::Value int_or_percent, std::int64_t total, Rounding rounding);

}  // namespace drakkar::controllers
