#pragma once

#include <string>
#include <vector>

#include "api/meta/field_error.h"
#include "apiserver/request/strategy_context.h"

namespace drakkar::apiserver {

// Checks the spec of a pod template. `path` is its location ("spec.template.spec"). On update,
// `before` is the current spec: what was already wrong with it, under older rules, is not reported.
api::FieldErrors ValidatePodSpec(api::Value spec, api::Value before, const std::string& path,
                                 const StrategyContext& context);
api::FieldErrors ValidatePod(api::Value pod, const StrategyContext& context);
api::FieldErrors ValidatePodUpdate(api::Value pod, api::Value before, std::string_view subresource,
                                   const StrategyContext& context);
api::FieldErrors ValidatePodStatusUpdate(api::Value pod, api::Value before,
                                         const StrategyContext& context);

}  // namespace drakkar::apiserver
