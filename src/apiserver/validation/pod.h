#pragma once

#include <vector>

#include "apiserver/registry/strategy.h"

namespace drakkar::apiserver {

api::FieldErrors ValidatePod(api::Value pod, const StrategyContext& context);
api::FieldErrors ValidatePodUpdate(api::Value pod, api::Value before, std::string_view subresource,
                                   const StrategyContext& context);
api::FieldErrors ValidatePodStatusUpdate(api::Value pod, api::Value before,
                                         const StrategyContext& context);

}  // namespace drakkar::apiserver
