// Any KubeSchedulerConfiguration yields either settings within their limits, which /configz can
// show, or an error.
#include <cstddef>
#include <cstdint>
#include <set>

#include "api/json/writer.h"
#include "base/result/check.h"
#include "scheduler/config/configuration.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace drakkar;
  const auto configuration =
      scheduler::ParseConfiguration({reinterpret_cast<const char*>(data), size}, FeatureGates());
  if (!configuration.ok()) {
    CHECK(!configuration.error().message.empty());
    return 0;
  }
  CHECK(!configuration->profiles.empty());
  CHECK(configuration->first_backoff.count() > 0 &&
        configuration->first_backoff <= configuration->longest_backoff);
  std::set<std::string> names;
  for (const auto& profile : configuration->profiles) {
    CHECK(!profile.name.empty() && names.insert(profile.name).second);
    CHECK(profile.percentage_of_nodes_to_score >= 0 && profile.percentage_of_nodes_to_score <= 100);
  }
  const api::TreePtr shown = scheduler::ConfigurationToTree(*configuration);
  CHECK(shown->root()["profiles"].size() == configuration->profiles.size());
  CHECK(!api::WriteJson(shown->root()).empty());
  return 0;
}
