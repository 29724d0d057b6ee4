#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "api/tree/value.h"
#include "base/result/result.h"
#include "client/leader_election.h"
#include "features/gates/feature_gates.h"
#include "scheduler/framework/profile.h"

namespace drakkar::scheduler {

// A KubeSchedulerConfiguration (kubescheduler.config.k8s.io/v1).
struct Configuration {
  std::vector<ProfileConfig> profiles = {ProfileConfig{}};
  Duration first_backoff = std::chrono::seconds(1);
  Duration longest_backoff = std::chrono::seconds(10);
  client::LeaderElectionConfig leader_election{.lease_name = "kube-scheduler"};
  std::string kubeconfig;  // of clientConnection
  // One sentence per setting that is valid but has no effect here.
  std::vector<std::string> remarks;
};

// Parses a configuration file (YAML or JSON, one document). Rejects unknown fields, invalid values
// and unsupported settings with one sentence that begins with the field.
Result<Configuration> ParseConfiguration(std::string_view text, const FeatureGates& gates);

// The configuration in effect, as shown by /configz.
api::TreePtr ConfigurationToTree(const Configuration& configuration);

}  // namespace drakkar::scheduler
