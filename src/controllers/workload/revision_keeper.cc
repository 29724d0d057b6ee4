#include "controllers/workload/revision_keeper.h"

#include "api/scheme/scheme.h"
#include "api/tree/draft.h"
#include "base/text/text.h"
#include "controllers/workload/adoption.h"
#include "controllers/workload/pod_facts.h"

namespace drakkar::controllers {

RevisionKeeper::RevisionKeeper(Options options)
    : options_(options),
      client_(options.client),
      writer_({.loop = options.loop,
               .client = client_,
               .dependents = options.revisions.informer(),
               .owner_kind = options.owner_kind}) {}

api::ObjectPtr RevisionKeeper::Ensure(const api::ObjectPtr& owner,
                                      const api::LabelSelector& selector,
                                      std::vector<api::ObjectPtr>& all, Done done) {
  Adoption adoption = PlanAdoption(*owner, selector, options_.revisions);
  if (!adoption.adopt.empty() || !adoption.release.empty()) {
    writer_.AdoptAndRelease(owner, std::move(adoption.adopt), std::move(adoption.release),
                            [done = std::move(done)](DependentWriter::Outcome outcome) {
                              done(outcome.error ? Result<void>(*outcome.error) : Ok());
                            });
    return nullptr;
  }
  all = std::move(adoption.owned);
  RevisionPlan plan = PlanRevision({.owner = *owner,
                                    .owner_kind = options_.owner_kind,
                                    .revisions = all,
                                    .hash_label = options_.hash_label,
                                    .collisions = (*owner)["status"]["collisionCount"].integer()});
  if (plan.write == nullptr) return plan.current;
  if (plan.current == nullptr) {
    Create(owner, std::move(plan), std::move(done));
    return nullptr;
  }
  writer_.Update(owner, *plan.current, plan.write, [done = std::move(done)](client::Reply reply) {
    done(reply.ok() ? Ok() : Result<void>(*reply.error));
  });
  return nullptr;
}

void RevisionKeeper::Create(const api::ObjectPtr& owner, RevisionPlan plan, Done done) {
  client_.Create({&options_.revisions.informer().kind(), std::string(owner->namespace_()), "", ""},
                 plan.write, {},
                 [this, owner, name = plan.name, done = std::move(done)](client::Reply reply) {
                   if (reply.ok()) {
                     writer_.Expect(owner, *reply.object);
                     return done(Ok());
                   }
                   if (IsNamespaceTerminating(reply)) return done(Ok());
                   if (reply.error->code != ErrorCode::kAlreadyExists) return done(*reply.error);
                   const api::ObjectPtr taken =
                       options_.revisions.informer().Find(StrCat(owner->namespace_(), "/", name));
                   // Our copy does not include it yet: try again once it does.
                   if (taken == nullptr) return done(*reply.error);
                   if (ControllerOf(*taken)["uid"].str() == owner->uid() &&
                       IsRevisionOf(*taken, (*owner)["spec"]["template"])) {
                     return done(Ok());
                   }
                   RaiseCollisions(owner, done);
                 });
}

// Another template has the same hash. The number changes the next hash.
void RevisionKeeper::RaiseCollisions(const api::ObjectPtr& owner, Done done) {
  api::Draft body(owner->tree());
  body["status"]["collisionCount"] = (*owner)["status"]["collisionCount"].integer() + 1;
  client_.Update(
      {&options_.owner_kind, std::string(owner->namespace_()), std::string(owner->name()),
       "status"},
      body.Freeze(), {}, [done = std::move(done)](client::Reply reply) {
        // The answer is an error either way, so that the owner is processed again.
        done(reply.ok() ? Unavailable("the name of the new revision was taken") : *reply.error);
      });
}

void RevisionKeeper::CleanUp(const api::ObjectPtr& owner, std::vector<api::ObjectPtr> all,
                             const std::function<bool(const api::Object&)>& in_use) {
  std::erase_if(all, [](const api::ObjectPtr& each) { return each->is_being_deleted(); });
  const std::int64_t limit = (*owner)["spec"]["revisionHistoryLimit"].integer(10);
  std::vector<api::ObjectPtr> surplus = SurplusRevisions(std::move(all), limit, in_use);
  if (surplus.empty()) return;
  writer_.Delete(owner, std::move(surplus), [](DependentWriter::Outcome) {});
}

}  // namespace drakkar::controllers
