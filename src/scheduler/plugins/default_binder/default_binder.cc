#include "scheduler/plugins/default_binder/default_binder.h"

#include "api/scheme/scheme.h"
#include "api/tree/draft.h"

namespace drakkar::scheduler {

void DefaultBinder::Bind(CyclePtr cycle, StatusCallback done) {
  const PodInfo& pod = *cycle->pod;
  api::Draft binding{{"apiVersion", "v1"},
                     {"kind", "Binding"},
                     {"metadata",
                      {{"name", pod.name()}, {"namespace", pod.ns()}, {"uid", pod.uid}}},
                     {"target", {{"kind", "Node"}, {"name", cycle->node_name}}}};
  client_.Create({api::FindKind("", "v1", "Pod"), std::string(pod.ns()), std::string(pod.name()),
                  "binding"},
                 binding.Freeze(), {}, [done = std::move(done)](client::Reply reply) {
                   done(reply.ok() ? Status::Success() : Status::Error(reply.error->message));
                 });
}

}  // namespace drakkar::scheduler
