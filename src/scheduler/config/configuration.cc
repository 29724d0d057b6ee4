#include "scheduler/config/configuration.h"

#include <algorithm>
#include <set>

#include "api/codec/yaml_reader.h"
#include "api/meta/time.h"
#include "api/tree/draft.h"
#include "base/text/text.h"
#include "scheduler/args/fields.h"
#include "scheduler/config/plugin_sets.h"
#include "scheduler/plugins/registry.h"

namespace drakkar::scheduler {
namespace {

using api::Value;
constexpr std::int64_t kMost = std::int64_t{1} << 31;
constexpr char kApiVersion[] = "kubescheduler.config.k8s.io/v1";

// Nested arguments may omit apiVersion and kind.
void CheckKind(Fields& fields, std::string_view kind, bool needed) {
  std::string version = needed ? "" : kApiVersion;
  std::string name = needed ? "" : std::string(kind);
  fields.Text("apiVersion", version);
  fields.Text("kind", name);
  if (version != kApiVersion) fields.Refuse("apiVersion", StrCat("must be ", kApiVersion));
  if (name != kind) fields.Refuse("kind", StrCat("must be ", kind));
}

Result<void> ReadArguments(Value entry, const std::string& path, const FeatureGates& gates,
                           ProfileConfig& profile, std::vector<std::string>& remarks) {
  Fields fields(entry, path);
  std::string name;
  fields.Text("name", name);
  const Value args = fields.Get("args");
  const std::string inner = fields.PathOf("args");
  RETURN_IF_ERROR(fields.Finish());
  if (const PluginRow* row = FindPluginRow(name); row != nullptr && row->read_args != nullptr) {
    Fields read(args, inner);
    CheckKind(read, StrCat(name, "Args"), false);
    profile.args[name] = row->read_args(read, gates);
    remarks.insert(remarks.end(), read.remarks().begin(), read.remarks().end());
    return read.Finish();
  }
  if (name == "DefaultPreemption" || name == "InterPodAffinity") {
    if (!args.empty()) {
      remarks.push_back(StrCat(inner, " has no effect: ", name, " always uses the defaults"));
    }
    return Ok();
  }
  if (IsForeignPlugin(name)) {
    remarks.push_back(
        StrCat(inner, " has no effect: plugin ", name, " is not supported by this scheduler"));
    return Ok();
  }
  return InvalidArgument(
      StrCat(path, ".name: unknown plugin ", Quote(name), ", or one without arguments"));
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
                                         Quote(plugin), " must not be listed twice")));
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
          StrCat("clientConnection.", name, " has no effect: requests are sent as JSON"));
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
    return InvalidArgument(
        StrCat("the file must contain exactly one document, not ", documents.size()));
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
              StrCat(path, ".schedulerName ", Quote(profile->name), " is already in use")));
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
    for (const PluginRow& row : PluginRows()) {
      if (row.read_args == nullptr) continue;
      const PluginArgs* set = profile.FindArgs(row.name);
      api::Draft entry{{"name", row.name}};
      entry["args"]["kind"] = StrCat(row.name, "Args");
      (set != nullptr ? *set : *row.default_args()).Write(entry["args"]);
      shown["pluginConfig"].Append(std::move(entry));
    }
    draft["profiles"].Append(std::move(shown));
  }
  return draft.Freeze();
}

}  // namespace drakkar::scheduler
