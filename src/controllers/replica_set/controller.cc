#include "controllers/replica_set/controller.h"

#include "api/scheme/scheme.h"
#include "base/text/text.h"
#include "controllers/replica_set/planner.h"
#include "controllers/workload/adoption.h"
#include "controllers/workload/pod_facts.h"
#include "controllers/workload/pod_from_template.h"

namespace drakkar::controllers {

namespace {

// Whether two versions of a pod are equal in everything that its set's size or status depends on.
bool IsSameForItsSet(const api::Object& before, const api::Object& after) {
  return before.is_being_deleted() == after.is_being_deleted() &&
         before["status"]["phase"].str() == after["status"]["phase"].str() &&
         api::Equal(FindCondition(before["status"], "Ready"),
                    FindCondition(after["status"], "Ready")) &&
         api::Equal(before["metadata"]["labels"], after["metadata"]["labels"]) &&
         ControllerOf(before)["uid"].str() == ControllerOf(after)["uid"].str();
}

}  // namespace

ReplicaSetController::ReplicaSetController(Options options)
    : options_(options),
      client_(options.client),
      selectors_(options.sets, options.kind == Kind::kReplicaSet ? SelectorIndex::ReadLabelSelector
                                                                 : SelectorIndex::ReadMap),
      writer_({.loop = options.loop,
               .client = client_,
               .dependents = options.pods.informer(),
               .owner_kind = options.sets.kind(),
               .words = PodWords(options.events)}),
      queue_(options.loop, options.random,
             {options.kind == Kind::kReplicaSet ? "replicaset" : "replicationcontroller"},
             [this](const std::string& name, Done done) { Sync(name, std::move(done)); }),
      owners_(options.sets, selectors_, queue_) {
  options_.sets.AddHandlers(
      {.on_add = [this](const api::ObjectPtr& set) { queue_.Add(set->qualified_name()); },
       .on_update =
           [this](const api::ObjectPtr& before, const api::ObjectPtr& after) {
             // Ignore our own status updates.
             if ((*before)["metadata"]["generation"].integer() ==
                     (*after)["metadata"]["generation"].integer() &&
                 before->is_being_deleted() == after->is_being_deleted()) {
               return;
             }
             queue_.Add(after->qualified_name());
           },
       .on_delete =
           [this](const api::ObjectPtr& set) {
             writer_.Forget(set->uid());
             queue_.Add(set->qualified_name());
           }});
  client::Informer& pods = options_.pods.informer();
  owners_.FollowPods(pods, IsSameForItsSet);
  pods.OnSynced([this] { owners_.QueueAll(); });
}

void ReplicaSetController::Sync(const std::string& name, Done done) {
  const api::ObjectPtr set = options_.sets.Find(name);
  const api::LabelSelector* selector = selectors_.Find(name);
  if (set == nullptr || selector == nullptr || !options_.pods.informer().has_synced() ||
      !writer_.IsUpToDate(set->uid())) {
    return done(Ok());
  }
  Adoption adoption = PlanAdoption(*set, *selector, options_.pods, IsActive);
  if (!adoption.adopt.empty() || !adoption.release.empty()) {
    // The events of the changed pods queue the set again.
    return writer_.AdoptAndRelease(set, std::move(adoption.adopt), std::move(adoption.release),
                                   [done = std::move(done)](DependentWriter::Outcome outcome) {
                                     done(outcome.error ? Result<void>(*outcome.error) : Ok());
                                   });
  }
  std::erase_if(adoption.owned, [](const api::ObjectPtr& pod) { return !IsActive(*pod); });
  if (set->is_being_deleted()) {
    return WriteStatus(set, adoption.owned, "", std::nullopt, std::move(done));
  }
  Scale(set, std::move(adoption.owned), std::move(done));
}

void ReplicaSetController::Scale(const api::ObjectPtr& set, std::vector<api::ObjectPtr> active,
                                 Done done) {
  const std::int64_t wanted = (*set)["spec"]["replicas"].integer(1);
  const WallTime now = options_.loop.clock().Now();
  ReplicaPlan plan =
      PlanReplicas(wanted, active,
                   active.size() > static_cast<std::size_t>(std::max<std::int64_t>(wanted, 0))
                       ? RelatedPodsPerNode(*set)
                       : std::map<std::string, int, std::less<>>(),
                   now);
  auto finish = [this, set, active, done = std::move(done)](std::string_view reason,
                                                            DependentWriter::Outcome outcome) {
    // The results arrive as events about pods. The status is then written once.
    if (!outcome.error && outcome.done > 0) return done(Ok());
    WriteStatus(set, active, outcome.error ? reason : "", outcome.error, done);
  };
  if (plan.create > 0) {
    const api::TreePtr pod =
        PodFromTemplate(set, options_.sets.kind(), (*set)["spec"]["template"]).Freeze();
    return writer_.Create(
        set, std::vector<api::TreePtr>(plan.create, pod),
        [finish](DependentWriter::Outcome outcome) { finish("FailedCreate", std::move(outcome)); });
  }
  writer_.Delete(set, std::move(plan.remove), [finish](DependentWriter::Outcome outcome) {
    finish("FailedDelete", std::move(outcome));
  });
}

void ReplicaSetController::WriteStatus(const api::ObjectPtr& set,
                                       const std::vector<api::ObjectPtr>& active,
                                       std::string_view failure_reason,
                                       std::optional<Error> failure, Done done) {
  const WallTime now = options_.loop.clock().Now();
  std::int64_t terminating = 0;
  for (const auto& [name, pod] : options_.pods.Of(set->uid())) terminating += IsTerminating(*pod);
  std::optional<api::Draft> status =
      PlanReplicaStatus(*set,
                        {.active = active,
                         .terminating = terminating,
                         .reports_terminating = options_.kind == Kind::kReplicaSet,
                         .failure_reason = failure_reason,
                         .failure = failure ? failure->message : ""},
                        now);
  if (const std::optional<Duration> wait = NextAvailability(*set, active, now)) {
    // Add a second, because times in conditions are truncated to seconds.
    done = [this, name = set->qualified_name(), wait, done = std::move(done)](Result<void> result) {
      const bool ok = result.ok();  // failures are retried with backoff
      done(std::move(result));
      if (ok) queue_.AddAfter(name, *wait + std::chrono::seconds(1));
    };
  }
  const auto answer = [failure, done](Result<void> written) {
    done(failure ? Result<void>(*failure) : std::move(written));
  };
  if (!status) return answer(Ok());
  api::Draft body(set->tree());
  body["status"] = std::move(*status);
  client_.Update(
      {&options_.sets.kind(), std::string(set->namespace_()), std::string(set->name()), "status"},
      body.Freeze(), {}, [answer](client::Reply reply) {
        const bool over = reply.ok() || reply.error->code == ErrorCode::kNotFound;
        answer(over ? Ok() : Result<void>(*reply.error));
      });
}

std::map<std::string, int, std::less<>> ReplicaSetController::RelatedPodsPerNode(
    const api::Object& set) const {
  std::map<std::string, int, std::less<>> count;
  const auto add = [&](std::string_view owner_uid) {
    for (const auto& [name, pod] : options_.pods.Of(owner_uid)) {
      if (IsActive(*pod)) ++count[std::string((*pod)["spec"]["nodeName"].str())];
    }
  };
  const std::string_view owner = ControllerOf(set)["uid"].str();
  if (options_.siblings == nullptr || owner.empty()) {
    add(set.uid());
  } else {
    for (const auto& [name, sibling] : options_.siblings->Of(owner)) add(sibling->uid());
  }
  return count;
}

}  // namespace drakkar::controllers
