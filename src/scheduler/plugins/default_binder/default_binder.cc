#include "scheduler/plugins/default_binder/default_binder.h"

#include "api/scheme/scheme.h"
#include "api/tree/draft.h"
#include "scheduler/binding/claim_writer.h"

namespace drakkar::scheduler {

namespace {

const api::KindSchema* PodKind() {
  static const api::KindSchema* const kind = api::FindKind("", "v1", "Pod");
  return kind;
}

}  // namespace

void DefaultBinder::Bind(CyclePtr cycle, StatusCallback done) {
  const PodInfo& pod = *cycle->pod;
  // Set members one by one: a braced list would copy nested drafts.
  api::Draft metadata = api::Draft::Object();
  const api::Value known = pod.pod->root()["metadata"];
  metadata["name"] = api::Draft(known["name"]);
  metadata["namespace"] = api::Draft(known["namespace"]);
  metadata["uid"] = api::Draft(known["uid"]);
  api::Draft target = api::Draft::Object();
  target["kind"] = "Node";
  target["name"] = cycle->node_name;
  api::Draft binding = api::Draft::Object();
  binding["apiVersion"] = "v1";
  binding["kind"] = "Binding";
  binding["metadata"] = std::move(metadata);
  binding["target"] = std::move(target);
  client_.Create({PodKind(), std::string(pod.ns()), std::string(pod.name()), "binding"},
                 binding.Freeze(), {},
                 lifetime_.Guard([this, cycle, done = std::move(done)](client::Reply reply) {
                   if (reply.ok()) {
                     done(Status::Success());
                   } else if (MayHaveHappened(*reply.error)) {
                     FindOut(cycle, reply.error->message, done);
                   } else {
                     done(Status::Error(reply.error->message));
                   }
                 }));
}

void DefaultBinder::FindOut(CyclePtr cycle, std::string error, StatusCallback done) {
  const PodInfo& pod = *cycle->pod;
  client_.Get(
      {PodKind(), std::string(pod.ns()), std::string(pod.name()), ""},
      lifetime_.Guard([this, cycle, error, done = std::move(done)](client::Reply reply) {
        if (!reply.ok() && MayHaveHappened(*reply.error)) {
          auto timer = std::make_shared<TimerHandle>();
          auto again =
              lifetime_.Guard([this, timer, cycle, error, done] { FindOut(cycle, error, done); });
          // Posted, because the callback owns the timer, which must not be destroyed while
          // it runs.
          *timer = loop_.RunAfter(kPause,
                                  [loop = &loop_, again = std::move(again)] { loop->Post(again); });
          return;
        }
        const bool bound = reply.ok() && reply.object->uid() == cycle->pod->uid &&
                           reply.object->root()["spec"]["nodeName"].str() == cycle->node_name;
        done(bound ? Status::Success() : Status::Error(error));
      }));
}

}  // namespace drakkar::scheduler
