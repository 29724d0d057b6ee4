#include "controllers/ttl_after_finished/controller.h"

#include "api/meta/bounded_seconds.h"
#include "controllers/job/planner.h"

namespace drakkar::controllers {

namespace {

// How long until the Job is deleted; nullopt if it has no TTL or has not finished.
std::optional<Duration> TimeLeft(const api::Object& job, WallTime now) {
  const api::Value seconds = job["spec"]["ttlSecondsAfterFinished"];
  if (!seconds.has_value() || job.is_being_deleted()) return std::nullopt;
  const std::optional<WallTime> finished = JobFinishedAt(job);
  if (!finished) return std::nullopt;
  return *finished + api::BoundedSeconds(seconds.integer()) - now;
}

}  // namespace

TtlAfterFinishedController::TtlAfterFinishedController(Options options)
    : options_(options),
      client_(options.client),
      queue_(options.loop, options.random, {"ttl-after-finished"},
             [this](const std::string& name, Done done) { Sync(name, std::move(done)); }) {
  options_.jobs.AddHandlers(
      {.on_add = [this](const api::ObjectPtr& job) { OnJob(job); },
       .on_update = [this](const api::ObjectPtr&, const api::ObjectPtr& after) { OnJob(after); }});
}

void TtlAfterFinishedController::OnJob(const api::ObjectPtr& job) {
  if (TimeLeft(*job, options_.loop.clock().Now())) queue_.Add(job->qualified_name());
}

void TtlAfterFinishedController::Sync(const std::string& name, Done done) {
  const api::ObjectPtr job = options_.jobs.Find(name);
  if (job == nullptr) return done(Ok());
  const std::optional<Duration> left = TimeLeft(*job, options_.loop.clock().Now());
  if (!left) return done(Ok());
  if (*left > Duration::zero()) {
    done(Ok());
    return queue_.AddAfter(name, *left);
  }
  // The resourceVersion is a precondition: a Job whose TTL was just extended is kept.
  client_.Delete(
      {&options_.jobs.kind(), std::string(job->namespace_()), std::string(job->name()), ""},
      {.propagation_policy = "Foreground",
       .precondition_uid = std::string(job->uid()),
       .precondition_resource_version = std::to_string(job->resource_version())},
      [done = std::move(done)](client::Reply reply) {
        const bool over = reply.ok() || reply.error->code == ErrorCode::kNotFound;
        done(over ? Ok() : Result<void>(*reply.error));
      });
}

}  // namespace drakkar::controllers
