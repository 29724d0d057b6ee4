#include "controllers/deployment/controller.h"

#include "api/scheme/scheme.h"
#include "base/text/text.h"
#include "controllers/workload/adoption.h"
#include "controllers/workload/pod_facts.h"

namespace drakkar::controllers {

// A plan in progress.
struct DeploymentController::Work {
  api::ObjectPtr deployment;
  DeploymentPlan plan;
  std::size_t waiting = 0;
  std::optional<Error> error;
  Done done;
};

DeploymentController::DeploymentController(Options options)
    : options_(options),
      client_(options.client),
      selectors_(options.deployments),
      writer_({.loop = options.loop,
               .client = client_,
               .dependents = options.sets.informer(),
               .owner_kind = options.deployments.kind()}),
      queue_(options.loop, options.random, {"deployment"},
             [this](const std::string& name, Done done) { Sync(name, std::move(done)); }) {
  options_.deployments.AddHandlers(
      {.on_add = [this](const api::ObjectPtr& object) { queue_.Add(object->qualified_name()); },
       .on_update = [this](const api::ObjectPtr&,
                           const api::ObjectPtr& after) { queue_.Add(after->qualified_name()); },
       .on_delete = [this](const api::ObjectPtr& object) { writer_.Forget(object->uid()); }});
  client::Informer& sets = options_.sets.informer();
  sets.AddHandlers({.on_add = [this](const api::ObjectPtr& set) { OnSet(nullptr, set); },
                    .on_update = [this](const api::ObjectPtr& before,
                                        const api::ObjectPtr& set) { OnSet(before, set); },
                    .on_delete = [this](const api::ObjectPtr& set) { QueueOwner(*set); }});
  client::Informer& pods = options_.pods.informer();
  // Recreate waits until the last pod of an old set is gone.
  pods.AddHandlers({.on_update =
                        [this](const api::ObjectPtr& before, const api::ObjectPtr& after) {
                          if (!IsTerminal(*before) && IsTerminal(*after)) OnPodGone(*after);
                        },
                    .on_delete = [this](const api::ObjectPtr& pod) { OnPodGone(*pod); }});
  const auto queue_all = [this] {
    for (const auto& [name, object] : options_.deployments.objects()) queue_.Add(name);
  };
  sets.OnSynced(queue_all);
  pods.OnSynced(queue_all);
}

void DeploymentController::QueueOwner(const api::Object& set) {
  const api::Value owner = ControllerOf(set);
  if (owner["kind"].str() != "Deployment") return;
  const api::ObjectPtr deployment =
      options_.deployments.Find(StrCat(set.namespace_(), "/", owner["name"].str()));
  if (deployment != nullptr && deployment->uid() == owner["uid"].str()) {
    queue_.Add(deployment->qualified_name());
  }
}

void DeploymentController::OnSet(const api::ObjectPtr& before, const api::ObjectPtr& set) {
  if (before != nullptr && ControllerOf(*before)["uid"].str() != ControllerOf(*set)["uid"].str()) {
    QueueOwner(*before);
  }
  if (ControllerOf(*set).exists()) return QueueOwner(*set);
  if (set->is_being_deleted()) return;
  for (const std::string& name :
       selectors_.Matching(set->namespace_(), (*set)["metadata"]["labels"])) {
    queue_.Add(name);
  }
}

void DeploymentController::OnPodGone(const api::Object& pod) {
  const api::Value owner = ControllerOf(pod);
  if (owner["kind"].str() != "ReplicaSet") return;
  const api::ObjectPtr set =
      options_.sets.informer().Find(StrCat(pod.namespace_(), "/", owner["name"].str()));
  if (set == nullptr) return;
  const api::ObjectPtr deployment =
      options_.deployments.Find(StrCat(pod.namespace_(), "/", ControllerOf(*set)["name"].str()));
  if (deployment == nullptr) return;
  const api::Value strategy = (*deployment)["spec"]["strategy"];
  if (strategy["type"].str() == "Recreate") queue_.Add(deployment->qualified_name());
}

void DeploymentController::Sync(const std::string& name, Done done) {
  const api::ObjectPtr deployment = options_.deployments.Find(name);
  const api::LabelSelector* selector = selectors_.Find(name);
  if (deployment == nullptr || selector == nullptr || !options_.sets.informer().has_synced() ||
      !options_.pods.informer().has_synced() || !writer_.IsUpToDate(deployment->uid())) {
    return done(Ok());
  }
  Adoption adoption = PlanAdoption(*deployment, *selector, options_.sets);
  if (!adoption.adopt.empty() || !adoption.release.empty()) {
    return writer_.AdoptAndRelease(deployment, std::move(adoption.adopt),
                                   std::move(adoption.release),
                                   [done = std::move(done)](DependentWriter::Outcome outcome) {
                                     done(outcome.error ? Result<void>(*outcome.error) : Ok());
                                   });
  }
  auto work = std::make_shared<Work>();
  work->deployment = deployment;
  work->done = std::move(done);
  const auto has_other_pods = [&](const api::Object* but) {
    for (const api::ObjectPtr& set : adoption.owned) {
      if (but != nullptr && set->uid() == but->uid()) continue;
      for (const auto& [pod_name, pod] : options_.pods.Of(set->uid())) {
        if (!IsTerminal(*pod)) return true;
      }
    }
    return false;
  };
  work->plan = PlanDeployment({.deployment = *deployment,
                               .sets = adoption.owned,
                               .has_other_pods = has_other_pods,
                               .now = options_.loop.clock().Now()});
  CarryOut(work);
}

void DeploymentController::CarryOut(const std::shared_ptr<Work>& work) {
  if (work->plan.create) return CreateSet(work);
  UpdateSets(work);
}

void DeploymentController::CreateSet(const std::shared_ptr<Work>& work) {
  const DeploymentPlan::Create& create = *work->plan.create;
  client::ResourceRef collection{&options_.sets.informer().kind(),
                                 std::string(work->deployment->namespace_()), "", ""};
  client_.Create(std::move(collection), create.set, {}, [this, work](client::Reply reply) {
    const DeploymentPlan::Create& made = *work->plan.create;
    const api::ObjectPtr& deployment = work->deployment;
    if (reply.ok()) {
      writer_.Expect(deployment, *reply.object);
      if (made.replicas > 0) {
        options_.events.Normal(
            deployment, "ScalingReplicaSet",
            StrCat("Scaled up replica set ", made.name, " from 0 to ", made.replicas));
      }
      return UpdateSets(work);
    }
    if (IsNamespaceTerminating(reply)) return work->done(Ok());
    if (reply.error->code == ErrorCode::kAlreadyExists) {
      const api::ObjectPtr taken =
          options_.sets.informer().Find(StrCat(deployment->namespace_(), "/", made.name));
      // Our copy does not include it yet. The Deployment is processed again once it does.
      if (taken == nullptr) return work->done(*reply.error);
      if (ControllerOf(*taken)["uid"].str() == deployment->uid() &&
          IsSameTemplate((*taken)["spec"]["template"], (*deployment)["spec"]["template"])) {
        return work->done(Ok());
      }
      return WriteStatus(*deployment, WithCollision(*deployment), work->done);
    }
    const std::string message =
        StrCat("Failed to create new replica set ", Quote(made.name), ": ", reply.error->message);
    options_.events.Warning(deployment, "ReplicaSetCreateError", message);
    api::TreePtr status = WithCreateError(*deployment, message, options_.loop.clock().Now());
    if (status == nullptr) return work->done(*reply.error);
    WriteStatus(*deployment, std::move(status),
                [work, error = *reply.error](Result<void>) { work->done(error); });
  });
}

void DeploymentController::UpdateSets(const std::shared_ptr<Work>& work) {
  work->waiting = 1 + work->plan.update.size();
  for (const DeploymentPlan::Update& update : work->plan.update) {
    writer_.Update(
        work->deployment, *update.set, update.body, [this, work, &update](client::Reply reply) {
          if (!reply.ok()) {
            work->error = *reply.error;
          } else if (update.from != update.to) {
            options_.events.Normal(
                work->deployment, "ScalingReplicaSet",
                StrCat("Scaled ", update.from < update.to ? "up" : "down", " replica set ",
                       update.set->name(), " from ", update.from, " to ", update.to));
          }
          if (--work->waiting == 0) Finish(work);
        });
  }
  // Counted as one more answer, so that nothing finishes before all requests have been sent.
  writer_.Delete(work->deployment, work->plan.remove,
                 [this, work](DependentWriter::Outcome outcome) {
                   if (outcome.error) work->error = outcome.error;
                   if (--work->waiting == 0) Finish(work);
                 });
}

void DeploymentController::Finish(const std::shared_ptr<Work>& work) {
  if (work->error) return work->done(*work->error);
  Done done = [this, work](Result<void> result) {
    const bool ok = result.ok();  // failures are retried with backoff
    work->done(std::move(result));
    if (ok && work->plan.look_again) {
      queue_.AddAfter(work->deployment->qualified_name(), *work->plan.look_again);
    }
  };
  if (work->plan.status == nullptr) return done(Ok());
  WriteStatus(*work->deployment, work->plan.status, std::move(done));
}

void DeploymentController::WriteStatus(const api::Object& deployment, api::TreePtr body,
                                       Done done) {
  client_.Update({&options_.deployments.kind(), std::string(deployment.namespace_()),
                  std::string(deployment.name()), "status"},
                 std::move(body), {}, [done = std::move(done)](client::Reply reply) {
                   const bool over = reply.ok() || reply.error->code == ErrorCode::kNotFound;
                   done(over ? Ok() : Result<void>(*reply.error));
                 });
}

}  // namespace drakkar::controllers
