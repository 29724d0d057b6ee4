#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "api/tree/value.h"
#include "features/framework/framework.h"

namespace drakkar::features {

// The answers of `drakkar features`, as data, text and trees. Equal input gives identical output.

// The settings of a KubeletConfiguration that affect features.
struct KubeletSettings {
  std::string feature_gates;  // "A=true,B=false"
  // Keys as KEP-5328 spells them, with the kubelet's defaults for omitted settings.
  std::map<std::string, std::string, std::less<>> static_configuration;
};
Result<KubeletSettings> ReadKubeletConfiguration(api::Value kubelet_configuration);

// "UserNamespacesHostNetwork,MountOptions".
Result<RuntimeFeatures> ReadRuntimeFeatures(std::string_view text);

// A node as described by its administrator.
struct NodeInput {
  api::Value kubelet_configuration;  // a KubeletConfiguration, or absent
  std::string feature_gates;         // "A=true,B=false"; override those of the configuration
  std::string runtime_features;      // "UserNamespacesHostNetwork,MountOptions"
  std::string version;               // if empty, ours
  std::string agent;                 // "kubelet" (default) or "drakkar"
};

// A NodeConfiguration, with notes for the user. Gates that are not given have the version's
// default. Known gates must be consistent with that version and with each other, as on a real node;
// unknown ones are accepted as given.
struct ReadConfiguration {
  NodeConfiguration configuration;
  bool declares_features = false;          // the gate NodeDeclaredFeatures
  std::vector<std::string> unknown_gates;  // given, but not in our table
  std::vector<std::string> notes;
};
Result<ReadConfiguration> ReadNodeConfiguration(const NodeInput& input);

// What such a node would declare: a kubelet, which implements all known features, or our own agent,
// which declares only what it implements (ImplementedByOurNode).
struct DiscoverReport {
  std::vector<std::string> declared;  // with aliases, sorted
  std::vector<std::string> notes;     // one message each
};
Result<DiscoverReport> ReportDiscover(const Framework& framework, const NodeInput& input);
std::string ToText(const DiscoverReport& report);   // one name per line
api::TreePtr ToTree(const DiscoverReport& report);  // {"declaredFeatures": [], "notes": []}

// What a pod requires, and why. `claims` (ResourceClaim objects) must not include claims of other
// pods.
struct RequireReport {
  std::vector<Need> needs;  // sorted by feature
};
Result<RequireReport> ReportRequire(const Framework& framework, api::Value pod,
                                    const std::vector<api::Value>& claims,
                                    std::string_view version = {});
std::string ToText(const RequireReport& report, bool why);  // one "NAME" or "NAME: field" per line
api::TreePtr ToTree(const RequireReport& report);  // {"requiredFeatures": [{"name", "field"}]}

// What a node needs to declare a feature.
struct NeedsReport {
  std::string name;
  std::vector<std::string> aliases;
  FeatureRequirements requirements;
  std::string max_version;  // empty if there is none
};
Result<NeedsReport> ReportNeeds(const Framework& framework, std::string_view name);
std::string ToText(const NeedsReport& report);
api::TreePtr ToTree(const NeedsReport& report);

}  // namespace drakkar::features
