#include "controllers/pool_status/controller.h"

#include "api/scheme/scheme.h"
#include "controllers/pool_status/planner.h"
#include "controllers/workload/pod_facts.h"

namespace drakkar::controllers {

namespace {

std::vector<api::ObjectPtr> All(const client::Informer& informer) {
  std::vector<api::ObjectPtr> objects;
  for (const auto& [name, object] : informer.objects()) objects.push_back(object);
  return objects;
}

}  // namespace

PoolStatusController::PoolStatusController(Options options)
    : options_(options),
      client_(options.client),
      queue_(options.loop, options.random, {"resourcepoolstatusrequest", 1},
             [this](const std::string& name, Done done) { Sync(name, std::move(done)); }) {
  options_.requests.AddHandlers(
      {.on_add = [this](const api::ObjectPtr& request) { queue_.Add(request->qualified_name()); },
       .on_update = [this](const api::ObjectPtr&,
                           const api::ObjectPtr& after) { queue_.Add(after->qualified_name()); },
       .on_delete =
           [this](const api::ObjectPtr& request) { attempts_.erase(request->qualified_name()); }});
  for (client::Informer* informer : {&options_.slices, &options_.claims, &options_.rules}) {
    informer->OnSynced([this] {
      for (const auto& [name, request] : options_.requests.objects()) queue_.Add(name);
    });
  }
}

void PoolStatusController::DeleteIfOld(const api::ObjectPtr& request, Done done) {
  const std::optional<WallTime> created = TimeOf((*request)["metadata"]["creationTimestamp"]);
  const WallTime now = options_.loop.clock().Now();
  const Duration age = created ? now - *created : Duration::zero();
  const Duration left = LifetimeOf(*request) - age;
  if (left > Duration::zero()) {
    done(Ok());
    return queue_.AddAfter(request->qualified_name(), left);
  }
  client_.Delete({&options_.requests.kind(), "", std::string(request->name()), ""},
                 {.precondition_uid = std::string(request->uid())},
                 [done = std::move(done)](client::Reply reply) {
                   const bool over = reply.ok() || reply.error->code == ErrorCode::kNotFound;
                   done(over ? Ok() : Result<void>(*reply.error));
                 });
}

void PoolStatusController::Sync(const std::string& name, Done done) {
  const api::ObjectPtr request = options_.requests.Find(name);
  if (request == nullptr || !options_.slices.has_synced() || !options_.claims.has_synced() ||
      !options_.rules.has_synced()) {
    return done(Ok());
  }
  if ((*request)["status"]["poolCount"].has_value()) return DeleteIfOld(request, std::move(done));
  PoolStatusPlan plan = PlanPoolStatus({.request = *request,
                                        .slices = All(options_.slices),
                                        .claims = All(options_.claims),
                                        .rules = All(options_.rules),
                                        .now = options_.loop.clock().Now()});
  if (plan.incomplete && ++attempts_[name] < kMaxAttempts) {
    done(Ok());
    return queue_.AddAfter(name, kRetryAfter);
  }
  api::Draft body(request->tree());
  body["status"] = std::move(plan.status);
  client_.Update({&options_.requests.kind(), "", std::string(request->name()), "status"},
                 body.Freeze(), {}, [done = std::move(done)](client::Reply reply) {
                   const bool over = reply.ok() || reply.error->code == ErrorCode::kNotFound;
                   done(over ? Ok() : Result<void>(*reply.error));
                 });
}

}  // namespace drakkar::controllers
