#pragma once

#include "api/tree/draft.h"
#include "api/tree/value.h"

// Taints of nodes and tolerations of pods. Pure functions.
namespace drakkar::controllers {

bool Tolerates(api::Value toleration, api::Value taint);
bool IsTolerated(api::Value tolerations, api::Value taint);

// Adds a toleration for any value of a taint, for ever. One for the same key and effect is
// replaced.
void AddToleration(api::Draft& tolerations, std::string_view key, std::string_view effect);

}  // namespace drakkar::controllers
