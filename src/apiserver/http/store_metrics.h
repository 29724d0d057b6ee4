#pragma once

#include <map>
#include <string_view>
#include <utility>

#include "base/env/clock.h"

namespace drakkar {
class Histogram;
class Metrics;
}  // namespace drakkar
namespace drakkar::api {
struct KindSchema;
}

namespace drakkar::apiserver {

// etcd_request_duration_seconds: how long the store took, by operation and resource. Dashboards
// expect this name, whatever the engine.
class StoreMetrics {
 public:
  explicit StoreMetrics(Metrics& metrics) : metrics_(metrics) {}
  // `operation` is a constant: create, update, delete or list.
  void Observe(const api::KindSchema& kind, std::string_view operation, Duration took);

 private:
  Metrics& metrics_;
  std::map<std::pair<const api::KindSchema*, std::string_view>, Histogram*> series_;
};

}  // namespace drakkar::apiserver
