#pragma once

#include <optional>
#include <string>

#include "api/meta/object.h"
#include "base/env/clock.h"

// What a finished pod means for its Job. Pure functions.
namespace drakkar::controllers {

inline constexpr std::string_view kJobFinalizer = "batch.kubernetes.io/job-tracking";
inline constexpr std::string_view kIndexAnnotation = "batch.kubernetes.io/job-completion-index";

bool IsTracked(const api::Object& pod);  // has the finalizer, so it is not fully counted yet
// The pod's index in an Indexed Job; nullopt if it has no valid one.
std::optional<std::int64_t> IndexOf(const api::Object& pod);

// Whether the pod failed, or is being deleted without having succeeded. The latter does not count
// if the Job replaces only failed pods.
bool IsFailedPod(const api::Object& pod, const api::Object& job);

// When its containers finished; an estimate if the status does not say.
WallTime FinishedAt(const api::Object& pod);

// The result of the Job's podFailurePolicy for a failed pod.
struct FailureVerdict {
  bool counts = true;        // counts towards the backoff limits
  bool fails_index = false;  // fails the index without another attempt
  std::string fails_job;     // fails the Job with this message in its condition; empty: does not
};
FailureVerdict JudgeFailure(const api::Object& job, const api::Object& pod);

// The number of pods of this index that failed before this one: those that count towards the limit,
// and all.
std::int64_t IndexFailures(const api::Object& pod);
std::int64_t AllIndexFailures(const api::Object& pod);

}  // namespace drakkar::controllers
