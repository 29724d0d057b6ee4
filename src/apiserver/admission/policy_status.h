#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>

#include "apiserver/policy/type_check.h"
#include "apiserver/rest/core.h"
#include "base/exec/event_loop.h"
#include "base/exec/lifetime.h"

namespace drakkar::apiserver {

// Keeps status.typeChecking of ValidatingAdmissionPolicies: checks each policy when its spec has
// changed, one kind per turn of the loop, and writes what it found. Bound to the API server's loop;
// holds the policies that wait to be checked.
class PolicyStatusKeeper {
 public:
  explicit PolicyStatusKeeper(EventLoop& loop) : loop_(loop) {}

  // After Core::Start. `core` must outlive this object.
  void Start(Core& core);

 private:
  // By name; null before its first turn.
  using Waiting = std::map<std::string, std::unique_ptr<PolicyTypeCheck>>;

  void Look(const api::ObjectPtr& policy);
  void RunLater();
  void Run();
  void Write(const std::string& name, api::Draft result);

  EventLoop& loop_;
  Core* core_ = nullptr;
  Waiting waiting_;
  std::map<std::string, std::int64_t> generations_;  // of those that wait
  bool is_scheduled_ = false;
  std::unique_ptr<WatchCache::Watcher> watcher_;
  Lifetime lifetime_;
};

}  // namespace drakkar::apiserver
