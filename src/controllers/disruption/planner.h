#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "api/meta/object.h"
#include "api/tree/draft.h"
#include "base/env/clock.h"

namespace drakkar::controllers {

struct BudgetState {
  const api::Object& budget;
  std::vector<api::ObjectPtr> pods;  // those that the budget selects
  // The number of pods that the owner of a pod wants; nullopt if it is unknown. `owner` is the
  // controller reference of the pod.
  std::function<std::optional<std::int64_t>(api::Value owner, std::string_view namespace_)>
      find_scale;
  WallTime now{};
};

struct BudgetPlan {
  // The status that the budget should have; nullopt if it has it.
  std::optional<api::Draft> status;
  bool has_unmanaged_pods = false;  // whose number nobody promises
  std::string failure;              // why nothing may be disrupted; empty if the count succeeded
  std::optional<Duration> look_again;
};

// How many of the budget's pods may be disrupted. Pure.
BudgetPlan PlanBudget(const BudgetState& state);

}  // namespace drakkar::controllers
