#include "scheduler/binding/condition_waits.h"

#include <algorithm>
#include <optional>

#include "base/text/text.h"
#include "scheduler/binding/binding_conditions.h"

namespace drakkar::scheduler {

bool ConditionWaits::Check(const Entry& entry, Outcome& outcome) const {
  bool waiting = false;
  const MonotonicTime now = Now();
  std::optional<Outcome> failure;
  std::optional<Outcome> timeout;
  std::vector<std::string> unusable;
  for (const Claim& wanted : entry.claims) {
    const CachedClaim* claim = claims_.Find(wanted.key);
    if (claim == nullptr || claim->latest->uid() != wanted.uid) {
      outcome = {End::kGone, StrCat("claim ", wanted.key, " got deleted in the meantime"), {}};
      return true;
    }
    if (claim->allocation == nullptr) {
      outcome = {End::kGone,
                 StrCat("claim ", wanted.key, " got deallocated elsewhere in the meantime"),
                 {}};
      return true;
    }
    if (claim->latest->is_being_deleted()) {
      outcome = {End::kDeleted, StrCat("claim ", wanted.key, " is being deleted"), {wanted.key}};
      return true;
    }
    const BindingState state = EvaluateBinding(*claim);
    if (state.kind == BindingState::Kind::kFailed) {
      unusable.push_back(wanted.key);
      if (!failure) failure = Outcome{End::kFailed, DescribeBindingFailure(*claim, state)};
      continue;
    }
    if (state.kind != BindingState::Kind::kWaiting) continue;
    waiting = true;
    if (wanted.deadline > now) continue;
    unusable.push_back(wanted.key);
    if (!timeout) timeout = Outcome{End::kTimeout, DescribeBindingTimeout(*claim, state)};
  }
  if (failure || timeout) {
    outcome = std::move(failure ? *failure : *timeout);
    outcome.unusable = std::move(unusable);
    return true;
  }
  if (waiting) return false;
  outcome = {End::kReady, {}, {}};
  return true;
}

void ConditionWaits::Wait(const std::string& pod_uid, std::vector<Claim> claims, Callback done) {
  Entry& entry = waits_[pod_uid];
  entry.claims = std::move(claims);
  entry.done = std::move(done);
  for (const Claim& claim : entry.claims) {
    by_claim_[claim.key].insert(pod_uid);
    if (claim.deadline != kNoDeadline) deadlines_.emplace(claim.deadline, pod_uid);
  }
  // The conditions may already be True.
  loop_.Post(lifetime_.Guard([this, pod_uid] {
    const auto found = waits_.find(pod_uid);
    Outcome outcome;
    if (found != waits_.end() && Check(found->second, outcome)) {
      Finish(pod_uid, std::move(outcome));
    }
  }));
  ArmTimer();
}

void ConditionWaits::OnClaimChanged(const std::string& claim_key) {
  const auto found = by_claim_.find(claim_key);
  if (found == by_claim_.end()) return;
  const std::vector<std::string> waiters(found->second.begin(), found->second.end());
  for (const std::string& pod_uid : waiters) {
    const auto wait = waits_.find(pod_uid);
    Outcome outcome;
    if (wait != waits_.end() && Check(wait->second, outcome)) Finish(pod_uid, std::move(outcome));
  }
}

std::map<std::string, MonotonicTime> ConditionWaits::DeadlinesOf(const std::string& pod_uid) const {
  std::map<std::string, MonotonicTime> deadlines;
  const auto found = waits_.find(pod_uid);
  if (found == waits_.end()) return deadlines;
  for (const Claim& claim : found->second.claims) {
    if (claim.deadline != kNoDeadline) deadlines[claim.key] = claim.deadline;
  }
  return deadlines;
}

void ConditionWaits::Cancel(const std::string& pod_uid) {
  if (waits_.contains(pod_uid)) Finish(pod_uid, {End::kCancelled, "the pod is gone", {}});
}

void ConditionWaits::EndForNode(const std::string& pod_uid, const std::string& why) {
  const auto found = waits_.find(pod_uid);
  if (found == waits_.end()) return;
  Outcome outcome{End::kNodeLost, why, {}};
  for (const Claim& wanted : found->second.claims) {
    const CachedClaim* claim = claims_.Find(wanted.key);
    if (claim == nullptr || claim->latest->uid() != wanted.uid) continue;
    if (EvaluateBinding(*claim).kind == BindingState::Kind::kWaiting) {
      outcome.unusable.push_back(wanted.key);
    }
  }
  Finish(pod_uid, std::move(outcome));
}

void ConditionWaits::Finish(const std::string& pod_uid_in, Outcome outcome) {
  const std::string pod_uid = pod_uid_in;
  auto node = waits_.extract(pod_uid);
  Entry& entry = node.mapped();
  for (const Claim& claim : entry.claims) {
    deadlines_.erase({claim.deadline, pod_uid});
    const auto found = by_claim_.find(claim.key);
    if (found == by_claim_.end()) continue;
    found->second.erase(pod_uid);
    if (found->second.empty()) by_claim_.erase(found);
  }
  ArmTimer();
  entry.done(std::move(outcome));
}

void ConditionWaits::ArmTimer() {
  if (deadlines_.empty()) {
    timer_.reset();
    return;
  }
  const MonotonicTime next = deadlines_.begin()->first;
  if (timer_ != nullptr && timer_for_ == next) return;
  timer_for_ = next;
  timer_ = loop_.RunAfter(std::max(next - Now(), Duration::zero()), [this] {
    timer_.reset();
    std::set<std::string> due;
    while (!deadlines_.empty() && deadlines_.begin()->first <= Now()) {
      due.insert(deadlines_.begin()->second);
      deadlines_.erase(deadlines_.begin());
    }
    for (const std::string& pod_uid : due) {
      const auto wait = waits_.find(pod_uid);
      Outcome outcome;
      if (wait != waits_.end() && Check(wait->second, outcome)) Finish(pod_uid, std::move(outcome));
    }
    ArmTimer();
  });
}

}  // namespace drakkar::scheduler
