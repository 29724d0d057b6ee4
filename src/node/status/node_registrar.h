#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "api/meta/object.h"
#include "api/tree/draft.h"
#include "base/exec/event_loop.h"
#include "base/exec/lifetime.h"
#include "client/client.h"
#include "node/runtime/runtime.h"
#include "node/status/node_facts.h"

namespace drakkar::node {

struct NodeTaint {
  std::string key;
  std::string value;
  std::string effect;
};

// How a node appears in the cluster; by default as with a kubelet.
struct NodeRegistration {
  Duration status_every = std::chrono::seconds(10);    // looks for changes
  Duration heartbeat_every = std::chrono::minutes(5);  // writes the status without a change
  std::int64_t lease_seconds = 40;
  std::int64_t max_images = 50;  // in the status; the largest ones. -1: all
  // Of a Node that this agent creates; not changed later.
  std::vector<NodeTaint> taints = {};
  std::string provider_id = {};
  bool creates_node = true;  // false: somebody else creates it, and the agent waits
};

// Registers this machine's Node and keeps its status (on change, and now and then as a heartbeat)
// and its Lease in kube-node-lease (four times before it expires) up to date. Changes by others are
// kept, except to the fields the node itself reports. Failures are retried. Loop-bound.
class NodeRegistrar {
 public:
  struct Options {
    EventLoop& loop;
    client::Client& client;
    std::string node_name;
    NodeFacts facts;
    std::map<std::string, std::string> labels;  // in addition to the standard ones
    int agent_port = 10250;
    // Why the node is not ready; nothing if it is. Called at each sync.
    std::function<std::optional<std::string>()> not_ready_reason;
    // The runtime's name and version; empty: as in `facts`.
    std::function<std::string()> runtime_version;
    // Why pods share the host's network, for a condition; nothing if they do not.
    std::function<std::optional<std::string>()> shared_network_reason;
    // For status.runtimeHandlers; none: not reported.
    std::function<std::vector<RuntimeHandler>()> runtime_handlers = nullptr;
    // For status.images. Null: not reported.
    std::function<std::vector<Image>()> images = nullptr;
    // Whether the runtime can leave out the groups of the image. Null: not reported.
    std::function<bool()> has_groups_policy = nullptr;
    // Kept back from pods: status.allocatable is the rest.
    NodeReservation reserved = {};
    NodeRegistration registration = {};
    // Whether a condition such as MemoryPressure holds. Null: none does.
    std::function<bool(std::string_view condition)> has_pressure = nullptr;
  };
  static constexpr Duration kRetryAfter = std::chrono::seconds(1);

  explicit NodeRegistrar(Options options);
  ~NodeRegistrar();

  // For status.declaredFeatures (KEP-5328): valid, sorted, no duplicates. Call before Start. An
  // empty list removes existing entries.
  void SetDeclaredFeatures(std::vector<std::string> names) {
    declared_features_ = std::move(names);
  }

  void Start();
  // The port that was chosen, if Options.agent_port is 0. Published with the next sync.
  void SetAgentPort(int port) { agent_port_ = port; }
  // Syncs now instead of at the next interval.
  void Refresh();
  bool is_registered() const { return node_ != nullptr; }
  // As last seen; null before the first read.
  const api::ObjectPtr& node() const { return node_; }
  void OnRegistered(std::function<void()> callback) { on_registered_ = std::move(callback); }

 private:
  void SyncNode();
  void OnNode(client::Reply reply);
  void SyncStatus();
  void CreateNode();
  void WriteNode(const char* subresource, api::TreePtr tree);
  void NextLook(Duration delay);
  void SyncLease();
  void WriteLease(const api::ObjectPtr& lease);
  void NextLease(Duration delay);
  api::Draft MakeNode() const;
  api::Draft MakeStatus(api::Value before, bool heartbeat) const;

  const Options options_;
  int agent_port_ = options_.agent_port;
  std::vector<std::string> declared_features_;
  api::ObjectPtr node_;
  api::ObjectPtr lease_;  // as last written; null: read it first
  std::function<void()> on_registered_;
  bool has_missed_node_ = false;
  bool looking_ = false;
  WallTime last_heartbeat_{};
  TimerHandle status_timer_;
  TimerHandle lease_timer_;
  Lifetime lifetime_;
};

}  // namespace drakkar::node
