#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <unordered_map>

#include "base/exec/event_loop.h"
#include "scheduler/cache/pod_info.h"

namespace drakkar::scheduler {

// Delays the event and condition about a pod that did not fit. A pod is often created moments
// before the devices it needs are freed; it then fits at the next attempt, and two writes are
// saved. A pod that still does not fit is reported kDelay after its first rejection, with the
// message of the last.
//
// Lives on the scheduler's loop; one entry per pod rejected within kDelay.
class RefusalNotices {
 public:
  static constexpr Duration kDelay = std::chrono::milliseconds(15);
  using Tell = std::function<void(const PodInfo& pod, const std::string& message)>;

  RefusalNotices(EventLoop& loop, Tell tell) : loop_(loop), tell_(std::move(tell)) {}

  void Put(PodInfoPtr pod, std::string message);
  // The pod was placed or deleted, or something newer was reported about it.
  void Drop(const std::string& pod_uid);
  std::size_t size() const { return by_age_.size(); }

 private:
  struct Notice {
    PodInfoPtr pod;
    std::string message;
    MonotonicTime due;
  };
  void Arm();
  void TellDue();

  EventLoop& loop_;
  const Tell tell_;
  std::map<std::uint64_t, Notice> by_age_;
  std::unordered_map<std::string, std::uint64_t> ages_;  // by pod uid; never iterated
  std::uint64_t next_age_ = 0;
  TimerHandle timer_;
};

}  // namespace drakkar::scheduler
