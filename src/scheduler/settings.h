#pragma once

#include <string>
#include <vector>

#include "api/meta/object.h"
#include "base/result/result.h"
#include "features/gates/feature_gates.h"
#include "scheduler/config/configuration.h"

namespace drakkar::client {
class Client;
}

namespace drakkar::scheduler {

// The settings of the cluster's active scheduler. It publishes them in a ConfigMap, so that tools
// that explain its decisions (`drakkar why`) do not have to guess.
inline constexpr char kSettingsNamespace[] = "kube-system";
inline constexpr char kSettingsName[] = "drakkar-scheduler";

struct Settings {
  FeatureGates gates;
  std::vector<ProfileConfig> profiles = {ProfileConfig{}};
};

// Where the scheduler answers questions (`/why` of its status port), for the API server.
struct AnswerAddress {
  std::string url;     // "https://10.0.0.7:10259"; empty: nowhere
  std::string ca_pem;  // who signed its certificate; empty: the cluster's CA
};

api::TreePtr SettingsToConfigMap(const FeatureGates& gates, const Configuration& configuration,
                                 const AnswerAddress& address = {});
Result<Settings> SettingsFromConfigMap(const api::Object& map);

// Writes the ConfigMap. Errors are only logged, because nothing depends on it. `client` must not
// run callbacks after it is destroyed.
void PublishSettings(client::Client& client, const FeatureGates& gates,
                     const Configuration& configuration, const AnswerAddress& address = {});

}  // namespace drakkar::scheduler
