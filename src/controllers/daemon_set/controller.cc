#include "controllers/daemon_set/controller.h"

#include <memory>

#include "api/scheme/scheme.h"
#include "base/text/text.h"
#include "controllers/workload/adoption.h"
#include "controllers/workload/pod_facts.h"
#include "controllers/workload/pod_from_template.h"

namespace drakkar::controllers {

namespace {

constexpr std::string_view kGenerationAnnotation = "deprecated.daemonset.template.generation";
constexpr std::string_view kGenerationLabel = "pod-template-generation";

constexpr Backoff::Options kFailedPods = {.initial = std::chrono::seconds(1),
                                          .max = std::chrono::minutes(15)};

// Whether two versions of a pod are equal in everything that its set depends on.
bool IsSameForItsSet(const api::Object& before, const api::Object& after) {
  return before.is_being_deleted() == after.is_being_deleted() &&
         before["status"]["phase"].str() == after["status"]["phase"].str() &&
         before["spec"]["nodeName"].str() == after["spec"]["nodeName"].str() &&
         api::Equal(FindCondition(before["status"], "Ready"),
                    FindCondition(after["status"], "Ready")) &&
         api::Equal(before["metadata"]["labels"], after["metadata"]["labels"]) &&
         ControllerOf(before)["uid"].str() == ControllerOf(after)["uid"].str();
}

api::TreePtr PodFor(const api::ObjectPtr& set, const api::KindSchema& kind,
                    const DaemonPlacement& placement, std::string_view hash,
                    std::string_view node) {
  api::Draft pod = PodFromTemplate(set, kind, (*set)["spec"]["template"]);
  api::Draft& labels = pod["metadata"]["labels"];
  labels.Entry(kDaemonHashLabel) = hash;
  const std::string_view generation =
      (*set)["metadata"]["annotations"].Entry(kGenerationAnnotation).str();
  if (!generation.empty()) labels.Entry(kGenerationLabel) = generation;
  pod["spec"]["tolerations"] = api::Draft(placement.tolerations());
  AimAtNode(pod["spec"], node);
  return pod.Freeze();
}

}  // namespace

DaemonSetController::DaemonSetController(Options options)
    : options_(options),
      client_(options.client),
      selectors_(options.sets),
      writer_({.loop = options.loop,
               .client = client_,
               .dependents = options.pods.informer(),
               .owner_kind = options.sets.kind(),
               .words = PodWords(options.events)}),
      revisions_({.loop = options.loop,
                  .client = client_,
                  .revisions = options.revisions,
                  .owner_kind = options.sets.kind(),
                  .hash_label = kDaemonHashLabel}),
      queue_(options.loop, options.random, {"daemonset"},
             [this](const std::string& name, Done done) { Sync(name, std::move(done)); }),
      owners_(options.sets, selectors_, queue_) {
  options_.sets.AddHandlers({.on_add = [this](const api::ObjectPtr& set) { OnSet(nullptr, set); },
                             .on_update = [this](const api::ObjectPtr& before,
                                                 const api::ObjectPtr& set) { OnSet(before, set); },
                             .on_delete =
                                 [this](const api::ObjectPtr& set) {
                                   writer_.Forget(set->uid());
                                   revisions_.Forget(set->uid());
                                   placements_.erase(set->qualified_name());
                                   failing_.erase(std::string(set->uid()));
                                 }});
  options_.nodes.AddHandlers(
      {.on_add = [this](const api::ObjectPtr& node) { OnNode(nullptr, node); },
       .on_update = [this](const api::ObjectPtr& before,
                           const api::ObjectPtr& node) { OnNode(before, node); },
       .on_delete = [this](const api::ObjectPtr& node) { OnNode(node, nullptr); }});
  client::Informer& pods = options_.pods.informer();
  owners_.FollowPods(pods, IsSameForItsSet);
  client::Informer& revisions = options_.revisions.informer();
  owners_.FollowCreated(revisions);
  pods.OnSynced([this] { owners_.QueueAll(); });
  revisions.OnSynced([this] { owners_.QueueAll(); });
  options_.nodes.OnSynced([this] { owners_.QueueAll(); });
}

void DaemonSetController::OnSet(const api::ObjectPtr& before, const api::ObjectPtr& set) {
  const bool same = before != nullptr && (*before)["metadata"]["generation"].integer() ==
                                             (*set)["metadata"]["generation"].integer();
  // Ignore our own status updates.
  if (same && before->is_being_deleted() == set->is_being_deleted() &&
      api::Equal((*before)["status"]["collisionCount"], (*set)["status"]["collisionCount"])) {
    return;
  }
  if (!same) {
    placements_.insert_or_assign(set->qualified_name(), DaemonPlacement(*set));
    failing_.erase(std::string(set->uid()));
  }
  queue_.Add(set->qualified_name());
}

// Queues the sets for which the node changed. Most updates of a node are heartbeats.
void DaemonSetController::OnNode(const api::ObjectPtr& before, const api::ObjectPtr& node) {
  if (before != nullptr && node != nullptr &&
      api::Equal((*before)["metadata"]["labels"], (*node)["metadata"]["labels"]) &&
      api::Equal((*before)["spec"]["taints"], (*node)["spec"]["taints"])) {
    return;
  }
  for (const auto& [name, placement] : placements_) {
    const auto judge = [&placement = placement](const api::ObjectPtr& each) {
      return each == nullptr ? std::pair(false, false)
                             : std::pair(placement.ShouldRun(*each), placement.MayStay(*each));
    };
    if (judge(before) != judge(node)) queue_.Add(name);
  }
}

bool DaemonSetController::IsUpToDate(std::string_view uid) {
  return options_.pods.informer().has_synced() && options_.nodes.has_synced() &&
         options_.revisions.informer().has_synced() && writer_.IsUpToDate(uid) &&
         revisions_.IsUpToDate(uid);
}

void DaemonSetController::Sync(const std::string& name, Done done) {
  const api::ObjectPtr set = options_.sets.Find(name);
  const api::LabelSelector* selector = selectors_.Find(name);
  if (set == nullptr || selector == nullptr || !IsUpToDate(set->uid())) return done(Ok());
  // Its revisions may have been deleted before its pods, so its status cannot be computed any more.
  if (set->is_being_deleted()) return done(Ok());
  Adoption adoption = PlanAdoption(*set, *selector, options_.pods);
  if (!adoption.adopt.empty() || !adoption.release.empty()) {
    return writer_.AdoptAndRelease(set, std::move(adoption.adopt), std::move(adoption.release),
                                   [done = std::move(done)](DependentWriter::Outcome outcome) {
                                     done(outcome.error ? Result<void>(*outcome.error) : Ok());
                                   });
  }
  std::vector<api::ObjectPtr> history;
  const api::ObjectPtr revision = revisions_.Ensure(set, *selector, history, done);
  if (revision == nullptr) return;
  const std::string_view hash =
      (*revision)["metadata"]["labels"].Entry(kDaemonHashLabel).str(revision->name());
  std::vector<api::ObjectPtr> nodes;
  nodes.reserve(options_.nodes.objects().size());
  for (const auto& [node_name, node] : options_.nodes.objects()) nodes.push_back(node);
  const DaemonState state{.set = *set,
                          .placement = placements_.at(name),
                          .hash = hash,
                          .nodes = nodes,
                          .pods = adoption.owned,
                          .now = options_.loop.clock().Now()};
  DaemonPlan plan = PlanDaemons(state);
  if (const std::optional<Duration> wait = TakeEnded(set, plan)) {
    done = [this, name, wait, done = std::move(done)](Result<void> result) {
      const bool ok = result.ok();  // failures are retried with backoff
      done(std::move(result));
      if (ok) queue_.AddAfter(name, *wait);
    };
  }
  if (plan.create.empty() && plan.remove.empty()) plan = PlanDaemonRollout(state);
  revisions_.CleanUp(set, std::move(history), [&](const api::Object& each) {
    if (each.uid() == revision->uid()) return true;
    const std::string_view its = each["metadata"]["labels"].Entry(kDaemonHashLabel).str();
    for (const auto& [pod_name, pod] : options_.pods.Of(set->uid())) {
      if ((*pod)["metadata"]["labels"].Entry(kDaemonHashLabel).str() == its) return true;
    }
    return false;
  });
  CarryOut(set, state, std::move(plan), std::move(done));
}

// Moves pods that have ended to those to delete. Returns when to look again at failed pods that are
// not deleted yet.
std::optional<Duration> DaemonSetController::TakeEnded(const api::ObjectPtr& set,
                                                       DaemonPlan& plan) {
  const auto describe = [](const api::Object& pod, std::string_view how, std::string_view what) {
    return StrCat("Found ", how, " daemon pod ", pod.qualified_name(), " on node ", TargetNode(pod),
                  ", will try to ", what, " it");
  };
  std::optional<Duration> next;
  for (const api::ObjectPtr& pod : plan.failed) {
    const Duration wait = UntilReplaced(*set, *pod);
    if (wait > Duration::zero()) {
      next = std::min(wait, next.value_or(wait));
      continue;
    }
    options_.events.Warning(set, "FailedDaemonPod", describe(*pod, "failed", "kill"));
    plan.remove.push_back(pod);
  }
  for (const api::ObjectPtr& pod : plan.succeeded) {
    options_.events.Normal(set, "SucceededDaemonPod", describe(*pod, "succeeded", "delete"));
    plan.remove.push_back(pod);
  }
  plan.failed.clear();
  plan.succeeded.clear();
  return next;
}

// Back off if a node rejects every pod. Zero: replace it now.
Duration DaemonSetController::UntilReplaced(const api::Object& set, const api::Object& failed_pod) {
  const MonotonicTime now = options_.loop.clock().Monotonic();
  auto& by_node = failing_[std::string(set.uid())];
  // Nodes whose pods have not failed for a long time start over. This also bounds the map.
  std::erase_if(by_node,
                [&](const auto& each) { return each.second.until + kFailedPods.max < now; });
  Failing& failing =
      by_node.try_emplace(std::string(TargetNode(failed_pod)), Failing{Backoff(kFailedPods)})
          .first->second;
  if (now < failing.until) return failing.until - now;
  failing.until = now + failing.backoff.Next();
  return Duration::zero();
}

void DaemonSetController::CarryOut(const api::ObjectPtr& set, const DaemonState& state,
                                   DaemonPlan plan, Done done) {
  if (plan.create.empty() && plan.remove.empty()) return WriteStatus(set, state, std::move(done));
  std::vector<api::TreePtr> bodies;
  for (const std::string& node : plan.create) {
    bodies.push_back(PodFor(set, options_.sets.kind(), state.placement, state.hash, node));
  }
  // The results arrive as events about pods, after which the status is written.
  struct Work {
    int waiting = 2;
    std::optional<Error> error;
  };
  auto work = std::make_shared<Work>();
  const auto finish = [work, done = std::move(done)](DependentWriter::Outcome outcome) {
    if (outcome.error) work->error = outcome.error;
    if (--work->waiting == 0) done(work->error ? Result<void>(*work->error) : Ok());
  };
  writer_.Create(set, std::move(bodies), finish);
  writer_.Delete(set, std::move(plan.remove), finish);
}

void DaemonSetController::WriteStatus(const api::ObjectPtr& set, const DaemonState& state,
                                      Done done) {
  if (const std::optional<Duration> wait = NextDaemonAvailability(state)) {
    // Add a second, because times in conditions are truncated to seconds.
    done = [this, name = set->qualified_name(), wait, done = std::move(done)](Result<void> result) {
      const bool ok = result.ok();  // failures are retried with backoff
      done(std::move(result));
      if (ok) queue_.AddAfter(name, *wait + std::chrono::seconds(1));
    };
  }
  std::optional<api::Draft> status = PlanDaemonStatus(state);
  if (!status) return done(Ok());
  api::Draft body(set->tree());
  body["status"] = std::move(*status);
  client_.Update(
      {&options_.sets.kind(), std::string(set->namespace_()), std::string(set->name()), "status"},
      body.Freeze(), {}, [done = std::move(done)](client::Reply reply) {
        const bool over = reply.ok() || reply.error->code == ErrorCode::kNotFound;
        done(over ? Ok() : Result<void>(*reply.error));
      });
}

}  // namespace drakkar::controllers
