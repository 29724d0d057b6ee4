#pragma once

#include <optional>
#include <string>
#include <vector>

#include "api/meta/object.h"
#include "base/env/clock.h"

// The decisions of the Job controller. Pure functions.
//
// A finished pod is counted in three steps, so that a crash between any two neither loses it nor
// counts it twice. First its uid is recorded in the status (status.uncountedTerminatedPods, or its
// index in status.completedIndexes). Then its finalizer is removed. Then the uid is removed and the
// counter incremented. Each step is planned from what the previous step has written.
namespace drakkar::controllers {

// Maximum number of pods created or deleted, and of uids recorded, at a time.
inline constexpr std::size_t kMaxJobBurst = 500;
inline constexpr std::size_t kMaxUncounted = 500;
// The backoff after a failed pod doubles from the first value up to the second.
inline constexpr Duration kFirstJobBackoff = std::chrono::seconds(10);
inline constexpr Duration kLongestJobBackoff = std::chrono::minutes(10);

// Consecutive failures. Kept in memory, so a restart resets the count.
struct JobBackoff {
  std::int64_t failures = 0;
  WallTime last_failure{};
};

struct JobState {
  const api::ObjectPtr& job;
  const std::vector<api::ObjectPtr>& pods;  // pods that the Job controls
  JobBackoff backoff = {};
  WallTime now{};
};

struct JobPlan {
  struct Event {
    bool warning = false;
    std::string reason;
    std::string message;
  };
  std::vector<api::TreePtr> create;
  std::vector<api::ObjectPtr> remove;   // delete; they count as failed
  std::vector<api::ObjectPtr> discard;  // remove the finalizer, then delete; they do not count
  std::vector<api::ObjectPtr> untrack;  // recorded, so remove the finalizer
  api::TreePtr status;                  // the Job with its new status; null if nothing changes
  // Valid once the status is written:
  JobBackoff backoff;
  std::vector<Event> events;
  std::optional<Duration> look_again;
};

JobPlan PlanJob(const JobState& state);

bool IsFinishedJob(const api::Object& job);  // Complete or Failed
// When the Job finished; nullopt if it has not.
std::optional<WallTime> JobFinishedAt(const api::Object& job);

}  // namespace drakkar::controllers
