#pragma once

#include <array>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "answers/cluster/snapshot.h"

namespace drakkar::device {
class ExpressionCompiler;
}

namespace drakkar::answers {

// Numbers of devices and claims by state, for metrics (docs/metrics.md).
struct ClusterCounts {
  // By class ("" for devices of no class) and state. A device of several classes counts in each.
  std::map<std::pair<std::string, std::string>, std::size_t> devices;
  struct Claims {
    std::map<std::string_view, std::size_t> by_age;  // every age is present
    Duration oldest{};
  };
  std::map<std::string_view, Claims> claims;  // every state is present
};

// "free", "held", "waiting", "tainted", "unhealthy", "unusable".
inline constexpr std::array<std::string_view, 6> kDeviceStates = {
    "free", "held", "waiting", "tainted", "unhealthy", "unusable"};
// pending: not allocated. waiting: allocated, and a binding condition is not True yet. unused:
// allocated, but reserved for nobody. used: reserved for a pod. deleting: deletion was requested.
inline constexpr std::array<std::string_view, 5> kClaimStates = {"pending", "waiting", "unused",
                                                                 "used", "deleting"};
// Upper limits of the age, and none for the last.
inline constexpr std::array<std::pair<std::string_view, Duration>, 5> kClaimAges = {
    {{"1m", std::chrono::minutes(1)},
     {"10m", std::chrono::minutes(10)},
     {"1h", std::chrono::hours(1)},
     {"1d", std::chrono::hours(24)},
     {"older", Duration::max()}}};

ClusterCounts CountCluster(const Snapshot& snapshot, device::ExpressionCompiler& compiler);

}  // namespace drakkar::answers
