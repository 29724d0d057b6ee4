#pragma once

#include <optional>
#include <string>

#include "api/meta/object.h"
#include "base/env/clock.h"

// What the end of a pod means for its Job. Pure.
namespace drakkar::controllers {

inline constexpr std::string_view kJobFinalizer = "batch.kubernetes.io/job-tracking";
inline constexpr std::string_view kIndexAnnotation = "batch.kubernetes.io/job-completion-index";

bool IsTracked(const api::Object& pod);  // has the finalizer: its end is not counted for good yet
// Of an Indexed Job; nothing if the pod has none that can be read.
std::optional<std::int64_t> IndexOf(const api::Object& pod);

// Failed, or being deleted without having succeeded, unless the Job replaces only pods that failed.
bool IsFailedPod(const api::Object& pod, const api::Object& job);

// When its containers ended; the nearest guess if it does not say.
WallTime FinishedAt(const api::Object& pod);

// What the Job's podFailurePolicy says about a pod that failed.
struct FailureVerdict {
  bool counts = true;        // towards the backoff limits
  bool fails_index = false;  // without another attempt
  std::string fails_job;     // the message of the Job's condition; empty: it does not
};
FailureVerdict JudgeFailure(const api::Object& job, const api::Object& pod);

// How often pods of this index failed before this one, for the limit and in all.
std::int64_t IndexFailures(const api::Object& pod);
std::int64_t AllIndexFailures(const api::Object& pod);

}  // namespace drakkar::controllers
