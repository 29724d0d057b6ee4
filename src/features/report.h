#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "api/tree/value.h"
#include "features/framework/framework.h"

namespace drakkar::features {

// What `drakkar features` answers, as data, text and trees. Equal input gives equal bytes.

// What of a KubeletConfiguration decides about features.
struct KubeletSettings {
  std::string feature_gates;  // "A=true,B=false"
  // Keys as KEP-5328 spells them, with the kubelet's defaults for what is left out.
  std::map<std::string, std::string, std::less<>> static_configuration;
};
Result<KubeletSettings> ReadKubeletConfiguration(api::Value kubelet_configuration);

// "UserNamespacesHostNetwork,MountOptions".
Result<RuntimeFeatures> ReadRuntimeFeatures(std::string_view text);

// A node as its administrator describes it.
struct NodeInput {
  api::Value kubelet_configuration;  // a KubeletConfiguration, or absent
  std::string feature_gates;         // "A=true,B=false", over those of the configuration
  std::string runtime_features;      // "UserNamespacesHostNetwork,MountOptions"
  std::string version;               // empty: ours
  std::string agent;                 // "kubelet" (also if empty) or "drakkar"
};

// A NodeConfiguration, and what its reader should know. Gates that are not given have the default
// of the version; gates that we know must fit that version and each other, as on a real node, and
// those that we do not know are taken as given.
struct ReadConfiguration {
  NodeConfiguration configuration;
  bool declares_features = false;          // gate NodeDeclaredFeatures
  std::vector<std::string> unknown_gates;  // given, and not in our table
  std::vector<std::string> notes;
};
Result<ReadConfiguration> ReadNodeConfiguration(const NodeInput& input);

// What such a node would declare: a kubelet, which does all that we know, or our own agent, which
// declares only what it does (ImplementedByOurNode).
struct DiscoverReport {
  std::vector<std::string> declared;  // with aliases, ascending
  std::vector<std::string> notes;     // a sentence each
};
Result<DiscoverReport> ReportDiscover(const Framework& framework, const NodeInput& input);
std::string ToText(const DiscoverReport& report);   // one name a line
api::TreePtr ToTree(const DiscoverReport& report);  // {"declaredFeatures": [], "notes": []}

// What a pod needs, and why. Of `claims` (ResourceClaim objects) those of other pods must have been
// left out.
struct RequireReport {
  std::vector<Need> needs;  // ascending by feature
};
Result<RequireReport> ReportRequire(const Framework& framework, api::Value pod,
                                    const std::vector<api::Value>& claims,
                                    std::string_view version = {});
std::string ToText(const RequireReport& report, bool why);  // "NAME" or "NAME: field" a line
api::TreePtr ToTree(const RequireReport& report);  // {"requiredFeatures": [{"name", "field"}]}

// What a node must have so that it declares a feature.
struct NeedsReport {
  std::string name;
  std::vector<std::string> aliases;
  FeatureRequirements requirements;
  std::string max_version;  // empty: none
};
Result<NeedsReport> ReportNeeds(const Framework& framework, std::string_view name);
std::string ToText(const NeedsReport& report);
api::TreePtr ToTree(const NeedsReport& report);

}  // namespace drakkar::features
