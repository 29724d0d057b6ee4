#include "apiserver/webhook/webhook_metrics.h"

#include <algorithm>
#include <string>

#include "telemetry/metrics/metrics.h"

namespace drakkar::apiserver {

void WebhookMetrics::Observe(const Call& call) const {
  if (metrics_ == nullptr) return;
  const std::string name(call.name);
  const std::string type(call.type);
  const std::string operation(call.operation);
  const std::string rejected = call.is_rejected ? "true" : "false";
  const std::string code = std::to_string(std::min(call.code, 600));
  metrics_
      ->GetHistogram(
          "apiserver_admission_webhook_admission_duration_seconds",
          "Admission webhook latency histogram in seconds, identified by name and "
          "broken out for each operation and API resource and type (validate or admit).",
          {{"name", name}, {"operation", operation}, {"rejected", rejected}, {"type", type}},
          {0.005, 0.025, 0.1, 0.5, 1.0, 2.5, 10, 25})
      .Observe(std::chrono::duration<double>(call.took).count());
  metrics_
      ->GetCounter("apiserver_admission_webhook_request_total",
                   "Admission webhook request total, identified by name and broken out for each "
                   "admission type (validating or admit) and operation.",
                   {{"code", code},
                    {"name", name},
                    {"operation", operation},
                    {"rejected", rejected},
                    {"type", type}})
      .Add();
  if (!call.is_rejected) return;
  metrics_
      ->GetCounter("apiserver_admission_webhook_rejection_count",
                   "Admission webhook rejection count, identified by name and broken out for each "
                   "admission type (validating or admit) and operation.",
                   {{"error_type", std::string(call.error_type)},
                    {"name", name},
                    {"operation", operation},
                    {"rejection_code", code},
                    {"type", type}})
      .Add();
}

void WebhookMetrics::CountFailOpen(std::string_view name, std::string_view type) const {
  if (metrics_ == nullptr) return;
  metrics_
      ->GetCounter("apiserver_admission_webhook_fail_open_count",
                   "Admission webhook fail open count, identified by name and broken out for each "
                   "admission type (validating or admit).",
                   {{"name", std::string(name)}, {"type", std::string(type)}})
      .Add();
}

void WebhookMetrics::CountExclusion(std::string_view name, std::string_view type,
                                    std::string_view operation) const {
  if (metrics_ == nullptr) return;
  metrics_
      ->GetCounter("apiserver_admission_match_condition_exclusions_total",
                   "Admission match condition evaluation exclusions count, identified by name of "
                   "resource containing the match condition.",
                   {{"kind", "webhook"},
                    {"name", std::string(name)},
                    {"operation", std::string(operation)},
                    {"type", std::string(type)}})
      .Add();
}

void WebhookMetrics::CountConditionError(std::string_view name, std::string_view type,
                                         std::string_view operation) const {
  if (metrics_ == nullptr) return;
  metrics_
      ->GetCounter("apiserver_admission_match_condition_evaluation_errors_total",
                   "Admission match condition evaluation errors count, identified by name of "
                   "resource containing the match condition.",
                   {{"kind", "webhook"},
                    {"name", std::string(name)},
                    {"operation", std::string(operation)},
                    {"type", std::string(type)}})
      .Add();
}

}  // namespace drakkar::apiserver
