#include "apiserver/http/store_metrics.h"

#include "api/scheme/scheme.h"
#include "telemetry/metrics/metrics.h"

namespace drakkar::apiserver {

void StoreMetrics::Observe(const api::KindSchema& kind, std::string_view operation, Duration took) {
  Histogram*& series = series_[{&kind, operation}];
  if (series == nullptr) {
    static const std::vector<double> bounds = {0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8,
                                               1.0,   1.25,  1.5,  2,   3,   4,   5,   6,
                                               8,     10,    15,   20,  30,  45,  60};
    series = &metrics_.GetHistogram(
        "etcd_request_duration_seconds",
        "Etcd request latency in seconds for each operation and object type.",
        {{"group", std::string(kind.group)},
         {"operation", std::string(operation)},
         {"resource", std::string(kind.plural)}},
        bounds);
  }
  series->Observe(std::chrono::duration<double>(took).count());
}

}  // namespace drakkar::apiserver
