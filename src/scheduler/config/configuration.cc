#include "scheduler/config/configuration.h"

#include <algorithm>
#include <set>

#include "api/codec/yaml_reader.h"
#include "api/meta/time.h"
#include "api/tree/draft.h"
#include "base/text/text.h"
#include "scheduler/config/fields.h"
#include "scheduler/config/node_affinity_args.h"
#include "scheduler/config/plugin_sets.h"

namespace drakkar::scheduler {
namespace {

using api::Value;
constexpr std::int64_t kMost = std::int64_t{1} << 31;
constexpr char kApiVersion[] = "kubescheduler.config.k8s.io/v1";
constexpr std::int64_t kMaxWeight = 100;

// apiVersion and kind of nested arguments may be left out.
void CheckKind(Fields& fields, std::string_view kind, bool needed) {
  std::string version = needed ? "" : kApiVersion;
  std::string name = needed ? "" : std::string(kind);
  fields.Text("apiVersion", version);
  fields.Text("kind", name);
  if (version != kApiVersion) fields.Refuse("apiVersion", StrCat("must be ", kApiVersion));
  if (name != kind) fields.Refuse("kind", StrCat("must be ", kind));
}

Result<void> ReadDynamicResources(Value args, const std::string& path, const FeatureGates& gates,
                                  ProfileConfig& profile) {
  Fields fields(args, path);
  CheckKind(fields, "DynamicResourcesArgs", false);
  if (fields.Get("filterTimeout").has_value() && !gates.Enabled(Gate::kDRASchedulerFilterTimeout)) {
    fields.Refuse("filterTimeout",
                  "cannot be set: DRASchedulerFilterTimeout feature gate is disabled");
  }
  if (fields.Get("bindingTimeout").has_value() && !gates.BindingConditions()) {
    fields.Refuse("bindingTimeout",
                  "cannot be set: DRADeviceBindingConditions or DRAResourceClaimDeviceStatus "
                  "feature gate is disabled");
  }
  fields.Time("filterTimeout", profile.filter_timeout);
  fields.Time("bindingTimeout", profile.binding_timeout);
  if (profile.filter_timeout < Duration::zero()) {
    fields.Refuse("filterTimeout", "must be zero or positive");
  }
  if (profile.binding_timeout < std::chrono::seconds(1)) {
    fields.Refuse("bindingTimeout", "must be at least 1 second");
  }
  return fields.Finish();
}

Result<std::vector<std::pair<std::string, std::int64_t>>> ReadResources(Value list,
                                                                        const std::string& path) {
  std::vector<std::pair<std::string, std::int64_t>> resources;
  std::size_t index = 0;
  for (Value each : list.elements()) {
    Fields fields(each, StrCat(path, "[", index++, "]"));
    std::string name;
    std::int64_t weight = 1;
    fields.Text("name", name);
    fields.Int("weight", weight, 1, kMaxWeight);
    if (name.empty()) fields.Refuse("name", "must name a resource");
    RETURN_IF_ERROR(fields.Finish());
    resources.emplace_back(std::move(name), weight);
  }
  return resources;
}

// The shape of RequestedToCapacityRatio: scores go to 10 in the file, to 100 here.
Result<std::vector<FitScoring::ShapePoint>> ReadShape(Value ratio, const std::string& path) {
  if (!ratio.has_value()) return InvalidArgument(StrCat(path, " must be given for this type"));
  Fields fields(ratio, path);
  const Value list = fields.Get("shape");
  if (list.empty()) fields.Refuse("shape", "must have at least one point");
  std::vector<FitScoring::ShapePoint> shape;
  for (Value each : list.elements()) {
    Fields point(each, StrCat(fields.PathOf("shape"), "[", shape.size(), "]"));
    FitScoring::ShapePoint read;
    point.Int("utilization", read.utilization, 0, 100);
    point.Int("score", read.score, 0, 10);
    if (!shape.empty() && read.utilization <= shape.back().utilization) {
      point.Refuse("utilization", "must be above that of the point before");
    }
    read.score *= 10;
    shape.push_back(read);
    fields.Take(point.Finish());
  }
  RETURN_IF_ERROR(fields.Finish());
  return shape;
}

Result<void> ReadFit(Value args, const std::string& path, ProfileConfig& profile) {
  Fields fields(args, path);
  CheckKind(fields, "NodeResourcesFitArgs", false);
  fields.Texts("ignoredResources", profile.ignored_resources);
  fields.Texts("ignoredResourceGroups", profile.ignored_groups);
  if (const Value strategy = fields.Get("scoringStrategy"); strategy.has_value()) {
    Fields inner(strategy, fields.PathOf("scoringStrategy"));
    std::string type = "LeastAllocated";
    inner.Text("type", type);
    const bool by_shape = type == "RequestedToCapacityRatio";
    if (type != "LeastAllocated" && type != "MostAllocated" && !by_shape) {
      inner.Refuse("type",
                   StrCat("must be LeastAllocated, MostAllocated or RequestedToCapacityRatio, not ",
                          Quote(type)));
    }
    profile.fit.most_allocated = type == "MostAllocated";
    const Value ratio = inner.Get("requestedToCapacityRatio");
    if (by_shape) {
      auto shape = ReadShape(ratio, inner.PathOf("requestedToCapacityRatio"));
      if (shape.ok()) {
        profile.fit.shape = std::move(*shape);
      } else {
        inner.Take(shape.error());
      }
    } else if (ratio.has_value()) {
      inner.Refuse("requestedToCapacityRatio", "goes with the type of that name alone");
    }
    if (const Value list = inner.Get("resources"); !list.empty()) {
      auto resources = ReadResources(list, inner.PathOf("resources"));
      if (resources.ok()) {
        profile.fit.resources = std::move(*resources);
      } else {
        inner.Take(resources.error());
      }
    }
    fields.Take(inner.Finish());
  }
  return fields.Finish();
}

Result<void> ReadBalanced(Value args, const std::string& path) {
  Fields fields(args, path);
  CheckKind(fields, "NodeResourcesBalancedAllocationArgs", false);
  const Value list = fields.Get("resources");
  auto resources = ReadResources(list, fields.PathOf("resources"));
  if (!resources.ok()) {
    fields.Take(resources.error());
  } else if (!list.empty()) {
    for (const auto& [name, weight] : *resources) {
      if ((name != "cpu" && name != "memory") || weight != 1 || resources->size() != 2) {
        fields.Refuse("resources", "can only be cpu and memory with weight 1 in this scheduler");
      }
    }
  }
  return fields.Finish();
}

Result<void> ReadArguments(Value entry, const std::string& path, const FeatureGates& gates,
                           ProfileConfig& profile, std::vector<std::string>& remarks) {
  Fields fields(entry, path);
  std::string name;
  fields.Text("name", name);
  const Value args = fields.Get("args");
  const std::string inner = fields.PathOf("args");
  RETURN_IF_ERROR(fields.Finish());
  if (name == "DynamicResources") return ReadDynamicResources(args, inner, gates, profile);
  if (name == "NodeResourcesFit") return ReadFit(args, inner, profile);
  if (name == "NodeResourcesBalancedAllocation") return ReadBalanced(args, inner);
  if (name == "NodeAffinity") {
    Fields affinity(args, inner);
    CheckKind(affinity, "NodeAffinityArgs", false);
    if (const Value added = affinity.Get("addedAffinity"); added.has_value()) {
      const Result<void> checked = CheckNodeAffinity(added, affinity.PathOf("addedAffinity"));
      affinity.Take(checked);
      if (checked.ok()) profile.added_affinity = api::Draft(added).Freeze();
    }
    return affinity.Finish();
  }
  if (IsForeignPlugin(name)) {
    remarks.push_back(StrCat(inner, " has no effect: this scheduler has no plugin ", name));
    return Ok();
  }
  return InvalidArgument(
      StrCat(path, ".name: there is no plugin ", Quote(name), " that takes arguments"));
}

Result<ProfileConfig> ReadProfile(Value value, const std::string& path, const FeatureGates& gates,
                                  std::vector<std::string>& remarks) {
  ProfileConfig profile;
  Fields fields(value, path);
  fields.Text("schedulerName", profile.name);
  if (profile.name.empty()) fields.Refuse("schedulerName", "must not be empty");
  std::int64_t percentage = 0;
  fields.Int("percentageOfNodesToScore", percentage, 0, 100);
  profile.percentage_of_nodes_to_score = static_cast<int>(percentage);
  if (const Value plugins = fields.Get("plugins"); plugins.has_value()) {
    auto chosen = ReadPluginSets(plugins, fields.PathOf("plugins"));
    if (chosen.ok()) {
      profile.plugins = std::move(*chosen);
    } else {
      fields.Take(chosen.error());
    }
  }
  std::size_t index = 0;
  std::set<std::string_view> configured;
  for (Value entry : fields.Get("pluginConfig").elements()) {
    const std::string_view plugin = entry["name"].str();
    if (!plugin.empty() && !configured.insert(plugin).second) {
      fields.Take(InvalidArgument(StrCat(fields.PathOf("pluginConfig"), "[", index, "].name ",
                                         Quote(plugin), " has arguments already")));
    }
    fields.Take(ReadArguments(entry, StrCat(fields.PathOf("pluginConfig"), "[", index++, "]"),
                              gates, profile, remarks));
  }
  RETURN_IF_ERROR(fields.Finish());
  return profile;
}

Result<void> ReadLeaderElection(Value value, client::LeaderElectionConfig& config) {
  Fields fields(value, "leaderElection");
  fields.Bool("leaderElect", config.leader_elect);
  fields.Time("leaseDuration", config.lease_duration);
  fields.Time("renewDeadline", config.renew_deadline);
  fields.Time("retryPeriod", config.retry_period);
  fields.Text("resourceName", config.lease_name);
  fields.Text("resourceNamespace", config.lease_namespace);
  std::string lock = "leases";
  fields.Text("resourceLock", lock);
  if (lock != "leases") fields.Refuse("resourceLock", "must be leases");
  RETURN_IF_ERROR(fields.Finish());
  return client::CheckLeaderElection(config);
}

Result<void> ReadClientConnection(Value value, Configuration& configuration) {
  Fields fields(value, "clientConnection");
  fields.Text("kubeconfig", configuration.kubeconfig);
  for (const api::FieldName name : api::FieldNames{"acceptContentTypes", "contentType"}) {
    std::string type;
    fields.Text(name, type);
    if (!type.empty() && type != "application/json") {
      configuration.remarks.push_back(
          StrCat("clientConnection.", name, " has no effect: requests are made in JSON"));
    }
  }
  for (const api::FieldName name : api::FieldNames{"qps", "burst"}) {
    if (fields.Get(name).has_value()) {
      configuration.remarks.push_back(
          StrCat("clientConnection.", name, " has no effect: requests are not throttled"));
    }
  }
  return fields.Finish();
}

}  // namespace

Result<Configuration> ParseConfiguration(std::string_view text, const FeatureGates& gates) {
  ASSIGN_OR_RETURN(const std::vector<api::TreePtr> documents, api::ParseYaml(text));
  if (documents.size() != 1) {
    return InvalidArgument(StrCat("one document is expected, not ", documents.size()));
  }
  Configuration configuration;
  Fields fields(documents[0]->root(), "");
  CheckKind(fields, "KubeSchedulerConfiguration", true);
  std::int64_t number = 0;
  fields.Int("parallelism", number, 1, kMost);
  if (number > 0) {
    configuration.remarks.push_back("parallelism has no effect: filters look at all nodes at once");
  }
  std::int64_t first = 1;
  std::int64_t longest = 10;
  fields.Int("podInitialBackoffSeconds", first, 1, kMost);
  fields.Int("podMaxBackoffSeconds", longest, 1, kMost);
  if (longest < first) {
    fields.Refuse("podMaxBackoffSeconds", "must be at least podInitialBackoffSeconds");
  }
  configuration.first_backoff = std::chrono::seconds(first);
  configuration.longest_backoff = std::chrono::seconds(longest);
  std::int64_t percentage = 0;
  fields.Int("percentageOfNodesToScore", percentage, 0, 100);
  for (const api::FieldName name :
       api::FieldNames{"enableProfiling", "enableContentionProfiling", "delayCacheUntilActive"}) {
    bool wanted = false;
    fields.Bool(name, wanted);
    if (wanted) configuration.remarks.push_back(StrCat(name, " has no effect in this scheduler"));
  }
  if (!fields.Get("extenders").empty()) {
    fields.Refuse("extenders", "are not supported by this scheduler");
  }
  if (const Value value = fields.Get("leaderElection"); value.has_value()) {
    fields.Take(ReadLeaderElection(value, configuration.leader_election));
  }
  if (const Value value = fields.Get("clientConnection"); value.has_value()) {
    fields.Take(ReadClientConnection(value, configuration));
  }
  if (const Value profiles = fields.Get("profiles"); !profiles.empty()) {
    configuration.profiles.clear();
    for (Value each : profiles.elements()) {
      const std::string path = StrCat("profiles[", configuration.profiles.size(), "]");
      auto profile = ReadProfile(each, path, gates, configuration.remarks);
      if (!profile.ok()) {
        fields.Take(profile.error());
        break;
      }
      for (const ProfileConfig& other : configuration.profiles) {
        if (other.name == profile->name) {
          fields.Take(InvalidArgument(
              StrCat(path, ".schedulerName ", Quote(profile->name), " is there twice")));
        }
      }
      configuration.profiles.push_back(std::move(*profile));
    }
  }
  RETURN_IF_ERROR(fields.Finish());
  for (ProfileConfig& profile : configuration.profiles) {
    if (profile.percentage_of_nodes_to_score == 0) {
      profile.percentage_of_nodes_to_score = static_cast<int>(percentage);
    }
  }
  return configuration;
}

api::TreePtr ConfigurationToTree(const Configuration& configuration) {
  const auto seconds = [](Duration duration) {
    return std::chrono::duration_cast<std::chrono::seconds>(duration).count();
  };
  const client::LeaderElectionConfig& election = configuration.leader_election;
  api::Draft draft{{"apiVersion", kApiVersion},
                   {"kind", "KubeSchedulerConfiguration"},
                   {"clientConnection", {{"kubeconfig", configuration.kubeconfig}}},
                   {"leaderElection",
                    {{"leaderElect", election.leader_elect},
                     {"leaseDuration", api::FormatDuration(election.lease_duration)},
                     {"renewDeadline", api::FormatDuration(election.renew_deadline)},
                     {"retryPeriod", api::FormatDuration(election.retry_period)},
                     {"resourceLock", "leases"},
                     {"resourceName", election.lease_name},
                     {"resourceNamespace", election.lease_namespace}}},
                   {"podInitialBackoffSeconds", seconds(configuration.first_backoff)},
                   {"podMaxBackoffSeconds", seconds(configuration.longest_backoff)}};
  for (const ProfileConfig& profile : configuration.profiles) {
    api::Draft shown{{"schedulerName", profile.name},
                     {"percentageOfNodesToScore", profile.percentage_of_nodes_to_score}};
    shown["plugins"] = PluginSetsToDraft(profile.plugins);
    api::Draft resources = api::Draft::Array();
    for (const auto& [name, weight] : profile.fit.resources) {
      resources.Append({{"name", name}, {"weight", weight}});
    }
    api::Draft strategy{{"type", !profile.fit.shape.empty()   ? "RequestedToCapacityRatio"
                                 : profile.fit.most_allocated ? "MostAllocated"
                                                              : "LeastAllocated"}};
    for (const FitScoring::ShapePoint& point : profile.fit.shape) {
      strategy["requestedToCapacityRatio"]["shape"].Append(
          {{"utilization", point.utilization}, {"score", point.score / 10}});
    }
    strategy["resources"] = std::move(resources);
    api::Draft fit{{"kind", "NodeResourcesFitArgs"}};
    fit["scoringStrategy"] = std::move(strategy);
    for (const std::string& name : profile.ignored_resources) fit["ignoredResources"].Append(name);
    for (const std::string& name : profile.ignored_groups) {
      fit["ignoredResourceGroups"].Append(name);
    }
    api::Draft entry{{"name", "NodeResourcesFit"}};
    entry["args"] = std::move(fit);
    shown["pluginConfig"].Append(
        {{"name", "DynamicResources"},
         {"args",
          {{"kind", "DynamicResourcesArgs"},
           {"filterTimeout", api::FormatDuration(profile.filter_timeout)},
           {"bindingTimeout", api::FormatDuration(profile.binding_timeout)}}}});
    shown["pluginConfig"].Append(std::move(entry));
    if (profile.added_affinity != nullptr) {
      api::Draft affinity{{"name", "NodeAffinity"}};
      affinity["args"]["kind"] = "NodeAffinityArgs";
      affinity["args"]["addedAffinity"] = api::Draft(profile.added_affinity);
      shown["pluginConfig"].Append(std::move(affinity));
    }
    draft["profiles"].Append(std::move(shown));
  }
  return draft.Freeze();
}

}  // namespace drakkar::scheduler
