#include "controllers/taint_eviction/planner.h"

#include <algorithm>

#include "api/meta/bounded_seconds.h"
#include "controllers/workload/tolerations.h"

namespace drakkar::controllers {

std::optional<Duration> ToleranceOf(const api::Object& pod, const api::Object& node) {
  std::optional<Duration> shortest;
  for (api::Value taint : node["spec"]["taints"].elements()) {
    if (taint["effect"].str() != "NoExecute") continue;
    bool tolerated = false;
    for (api::Value toleration : pod["spec"]["tolerations"].elements()) {
      if (!Tolerates(toleration, taint)) continue;
      tolerated = true;
      if (const auto seconds = toleration["tolerationSeconds"].optional_integer()) {
        const Duration time = api::BoundedSeconds(std::max<std::int64_t>(*seconds, 0));
        shortest = std::min(time, shortest.value_or(time));
      }
      break;  // the first that matches counts
    }
    if (!tolerated) return Duration::zero();
  }
  return shortest;
}

}  // namespace drakkar::controllers
