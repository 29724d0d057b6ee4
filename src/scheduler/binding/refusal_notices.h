#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <unordered_map>

#include "base/exec/event_loop.h"
#include "scheduler/cache/pod_info.h"

namespace drakkar::scheduler {

// Refusals that have not been told yet. Each waits a moment, because many a pod only comes before
// the devices of the one it follows are free: it is tried again at once and then there is nothing
// to say, which saves two writes. A pod that stays refused is told of kDelay after the first
// refusal, however many more there are by then, with the words of the last.
//
// Lives on the scheduler's loop; as many entries as pods that were refused within kDelay.
class RefusalNotices {
 public:
  static constexpr Duration kDelay = std::chrono::milliseconds(15);
  using Tell = std::function<void(const PodInfo& pod, const std::string& message)>;

  RefusalNotices(EventLoop& loop, Tell tell) : loop_(loop), tell_(std::move(tell)) {}

  void Put(PodInfoPtr pod, std::string message);
  // The pod has a node, or is gone, or something newer has been said about it.
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
  std::unordered_map<std::string, std::uint64_t> ages_;  // by pod uid; looked up only
  std::uint64_t next_age_ = 0;
  TimerHandle timer_;
};

}  // namespace drakkar::scheduler
