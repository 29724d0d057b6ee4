#pragma once

#include <functional>
#include <map>
#include <string>

#include "api/meta/object.h"
#include "base/exec/event_loop.h"
#include "client/client.h"

namespace drakkar::scheduler {

// What the scheduler says about a pod in its status: the condition PodScheduled=False with a reason,
// and the nominated node. Writes only what changes; one write per pod is under way at a time and
// the last word wins. A conflict is answered by reading again, kMaxTries times; failures are left
// to the next attempt to schedule the pod. Loop-bound; as many entries as writes under way.
class PodStatusWriter {
 public:
  static constexpr int kMaxTries = 3;

  PodStatusWriter(EventLoop& loop, client::Client& client) : loop_(loop), client_(client) {}

  struct Change {
    std::string reason;   // Unschedulable, SchedulerError; empty: the condition stays as it is
    std::string message;
    std::string nominated_node;  // empty: stays
  };
  void Write(const api::ObjectPtr& pod, Change change);

 private:
  struct Job {
    Change change;
    api::ObjectPtr pod;
    int tries = 0;
    bool again = false;  // changed while a write was under way
  };
  void Send(const std::string& uid);
  void OnWritten(const std::string& uid, client::Reply reply);

  EventLoop& loop_;
  client::Client& client_;
  std::map<std::string, Job> jobs_;  // by pod uid
};

// The pod with the change, or null if it says so already.
api::TreePtr ApplyPodStatus(const api::Object& pod, const PodStatusWriter::Change& change,
                            const std::string& now);

}  // namespace drakkar::scheduler
