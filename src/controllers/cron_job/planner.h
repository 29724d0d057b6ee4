#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "api/meta/object.h"
#include "base/env/clock.h"

// The decisions of the CronJob controller. Pure functions.
namespace drakkar::controllers {

struct CronJobState {
  const api::ObjectPtr& cron_job;
  const std::vector<api::ObjectPtr>& jobs;         // Jobs that the CronJob controls
  const std::set<std::string, std::less<>>& gone;  // uids in status.active that no longer exist
  WallTime now{};
};

struct CronJobPlan {
  struct Event {
    bool warning = false;
    std::string_view reason;
    std::string message;
  };
  std::vector<api::ObjectPtr> remove;   // finished Jobs beyond the history limit
  std::vector<api::ObjectPtr> replace;  // running Jobs to delete before the new one
  api::TreePtr create;                  // the Job that is due; null if none is
  std::string name;                     // name of that Job
  WallTime due{};
  api::TreePtr status;  // the CronJob with the status to write before creating it; null: unchanged
  std::vector<Event> events;
  std::optional<Duration> look_again;
};

CronJobPlan PlanCronJob(const CronJobState& state);

// The CronJob with its status after the due Job was created.
api::TreePtr WithActiveJob(const api::Object& cron_job, const api::Object& job, WallTime due);

}  // namespace drakkar::controllers
