#pragma once

#include <optional>
#include <string>
#include <vector>

#include "api/meta/object.h"
#include "base/env/clock.h"

// The status of a Deployment: counts from its ReplicaSets, and conditions for availability and
// progress. Pure functions.
namespace drakkar::controllers {

struct StatusInput {
  const api::Object& deployment;
  std::int64_t wanted = 0;
  std::int64_t max_unavailable = 0;
  WallTime now{};
  std::vector<api::ObjectPtr> sets = {};
  api::ObjectPtr fresh = {};     // the one with the Deployment's template; null if there is none
  std::string created = {};      // name of the set that is about to be created, if any
  std::int64_t total_size = 0;   // planned size of all sets together
  std::int64_t revision = 0;     // revision of the new set; 0 if there is none
  bool judges_progress = false;  // false if it is paused, scaled or being deleted
};
struct StatusPlan {
  api::TreePtr deployment;             // with its new status; null if nothing changes
  std::optional<Duration> look_again;  // when the progress deadline passes
};
StatusPlan PlanDeploymentStatus(const StatusInput& input);

// All pods are new and available, and no old ones are left.
bool IsComplete(const api::Object& deployment, api::Value status);

}  // namespace drakkar::controllers
