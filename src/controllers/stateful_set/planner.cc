#include "controllers/stateful_set/planner.h"

#include <algorithm>
#include <map>

#include "controllers/workload/pod_facts.h"
#include "controllers/workload/revisions.h"
#include "controllers/workload/scaled_value.h"

namespace drakkar::controllers {

namespace {

using api::Value;

bool IsRunningAndReady(const api::Object& pod) {
  return pod["status"]["phase"].str() == "Running" && IsReady(pod);
}

std::string_view RevisionOf(const api::Object& pod) {
  return pod["metadata"]["labels"].Entry(kPodRevisionLabel).str();
}

// One pass over a StatefulSet. With OrderedReady, pods are created in order, each once its
// predecessors are available, and deleted in reverse order, one step per pass. With Parallel, a
// pass takes all steps together.
class Pass {
 public:
  explicit Pass(const StatefulState& state)
      : state_(state),
        set_(*state.set),
        min_ready_(std::chrono::seconds(set_["spec"]["minReadySeconds"].integer())),
        ordered_(set_["spec"]["podManagementPolicy"].str() != "Parallel"),
        start_(StartOrdinal(set_)),
        wanted_(std::max<std::int64_t>(0, EndOrdinal(set_) - start_)) {
    for (const api::ObjectPtr& pod : state.pods) {
      const std::int64_t ordinal = OrdinalOf(set_, *pod).value_or(-1);
      if (ordinal < 0) continue;
      if (ordinal >= start_ && ordinal < start_ + wanted_) {
        replicas_[ordinal] = pod;
      } else {
        condemned_.push_back(pod);
      }
    }
    std::ranges::sort(condemned_, std::greater<>(), [this](const api::ObjectPtr& pod) {
      return OrdinalOf(set_, *pod).value_or(-1);
    });
  }

  StatefulPlan Run() {
    Count();
    if (!set_.is_being_deleted() && Replicas() && Condemned()) Update();
    Trim();
    PlanStatus();
    return std::move(plan_);
  }

 private:
  bool IsUnavailable(const api::ObjectPtr& pod) const {
    return pod->is_being_deleted() || !IsAvailable(*pod, min_ready_, state_.now);
  }

  void Count() {
    for (const api::ObjectPtr& pod : state_.pods) {
      ++counts_.replicas;
      if (IsRunningAndReady(*pod)) {
        ++counts_.ready;
        counts_.available += IsAvailable(*pod, min_ready_, state_.now);
      }
      const std::optional<Duration> wait = UntilAvailable(*pod, min_ready_, state_.now);
      if (wait && (!plan_.look_again || *wait < *plan_.look_again)) plan_.look_again = wait;
      if (pod->is_being_deleted()) continue;
      counts_.current += RevisionOf(*pod) == state_.current->name();
      counts_.updated += RevisionOf(*pod) == state_.update->name();
    }
  }

  // Whether the pass may continue with what comes after the replicas.
  bool Replicas() {
    for (std::int64_t ordinal = start_; ordinal < start_ + wanted_; ++ordinal) {
      if (!Replica(ordinal) && ordered_) return false;
      if (plan_.create.size() >= kMaxStatefulBurst) return false;
    }
    return plan_.blocked_by.empty();
  }

  // True if the pod is as it should be.
  bool Replica(std::int64_t ordinal) {
    const auto found = replicas_.find(ordinal);
    if (found == replicas_.end()) {
      Create(ordinal);
      return false;
    }
    const api::ObjectPtr& pod = found->second;
    if (IsTerminal(*pod)) {
      // Its successor is created once the name is free.
      Remove(pod);
      return false;
    }
    if ((*pod)["status"]["phase"].str() == "Pending" && !MakeClaims(ordinal)) return false;
    if (ordered_ && IsUnavailable(pod)) return false;
    if (ordered_ && !IsRunningAndReady(*pod)) return false;
    FixClaimOwners(*pod);
    if (!HasIdentity(set_, *pod)) plan_.pods.push_back({pod, WithIdentity(set_, *pod)});
    return true;
  }

  void Create(std::int64_t ordinal) {
    const std::string name = PodNameOf(set_, ordinal);
    for (const StatefulClaim& claim : ClaimsOf(set_, ordinal)) {
      const api::ObjectPtr found = state_.find_claim(claim.name);
      if (found != nullptr && IsStaleClaim(set_, *found, name, "")) {
        plan_.blocked_by = claim.name;
        return;
      }
    }
    if (!MakeClaims(ordinal)) return;
    const Value rolling = set_["spec"]["updateStrategy"]["rollingUpdate"];
    const bool is_rolling = set_["spec"]["updateStrategy"]["type"].str() == "RollingUpdate";
    const std::int64_t old_below = rolling.has_value() ? rolling["partition"].integer()
                                   : is_rolling        ? set_["status"]["currentReplicas"].integer()
                                                       : 0;
    const bool old = ordinal < start_ + old_below;
    plan_.create.push_back(
        old ? StatefulPod(state_.set, OldTemplate()->root(), state_.current->name(), ordinal)
            : StatefulPod(state_.set, set_["spec"]["template"], state_.update->name(), ordinal));
  }

  const api::TreePtr& OldTemplate() {
    if (old_template_ == nullptr) old_template_ = TemplateOf(*state_.current);
    return old_template_;
  }

  // False if a claim is being deleted.
  bool MakeClaims(std::int64_t ordinal) {
    for (StatefulClaim& claim : ClaimsOf(set_, ordinal)) {
      const api::ObjectPtr found = state_.find_claim(claim.name);
      if (found == nullptr) {
        plan_.claims.push_back(std::move(claim));
      } else if (found->is_being_deleted()) {
        plan_.blocked_by = claim.name;
        return false;
      }
    }
    return true;
  }

  void FixClaimOwners(const api::Object& pod) {
    for (const StatefulClaim& claim : ClaimsOf(set_, OrdinalOf(set_, pod).value_or(-1))) {
      const api::ObjectPtr found = state_.find_claim(claim.name);
      if (found == nullptr) continue;
      if (api::TreePtr body = WithOwners(set_, pod, *found)) {
        plan_.claim_owners.push_back({found, std::move(body)});
      }
    }
  }

  // Whether the pass may continue with the update.
  bool Condemned() {
    const api::Object* first_unavailable = nullptr;
    const auto consider = [&](const api::ObjectPtr& pod) {
      if (first_unavailable == nullptr && IsUnavailable(pod)) first_unavailable = pod.get();
    };
    for (const auto& [ordinal, pod] : replicas_) consider(pod);
    for (auto it = condemned_.rbegin(); it != condemned_.rend(); ++it) consider(*it);
    for (const api::ObjectPtr& pod : condemned_) FixClaimOwners(*pod);
    for (const api::ObjectPtr& pod : condemned_) {
      if (pod->is_being_deleted()) {
        if (ordered_) return false;
        continue;
      }
      if (ordered_ && pod.get() != first_unavailable &&
          (!IsRunningAndReady(*pod) || IsUnavailable(pod))) {
        return false;
      }
      Remove(pod);
      if (ordered_) return false;
    }
    return true;
  }

  // Deletes pods of another revision, highest ordinal first, while at most maxUnavailable pods are
  // unavailable.
  void Update() {
    const Value strategy = set_["spec"]["updateStrategy"];
    if (strategy["type"].str() != "RollingUpdate" || !plan_.create.empty()) return;
    const Value rolling = strategy["rollingUpdate"];
    const std::int64_t first = start_ + rolling["partition"].integer();
    const Value given = rolling["maxUnavailable"];
    const std::int64_t allowed =
        given.has_value() ? std::max<std::int64_t>(1, ScaledValue(given, wanted_, Rounding::kDown))
                          : 1;
    std::int64_t unavailable = wanted_;
    for (const auto& [ordinal, pod] : replicas_) unavailable -= !IsUnavailable(pod);
    const auto is_old = [&](const api::ObjectPtr& pod) {
      return RevisionOf(*pod) != state_.update->name() && !pod->is_being_deleted();
    };
    const auto each_from_the_end = [&](const auto& visit) {
      for (auto each = replicas_.rbegin(); each != replicas_.rend(); ++each) {
        if (each->first < first || !visit(each->second)) return;
      }
    };
    if (!ordered_) {
      // Start with pods that are unavailable anyway, so that the update does not stop working pods
      // instead.
      each_from_the_end([&](const api::ObjectPtr& pod) {
        if (is_old(pod) && IsUnavailable(pod)) RemoveForUpdate(pod);
        return true;
      });
    }
    each_from_the_end([&](const api::ObjectPtr& pod) {
      if (unavailable >= allowed) return false;
      if (is_old(pod) && (ordered_ || !IsUnavailable(pod))) {
        RemoveForUpdate(pod);
        ++unavailable;
      }
      return true;
    });
  }

  void RemoveForUpdate(const api::ObjectPtr& pod) {
    Remove(pod);
    if (counts_.current > 0 && RevisionOf(*pod) == state_.current->name()) --counts_.current;
  }

  void Remove(const api::ObjectPtr& pod) {
    if (!pod->is_being_deleted()) plan_.remove.push_back(pod);
  }

  void Trim() {
    if (plan_.create.size() > kMaxStatefulBurst) plan_.create.resize(kMaxStatefulBurst);
    if (plan_.remove.size() > kMaxStatefulBurst) plan_.remove.resize(kMaxStatefulBurst);
  }

  void PlanStatus() {
    std::string_view current = state_.current->name();
    if (counts_.updated == wanted_ && counts_.ready == wanted_ && counts_.replicas == wanted_) {
      counts_.current = counts_.updated;
      current = state_.update->name();
    }
    const Value before = set_["status"];
    struct Number {
      api::FieldName field;
      std::int64_t value;
      bool always;
    };
    const Number numbers[] = {
        {"observedGeneration", set_["metadata"]["generation"].integer(), false},
        {"replicas", counts_.replicas, true},
        {"readyReplicas", counts_.ready, false},
        {"currentReplicas", counts_.current, false},
        {"updatedReplicas", counts_.updated, false},
        {"availableReplicas", counts_.available, true}};
    const bool same = before["currentRevision"].str() == current &&
                      before["updateRevision"].str() == state_.update->name() &&
                      before["collisionCount"].exists() &&
                      std::ranges::all_of(numbers, [&](const Number& number) {
                        return before[number.field].integer() == number.value;
                      });
    if (same) return;
    api::Draft status(before);
    status.KeepAlive(set_.tree());
    for (const Number& number : numbers) {
      if (number.value != 0 || number.always) {
        status[number.field] = number.value;
      } else {
        status.Remove(number.field);
      }
    }
    status["currentRevision"] = current;
    status["updateRevision"] = state_.update->name();
    status["collisionCount"] = before["collisionCount"].integer();
    plan_.status = std::move(status);
  }

  struct Counts {
    std::int64_t replicas = 0, ready = 0, available = 0, current = 0, updated = 0;
  };

  const StatefulState& state_;
  const api::Object& set_;
  const Duration min_ready_;
  const bool ordered_;
  const std::int64_t start_;
  const std::int64_t wanted_;
  std::map<std::int64_t, api::ObjectPtr> replicas_;  // those that exist, by ordinal
  std::vector<api::ObjectPtr> condemned_;            // beyond the set's size; highest first
  Counts counts_;
  api::TreePtr old_template_;
  StatefulPlan plan_;
};

}  // namespace

StatefulPlan PlanStateful(const StatefulState& state) {
  return Pass(state).Run();
}

}  // namespace drakkar::controllers
