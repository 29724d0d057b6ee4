#pragma once

#include <string>

#include "base/exec/event_loop.h"
#include "client/client.h"
#include "client/event_recorder.h"
#include "client/scoped_client.h"
#include "client/work_queue.h"

namespace drakkar::controllers {

// Deletes pods because of a taint and reports it: an event, the condition DisruptionTarget (which a
// Job's podFailurePolicy and other owners read), then the deletion of exactly that pod. Loop-bound.
class PodEvictor {
 public:
  struct Options {
    EventLoop& loop;
    client::Client& client;
    client::EventRecorder& events;
    std::string event_reason;
    std::string condition_reason;
    std::string condition_message;
    bool names_pod = false;  // events name the pod
  };
  explicit PodEvictor(Options options) : options_(std::move(options)), client_(options_.client) {}

  // A pod that was deleted or replaced meanwhile counts as evicted.
  void Evict(const api::ObjectPtr& pod, client::WorkQueue::Done done);
  // Reports that a pod that was to be evicted later may stay.
  void Cancel(const api::ObjectPtr& pod);

 private:
  std::string Text(std::string_view text, const api::Object& pod) const;
  void Delete(const api::ObjectPtr& pod, client::WorkQueue::Done done);

  const Options options_;
  client::ScopedClient client_;
};

}  // namespace drakkar::controllers
