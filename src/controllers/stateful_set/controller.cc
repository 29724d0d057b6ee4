#include "controllers/stateful_set/controller.h"

#include "api/scheme/scheme.h"
#include "base/text/text.h"
#include "controllers/workload/adoption.h"
#include "controllers/workload/pod_facts.h"

namespace drakkar::controllers {

namespace {

// Whether two versions of a pod are equal in everything that its set depends on.
bool IsSameForItsSet(const api::Object& before, const api::Object& after) {
  return before.is_being_deleted() == after.is_being_deleted() &&
         before["status"]["phase"].str() == after["status"]["phase"].str() &&
         api::Equal(FindCondition(before["status"], "Ready"),
                    FindCondition(after["status"], "Ready")) &&
         api::Equal(before["metadata"]["labels"], after["metadata"]["labels"]) &&
         ControllerOf(before)["uid"].str() == ControllerOf(after)["uid"].str();
}

client::ResourceRef RefOf(const api::KindSchema& kind, const api::Object& object,
                          std::string subresource = "") {
  return {&kind, std::string(object.namespace_()), std::string(object.name()),
          std::move(subresource)};
}

}  // namespace

// A plan in progress.
struct StatefulSetController::Work {
  api::ObjectPtr set;
  StatefulPlan plan;
  std::size_t waiting = 0;
  std::optional<Error> error;
  Done done;

  // One of the writes of a step was answered. Missing objects and objects that exist already are no
  // errors: the informers will show them.
  template <typename Next>
  void Answer(const client::Reply& reply, Next next) {
    const bool fine = reply.ok() || reply.error->code == ErrorCode::kNotFound ||
                      reply.error->code == ErrorCode::kAlreadyExists;
    if (!fine && !error) error = *reply.error;
    if (--waiting == 0) next();
  }
};

StatefulSetController::StatefulSetController(Options options)
    : options_(options),
      client_(options.client),
      selectors_(options.sets),
      writer_({.loop = options.loop,
               .client = client_,
               .dependents = options.pods.informer(),
               .owner_kind = options.sets.kind(),
               .words = Words()}),
      revisions_({.loop = options.loop,
                  .client = client_,
                  .revisions = options.revisions,
                  .owner_kind = options.sets.kind(),
                  .hash_label = kStatefulHashLabel}),
      queue_(options.loop, options.random, {"statefulset"},
             [this](const std::string& name, Done done) { Sync(name, std::move(done)); }),
      owners_(options.sets, selectors_, queue_) {
  options_.sets.AddHandlers(
      {.on_add = [this](const api::ObjectPtr& set) { queue_.Add(set->qualified_name()); },
       .on_update = [this](const api::ObjectPtr&,
                           const api::ObjectPtr& set) { queue_.Add(set->qualified_name()); },
       .on_delete =
           [this](const api::ObjectPtr& set) {
             writer_.Forget(set->uid());
             revisions_.Forget(set->uid());
           }});
  client::Informer& pods = options_.pods.informer();
  owners_.FollowPods(pods, IsSameForItsSet);
  client::Informer& revisions = options_.revisions.informer();
  owners_.FollowCreated(revisions);
  pods.OnSynced([this] { owners_.QueueAll(); });
  revisions.OnSynced([this] { owners_.QueueAll(); });
  options_.volume_claims.OnSynced([this] { owners_.QueueAll(); });
}

DependentWriter::Words StatefulSetController::Words() const {
  client::EventRecorder& events = options_.events;
  const auto text = [](std::string_view verb, std::string_view pod, const api::Object& set,
                       std::string_view how) {
    return StrCat(verb, " Pod ", pod, " in StatefulSet ", set.name(), " ", how);
  };
  return {
      .created =
          [&events, text](const api::ObjectPtr& set, const api::Object& made) {
            events.Normal(set, "SuccessfulCreate", text("Create", made.name(), *set, "successful"));
          },
      .create_failed =
          [&events](const api::ObjectPtr& set, const Error& why) {
            if (why.code == ErrorCode::kAlreadyExists) return;
            events.Warning(
                set, "FailedCreate",
                StrCat("Create Pod in StatefulSet ", set->name(), " failed error: ", why.message));
          },
      .deleted =
          [&events, text](const api::ObjectPtr& set, const api::Object& gone) {
            events.Normal(set, "SuccessfulDelete", text("Delete", gone.name(), *set, "successful"));
          },
      .delete_failed =
          [&events](const api::ObjectPtr& set, const Error& why) {
            events.Warning(
                set, "FailedDelete",
                StrCat("Delete Pod in StatefulSet ", set->name(), " failed error: ", why.message));
          }};
}

bool StatefulSetController::IsUpToDate(std::string_view uid) {
  return options_.pods.informer().has_synced() && options_.volume_claims.has_synced() &&
         options_.revisions.informer().has_synced() && writer_.IsUpToDate(uid) &&
         revisions_.IsUpToDate(uid);
}

void StatefulSetController::Sync(const std::string& name, Done done) {
  const api::ObjectPtr set = options_.sets.Find(name);
  const api::LabelSelector* selector = selectors_.Find(name);
  if (set == nullptr || selector == nullptr || !IsUpToDate(set->uid())) return done(Ok());
  Adoption adoption = PlanAdoption(*set, *selector, options_.pods);
  // Ignore pods with other names.
  const auto is_foreign = [&](const api::ObjectPtr& pod) { return !OrdinalOf(*set, *pod); };
  std::erase_if(adoption.adopt, is_foreign);
  std::erase_if(adoption.release, is_foreign);
  std::erase_if(adoption.owned, is_foreign);
  if (!adoption.adopt.empty() || !adoption.release.empty()) {
    return writer_.AdoptAndRelease(set, std::move(adoption.adopt), std::move(adoption.release),
                                   [done = std::move(done)](DependentWriter::Outcome outcome) {
                                     done(outcome.error ? Result<void>(*outcome.error) : Ok());
                                   });
  }
  // The revisions of a set that is being deleted may be gone already.
  if (set->is_being_deleted()) return done(Ok());
  std::vector<api::ObjectPtr> history;
  const api::ObjectPtr update = revisions_.Ensure(set, *selector, history, done);
  if (update == nullptr) return;
  api::ObjectPtr current = update;
  for (const api::ObjectPtr& revision : history) {
    if (revision->name() == (*set)["status"]["currentRevision"].str()) current = revision;
  }
  auto work = std::make_shared<Work>();
  work->set = set;
  work->done = std::move(done);
  work->plan =
      PlanStateful({.set = set,
                    .current = current,
                    .update = update,
                    .pods = adoption.owned,
                    .find_claim =
                        [&](const std::string& claim) {
                          return options_.volume_claims.Find(StrCat(set->namespace_(), "/", claim));
                        },
                    .now = options_.loop.clock().Now()});
  revisions_.CleanUp(set, std::move(history), [&](const api::Object& each) {
    if (each.uid() == update->uid() || each.uid() == current->uid()) return true;
    for (const auto& [pod_name, pod] : options_.pods.Of(set->uid())) {
      if ((*pod)["metadata"]["labels"].Entry(kPodRevisionLabel).str() == each.name()) return true;
    }
    return false;
  });
  MakeClaims(work);
}

void StatefulSetController::MakeClaims(const std::shared_ptr<Work>& work) {
  if (work->plan.claims.empty()) return ChangeClaims(work);
  work->waiting = work->plan.claims.size();
  for (const StatefulClaim& claim : work->plan.claims) {
    client_.Create(
        {&options_.volume_claims.kind(), std::string(work->set->namespace_()), "", ""}, claim.body,
        {}, [this, work, &claim](client::Reply reply) {
          const bool failed = !reply.ok() && reply.error->code != ErrorCode::kAlreadyExists;
          const std::string text =
              StrCat("Create Claim ", claim.name, " in StatefulSet ", work->set->name());
          if (reply.ok()) {
            options_.events.Normal(work->set, "SuccessfulCreate", text + " success");
          } else if (failed) {
            options_.events.Warning(work->set, "FailedCreate",
                                    StrCat(text, " failed error: ", reply.error->message));
          }
          work->Answer(reply, [&] {
            if (work->error) return WriteStatus(work);
            ChangeClaims(work);
          });
        });
  }
}

void StatefulSetController::ChangeClaims(const std::shared_ptr<Work>& work) {
  if (work->plan.claim_owners.empty()) return ChangePods(work);
  work->waiting = work->plan.claim_owners.size();
  for (const StatefulPlan::Change& change : work->plan.claim_owners) {
    client_.Update(RefOf(options_.volume_claims.kind(), *change.object), change.body, {},
                   [this, work](client::Reply reply) {
                     work->Answer(reply, [&] {
                       // Update the owners of the claims before deleting the pod, so that they are
                       // retained or deleted as configured.
                       if (work->error) return WriteStatus(work);
                       ChangePods(work);
                     });
                   });
  }
}

void StatefulSetController::ChangePods(const std::shared_ptr<Work>& work) {
  if (work->plan.pods.empty()) return CreateAndDelete(work);
  work->waiting = work->plan.pods.size();
  for (const StatefulPlan::Change& change : work->plan.pods) {
    writer_.Update(work->set, *change.object, change.body, [this, work](client::Reply reply) {
      work->Answer(reply, [&] { CreateAndDelete(work); });
    });
  }
}

void StatefulSetController::CreateAndDelete(const std::shared_ptr<Work>& work) {
  work->waiting = 2;
  const auto finish = [this, work](DependentWriter::Outcome outcome) {
    if (outcome.error && !work->error) work->error = outcome.error;
    if (--work->waiting == 0) WriteStatus(work);
  };
  writer_.Create(work->set, work->plan.create, finish);
  writer_.Delete(work->set, work->plan.remove, finish);
}

void StatefulSetController::WriteStatus(const std::shared_ptr<Work>& work) {
  if (!work->plan.blocked_by.empty() && !work->error) {
    work->error = Unavailable(
        StrCat("PersistentVolumeClaim ", Quote(work->plan.blocked_by), " is being deleted"));
  }
  const auto answer = [this, work](Result<void> written) {
    if (work->error) return work->done(*work->error);
    const bool ok = written.ok();  // failures are retried with backoff
    work->done(std::move(written));
    // Add a second, because times in conditions are truncated to seconds.
    if (ok && work->plan.look_again) {
      queue_.AddAfter(work->set->qualified_name(),
                      *work->plan.look_again + std::chrono::seconds(1));
    }
  };
  if (!work->plan.status) return answer(Ok());
  api::Draft body(work->set->tree());
  body["status"] = std::move(*work->plan.status);
  client_.Update(RefOf(options_.sets.kind(), *work->set, "status"), body.Freeze(), {},
                 [answer](client::Reply reply) {
                   const bool over = reply.ok() || reply.error->code == ErrorCode::kNotFound;
                   answer(over ? Ok() : Result<void>(*reply.error));
                 });
}

}  // namespace drakkar::controllers
