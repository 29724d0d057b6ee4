#pragma once

#include <vector>

#include "api/meta/object.h"
#include "base/result/result.h"
#include "features/gates/feature_gates.h"
#include "scheduler/config/configuration.h"

namespace drakkar::client {
class Client;
}

namespace drakkar::scheduler {

// How the active scheduler of a cluster is set up, as it publishes it: a ConfigMap, so that whoever
// explains its decisions from outside (`drakkar why`) does not have to guess.
inline constexpr char kSettingsNamespace[] = "kube-system";
inline constexpr char kSettingsName[] = "drakkar-scheduler";

struct Settings {
  FeatureGates gates;
  std::vector<ProfileConfig> profiles = {ProfileConfig{}};
};

api::TreePtr SettingsToConfigMap(const FeatureGates& gates, const Configuration& configuration);
Result<Settings> SettingsFromConfigMap(const api::Object& map);

// Writes the ConfigMap. Errors are only logged, because nothing depends on it. `client` must not
// run callbacks after its destruction.
void PublishSettings(client::Client& client, const FeatureGates& gates,
                     const Configuration& configuration);

}  // namespace drakkar::scheduler
