#include "controllers/cron_job/controller.h"

#include "api/scheme/scheme.h"
#include "base/text/text.h"
#include "controllers/workload/pod_facts.h"

namespace drakkar::controllers {

// One pass over a CronJob.
struct CronJobController::Work {
  api::ObjectPtr cron_job;  // as last written
  std::vector<api::ObjectPtr> jobs;
  std::vector<std::pair<std::string, std::string>> missing;  // name and uid to look up
  std::set<std::string, std::less<>> gone;
  CronJobPlan plan;
  std::size_t waiting = 0;
  std::optional<Error> error;
  Done done;
};

CronJobController::CronJobController(Options options)
    : options_(options),
      client_(options.client),
      writer_({.loop = options.loop,
               .client = client_,
               .dependents = options.jobs.informer(),
               .owner_kind = options.cron_jobs.kind()}),
      queue_(options.loop, options.random, {"cronjob"},
             [this](const std::string& name, Done done) { Sync(name, std::move(done)); }) {
  options_.cron_jobs.AddHandlers(
      {.on_add = [this](const api::ObjectPtr& object) { queue_.Add(object->qualified_name()); },
       .on_update = [this](const api::ObjectPtr&,
                           const api::ObjectPtr& after) { queue_.Add(after->qualified_name()); },
       .on_delete = [this](const api::ObjectPtr& object) { writer_.Forget(object->uid()); }});
  client::Informer& jobs = options_.jobs.informer();
  jobs.AddHandlers(
      {.on_add = [this](const api::ObjectPtr& job) { QueueOwner(*job); },
       .on_update = [this](const api::ObjectPtr&, const api::ObjectPtr& job) { QueueOwner(*job); },
       .on_delete = [this](const api::ObjectPtr& job) { QueueOwner(*job); }});
  jobs.OnSynced([this] {
    for (const auto& [name, object] : options_.cron_jobs.objects()) queue_.Add(name);
  });
}

void CronJobController::QueueOwner(const api::Object& job) {
  const api::Value owner = ControllerOf(job);
  if (owner["kind"].str() != "CronJob") return;
  const api::ObjectPtr object =
      options_.cron_jobs.Find(StrCat(job.namespace_(), "/", owner["name"].str()));
  if (object != nullptr && object->uid() == owner["uid"].str()) {
    queue_.Add(object->qualified_name());
  }
}

void CronJobController::Sync(const std::string& name, Done done) {
  const api::ObjectPtr object = options_.cron_jobs.Find(name);
  if (object == nullptr || !options_.jobs.informer().has_synced() ||
      !writer_.IsUpToDate(object->uid())) {
    return done(Ok());
  }
  auto work = std::make_shared<Work>();
  work->cron_job = object;
  work->done = std::move(done);
  std::set<std::string_view> uids;
  for (const auto& [job_name, job] : options_.jobs.Of(object->uid())) {
    work->jobs.push_back(job);
    uids.insert(job->uid());
  }
  for (api::Value each : (*object)["status"]["active"].elements()) {
    if (uids.contains(each["uid"].str())) continue;
    work->missing.emplace_back(each["name"].str(), each["uid"].str());
  }
  ConfirmMissing(work);
}

// Our copy may be stale: a Job is gone only if the server says so.
void CronJobController::ConfirmMissing(const std::shared_ptr<Work>& work) {
  if (work->missing.empty()) return Plan(work);
  const auto [name, uid] = work->missing.back();
  work->missing.pop_back();
  client::ResourceRef ref{&options_.jobs.informer().kind(),
                          std::string(work->cron_job->namespace_()), name, ""};
  client_.Get(std::move(ref), [this, work, uid = uid](client::Reply reply) {
    if (!reply.ok() && reply.error->code != ErrorCode::kNotFound) return work->done(*reply.error);
    if (!reply.ok() || reply.object->uid() != uid) work->gone.insert(uid);
    ConfirmMissing(work);
  });
}

void CronJobController::Plan(const std::shared_ptr<Work>& work) {
  work->plan = PlanCronJob({.cron_job = work->cron_job,
                            .jobs = work->jobs,
                            .gone = work->gone,
                            .now = options_.loop.clock().Now()});
  for (CronJobPlan::Event& event : work->plan.events) {
    options_.events.Record(work->cron_job,
                           event.warning ? client::EventKind::kWarning : client::EventKind::kNormal,
                           event.reason, std::move(event.message));
  }
  Delete(work);
}

void CronJobController::Delete(const std::shared_ptr<Work>& work) {
  std::vector<api::ObjectPtr> going = work->plan.remove;
  going.insert(going.end(), work->plan.replace.begin(), work->plan.replace.end());
  if (going.empty()) return WriteStatus(work);
  work->waiting = going.size();
  for (const api::ObjectPtr& job : going) {
    client::ResourceRef ref{&options_.jobs.informer().kind(), std::string(job->namespace_()),
                            std::string(job->name()), ""};
    client_.Delete(
        std::move(ref),
        {.propagation_policy = "Background", .precondition_uid = std::string(job->uid())},
        [this, work, job](client::Reply reply) {
          if (reply.ok()) {
            options_.events.Normal(work->cron_job, "SuccessfulDelete",
                                   StrCat("Deleted job ", job->name()));
          } else if (reply.error->code != ErrorCode::kNotFound) {
            options_.events.Warning(work->cron_job, "FailedDelete",
                                    StrCat("Deleted job: ", reply.error->message));
            work->error = *reply.error;
          }
          if (--work->waiting > 0) return;
          if (work->error) return Finish(work, *work->error);
          WriteStatus(work);
        });
  }
}

void CronJobController::UpdateStatus(const std::shared_ptr<Work>& work, api::TreePtr body,
                                     std::function<void()> then) {
  client::ResourceRef ref{&options_.cron_jobs.kind(), std::string(work->cron_job->namespace_()),
                          std::string(work->cron_job->name()), "status"};
  client_.Update(std::move(ref), std::move(body), {},
                 [this, work, then = std::move(then)](client::Reply reply) {
                   if (!reply.ok()) {
                     return Finish(work, reply.error->code == ErrorCode::kNotFound
                                             ? Ok()
                                             : Result<void>(*reply.error));
                   }
                   work->cron_job = reply.object;
                   then();
                 });
}

void CronJobController::WriteStatus(const std::shared_ptr<Work>& work) {
  if (work->plan.status == nullptr) return CreateJob(work);
  UpdateStatus(work, work->plan.status, [this, work] { CreateJob(work); });
}

void CronJobController::CreateJob(const std::shared_ptr<Work>& work) {
  if (work->plan.create == nullptr) return Finish(work, Ok());
  client::ResourceRef ref{&options_.jobs.informer().kind(),
                          std::string(work->cron_job->namespace_()), "", ""};
  client_.Create(std::move(ref), work->plan.create, {}, [this, work](client::Reply reply) {
    if (reply.ok()) {
      options_.events.Normal(work->cron_job, "SuccessfulCreate",
                             StrCat("Created job ", reply.object->name()));
      writer_.Expect(work->cron_job, *reply.object);
      return UpdateStatus(work, WithActiveJob(*work->cron_job, *reply.object, work->plan.due),
                          [this, work] { Finish(work, Ok()); });
    }
    if (IsNamespaceTerminating(reply)) return Finish(work, Ok());
    if (reply.error->code != ErrorCode::kAlreadyExists) {
      options_.events.Warning(work->cron_job, "FailedCreate",
                              StrCat("Error creating job: ", reply.error->message));
      return Finish(work, *reply.error);
    }
    // It was created before the status could be updated, so update the status now.
    client::ResourceRef existing{&options_.jobs.informer().kind(),
                                 std::string(work->cron_job->namespace_()), work->plan.name, ""};
    client_.Get(std::move(existing), [this, work](client::Reply found) {
      if (!found.ok()) return Finish(work, *found.error);
      if (ControllerOf(*found.object)["uid"].str() != work->cron_job->uid()) {
        return Finish(work, Ok());
      }
      UpdateStatus(work, WithActiveJob(*work->cron_job, *found.object, work->plan.due),
                   [this, work] { Finish(work, Ok()); });
    });
  });
}

void CronJobController::Finish(const std::shared_ptr<Work>& work, Result<void> result) {
  const bool ok = result.ok();  // failures are retried with backoff
  work->done(std::move(result));
  if (ok && work->plan.look_again) {
    queue_.AddAfter(work->cron_job->qualified_name(), *work->plan.look_again);
  }
}

}  // namespace drakkar::controllers
