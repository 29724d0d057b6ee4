#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "api/meta/object.h"
#include "base/env/clock.h"

// What the controller of CronJobs decides. Pure.
namespace drakkar::controllers {

struct CronJobState {
  const api::ObjectPtr& cron_job;
  const std::vector<api::ObjectPtr>& jobs;  // those it controls
  const std::set<std::string, std::less<>>&
      gone;  // uids in status.active that do not exist any more
  WallTime now{};
};

struct CronJobPlan {
  struct Event {
    bool warning = false;
    std::string_view reason;
    std::string message;
  };
  std::vector<api::ObjectPtr> remove;   // finished Jobs that history does not keep
  std::vector<api::ObjectPtr> replace;  // running ones that give way to the new one
  api::TreePtr create;                  // the Job that is due; null: none
  std::string name;                     // of it
  WallTime due{};
  api::TreePtr status;  // the CronJob with its status before that; null: unchanged
  std::vector<Event> events;
  std::optional<Duration> look_again;
};

CronJobPlan PlanCronJob(const CronJobState& state);

// The CronJob after the Job that was due has been created.
api::TreePtr WithActiveJob(const api::Object& cron_job, const api::Object& job, WallTime due);

}  // namespace drakkar::controllers
