#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/env/file_system.h"
#include "base/exec/event_loop.h"
#include "base/exec/lifetime.h"
#include "base/os/process.h"
#include "node/runtime/network/cni_config.h"
#include "node/runtime/runtime.h"

namespace drakkar::node {

// The pod network of a node without a configured one: a bridge with addresses from a private range,
// created by the plugins bridge, host-local and portmap. Its names derive from the data directory,
// so that several nodes on one machine do not share one.
struct BuiltInPlan {
  std::string bridge;   // the interface's name
  std::string subnet;   // "10.70.3.0/24"
  std::string gateway;  // the bridge's address: "10.70.3.1"
  CniList list;
};

// The plugins it needs, for a message.
extern const std::vector<std::string> kBuiltInPlugins;

// Reads the plan in `directory` or creates one: a range that no route of the host overlaps. The
// plan is kept, so that pods keep their addresses, unless an overlapping route has appeared while
// no pod uses it. Changes nothing outside `directory`.
Result<BuiltInPlan> PlanBuiltInNetwork(FileSystem& files, const std::string& directory);

// What the plugins do not do: masquerade the pods' traffic to other machines, and let it pass a
// firewall that drops forwarded packets. Loop-bound.
class BuiltInNetwork {
 public:
  BuiltInNetwork(EventLoop& loop, Spawner& spawner, BuiltInPlan plan,
                 std::function<void(const std::string&)> log)
      : loop_(loop), spawner_(spawner), plan_(std::move(plan)), log_(std::move(log)) {}

  const BuiltInPlan& plan() const { return plan_; }

  // Adds the firewall rules unless they exist. Without iptables, pods still reach the host and each
  // other, so errors are only logged.
  void Prepare(RuntimeCallback<void> done);
  // Removes the rules and the bridge. No pod may use it.
  void Remove(RuntimeCallback<void> done);

 private:
  struct Rule {
    std::string table;
    std::string chain;
    std::vector<std::string> match;
  };
  std::vector<Rule> Rules() const;
  void Apply(std::vector<Rule> rules, bool add, RuntimeCallback<void> done);
  void RunIptables(const char* verb, const Rule& rule, RuntimeCallback<void> done);

  EventLoop& loop_;
  Spawner& spawner_;
  const BuiltInPlan plan_;
  const std::function<void(const std::string&)> log_;
  std::vector<RuntimeCallback<void>> waiters_;  // of a Prepare in flight
  std::unique_ptr<Process> iptables_;           // the last one started
  TimerHandle iptables_timer_;
  Lifetime lifetime_;
};

// Deletes a bridge interface; one that does not exist is no error.
Result<void> RemoveBridge(const std::string& name);

}  // namespace drakkar::node
