#pragma once

#include <cstdint>
#include <string>

namespace drakkar {
class Metrics;
}

namespace drakkar::apiserver {

// Shows how much of a limit is used: drakkar_limit_usage and drakkar_limit with the label `name`.
// docs/limits.md lists the names and what happens at each limit. A limit of 0 is not shown.
void ShowLimit(Metrics& metrics, const std::string& name, std::uint64_t usage, std::uint64_t limit);

}  // namespace drakkar::apiserver
