#pragma once

#include <vector>

#include "apiserver/registry/strategy.h"

namespace drakkar::apiserver {

std::vector<Cause> ValidatePod(api::Value pod, const StrategyContext& context);
std::vector<Cause> ValidatePodUpdate(api::Value pod, api::Value before,
                                     std::string_view subresource, const StrategyContext& context);
std::vector<Cause> ValidatePodStatusUpdate(api::Value pod, api::Value before,
                                           const StrategyContext& context);

}  // namespace drakkar::apiserver
