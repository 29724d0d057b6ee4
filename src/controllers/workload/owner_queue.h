#pragma once

#include "client/informer.h"
#include "client/work_queue.h"
#include "controllers/workload/selector_index.h"

namespace drakkar::controllers {

// Queues the owners that are affected by a change to a dependent: its controller, the controller it
// had before, or, for a pod without one, every owner that selects it. The informers, the selectors
// and the queue must outlive it.
class OwnerQueue {
 public:
  // Whether two versions of a pod are equal in everything that its owner depends on.
  using IsSame = bool (*)(const api::Object& before, const api::Object& after);

  OwnerQueue(const client::Informer& owners, const SelectorIndex& selectors,
             client::WorkQueue& queue)
      : owners_(owners), selectors_(selectors), queue_(queue) {}
  OwnerQueue(const OwnerQueue&) = delete;
  OwnerQueue& operator=(const OwnerQueue&) = delete;

  // Adds handlers: call it before the informer is started.
  void FollowPods(client::Informer& pods, IsSame is_same);
  // Follows objects that owners create and never adopt.
  void FollowCreated(client::Informer& objects);

  void QueueAll();

 private:
  void QueueOwnerOf(const api::Object& dependent);
  void OnPod(const api::Object& pod);

  const client::Informer& owners_;
  const SelectorIndex& selectors_;
  client::WorkQueue& queue_;
};

}  // namespace drakkar::controllers
