#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "answers/cluster/snapshot.h"
#include "answers/live/live_cluster.h"
#include "answers/why/why.h"
#include "base/env/random.h"
#include "base/exec/event_loop.h"
#include "base/exec/lifetime.h"
#include "client/client.h"
#include "scheduler/settings.h"

namespace drakkar::dashboard {

// What the explanation of a pod or claim needs besides a snapshot.
struct Circumstances {
  // The scheduler's own answer, as JSON. If it is not empty, nothing else is set.
  std::string answer;
  scheduler::Settings settings;
  std::vector<std::string> notes;
  answers::Objects events;
};

// Reads a cluster with the caller's credentials: keeps a snapshot current with watches and, while a
// page is open, asks the nodes for the health of their devices and checks that the server answers.
// It writes nothing. Bound to the client's loop. As large as the collections it follows.
class Follower {
 public:
  // Device health is not an API object, so it has to be polled: each node at most this often, and
  // at most kMaxAsks nodes per interval.
  static constexpr Duration kAskInterval = std::chrono::seconds(5);
  static constexpr std::size_t kMaxAsks = 32;
  // A server that has not answered for this long is reported.
  static constexpr Duration kSilentServer = std::chrono::seconds(10);
  // A node that does not report health (such as a kubelet) is asked again after this time.
  static constexpr Duration kSilentPause = std::chrono::minutes(5);

  struct Callbacks {
    // After changes; `urgent` is false for changes that rarely matter (leases).
    std::function<void(bool urgent)> on_change;
    // Why the snapshot is not current; empty if it is again.
    std::function<void(std::string problem)> on_problem;
  };
  Follower(EventLoop& loop, Random& random, client::Client& client, const answers::Snapshot& first,
           Callbacks callbacks);
  ~Follower();

  void Start();
  answers::Snapshot Take() const;

  void SetWatched(bool watched);
  // The nodes to ask for device health.
  void SetNodes(const std::vector<std::string>& nodes);
  void ReadCircumstances(const answers::WhySubject& subject,
                         std::function<void(Circumstances)> done);
  // The same without the scheduler's answer.
  void ReadSettings(const std::string& ns, const std::string& name,
                    std::function<void(Circumstances)> done);
  // Events about an object, oldest first; none if they cannot be read.
  void ReadEvents(const std::string& ns, const std::string& name,
                  std::function<void(answers::Objects)> done);

 private:
  struct NodeState {
    MonotonicTime due{};
    bool asked = false;  // a request is in flight
    answers::NodeHealth health;
  };
  void Tick();
  void CheckServer();
  void SetProblem(std::string problem);
  void AskNodes();
  void OnHealth(const std::string& node, const client::Reply& reply);

  EventLoop& loop_;
  client::Client& client_;
  const Callbacks callbacks_;
  std::unique_ptr<answers::LiveCluster> live_;
  std::map<std::string, NodeState> nodes_;  // as many as the cluster has
  bool may_ask_nodes_ = true;
  bool watched_ = false;
  bool checking_ = false;
  MonotonicTime check_began_{};
  std::string problem_;
  TimerHandle tick_;
  Lifetime lifetime_;
};

}  // namespace drakkar::dashboard
