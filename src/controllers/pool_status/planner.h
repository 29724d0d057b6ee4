#pragma once

#include <string_view>
#include <vector>

#include "api/meta/object.h"
#include "api/tree/draft.h"
#include "base/env/clock.h"

namespace drakkar::controllers {

struct PoolStatusState {
  const api::Object& request;
  std::vector<api::ObjectPtr> slices;  // all ResourceSlices
  std::vector<api::ObjectPtr> claims;  // all ResourceClaims
  std::vector<api::ObjectPtr> rules;   // all DeviceTaintRules
  WallTime now{};
};

struct PoolStatusPlan {
  api::Draft status;
  bool incomplete = false;  // a pool lacks slices that its driver has yet to publish
};

// The answer to a ResourcePoolStatusRequest: devices per pool, in use, tainted and free. Pure.
PoolStatusPlan PlanPoolStatus(const PoolStatusState& state);

// How long an answered or unanswered request is kept; it is deleted after that.
Duration LifetimeOf(const api::Object& request);

}  // namespace drakkar::controllers
