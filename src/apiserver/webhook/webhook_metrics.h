#pragma once

#include <string_view>

#include "base/env/clock.h"

namespace drakkar {
class Metrics;
}

namespace drakkar::apiserver {

// apiserver_admission_webhook_*, with Kubernetes' names and labels.
class WebhookMetrics {
 public:
  // Null: nothing is counted.
  explicit WebhookMetrics(Metrics* metrics) : metrics_(metrics) {}

  // A call that ended. `type` is "admit" or "validating".
  struct Call {
    std::string_view name;
    std::string_view type;
    std::string_view operation;
    Duration took{0};
    int code = 200;
    bool is_rejected = false;
    std::string_view error_type = "no_error";  // of a rejection
  };
  void Observe(const Call& call) const;
  void CountFailOpen(std::string_view name, std::string_view type) const;
  void CountExclusion(std::string_view name, std::string_view type,
                      std::string_view operation) const;
  void CountConditionError(std::string_view name, std::string_view type,
                           std::string_view operation) const;

 private:
  Metrics* const metrics_;
};

}  // namespace drakkar::apiserver
