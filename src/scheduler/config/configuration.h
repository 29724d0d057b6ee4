#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "api/tree/value.h"
#include "base/result/result.h"
#include "client/leader_election.h"
#include "features/gates/feature_gates.h"
#include "scheduler/config/profile.h"

namespace drakkar::scheduler {

// A KubeSchedulerConfiguration (kubescheduler.config.k8s.io/v1).
struct Configuration {
  std::vector<ProfileConfig> profiles = {ProfileConfig{}};
  Duration first_backoff = std::chrono::seconds(1);
  Duration longest_backoff = std::chrono::seconds(10);
  client::LeaderElectionConfig leader_election{.lease_name = "kube-scheduler"};
  std::string kubeconfig;  // of clientConnection
  // What is valid but has no effect here, a sentence each.
  std::vector<std::string> remarks;
};

// Reads the text of a file (YAML or JSON, one document). What is not known, cannot be, or asks for
// something we do not have is refused with one sentence that begins with the field.
Result<Configuration> ParseConfiguration(std::string_view text, const FeatureGates& gates);

// What is in force, as /configz shows it.
api::TreePtr ConfigurationToTree(const Configuration& configuration);

}  // namespace drakkar::scheduler
