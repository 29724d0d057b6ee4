#pragma once

#include "api/meta/field_error.h"
#include "apiserver/request/strategy_context.h"

// Rules of Jobs and CronJobs that involve several fields. Rules about a single field are in
// schema/.
namespace drakkar::apiserver {

api::FieldErrors ValidateJob(api::Value job, const StrategyContext& context);
api::FieldErrors ValidateJobUpdate(api::Value job, api::Value before,
                                   const StrategyContext& context);
api::FieldErrors ValidateJobStatusUpdate(api::Value job, api::Value before);

api::FieldErrors ValidateCronJob(api::Value cron_job, api::Value before,
                                 const StrategyContext& context);

}  // namespace drakkar::apiserver
