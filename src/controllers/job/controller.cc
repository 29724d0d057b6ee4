#include "controllers/job/controller.h"

#include "api/scheme/scheme.h"
#include "base/text/text.h"
#include "controllers/job/pod_outcome.h"
#include "controllers/workload/adoption.h"
#include "controllers/workload/pod_facts.h"

namespace drakkar::controllers {

namespace {

constexpr std::string_view kOurName = "kubernetes.io/job-controller";

bool IsOurs(const api::Object& job) {
  const api::Value manager = job["spec"]["managedBy"];
  return !manager.has_value() || manager.str() == kOurName;
}

}  // namespace

// A plan in progress.
struct JobController::Work {
  api::ObjectPtr job;
  JobPlan plan;
  std::size_t waiting = 0;
  std::optional<Error> error;
  Done done;

  // Records one answer; true if it was the last.
  bool Answer(const client::Reply& reply) {
    if (!reply.ok() && reply.error->code != ErrorCode::kNotFound) error = *reply.error;
    return --waiting == 0;
  }
};

JobController::JobController(Options options)
    : options_(options),
      client_(options.client),
      selectors_(options.jobs),
      writer_({.loop = options.loop,
               .client = client_,
               .dependents = options.pods.informer(),
               .owner_kind = options.jobs.kind(),
               .words = PodWords(options.events)}),
      queue_(options.loop, options.random, {"job"},
             [this](const std::string& name, Done done) { Sync(name, std::move(done)); }),
      orphans_(options.loop, options.random, {"job-orphan-pod"},
               [this](const std::string& name, Done done) { SyncOrphan(name, std::move(done)); }) {
  options_.jobs.AddHandlers(
      {.on_add = [this](const api::ObjectPtr& job) { queue_.Add(job->qualified_name()); },
       .on_update = [this](const api::ObjectPtr&,
                           const api::ObjectPtr& after) { queue_.Add(after->qualified_name()); },
       .on_delete =
           [this](const api::ObjectPtr& job) {
             writer_.Forget(job->uid());
             backoff_.erase(std::string(job->uid()));
             for (const auto& [name, pod] : options_.pods.Of(job->uid())) {
               if (IsTracked(*pod)) orphans_.Add(name);
             }
           }});
  client::Informer& pods = options_.pods.informer();
  pods.AddHandlers({.on_add = [this](const api::ObjectPtr& pod) { OnPod(nullptr, pod); },
                    .on_update = [this](const api::ObjectPtr& before,
                                        const api::ObjectPtr& pod) { OnPod(before, pod); },
                    .on_delete = [this](const api::ObjectPtr& pod) { QueueOwner(*pod); }});
  pods.OnSynced([this] {
    for (const auto& [name, job] : options_.jobs.objects()) queue_.Add(name);
  });
  options_.jobs.OnSynced([this] {
    for (const auto& [name, pod] : options_.pods.informer().objects()) {
      if (IsTracked(*pod)) OnPod(nullptr, pod);
    }
  });
}

void JobController::QueueOwner(const api::Object& pod) {
  const api::Value owner = ControllerOf(pod);
  if (owner["kind"].str() != "Job") return;
  const api::ObjectPtr job = options_.jobs.Find(StrCat(pod.namespace_(), "/", owner["name"].str()));
  if (job != nullptr && job->uid() == owner["uid"].str()) {
    queue_.Add(job->qualified_name());
  } else if (IsTracked(pod) && options_.jobs.has_synced()) {
    orphans_.Add(pod.qualified_name());
  }
}

void JobController::OnPod(const api::ObjectPtr& before, const api::ObjectPtr& pod) {
  if (before != nullptr && ControllerOf(*before)["uid"].str() != ControllerOf(*pod)["uid"].str()) {
    QueueOwner(*before);
  }
  if (ControllerOf(*pod).exists()) return QueueOwner(*pod);
  if (IsTracked(*pod) && options_.jobs.has_synced()) orphans_.Add(pod->qualified_name());
  if (pod->is_being_deleted() || (before != nullptr && api::Equal((*before)["metadata"]["labels"],
                                                                  (*pod)["metadata"]["labels"]))) {
    return;
  }
  for (const std::string& name :
       selectors_.Matching(pod->namespace_(), (*pod)["metadata"]["labels"])) {
    queue_.Add(name);
  }
}

void JobController::Sync(const std::string& name, Done done) {
  const api::ObjectPtr job = options_.jobs.Find(name);
  const api::LabelSelector* selector = selectors_.Find(name);
  if (job == nullptr || selector == nullptr || !IsOurs(*job)) return done(Ok());
  if (IsFinishedJob(*job)) {
    backoff_.erase(std::string(job->uid()));
    return done(Ok());
  }
  if (!options_.pods.informer().has_synced() || !writer_.IsUpToDate(job->uid())) return done(Ok());
  Adoption adoption = PlanAdoption(*job, *selector, options_.pods);
  if (!adoption.adopt.empty() || !adoption.release.empty()) {
    return writer_.AdoptAndRelease(job, std::move(adoption.adopt), std::move(adoption.release),
                                   [done = std::move(done)](DependentWriter::Outcome outcome) {
                                     done(outcome.error ? Result<void>(*outcome.error) : Ok());
                                   });
  }
  auto work = std::make_shared<Work>();
  work->job = job;
  work->done = std::move(done);
  work->plan = PlanJob({.job = job,
                        .pods = adoption.owned,
                        .backoff = backoff_[std::string(job->uid())],
                        .now = options_.loop.clock().Now()});
  writer_.Create(job, std::move(work->plan.create), [this, work](DependentWriter::Outcome made) {
    if (made.error) work->error = made.error;
    writer_.Delete(work->job, work->plan.remove, [this, work](DependentWriter::Outcome gone) {
      if (gone.error) work->error = gone.error;
      Discard(work);
    });
  });
}

void JobController::Discard(const std::shared_ptr<Work>& work) {
  if (work->plan.discard.empty()) return Untrack(work);
  work->waiting = work->plan.discard.size();
  auto untracked = std::make_shared<std::vector<api::ObjectPtr>>();
  for (const api::ObjectPtr& pod : work->plan.discard) {
    RemoveFinalizer(pod, [this, work, pod, untracked](client::Reply reply) {
      if (reply.ok()) untracked->push_back(pod);
      if (!work->Answer(reply)) return;
      writer_.Delete(work->job, *untracked, [this, work](DependentWriter::Outcome gone) {
        if (gone.error) work->error = gone.error;
        Untrack(work);
      });
    });
  }
}

void JobController::Untrack(const std::shared_ptr<Work>& work) {
  if (work->plan.untrack.empty()) return WriteStatus(work);
  work->waiting = work->plan.untrack.size();
  for (const api::ObjectPtr& pod : work->plan.untrack) {
    RemoveFinalizer(pod, [this, work](client::Reply reply) {
      if (reply.ok() && reply.object != nullptr) writer_.Expect(work->job, *reply.object);
      if (work->Answer(reply)) WriteStatus(work);
    });
  }
}

void JobController::RemoveFinalizer(const api::ObjectPtr& pod, client::ReplyCallback done) {
  client::ResourceRef ref{&options_.pods.informer().kind(), std::string(pod->namespace_()),
                          std::string(pod->name()), ""};
  client_.Patch(std::move(ref), client::PatchType::kStrategicMerge,
                StrCat(R"({"metadata":{"uid":")", pod->uid(),
                       R"(","$deleteFromPrimitiveList/finalizers":[")", kJobFinalizer, R"("]}})"),
                {}, std::move(done));
}

void JobController::WriteStatus(const std::shared_ptr<Work>& work) {
  const auto finish = [this, work](Result<void> result) {
    const bool ok = result.ok();  // failures are retried with backoff
    work->done(std::move(result));
    if (ok && work->plan.look_again) {
      queue_.AddAfter(work->job->qualified_name(), *work->plan.look_again);
    }
  };
  // If only part of a plan was executed, its counts are wrong.
  if (work->error) return finish(*work->error);
  if (work->plan.status == nullptr) return finish(Ok());
  client::ResourceRef ref{&options_.jobs.kind(), std::string(work->job->namespace_()),
                          std::string(work->job->name()), "status"};
  client_.Update(std::move(ref), work->plan.status, {}, [this, work, finish](client::Reply reply) {
    if (!reply.ok()) {
      return finish(reply.error->code == ErrorCode::kNotFound ? Ok() : Result<void>(*reply.error));
    }
    backoff_[std::string(work->job->uid())] = work->plan.backoff;
    for (JobPlan::Event& event : work->plan.events) {
      options_.events.Record(
          work->job, event.warning ? client::EventKind::kWarning : client::EventKind::kNormal,
          event.reason, std::move(event.message));
    }
    finish(Ok());
  });
}

void JobController::SyncOrphan(const std::string& name, Done done) {
  const api::ObjectPtr pod = options_.pods.informer().Find(name);
  if (pod == nullptr || !IsTracked(*pod)) return done(Ok());
  const api::Value owner = ControllerOf(*pod);
  const auto release = [this, pod](Done finished) {
    RemoveFinalizer(pod, [finished = std::move(finished)](client::Reply reply) {
      const bool over = reply.ok() || reply.error->code == ErrorCode::kNotFound;
      finished(over ? Ok() : Result<void>(*reply.error));
    });
  };
  if (owner["kind"].str() != "Job") return release(std::move(done));
  // Our copy may be stale: the Job is gone only if the server says so.
  client::ResourceRef ref{&options_.jobs.kind(), std::string(pod->namespace_()),
                          std::string(owner["name"].str()), ""};
  client_.Get(std::move(ref), [pod, release, uid = std::string(owner["uid"].str()),
                               done = std::move(done)](client::Reply reply) {
    if (reply.ok() && reply.object->uid() == uid) return done(Ok());
    if (!reply.ok() && reply.error->code != ErrorCode::kNotFound) return done(*reply.error);
    release(done);
  });
}

}  // namespace drakkar::controllers
