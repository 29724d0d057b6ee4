#include "controllers/cron_job/planner.h"

#include <algorithm>

#include "api/meta/bounded_seconds.h"
#include "api/meta/time.h"
#include "api/schedule/cron_schedule.h"
#include "api/scheme/scheme.h"
#include "api/tree/draft.h"
#include "base/text/text.h"
#include "controllers/job/planner.h"
#include "controllers/workload/adoption.h"
#include "controllers/workload/pod_facts.h"

namespace drakkar::controllers {

namespace {

using api::Draft;
using api::Value;

// More missed times than this cause a warning: a clock is wrong, or the controller was not running.
constexpr std::int64_t kManyMissed = 100;
// Clocks differ, and a Job should start a little late rather than early.
constexpr Duration kDelay = std::chrono::milliseconds(100);

bool Succeeded(const api::Object& job) {
  return FindCondition(job["status"], "Complete")["status"].str() == "True";
}

struct Missed {
  WallTime earliest{};
  std::optional<WallTime> latest;  // the last scheduled time that has passed
  std::int64_t count = 0;
  bool impossible = false;  // the schedule never matches
};

class Pass {
 public:
  explicit Pass(const CronJobState& state)
      : state_(state), object_(*state.cron_job), spec_(object_["spec"]) {}

  CronJobPlan Run() {
    FollowJobs();
    CleanUp("Complete", spec_["successfulJobsHistoryLimit"]);
    CleanUp("Failed", spec_["failedJobsHistoryLimit"]);
    if (!object_.is_being_deleted()) PlanNext();
    PlanStatus();
    return std::move(plan_);
  }

 private:
  void FollowJobs() {
    for (Value reference : object_["status"]["active"].elements()) active_.push_back(reference);
    last_success_ = TimeOf(object_["status"]["lastSuccessfulTime"]);
    for (const api::ObjectPtr& job : state_.jobs) {
      const bool known =
          std::ranges::any_of(active_, [&](Value each) { return each["uid"].str() == job->uid(); });
      if (!IsFinishedJob(*job)) {
        if (!known) {
          Tell(true, "UnexpectedJob",
               StrCat("Saw a job that the controller did not create or forgot: ", job->name()));
        }
        continue;
      }
      if (known) {
        Forget(job->uid());
        Tell(false, "SawCompletedJob",
             StrCat("Saw completed job: ", job->name(),
                    ", condition: ", Succeeded(*job) ? "Complete" : "Failed"));
      }
      const std::optional<WallTime> ended = TimeOf((*job)["status"]["completionTime"]);
      if (Succeeded(*job) && ended && (!last_success_ || *last_success_ < *ended)) {
        last_success_ = ended;
      }
    }
    for (const std::string& uid : state_.gone) {
      for (Value each : active_) {
        if (each["uid"].str() == uid) {
          Tell(false, "MissingJob", StrCat("Active job went missing: ", each["name"].str()));
        }
      }
      Forget(uid);
    }
  }

  void CleanUp(std::string_view condition, Value limit) {
    if (!limit.has_value()) return;
    std::vector<api::ObjectPtr> finished;
    for (const api::ObjectPtr& job : state_.jobs) {
      if (FindCondition((*job)["status"], condition)["status"].str() == "True" &&
          !job->is_being_deleted()) {
        finished.push_back(job);
      }
    }
    const auto keep = static_cast<std::size_t>(std::max<std::int64_t>(limit.integer(), 0));
    if (finished.size() <= keep) return;
    std::ranges::sort(finished, [](const api::ObjectPtr& a, const api::ObjectPtr& b) {
      const std::string_view x = (*a)["status"]["startTime"].str();
      const std::string_view y = (*b)["status"]["startTime"].str();
      return x != y ? x < y : a->name() < b->name();
    });
    finished.resize(finished.size() - keep);
    plan_.remove.insert(plan_.remove.end(), finished.begin(), finished.end());
  }

  void PlanNext() {
    const std::string zone(spec_["timeZone"].str());
    if (!zone.empty()) {
      if (const auto why = api::WhyNoTimeZone(zone)) {
        return Tell(true, "UnknownTimeZone", StrCat("invalid timeZone: ", Quote(zone), ": ", *why));
      }
    }
    if (spec_["suspend"].boolean()) return;
    const std::string_view text = spec_["schedule"].str();
    const Result<api::CronSchedule> schedule = api::CronSchedule::Parse(text);
    if (!schedule.ok()) {
      return Tell(true, "UnparseableSchedule",
                  StrCat("unparseable schedule: ", Quote(text), " : ", schedule.error().message));
    }
    const Missed missed = FindMissed(*schedule, zone, true);
    if (missed.impossible) {
      return Tell(true, "InvalidSchedule",
                  StrCat("invalid schedule: ", text,
                         " : time difference between two schedules is less than 1 second"));
    }
    LookAgain(*schedule, zone);
    if (!missed.latest) return;
    if (missed.count > kManyMissed) {
      Tell(true, "TooManyMissedTimes",
           "too many missed start times. Set or decrease .spec.startingDeadlineSeconds or check "
           "clock skew");
    }
    Start(*missed.latest, zone);
  }

  void Start(WallTime due, const std::string& zone) {
    const Value deadline = spec_["startingDeadlineSeconds"];
    if (deadline.has_value() && due + api::BoundedSeconds(deadline.integer()) < state_.now) {
      return Tell(true, "MissSchedule",
                  StrCat("Missed scheduled time to start a job: ", api::FormatTime(due)));
    }
    const std::int64_t minutes =
        std::chrono::duration_cast<std::chrono::minutes>(due.time_since_epoch()).count();
    plan_.name = StrCat(object_.name(), "-", minutes);
    const bool is_active =
        std::ranges::any_of(active_, [&](Value each) { return each["name"].str() == plan_.name; });
    if (is_active || TimeOf(object_["status"]["lastScheduleTime"]) == due) return;
    const std::string_view policy = spec_["concurrencyPolicy"].str();
    if (policy == "Forbid" && !active_.empty()) {
      return Tell(false, "JobAlreadyActive",
                  "Not starting job because prior execution is running and concurrency policy is "
                  "Forbid");
    }
    if (policy == "Replace") {
      for (const api::ObjectPtr& job : state_.jobs) {
        if (std::ranges::any_of(active_,
                                [&](Value each) { return each["uid"].str() == job->uid(); })) {
          plan_.replace.push_back(job);
        }
      }
      for (const api::ObjectPtr& job : plan_.replace) Forget(job->uid());
    }
    plan_.due = due;
    plan_.create = MakeJob(due, zone);
  }

  api::TreePtr MakeJob(WallTime due, const std::string& zone) const {
    const Value given = spec_["jobTemplate"];
    Draft job = Draft::Object();
    job.KeepAlive(object_.tree());
    Draft& metadata = job["metadata"];
    metadata["name"] = plan_.name;
    metadata["namespace"] = object_.namespace_();
    for (const api::FieldName part : api::FieldNames{"labels", "annotations"}) {
      if (given["metadata"][part].empty()) continue;
      metadata[part] = Draft(given["metadata"][part]);
      metadata[part].KeepAlive(object_.tree());
    }
    metadata["annotations"].Entry("batch.kubernetes.io/cronjob-scheduled-timestamp") =
        api::FormatInZone(due, zone);
    static const api::KindSchema* const kKind = api::FindKind("batch", "v1", "CronJob");
    metadata["ownerReferences"].Append(ControllerReference(object_, *kKind));
    job["spec"] = Draft(given["spec"]);
    job["spec"].KeepAlive(object_.tree());
    return job.Freeze();
  }

  // The last scheduled time between the start and now. The count is an estimate from the interval
  // between the first two, so a CronJob that was not processed for a year is as cheap as one from
  // yesterday.
  Missed FindMissed(const api::CronSchedule& schedule, const std::string& zone,
                    bool with_deadline) const {
    Missed missed;
    missed.earliest =
        TimeOf(object_["status"]["lastScheduleTime"])
            .value_or(TimeOf(object_["metadata"]["creationTimestamp"]).value_or(state_.now));
    const Value deadline = spec_["startingDeadlineSeconds"];
    if (with_deadline && deadline.has_value()) {
      missed.earliest =
          std::max(missed.earliest, state_.now - api::BoundedSeconds(deadline.integer()));
    }
    const std::optional<WallTime> first = schedule.Next(missed.earliest, zone);
    if (!first) {
      missed.impossible = true;
      return missed;
    }
    if (state_.now < *first) return missed;
    const std::optional<WallTime> second = schedule.Next(*first, zone);
    if (!second || state_.now < *second) {
      missed.latest = first;
      missed.count = 1;
      return missed;
    }
    const Duration distance = *second - *first;
    missed.count = (state_.now - *first) / distance + 1;
    WallTime from = *first + (missed.count - 2) * distance;
    for (std::optional<WallTime> next = schedule.Next(from, zone); next && *next <= state_.now;
         next = schedule.Next(*next, zone)) {
      missed.latest = next;
    }
    return missed;
  }

  void LookAgain(const api::CronSchedule& schedule, const std::string& zone) {
    const Missed missed = FindMissed(schedule, zone, false);
    const WallTime from = missed.latest       ? *missed.latest
                          : missed.count == 0 ? missed.earliest
                                              : state_.now;
    if (const auto next = schedule.Next(from, zone)) {
      plan_.look_again = std::max<Duration>(*next - state_.now, Duration::zero()) + kDelay;
    }
  }

  void PlanStatus() {
    Draft body(object_.tree());
    Draft& status = body["status"];
    Draft active = Draft::Array();
    for (Value each : active_) active.Append(Draft(each));
    if (active.size() > 0) {
      status["active"] = std::move(active);
    } else {
      status.Remove("active");
    }
    if (last_success_) status["lastSuccessfulTime"] = api::FormatTime(*last_success_);
    api::TreePtr made = body.Freeze();
    if (!api::Equal(made->root()["status"], object_["status"])) {
      plan_.status = std::move(made);
    }
  }

  void Forget(std::string_view uid) {
    std::erase_if(active_, [&](Value each) { return each["uid"].str() == uid; });
  }
  void Tell(bool warning, std::string_view reason, std::string message) {
    plan_.events.push_back({warning, reason, std::move(message)});
  }

  const CronJobState& state_;
  const api::Object& object_;
  const Value spec_;
  std::vector<Value> active_;  // entries of status.active
  std::optional<WallTime> last_success_;
  CronJobPlan plan_;
};

}  // namespace

CronJobPlan PlanCronJob(const CronJobState& state) {
  return Pass(state).Run();
}

api::TreePtr WithActiveJob(const api::Object& cron_job, const api::Object& job, WallTime due) {
  Draft body(cron_job.tree());
  body["status"]["active"].Append({{"kind", "Job"},
                                   {"namespace", job.namespace_()},
                                   {"name", job.name()},
                                   {"uid", job.uid()},
                                   {"apiVersion", "batch/v1"},
                                   {"resourceVersion", StrCat(job.resource_version())}});
  body["status"]["lastScheduleTime"] = api::FormatTime(due);
  return body.Freeze();
}

}  // namespace drakkar::controllers
