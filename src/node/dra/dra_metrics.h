#pragma once

#include <set>
#include <string>
#include <string_view>

#include "base/env/clock.h"
#include "node/dra/claim_cache.h"
#include "node/plugins/plugin_store.h"

namespace drakkar {
class Metrics;
}

namespace drakkar::node {

// The metrics of dynamic resources, each as `dra_...` (Kubernetes) and `kubelet_dra_...`
// (KEP-5945).
class DraMetrics {
 public:
  // Null: nothing is counted.
  explicit DraMetrics(Metrics* metrics) : metrics_(metrics) {}

  // Kubernetes' buckets start at 0.1 s; ours for the same operations resolve milliseconds.
  void Operation(std::string_view name, bool is_error, Duration took);
  // `claims` (fetched from the server), `checkpoint` (written), `driver` (one call).
  void PrepareStage(std::string_view stage, Duration took);
  // `code` comes from CodeOf.
  void Call(const PluginInstance& plugin, std::string_view method, const std::string& code,
            Duration took);
  // The gRPC code of an error; "OK" for null.
  static std::string CodeOf(const Error* error);
  void PrepareSkipped(const std::string& driver);
  void UnprepareSkipped(const std::string& driver);
  void ClaimsInUse(const ClaimCache& cache);

 private:
  Metrics* metrics_;
  std::set<std::string> shown_drivers_;
};

}  // namespace drakkar::node
