#include "apiserver/http/limit_metrics.h"

#include "telemetry/metrics/metrics.h"

namespace drakkar::apiserver {

void ShowLimit(Metrics& metrics, const std::string& name, std::uint64_t usage,
               std::uint64_t limit) {
  metrics.GetGauge("drakkar_limit_usage", "How much of a limit is in use.", {{"name", name}})
      .Set(static_cast<double>(usage));
  if (limit == 0) return;
  metrics.GetGauge("drakkar_limit", "Limits for what could otherwise grow.", {{"name", name}})
      .Set(static_cast<double>(limit));
}

}  // namespace drakkar::apiserver
