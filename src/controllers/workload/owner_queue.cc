#include "controllers/workload/owner_queue.h"

#include "api/scheme/scheme.h"
#include "base/text/text.h"
#include "controllers/workload/pod_facts.h"

namespace drakkar::controllers {

void OwnerQueue::FollowPods(client::Informer& pods, IsSame is_same) {
  pods.AddHandlers({.on_add = [this](const api::ObjectPtr& pod) { OnPod(*pod); },
                    .on_update =
                        [this, is_same](const api::ObjectPtr& before, const api::ObjectPtr& pod) {
                          // Without owners, none can depend on the pod.
                          if (owners_.objects().empty() || is_same(*before, *pod)) return;
                          if (ControllerOf(*before)["uid"].str() !=
                              ControllerOf(*pod)["uid"].str()) {
                            QueueOwnerOf(*before);
                          }
                          OnPod(*pod);
                        },
                    .on_delete = [this](const api::ObjectPtr& pod) { QueueOwnerOf(*pod); }});
}

void OwnerQueue::FollowCreated(client::Informer& objects) {
  objects.AddHandlers(
      {.on_add = [this](const api::ObjectPtr& object) { QueueOwnerOf(*object); },
       .on_update = [this](const api::ObjectPtr&,
                           const api::ObjectPtr& object) { QueueOwnerOf(*object); },
       .on_delete = [this](const api::ObjectPtr& object) { QueueOwnerOf(*object); }});
}

void OwnerQueue::QueueAll() {
  for (const auto& [name, owner] : owners_.objects()) queue_.Add(name);
}

void OwnerQueue::QueueOwnerOf(const api::Object& dependent) {
  const api::Value reference = ControllerOf(dependent);
  if (reference["kind"].str() != owners_.kind().kind ||
      !owners_.kind().is_api_version(reference["apiVersion"].str())) {
    return;
  }
  const api::ObjectPtr owner =
      owners_.Find(StrCat(dependent.namespace_(), "/", reference["name"].str()));
  if (owner != nullptr && owner->uid() == reference["uid"].str()) {
    queue_.Add(owner->qualified_name());
  }
}

void OwnerQueue::OnPod(const api::Object& pod) {
  if (ControllerOf(pod).exists()) return QueueOwnerOf(pod);
  if (pod.is_being_deleted()) return;
  for (const std::string& name : selectors_.Matching(pod.namespace_(), pod["metadata"]["labels"])) {
    queue_.Add(name);
  }
}

}  // namespace drakkar::controllers
