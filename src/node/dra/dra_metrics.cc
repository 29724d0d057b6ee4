#include "node/dra/dra_metrics.h"

#include <map>

#include "base/text/text.h"
#include "rpc/transport/status.h"
#include "telemetry/metrics/metrics.h"

namespace drakkar::node {
namespace {

constexpr const char* kPrefixes[] = {"", "kubelet_"};

const std::vector<double>& Bounds() {
  static const std::vector<double> bounds = ExponentialBoundsRange(0.1, 40, 15);
  return bounds;
}

const std::vector<double>& FineBounds() {
  static const std::vector<double> bounds = ExponentialBoundsRange(0.0001, 2, 104);
  return bounds;
}

double Seconds(Duration duration) {
  return std::chrono::duration<double>(duration).count();
}

}  // namespace

void DraMetrics::Operation(std::string_view name, bool is_error, Duration took) {
  if (metrics_ == nullptr) return;
  for (const char* prefix : kPrefixes) {
    metrics_
        ->GetHistogram(
            std::string(prefix) + "dra_operations_duration_seconds",
            "Latency histogram in seconds for the duration of handling all "
            "ResourceClaims referenced by a pod when the pod starts or stops",
            {{"operation_name", std::string(name)}, {"is_error", is_error ? "true" : "false"}},
            Bounds())
        .Observe(Seconds(took));
  }
  metrics_
      ->GetHistogram(
          "drakkar_node_dra_operations_duration_seconds",
          "Same as dra_operations_duration_seconds, with finer buckets",
          {{"operation_name", std::string(name)}, {"is_error", is_error ? "true" : "false"}},
          FineBounds())
      .Observe(Seconds(took));
}

void DraMetrics::PrepareStage(std::string_view stage, Duration took) {
  if (metrics_ == nullptr) return;
  metrics_
      ->GetHistogram("drakkar_node_dra_prepare_stage_duration_seconds",
                     "Duration of each stage of preparing a pod's claims",
                     {{"stage", std::string(stage)}}, FineBounds())
      .Observe(Seconds(took));
}

std::string DraMetrics::CodeOf(const Error* error) {
  return error == nullptr ? "OK" : rpc::GrpcCodeName(rpc::GrpcCodeFromError(error->code));
}

void DraMetrics::Call(const PluginInstance& plugin, std::string_view method,
                      const std::string& code, Duration took) {
  if (metrics_ == nullptr) return;
  const char* version = plugin.version == rpc::DraVersion::kV1 ? "v1" : "v1beta1";
  const std::string full_method =
      StrCat("/k8s.io.kubelet.pkg.apis.dra.", version, ".DRAPlugin/", method);
  for (const char* prefix : kPrefixes) {
    metrics_
        ->GetHistogram(std::string(prefix) + "dra_grpc_operations_duration_seconds",
                       "Duration in seconds of the DRA gRPC operations",
                       {{"driver_name", plugin.driver},
                        {"method_name", full_method},
                        {"grpc_status_code", code}},
                       Bounds())
        .Observe(Seconds(took));
  }
}

void DraMetrics::PrepareSkipped(const std::string& driver) {
  if (metrics_ == nullptr) return;
  for (const char* prefix : kPrefixes) {
    metrics_
        ->GetCounter(std::string(prefix) + "dra_node_prepare_skips_total",
                     "Claims prepared without calling the driver (skipNodeOperations)",
                     {{"driver_name", driver}})
        .Add();
  }
}

void DraMetrics::UnprepareSkipped(const std::string& driver) {
  if (metrics_ == nullptr) return;
  for (const char* prefix : kPrefixes) {
    metrics_
        ->GetCounter(std::string(prefix) + "dra_node_unprepare_skips_total",
                     "Claims unprepared without calling the driver (skipNodeOperations)",
                     {{"driver_name", driver}})
        .Add();
  }
}

void DraMetrics::ClaimsInUse(const ClaimCache& cache) {
  if (metrics_ == nullptr) return;
  std::map<std::string, int> counts = {{"<any>", 0}};
  for (const auto& [key, info] : cache.claims()) {
    if (info.phase.state() == ClaimPhase::kAttached) continue;
    ++counts["<any>"];
    for (const auto& [driver, state] : info.drivers) ++counts[driver];
  }
  for (const char* prefix : kPrefixes) {
    const std::string name = std::string(prefix) + "dra_resource_claims_in_use";
    for (const std::string& driver : shown_drivers_) {
      if (!counts.contains(driver)) metrics_->RemoveGauge(name, {{"driver_name", driver}});
    }
    for (const auto& [driver, count] : counts) {
      metrics_
          ->GetGauge(name,
                     "The number of ResourceClaims that are currently in use on the node, "
                     "by driver name (driver_name label value) and across all drivers "
                     "(special value <any> for driver_name)",
                     {{"driver_name", driver}})
          .Set(count);
    }
  }
  shown_drivers_.clear();
  for (const auto& [driver, count] : counts) shown_drivers_.insert(driver);
}

}  // namespace drakkar::node
