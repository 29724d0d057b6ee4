#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "api/meta/object.h"
#include "base/exec/backoff.h"
#include "base/exec/event_loop.h"
#include "base/exec/lifetime.h"
#include "client/client.h"

namespace drakkar::scheduler {

// Writes what the scheduler reports in a pod's status: the condition PodScheduled=False with a
// reason, and the nominated node. Writes only changes, with one write in flight per pod; the last
// change wins. On a conflict it reads the pod and retries, at most kMaxTries times in a row. On a
// server error it retries with backoff, at most kMaxFailures times: longer than the default binding
// timeout, during which the nominated node is of interest. Loop-bound; one entry per write in
// flight.
class PodStatusWriter {
 public:
  static constexpr int kMaxTries = 3;
  static constexpr int kMaxFailures = 30;
  static constexpr Duration kFirstPause = std::chrono::milliseconds(100);
  static constexpr Duration kLongestPause = std::chrono::seconds(30);

  PodStatusWriter(EventLoop& loop, client::Client& client) : loop_(loop), client_(client) {}
  PodStatusWriter(const PodStatusWriter&) = delete;
  PodStatusWriter& operator=(const PodStatusWriter&) = delete;

  struct Change {
    std::string reason;  // Unschedulable, SchedulerError; empty: no change
    std::string message;
    std::string nominated_node;  // empty: no change
  };
  void Write(const api::ObjectPtr& pod, Change change);

 private:
  struct Job {
    Change change;
    api::ObjectPtr pod;
    int tries = 0;       // conflicts in a row
    bool again = false;  // changed while a write was in flight
    Backoff backoff{{.initial = kFirstPause, .max = kLongestPause}};
    TimerHandle pause;
  };
  void Send(const std::string& uid);
  void OnWritten(const std::string& uid, client::Reply reply);
  void ReadAgain(const std::string& uid);
  // Retries later, or gives up, after an error other than a conflict.
  void OnError(const std::string& uid, const Error& error);

  EventLoop& loop_;
  client::Client& client_;
  std::map<std::string, Job> jobs_;  // by pod uid
  Lifetime lifetime_;
};

// The pod with the change applied, or null if it changes nothing.
api::TreePtr ApplyPodStatus(const api::Object& pod, const PodStatusWriter::Change& change,
                            const std::string& now);

}  // namespace drakkar::scheduler
