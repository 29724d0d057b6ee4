#include "controllers/job/planner.h"

#include <algorithm>
#include <map>
#include <set>

#include "api/meta/bounded_seconds.h"
#include "api/meta/time.h"
#include "api/scheme/scheme.h"
#include "api/tree/draft.h"
#include "base/text/text.h"
#include "controllers/job/index_set.h"
#include "controllers/job/pod_outcome.h"
#include "controllers/job/pods.h"
#include "controllers/replica_set/planner.h"
#include "controllers/workload/pod_facts.h"

namespace drakkar::controllers {

namespace {

using api::Draft;
using api::Value;

using Uids = std::set<std::string, std::less<>>;

Uids ReadUids(Value list) {
  Uids uids;
  for (Value uid : list.elements()) uids.emplace(uid.str());
  return uids;
}

Duration BackoffAfter(std::int64_t failures) {
  Duration wait = kFirstJobBackoff;
  for (std::int64_t i = 1; i < failures && wait < kLongestJobBackoff; ++i) wait *= 2;
  return std::min(wait, kLongestJobBackoff);
}

// How long until the replacement may be created.
Duration RemainingBackoff(std::int64_t failures, WallTime last_failure, WallTime now) {
  if (failures == 0) return Duration::zero();
  return std::max<Duration>(BackoffAfter(failures) - (now - last_failure), Duration::zero());
}

// One pass over a Job.
class Pass {
 public:
  explicit Pass(const JobState& state)
      : state_(state),
        job_(*state.job),
        spec_(job_["spec"]),
        before_(job_["status"]),
        indexed_(spec_["completionMode"].str() == "Indexed"),
        completions_(spec_["completions"].optional_integer()),
        succeeded_uids_(ReadUids(Uncounted()["succeeded"])),
        failed_uids_(ReadUids(Uncounted()["failed"])) {
    plan_.backoff = state.backoff;
    for (const api::ObjectPtr& pod : state.pods) {
      if (IsActive(*pod)) active_.push_back(pod);
      terminating_ += IsTerminating(*pod);
      if (IsTracked(*pod)) tracked_.emplace(pod->uid());
    }
    if (indexed_) {
      noted_indexes_ = IndexSet::Parse(before_["completedIndexes"].str(), *completions_);
    }
  }

  JobPlan Run() {
    FindNewlyFinished();
    JudgeIndexes();
    NoteBackoff();
    FindFinish();
    if (finish_) {
      plan_.remove = active_;
    } else if (!job_.is_being_deleted()) {
      Manage();
    }
    PlanUntracking();
    PlanStatus();
    return std::move(plan_);
  }

 private:
  // Why the Job has finished or is about to finish.
  struct Finish {
    bool success = false;
    std::string reason;
    std::string message;
    bool is_noted = false;  // recorded in the status as SuccessCriteriaMet or FailureTarget
  };

  Value Uncounted() const { return before_["uncountedTerminatedPods"]; }
  bool IsSuspended() const { return spec_["suspend"].boolean(); }
  bool HasLimitPerIndex() const { return spec_["backoffLimitPerIndex"].has_value(); }

  // Pods of an Indexed Job that have no index, or an index out of range, do not count.
  bool IsValid(const api::Object& pod) const {
    if (!indexed_) return true;
    const auto index = IndexOf(pod);
    return index && *index < *completions_;
  }

  // Finished tracked pods that are not recorded yet.
  void FindNewlyFinished() {
    for (const api::ObjectPtr& pod : state_.pods) {
      if (!IsTracked(*pod) || !IsValid(*pod)) continue;
      if ((*pod)["status"]["phase"].str() == "Succeeded") {
        if (!succeeded_uids_.contains(pod->uid())) new_succeeded_.push_back(pod);
      } else if (IsFailedPod(*pod, job_)) {
        if (!failed_uids_.contains(pod->uid())) new_failed_.push_back(pod);
      }
    }
    succeeded_ = before_["succeeded"].integer() +
                 static_cast<std::int64_t>(new_succeeded_.size() + succeeded_uids_.size());
    failed_ = before_["failed"].integer() + static_cast<std::int64_t>(failed_uids_.size());
    for (const api::ObjectPtr& pod : new_failed_) failed_ += JudgeFailure(job_, *pod).counts;
  }

  void JudgeIndexes() {
    if (!indexed_) return;
    succeeded_indexes_ = noted_indexes_;
    for (const api::ObjectPtr& pod : new_succeeded_) succeeded_indexes_.Add(*IndexOf(*pod));
    succeeded_ = succeeded_indexes_.size();
    if (!HasLimitPerIndex()) return;
    failed_indexes_ = IndexSet::Parse(before_["failedIndexes"].str(), *completions_);
    const std::int64_t limit = spec_["backoffLimitPerIndex"].integer();
    for (const api::ObjectPtr& pod : state_.pods) {
      if (!IsTracked(*pod) || !IsValid(*pod) || !IsFailedPod(*pod, job_)) continue;
      const FailureVerdict verdict = JudgeFailure(job_, *pod);
      if (verdict.fails_index || (verdict.counts && IndexFailures(*pod) >= limit)) {
        failed_indexes_.Add(*IndexOf(*pod));
      }
    }
    FindReplaced();
  }

  // The last failed pod of each index to be retried. It is kept until there is a replacement, which
  // continues its failure count.
  void FindReplaced() {
    IndexSet settled = succeeded_indexes_;
    settled.AddAll(failed_indexes_);
    for (const api::ObjectPtr& pod : active_) {
      if (const auto index = IndexOf(*pod)) settled.Add(*index);
    }
    for (const api::ObjectPtr& pod : state_.pods) {
      if (!IsTracked(*pod) || !IsValid(*pod) || !IsFailedPod(*pod, job_)) continue;
      const std::int64_t index = *IndexOf(*pod);
      if (settled.Has(index)) continue;
      api::ObjectPtr& last = replaced_[index];
      if (last == nullptr || (AllIndexFailures(*last) <= AllIndexFailures(*pod) &&
                              FinishedAt(*last) <= FinishedAt(*pod))) {
        last = pod;
      }
    }
  }

  void NoteBackoff() {
    std::optional<WallTime> last_success;
    for (const api::ObjectPtr& pod : new_succeeded_) {
      last_success = std::max(last_success.value_or(WallTime()), FinishedAt(*pod));
    }
    if (last_success) plan_.backoff = {};
    for (const api::ObjectPtr& pod : new_failed_) {
      const WallTime ended = FinishedAt(*pod);
      if (last_success && ended <= *last_success) continue;
      ++plan_.backoff.failures;
      plan_.backoff.last_failure = std::max(plan_.backoff.last_failure, ended);
    }
  }

  void FindFinish() {
    if (const Value met = FindCondition(before_, "SuccessCriteriaMet");
        met["status"].str() == "True") {
      finish_ =
          Finish{true, std::string(met["reason"].str()), std::string(met["message"].str()), true};
      return;
    }
    if (const Value target = FindCondition(before_, "FailureTarget");
        target["status"].str() == "True") {
      finish_ = Finish{false, std::string(target["reason"].str()),
                       std::string(target["message"].str()), true};
      return;
    }
    for (const api::ObjectPtr& pod : state_.pods) {
      if (!IsFailedPod(*pod, job_)) continue;
      FailureVerdict verdict = JudgeFailure(job_, *pod);
      if (!verdict.fails_job.empty()) return Fail("PodFailurePolicy", verdict.fails_job);
    }
    if (failed_ > spec_["backoffLimit"].integer(6) || HasTooManyRestarts()) {
      return Fail("BackoffLimitExceeded", "Job has reached the specified backoff limit");
    }
    if (IsPastDeadline()) {
      return Fail("DeadlineExceeded", "Job was active longer than specified deadline");
    }
    if (!indexed_) return;
    if (HasLimitPerIndex()) {
      const Value most = spec_["maxFailedIndexes"];
      const std::int64_t failed = failed_indexes_.size();
      if (most.has_value() && failed > most.integer()) {
        return Fail("MaxFailedIndexesExceeded",
                    "Job has exceeded the specified maximal number of failed indexes");
      }
      if (failed > 0 && failed + succeeded_indexes_.size() >= *completions_) {
        return Fail("FailedIndexes", "Job has failed indexes");
      }
    }
    MatchSuccessPolicy();
  }

  void Fail(std::string reason, std::string message) {
    finish_ = Finish{false, std::move(reason), std::move(message)};
  }

  bool HasTooManyRestarts() const {
    if (spec_["template"]["spec"]["restartPolicy"].str() != "OnFailure") return false;
    std::int64_t restarts = 0;
    for (const api::ObjectPtr& pod : state_.pods) {
      const Value status = (*pod)["status"];
      const std::string_view phase = status["phase"].str();
      if (phase != "Running" && phase != "Pending") continue;
      for (const api::FieldName list :
           api::FieldNames{"initContainerStatuses", "containerStatuses"}) {
        for (Value each : status[list].elements()) restarts += each["restartCount"].integer();
      }
    }
    const std::int64_t limit = spec_["backoffLimit"].integer(6);
    return limit == 0 ? restarts > 0 : restarts >= limit;
  }

  bool IsPastDeadline() {
    const Value seconds = spec_["activeDeadlineSeconds"];
    const std::optional<WallTime> start = TimeOf(before_["startTime"]);
    if (!seconds.has_value() || IsSuspended()) return false;
    const WallTime since = start.value_or(state_.now);
    const Duration left = since + api::BoundedSeconds(seconds.integer()) - state_.now;
    if (left <= Duration::zero()) return true;
    LookAgain(left);
    return false;
  }

  void MatchSuccessPolicy() {
    std::size_t index = 0;
    for (Value rule : spec_["successPolicy"]["rules"].elements()) {
      const std::size_t at = index++;
      const auto count = rule["succeededCount"].optional_integer();
      bool met = false;
      if (const Value indexes = rule["succeededIndexes"]; indexes.has_value()) {
        const IndexSet wanted = IndexSet::Parse(indexes.str(), *completions_);
        if (wanted.empty()) continue;
        const std::int64_t common = wanted.Common(succeeded_indexes_);
        met = common == wanted.size() || (count && common >= *count);
      } else {
        met = count && succeeded_indexes_.size() >= *count;
      }
      if (!met) continue;
      finish_ = Finish{true, "SuccessPolicy", StrCat("Matched rules at index ", at)};
      return;
    }
  }

  // Creates or deletes pods to match the number that the Job requests.
  void Manage() {
    if (IsSuspended()) {
      plan_.discard = active_;
    } else {
      MakeOrTakeAway();
    }
    const bool enough = completions_ ? succeeded_ >= *completions_ : succeeded_ > 0;
    if (enough && active_.empty() && plan_.create.empty()) {
      finish_ = Finish{true, "CompletionsReached", "Reached expected number of succeeded pods"};
    }
  }

  void MakeOrTakeAway() {
    const auto active = static_cast<std::int64_t>(active_.size());
    const std::int64_t parallelism = spec_["parallelism"].integer(1);
    std::int64_t wanted = parallelism;
    if (completions_) {
      wanted = std::clamp<std::int64_t>(*completions_ - succeeded_, 0, parallelism);
    } else if (succeeded_ > 0) {
      wanted = active;  // no new pods; running ones may finish
    }
    plan_.discard = TooMany(std::max<std::int64_t>(active - wanted, 0));
    if (!plan_.discard.empty()) return;
    const bool waits_for_the_end = spec_["podReplacementPolicy"].str() == "Failed";
    const std::int64_t missing = wanted - active - (waits_for_the_end ? terminating_ : 0);
    if (missing <= 0) return;
    if (!HasLimitPerIndex()) {
      const Duration wait =
          RemainingBackoff(plan_.backoff.failures, plan_.backoff.last_failure, state_.now);
      if (wait > Duration::zero()) return LookAgain(wait);
    }
    Create(std::min(static_cast<std::size_t>(missing), kMaxJobBurst), waits_for_the_end);
  }

  // Active pods above the desired number. For an Indexed Job, pods with a duplicate or invalid
  // index come first.
  std::vector<api::ObjectPtr> TooMany(std::int64_t extra) const {
    std::vector<api::ObjectPtr> ordered = InOrderOfDeletion(active_, {}, state_.now);
    std::vector<api::ObjectPtr> gone, rest;
    if (indexed_) {
      // Start with the pod that is kept longest; others with the same index are deleted.
      std::set<std::int64_t> seen;
      for (auto pod = ordered.rbegin(); pod != ordered.rend(); ++pod) {
        const bool keeps = IsValid(**pod) && seen.insert(*IndexOf(**pod)).second;
        (keeps ? rest : gone).push_back(*pod);
      }
      std::ranges::reverse(rest);
    } else {
      rest = std::move(ordered);
    }
    for (const api::ObjectPtr& pod : rest) {
      if (static_cast<std::int64_t>(gone.size()) >= extra) break;
      gone.push_back(pod);
    }
    if (gone.size() > kMaxJobBurst) gone.resize(kMaxJobBurst);
    return gone;
  }

  void Create(std::size_t count, bool waits_for_the_end) {
    if (!indexed_) {
      plan_.create.assign(count, JobPod(state_.job, std::nullopt, nullptr));
      return;
    }
    IndexSet taken = succeeded_indexes_;
    taken.AddAll(failed_indexes_);
    for (const api::ObjectPtr& pod : state_.pods) {
      const auto index = IndexOf(*pod);
      if (index && (IsActive(*pod) || (waits_for_the_end && IsTerminating(*pod)))) {
        taken.Add(*index);
      }
    }
    std::optional<Duration> shortest;
    for (const std::int64_t index : taken.FirstMissing(count, *completions_)) {
      const auto found = replaced_.find(index);
      const api::Object* replaced = found == replaced_.end() ? nullptr : found->second.get();
      if (replaced != nullptr) {
        const Duration wait =
            RemainingBackoff(AllIndexFailures(*replaced) + 1, FinishedAt(*replaced), state_.now);
        if (wait > Duration::zero()) {
          shortest = std::min(shortest.value_or(wait), wait);
          continue;
        }
      }
      plan_.create.push_back(JobPod(state_.job, index, replaced));
    }
    if (shortest) LookAgain(*shortest);
  }

  // Removes the finalizer of pods that are recorded, or that never will be.
  void PlanUntracking() {
    for (const api::ObjectPtr& pod : state_.pods) {
      if (IsTracked(*pod) && plan_.untrack.size() < kMaxUncounted && MayBeUntracked(*pod)) {
        plan_.untrack.push_back(pod);
      }
    }
  }

  bool MayBeUntracked(const api::Object& pod) const {
    if ((pod["status"]["phase"].str() == "Succeeded" && !failed_uids_.contains(pod.uid()))) {
      if (!IsValid(pod)) return true;
      return indexed_ ? noted_indexes_.Has(*IndexOf(pod)) : succeeded_uids_.contains(pod.uid());
    }
    const bool failed = IsFailedPod(pod, job_);
    const bool over = finish_ && finish_->is_noted;
    if (!failed && !over && !job_.is_being_deleted()) return false;
    if (failed && !over && !job_.is_being_deleted() && IsReplaced(pod)) return false;
    const bool counts = failed || (over && !finish_->success && !IsActive(pod));
    if (!counts) return over ? !IsActive(pod) : job_.is_being_deleted();
    if (!IsValid(pod) || !JudgeFailure(job_, pod).counts) return true;
    return failed_uids_.contains(pod.uid());
  }

  bool IsReplaced(const api::Object& pod) const {
    if (!HasLimitPerIndex()) return false;
    const auto index = IndexOf(pod);
    const auto found = index ? replaced_.find(*index) : replaced_.end();
    return found != replaced_.end() && found->second->uid() == pod.uid();
  }

  // --- the status

  void PlanStatus() {
    Draft body(job_.tree());
    Draft& status = body["status"];
    CountWhatIsUntracked(status);
    NoteEnds(status);
    const auto set = [&](api::FieldName field, std::int64_t number) {
      if (number != 0) {
        status[field] = number;
      } else {
        status.Remove(field);
      }
    };
    const std::int64_t active = static_cast<std::int64_t>(
        active_.size() + plan_.create.size() - plan_.remove.size() - plan_.discard.size());
    set("active", active);
    std::int64_t ready = 0;
    const std::vector<api::ObjectPtr>& going = plan_.remove.empty() ? plan_.discard : plan_.remove;
    for (const api::ObjectPtr& pod : active_) {
      ready += IsReady(*pod) && std::ranges::find(going, pod) == going.end();
    }
    status["ready"] = ready;
    status["terminating"] = terminating_ + static_cast<std::int64_t>(going.size());
    if (indexed_) {
      if (!succeeded_indexes_.empty()) {
        status["completedIndexes"] = succeeded_indexes_.ToString();
      }
      set("succeeded", succeeded_indexes_.size());
      if (HasLimitPerIndex()) status["failedIndexes"] = failed_indexes_.ToString();
    }
    if (!before_["startTime"].has_value() && !IsSuspended()) {
      status["startTime"] = api::FormatTime(state_.now);
    }
    PlanConditions(status, active);
    api::TreePtr made = body.Freeze();
    if (!api::Equal(made->root()["status"], before_)) plan_.status = std::move(made);
  }

  // Counts the uids of pods whose finalizer has been removed.
  void CountWhatIsUntracked(Draft& status) {
    if (!status["uncountedTerminatedPods"].has_value()) {
      status["uncountedTerminatedPods"] = Draft::Object();
    }
    for (const auto& [field, uids] : {std::pair(api::FieldName("succeeded"), &succeeded_uids_),
                                      std::pair(api::FieldName("failed"), &failed_uids_)}) {
      Draft left = Draft::Array();
      std::int64_t counted = 0;
      for (const std::string& uid : *uids) {
        if (tracked_.contains(uid)) {
          left.Append(uid);
        } else {
          ++counted;
        }
      }
      uncounted_ += left.size();
      if (counted > 0) status[field] = before_[field].integer() + counted;
      if (left.size() > 0) {
        status["uncountedTerminatedPods"][field] = std::move(left);
      } else {
        status["uncountedTerminatedPods"].Remove(field);
      }
    }
  }

  void NoteEnds(Draft& status) {
    Draft& uncounted = status["uncountedTerminatedPods"];
    if (!indexed_) {
      for (const api::ObjectPtr& pod : new_succeeded_) {
        if (uncounted_ >= kMaxUncounted) break;
        uncounted["succeeded"].Append(pod->uid());
        ++uncounted_;
      }
    } else if (new_succeeded_.size() > 0) {
      // Their indexes are recorded. They stay uncounted while they are tracked.
      uncounted_ += new_succeeded_.size();
    }
    for (const api::ObjectPtr& pod : new_failed_) {
      if (uncounted_ >= kMaxUncounted) break;
      if (!JudgeFailure(job_, *pod).counts) continue;
      uncounted["failed"].Append(pod->uid());
      ++uncounted_;
    }
    if (!finish_ || !finish_->is_noted || finish_->success) return;
    // A failed Job does not wait for the pods that it deleted to finish: they count as failed.
    for (const api::ObjectPtr& pod : state_.pods) {
      if (uncounted_ >= kMaxUncounted) break;
      if (!IsTracked(*pod) || !IsTerminating(*pod) || IsFailedPod(*pod, job_) || !IsValid(*pod) ||
          failed_uids_.contains(pod->uid()) || !JudgeFailure(job_, *pod).counts) {
        continue;
      }
      uncounted["failed"].Append(pod->uid());
      ++uncounted_;
    }
  }

  Draft Condition(std::string_view type, std::string_view status, std::string_view reason,
                  std::string_view message) const {
    const std::string now = api::FormatTime(state_.now);
    return {{"type", type},         {"status", status},
            {"lastProbeTime", now}, {"lastTransitionTime", now},
            {"reason", reason},     {"message", message}};
  }

  void PlanConditions(Draft& status, std::int64_t active) {
    Draft& conditions = status["conditions"];
    if (!finish_) {
      NoteSuspension(status);
      return;
    }
    if (!finish_->is_noted) {
      conditions.Append(Condition(finish_->success ? "SuccessCriteriaMet" : "FailureTarget", "True",
                                  finish_->reason, finish_->message));
    }
    const bool settled = active == 0 && terminating_ == 0 && plan_.remove.empty() &&
                         plan_.discard.empty() && plan_.untrack.empty() && uncounted_ == 0 &&
                         tracked_.empty();
    if (!settled) return;
    conditions.Append(Condition(finish_->success ? "Complete" : "Failed", "True", finish_->reason,
                                finish_->message));
    if (finish_->success) {
      status["completionTime"] = api::FormatTime(state_.now);
      if (completions_ && status["succeeded"].integer() > *completions_) {
        plan_.events.push_back({true, "TooManySucceededPods",
                                "Too many succeeded pods running after completion count reached"});
      }
      plan_.events.push_back({false, "Completed", "Job completed"});
    } else {
      plan_.events.push_back({true, finish_->reason, finish_->message});
    }
  }

  void NoteSuspension(Draft& status) {
    if (job_.is_being_deleted()) return;
    const Value known = FindCondition(before_, "Suspended");
    const bool suspended = IsSuspended();
    const bool was = known["status"].str() == "True";
    if (was == suspended) return;
    Draft conditions = Draft::Array();
    for (Value each : before_["conditions"].elements()) {
      if (each["type"].str() != "Suspended") conditions.Append(Draft(each));
    }
    conditions.Append(suspended ? Condition("Suspended", "True", "JobSuspended", "Job suspended")
                                : Condition("Suspended", "False", "JobResumed", "Job resumed"));
    status["conditions"] = std::move(conditions);
    if (suspended) {
      status.Remove("startTime");
      plan_.events.push_back({false, "Suspended", "Job suspended"});
    } else {
      // The active deadline starts over.
      status["startTime"] = api::FormatTime(state_.now);
      plan_.events.push_back({false, "Resumed", "Job resumed"});
    }
  }

  void LookAgain(Duration wait) {
    if (!plan_.look_again || wait < *plan_.look_again) plan_.look_again = wait;
  }

  const JobState& state_;
  const api::Object& job_;
  const Value spec_;
  const Value before_;
  const bool indexed_;
  const std::optional<std::int64_t> completions_;
  const Uids succeeded_uids_;  // recorded, not counted yet
  const Uids failed_uids_;
  Uids tracked_;
  std::vector<api::ObjectPtr> active_;
  std::int64_t terminating_ = 0;
  std::vector<api::ObjectPtr> new_succeeded_;
  std::vector<api::ObjectPtr> new_failed_;
  std::int64_t succeeded_ = 0;
  std::int64_t failed_ = 0;
  IndexSet noted_indexes_;  // succeeded indexes in the current status
  IndexSet succeeded_indexes_;
  IndexSet failed_indexes_;
  std::map<std::int64_t, api::ObjectPtr> replaced_;
  std::optional<Finish> finish_;
  std::size_t uncounted_ = 0;  // in the planned status
  JobPlan plan_;
};

}  // namespace

JobPlan PlanJob(const JobState& state) {
  return Pass(state).Run();
}

bool IsFinishedJob(const api::Object& job) {
  for (std::string_view type : {"Complete", "Failed"}) {
    if (FindCondition(job["status"], type)["status"].str() == "True") return true;
  }
  return false;
}

std::optional<WallTime> JobFinishedAt(const api::Object& job) {
  for (std::string_view type : {"Complete", "Failed"}) {
    const Value condition = FindCondition(job["status"], type);
    if (condition["status"].str() == "True") {
      return TimeOf(condition["lastTransitionTime"]);
    }
  }
  return std::nullopt;
}

}  // namespace drakkar::controllers
