#include "apiserver/http/flow_control.h"

#include <algorithm>
#include <utility>

namespace drakkar::apiserver {

FlowControl::Level FlowControl::LevelOf(const UserInfo& user) {
  for (const std::string& group : user.groups) {
    if (group == "system:masters") return Level::kExempt;
    if (group == "system:nodes" || group == "system:serviceaccounts:kube-system") {
      return Level::kSystem;
    }
  }
  const bool is_component = user.name == "system:kube-scheduler" ||
                            user.name == "system:kube-controller-manager" ||
                            user.name == "system:apiserver";
  return is_component ? Level::kSystem : Level::kOther;
}

FlowControl::Limits FlowControl::LimitsFor(std::size_t in_progress) {
  Limits limits;
  limits.in_progress = std::max<std::size_t>(in_progress, 4);
  limits.per_user = std::max<std::size_t>(limits.in_progress / 4, 1);
  limits.reserved = limits.in_progress / 4;
  limits.queued_per_user = 2 * limits.in_progress;
  limits.queued = 50 * limits.in_progress;
  return limits;
}

FlowControl::Ticket& FlowControl::Ticket::operator=(Ticket&& other) noexcept {
  if (this == &other) return *this;
  Release();
  control_ = std::exchange(other.control_, {});
  user_ = std::move(other.user_);
  level_ = other.level_;
  return *this;
}

void FlowControl::Ticket::Release() {
  if (const auto control = std::exchange(control_, {}).lock()) control->End(user_, level_);
}

bool FlowControl::MayStart(const Flow& flow, Level level) const {
  if (flow.in_progress >= limits_.per_user && level == Level::kOther) return false;
  if (level == Level::kOther && others_in_progress_ >= limits_.in_progress - limits_.reserved) {
    return false;
  }
  return in_progress_ < limits_.in_progress;
}

FlowControl::Ticket FlowControl::Begin(const std::string& user, Flow& flow, Level level) {
  ++flow.in_progress;
  ++in_progress_;
  if (level == Level::kOther) ++others_in_progress_;
  Ticket ticket;
  ticket.control_ = weak_from_this();
  ticket.user_ = user;
  ticket.level_ = level;
  return ticket;
}

bool FlowControl::Enter(const std::string& user, Level level, Start start) {
  if (level == Level::kExempt) {
    start(Ticket());
    return true;
  }
  Flow& flow = flows_[user];
  if (flow.queue.empty() && MayStart(flow, level)) {
    start(Begin(user, flow, level));
    return true;
  }
  if (flow.queue.size() >= limits_.queued_per_user || queued_ >= limits_.queued) {
    if (flow.in_progress == 0 && flow.queue.empty()) flows_.erase(user);
    return false;
  }
  flow.level = level;
  flow.queue.push_back(std::move(start));
  ++queued_;
  if (!flow.is_waiting) {
    flow.is_waiting = true;
    turns_.push_back(user);
  }
  return true;
}

void FlowControl::End(const std::string& user, Level level) {
  --in_progress_;
  if (level == Level::kOther) --others_in_progress_;
  const auto found = flows_.find(user);
  Flow& flow = found->second;
  if (--flow.in_progress == 0 && flow.queue.empty()) flows_.erase(found);
  StartWaiting();
}

// Users take turns, one request each.
void FlowControl::StartWaiting() {
  if (is_starting_) return;  // a request that starts may end at once
  is_starting_ = true;
  for (std::size_t looked_at = 0; looked_at < turns_.size();) {
    const std::string user = std::move(turns_.front());
    turns_.pop_front();
    Flow& flow = flows_.find(user)->second;
    if (!MayStart(flow, flow.level)) {
      turns_.push_back(user);
      ++looked_at;
      continue;
    }
    looked_at = 0;
    Start start = std::move(flow.queue.front());
    flow.queue.pop_front();
    --queued_;
    flow.is_waiting = !flow.queue.empty();
    if (flow.is_waiting) turns_.push_back(user);
    start(Begin(user, flow, flow.level));
  }
  is_starting_ = false;
}

}  // namespace drakkar::apiserver
