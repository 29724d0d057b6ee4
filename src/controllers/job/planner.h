#pragma once

#include <optional>
#include <string>
#include <vector>

#include "api/meta/object.h"
#include "base/env/clock.h"

// What the controller of Jobs decides. Pure.
//
// A pod that ends is counted in three steps, so that a crash between any two neither loses nor
// repeats it: its uid is noted in the status (status.uncountedTerminatedPods, or its index in
// status.completedIndexes), then its finalizer goes, then the uid becomes a number. Each step is
// planned from what the step before has written.
namespace drakkar::controllers {

// Pods made or deleted at a time, and uids noted at a time.
inline constexpr std::size_t kMaxJobBurst = 500;
inline constexpr std::size_t kMaxUncounted = 500;
// The pause after a pod failed doubles from the first to the second.
inline constexpr Duration kFirstJobBackoff = std::chrono::seconds(10);
inline constexpr Duration kLongestJobBackoff = std::chrono::minutes(10);

// Failures in a row, in memory: a restart resets the count.
struct JobBackoff {
  std::int64_t failures = 0;
  WallTime last_failure{};
};

struct JobState {
  const api::ObjectPtr& job;
  const std::vector<api::ObjectPtr>& pods;  // those it controls
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
  std::vector<api::ObjectPtr> discard;  // remove the finalizer, then delete: they do not count
  std::vector<api::ObjectPtr> untrack;  // noted: the finalizer goes
  api::TreePtr status;                  // the Job with its new status; null: nothing changes
  // Once the status is written:
  JobBackoff backoff;
  std::vector<Event> events;
  std::optional<Duration> look_again;
};

JobPlan PlanJob(const JobState& state);

bool IsFinishedJob(const api::Object& job);  // Complete or Failed
// When it finished; nothing if it has not.
std::optional<WallTime> JobFinishedAt(const api::Object& job);

}  // namespace drakkar::controllers
