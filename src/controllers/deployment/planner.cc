#include "controllers/deployment/planner.h"

#include <algorithm>
#include <cmath>

#include "api/scheme/scheme.h"
#include "base/text/text.h"
#include "controllers/deployment/annotations.h"
#include "controllers/deployment/status.h"
#include "controllers/workload/adoption.h"
#include "controllers/workload/pod_facts.h"
#include "controllers/workload/pod_from_template.h"

namespace drakkar::controllers {

namespace {

using api::Value;

constexpr std::string_view kHashLabel = "pod-template-hash";
constexpr std::size_t kMaxName = 253;

const api::KindSchema& DeploymentKind() {
  static const api::KindSchema* kind = api::FindKind("apps", "v1", "Deployment");
  return *kind;
}

std::int64_t ReplicasOf(const api::Object& set) {
  return set["spec"]["replicas"].integer(1);
}

std::int64_t AvailableOf(const api::Object& set) {
  return set["status"]["availableReplicas"].integer();
}

bool IsRolling(const api::Object& deployment) {
  return deployment["spec"]["strategy"]["type"].str() != "Recreate";
}

// Oldest first; sets of the same second are ordered by name.
bool IsOlder(const api::ObjectPtr& a, const api::ObjectPtr& b) {
  const std::string_view x = (*a)["metadata"]["creationTimestamp"].str();
  const std::string_view y = (*b)["metadata"]["creationTimestamp"].str();
  return x != y ? x < y : a->name() < b->name();
}

// One pass over a Deployment, with the planned size of each set.
class Rollout {
 public:
  explicit Rollout(const DeploymentState& state)
      : state_(state),
        deployment_(state.deployment),
        wanted_(ReplicasOf(state.deployment)),
        bounds_(BoundsOf(state.deployment)) {
    std::vector<api::ObjectPtr> sets = state.sets;
    std::ranges::sort(sets, IsOlder);
    for (const api::ObjectPtr& set : sets) {
      const bool is_new = new_ == kNoSet && IsSameTemplate((*set)["spec"]["template"],
                                                           deployment_["spec"]["template"]);
      if (is_new) new_ = sets_.size();
      sets_.push_back({set, ReplicasOf(*set)});
    }
  }

  DeploymentPlan Run() {
    if (deployment_.is_being_deleted()) return Finish(Progress::kIgnored);
    const bool paused = deployment_["spec"]["paused"].boolean();
    if (paused || WasScaled()) {
      ScaleProportionally();
      if (paused) CleanUp();
      return Finish(Progress::kIgnored);
    }
    if (IsRolling(deployment_)) {
      RollOut();
    } else {
      Recreate();
    }
    return Finish(Progress::kJudged);
  }

 private:
  struct Set {
    api::ObjectPtr object;
    std::int64_t size;    // planned size
    bool forced = false;  // update its annotations even if the size does not change
  };
  static constexpr std::size_t kNoSet = static_cast<std::size_t>(-1);
  enum class Progress { kIgnored, kJudged };

  Set* New() { return new_ == kNoSet ? nullptr : &sets_[new_]; }
  bool IsNew(const Set& set) const { return new_ != kNoSet && &set == &sets_[new_]; }

  std::vector<Set*> Olds() {
    std::vector<Set*> olds;
    for (Set& set : sets_) {
      if (!IsNew(set)) olds.push_back(&set);
    }
    return olds;
  }

  // Sets with a size above zero.
  std::vector<Set*> Active() {
    std::vector<Set*> active;
    for (Set& set : sets_) {
      if (set.size > 0) active.push_back(&set);
    }
    return active;
  }

  std::int64_t TotalSize() const {
    std::int64_t total = 0;
    for (const Set& set : sets_) total += set.size;
    return total;
  }

  // Whether the Deployment's size was changed since its sets were last resized.
  bool WasScaled() const {
    for (const Set& set : sets_) {
      if (set.size == 0) continue;
      const std::optional<std::int64_t> desired = DesiredReplicas(*set.object);
      if (desired && *desired != wanted_) return true;
    }
    return false;
  }

  // Distributes a change of size over the sets in proportion, so that scaling does not speed up a
  // rollout.
  void ScaleProportionally() {
    const std::vector<Set*> active = Active();
    if (active.size() <= 1) {
      Set* only = active.empty() ? New() : active.front();
      if (only == nullptr && !sets_.empty()) only = &sets_.back();
      if (only != nullptr) only->size = wanted_;
      return;
    }
    if (IsSaturated()) {
      for (Set* old : Olds()) old->size = 0;
      return;
    }
    if (!IsRolling(deployment_)) return;
    const std::int64_t allowed = wanted_ > 0 ? wanted_ + bounds_.surge : 0;
    const std::int64_t to_add = allowed - TotalSize();
    std::vector<Set*> ordered = active;
    std::ranges::sort(ordered, [&](const Set* a, const Set* b) {
      if (a->size != b->size) return a->size > b->size;
      return to_add > 0 ? IsOlder(b->object, a->object) : IsOlder(a->object, b->object);
    });
    std::int64_t added = 0;
    for (Set* set : ordered) {
      set->forced = true;
      const std::int64_t share = ShareOf(*set, to_add, added);
      set->size += share;
      added += share;
    }
    ordered.front()->size = std::max<std::int64_t>(ordered.front()->size + to_add - added, 0);
  }

  std::int64_t ShareOf(const Set& set, std::int64_t to_add, std::int64_t added) const {
    if (set.size == 0 || to_add == 0 || to_add == added) return 0;
    const std::int64_t fraction = FractionOf(set);
    return to_add > 0 ? std::min(fraction, to_add - added) : std::max(fraction, to_add - added);
  }

  std::int64_t FractionOf(const Set& set) const {
    if (wanted_ == 0) return -set.size;
    std::int64_t before = MaxReplicas(*set.object).value_or(0);
    if (before == 0) before = deployment_["status"]["replicas"].integer();
    if (before == 0) return 0;
    const double size =
        static_cast<double>(set.size * (wanted_ + bounds_.surge)) / static_cast<double>(before);
    return static_cast<std::int64_t>(std::lround(size)) - set.size;
  }

  bool IsSaturated() {
    const Set* set = New();
    return set != nullptr && set->size == wanted_ && DesiredReplicas(*set->object) == wanted_ &&
           AvailableOf(*set->object) == wanted_;
  }

  void RollOut() {
    if (New() == nullptr) {
      MakeNew();
      return;
    }
    Set& fresh = *New();
    if (fresh.size != wanted_) {
      fresh.size = fresh.size > wanted_ ? wanted_ : GrownSize(fresh.size);
      if (fresh.size != ReplicasOf(*fresh.object)) return;
    }
    if (ShrinkOlds(fresh)) return;
    CleanUpWhenComplete();
  }

  // The size that maxSurge allows.
  std::int64_t GrownSize(std::int64_t size) const {
    if (!IsRolling(deployment_)) return wanted_;
    const std::int64_t room = wanted_ + SurgeForGrowth() - TotalSize();
    return room <= 0 ? size : size + std::min(room, wanted_ - size);
  }

  std::int64_t SurgeForGrowth() const {
    return ScaledValue(deployment_["spec"]["strategy"]["rollingUpdate"]["maxSurge"], wanted_,
                       Rounding::kUp);
  }

  // Shrinks old sets while enough pods stay available, starting with pods that are not available.
  bool ShrinkOlds(const Set& fresh) {
    const std::vector<Set*> olds = Olds();
    const std::int64_t old_size = TotalSize() - fresh.size;
    if (old_size == 0) return false;
    const std::int64_t min_available = wanted_ - bounds_.unavailable;
    const std::int64_t fresh_unavailable = fresh.size - AvailableOf(*fresh.object);
    const std::int64_t most = TotalSize() - min_available - fresh_unavailable;
    if (most <= 0) return false;
    std::int64_t removed = 0;
    for (Set* old : olds) {
      const std::int64_t broken = old->size - AvailableOf(*old->object);
      const std::int64_t step = std::clamp<std::int64_t>(broken, 0, most - removed);
      old->size -= step;
      removed += step;
    }
    std::int64_t available = 0;
    for (const Set& set : sets_) available += AvailableOf(*set.object);
    std::int64_t spare = available - min_available;
    for (Set* old : olds) {
      const std::int64_t step = std::clamp<std::int64_t>(spare, 0, old->size);
      old->size -= step;
      spare -= step;
      removed += step;
    }
    return removed > 0;
  }

  // New pods must not run alongside pods of another template.
  void Recreate() {
    bool shrinks = false;
    for (Set* old : Olds()) {
      shrinks = shrinks || old->size > 0;
      old->size = 0;
    }
    if (shrinks) return;
    for (const Set* old : Olds()) {
      if ((*old->object)["status"]["replicas"].integer() > 0) return;
    }
    Set* fresh = New();
    if (state_.has_other_pods(fresh == nullptr ? nullptr : fresh->object.get())) return;
    if (fresh == nullptr) return MakeNew();
    fresh->size = wanted_;
    CleanUpWhenComplete();
  }

  void MakeNew() {
    const Value spec = deployment_["spec"];
    const std::string hash =
        TemplateHash(spec["template"], deployment_["status"]["collisionCount"].integer());
    DeploymentPlan::Create create;
    create.replicas = GrownSize(0);
    const std::size_t room = kMaxName - 1 - hash.size();
    create.name = StrCat(deployment_.name().substr(0, room), "-", hash);
    api::Draft set = api::Draft::Object();
    set.KeepAlive(deployment_.tree());
    api::Draft& metadata = set["metadata"];
    metadata["name"] = create.name;
    metadata["namespace"] = deployment_.namespace_();
    metadata["ownerReferences"].Append(ControllerReference(deployment_, DeploymentKind()));
    api::Draft labels(spec["template"]["metadata"]["labels"]);
    labels.Entry(kHashLabel) = hash;
    metadata["labels"] = labels;
    set["spec"]["replicas"] = create.replicas;
    if (const std::int64_t seconds = spec["minReadySeconds"].integer(); seconds != 0) {
      set["spec"]["minReadySeconds"] = seconds;
    }
    set["spec"]["selector"] = api::Draft(spec["selector"]);
    set["spec"]["selector"]["matchLabels"].Entry(kHashLabel) = hash;
    set["spec"]["template"] = api::Draft(spec["template"]);
    set["spec"]["template"]["metadata"]["labels"] = std::move(labels);
    CopyAnnotations(deployment_, metadata["annotations"]);
    SetRevision(metadata["annotations"], NewRevision());
    SetReplicas(metadata["annotations"], wanted_, wanted_ + bounds_.surge);
    create.set = set.Freeze();
    plan_.create = std::move(create);
  }

  std::int64_t NewRevision() const {
    std::int64_t highest = 0;
    for (const Set& set : sets_) {
      if (!IsNew(set)) highest = std::max(highest, RevisionOf(*set.object));
    }
    return highest + 1;
  }

  void CleanUpWhenComplete() {
    if (IsComplete(deployment_, deployment_["status"])) CleanUp();
  }

  // Deletes old sets beyond the history limit, lowest revision first.
  void CleanUp() {
    const Value limit = deployment_["spec"]["revisionHistoryLimit"];
    if (!limit.has_value() || limit.integer() == std::numeric_limits<std::int32_t>::max()) return;
    std::vector<api::ObjectPtr> olds;
    for (const Set* old : Olds()) {
      if (!old->object->is_being_deleted()) olds.push_back(old->object);
    }
    const std::int64_t extra = static_cast<std::int64_t>(olds.size()) - limit.integer();
    if (extra <= 0) return;
    std::ranges::stable_sort(olds, {}, [](const api::ObjectPtr& set) { return RevisionOf(*set); });
    olds.resize(static_cast<std::size_t>(extra));
    for (const api::ObjectPtr& set : olds) {
      const api::Value status = (*set)["status"];
      const bool settled =
          status["replicas"].integer() == 0 && ReplicasOf(*set) == 0 &&
          (*set)["metadata"]["generation"].integer() <= status["observedGeneration"].integer();
      if (settled) plan_.remove.push_back(set);
    }
  }

  // The new set is always kept in line with the Deployment; the others are updated only when they
  // are resized.
  void PlanUpdate(const Set& set) {
    const api::Object& object = *set.object;
    const std::int64_t size = ReplicasOf(object);
    api::Draft annotations(object["metadata"]["annotations"]);
    bool changes = size != set.size;
    if (changes || set.forced) {
      changes = SetReplicas(annotations, wanted_, wanted_ + bounds_.surge) || changes;
    }
    api::Draft body(object.tree());
    if (IsNew(set) && !deployment_.is_being_deleted()) {
      changes = CopyAnnotations(deployment_, annotations) || changes;
      changes = SetRevision(annotations, NewRevision()) || changes;
      const std::int64_t seconds = deployment_["spec"]["minReadySeconds"].integer();
      if (object["spec"]["minReadySeconds"].integer() != seconds) {
        body["spec"]["minReadySeconds"] = seconds;
        changes = true;
      }
    }
    if (!changes) return;
    body["spec"]["replicas"] = set.size;
    body["metadata"]["annotations"] = std::move(annotations);
    plan_.update.push_back({set.object, body.Freeze(), size, set.size});
  }

  DeploymentPlan Finish(Progress progress) {
    for (const Set& set : sets_) PlanUpdate(set);
    StatusInput input{.deployment = deployment_,
                      .wanted = wanted_,
                      .max_unavailable = bounds_.unavailable,
                      .now = state_.now};
    for (const Set& set : sets_) {
      input.sets.push_back(set.object);
      input.total_size += set.size;
    }
    if (const Set* fresh = New()) {
      input.fresh = fresh->object;
      // A set whose revision this plan changes has the new revision once the plan is done.
      input.revision = std::max(RevisionOf(*fresh->object), NewRevision());
    }
    if (plan_.create) {
      input.created = plan_.create->name;
      input.total_size += plan_.create->replicas;
      input.revision = NewRevision();
    }
    input.judges_progress = progress == Progress::kJudged;
    StatusPlan status = PlanDeploymentStatus(input);
    plan_.status = std::move(status.deployment);
    plan_.look_again = status.look_again;
    return std::move(plan_);
  }

  const DeploymentState& state_;
  const api::Object& deployment_;
  const std::int64_t wanted_;
  const RolloutBounds bounds_;
  std::vector<Set> sets_;  // oldest first
  std::size_t new_ = kNoSet;
  DeploymentPlan plan_;
};

}  // namespace

DeploymentPlan PlanDeployment(const DeploymentState& state) {
  return Rollout(state).Run();
}

RolloutBounds BoundsOf(const api::Object& deployment) {
  if (!IsRolling(deployment)) return {};
  const Value rolling = deployment["spec"]["strategy"]["rollingUpdate"];
  const std::int64_t wanted = ReplicasOf(deployment);
  RolloutBounds bounds{ScaledValue(rolling["maxSurge"], wanted, Rounding::kUp),
                       ScaledValue(rolling["maxUnavailable"], wanted, Rounding::kDown)};
  // Rounding must not produce a rollout that cannot make progress.
  if (bounds.surge == 0 && bounds.unavailable == 0) bounds.unavailable = 1;
  bounds.unavailable = std::min(bounds.unavailable, wanted);
  return bounds;
}

bool IsSameTemplate(Value a, Value b) {
  if (!api::Equal(a["spec"], b["spec"])) return false;
  const Value x = a["metadata"];
  const Value y = b["metadata"];
  const auto labels_of = [](Value labels) {
    std::vector<std::pair<std::string_view, std::string_view>> list;
    for (const auto& [key, name, value] : labels.members()) {
      if (name != kHashLabel) list.emplace_back(name, value.str());
    }
    std::ranges::sort(list);
    return list;
  };
  if (labels_of(x["labels"]) != labels_of(y["labels"])) return false;
  const auto same_or_empty = [](Value first, Value second) {
    return (first.empty() && second.empty()) || api::Equal(first, second);
  };
  return same_or_empty(x["annotations"], y["annotations"]) &&
         same_or_empty(x["finalizers"], y["finalizers"]) && x["name"].str() == y["name"].str();
}

}  // namespace drakkar::controllers
