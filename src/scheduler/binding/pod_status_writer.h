#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "api/meta/object.h"
#include "base/exec/event_loop.h"
#include "client/client.h"

namespace drakkar::scheduler {

// What the scheduler says about a pod in its status: the condition PodScheduled=False with a
// reason, and the nominated node. Writes only what changes; one write per pod is under way at a
// time and the last word wins. A conflict is answered by reading again, kMaxTries times in a row.
// When the server is in trouble it is tried again with growing pauses, kMaxFailures times: longer
// than a pod waits for its devices by default, which is what the nominated node is shown for.
// Loop-bound; as many entries as writes under way.
class PodStatusWriter {
 public:
  static constexpr int kMaxTries = 3;
  static constexpr int kMaxFailures = 30;
  static constexpr Duration kFirstPause = std::chrono::milliseconds(100);
  static constexpr Duration kLongestPause = std::chrono::seconds(30);

  PodStatusWriter(EventLoop& loop, client::Client& client) : loop_(loop), client_(client) {}
  ~PodStatusWriter() { *alive_ = false; }
  PodStatusWriter(const PodStatusWriter&) = delete;
  PodStatusWriter& operator=(const PodStatusWriter&) = delete;

  struct Change {
    std::string reason;  // Unschedulable, SchedulerError; empty: the condition stays as it is
    std::string message;
    std::string nominated_node;  // empty: stays
  };
  void Write(const api::ObjectPtr& pod, Change change);

 private:
  struct Job {
    Change change;
    api::ObjectPtr pod;
    int tries = 0;       // that met a conflict, in a row
    int failures = 0;    // in a row
    bool again = false;  // changed while a write was under way
    TimerHandle pause;
  };
  void Send(const std::string& uid);
  void OnWritten(const std::string& uid, client::Reply reply);
  void ReadAgain(const std::string& uid);
  // After an error that is no conflict: later, or never.
  void OnError(const std::string& uid, const Error& error);

  EventLoop& loop_;
  client::Client& client_;
  std::map<std::string, Job> jobs_;  // by pod uid
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

// The pod with the change, or null if it says so already.
api::TreePtr ApplyPodStatus(const api::Object& pod, const PodStatusWriter::Change& change,
                            const std::string& now);

}  // namespace drakkar::scheduler
