#pragma once

#include <optional>
#include <string>
#include <vector>

#include "api/meta/object.h"
#include "base/env/clock.h"

// The status of a Deployment: numbers from its ReplicaSets, and conditions that say whether it is
// available and gets on. Pure.
namespace drakkar::controllers {

struct StatusInput {
  const api::Object& deployment;
  std::int64_t wanted = 0;
  std::int64_t max_unavailable = 0;
  WallTime now{};
  std::vector<api::ObjectPtr> sets = {};
  api::ObjectPtr fresh = {};     // of them, the one with the Deployment's template; null: none
  std::string created = {};      // the name of the set that is about to be created, if one is
  std::int64_t total_size = 0;   // of all sets, as they are to be
  std::int64_t revision = 0;     // of the new set; 0: there is none
  bool judges_progress = false;  // false: paused, scaled or being deleted
};
struct StatusPlan {
  api::TreePtr deployment;             // with its new status; null: nothing changes
  std::optional<Duration> look_again;  // to find out that the deadline has passed
};
StatusPlan PlanDeploymentStatus(const StatusInput& input);

// Everything is new, available, and nothing old is left.
bool IsComplete(const api::Object& deployment, api::Value status);

}  // namespace drakkar::controllers
