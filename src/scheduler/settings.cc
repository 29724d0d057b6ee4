#include "scheduler/settings.h"

#include "api/json/writer.h"
#include "api/scheme/scheme.h"
#include "api/tree/draft.h"
#include "base/text/text.h"
#include "client/client.h"
#include "telemetry/log/log.h"

namespace drakkar::scheduler {
namespace {

constexpr Logger kLog("scheduler");
constexpr char kGates[] = "featureGates";
constexpr char kVersion[] = "emulatedVersion";
constexpr char kConfiguration[] = "configuration";
// Read by the API server (apiserver/http/scheduler_proxy.cc).
constexpr char kStatusUrl[] = "statusURL";
constexpr char kStatusCa[] = "statusCA";

void LogFailure(const Error& error) {
  kLog.Info("could not publish the settings; `drakkar why` falls back to defaults",
            {{"reason", error.message}});
}

}  // namespace

api::TreePtr SettingsToConfigMap(const FeatureGates& gates, const Configuration& configuration,
                                 const AnswerAddress& address) {
  std::vector<std::string> values;
  for (std::size_t i = 0; i < static_cast<std::size_t>(Gate::kCount); ++i) {
    const Gate gate = static_cast<Gate>(i);
    if (!gates.Known(gate)) continue;
    values.push_back(StrCat(GateName(gate), gates.Enabled(gate) ? "=true" : "=false"));
  }
  api::Draft map{{"apiVersion", "v1"}, {"kind", "ConfigMap"}};
  map["metadata"]["name"] = kSettingsName;
  map["metadata"]["namespace"] = kSettingsNamespace;
  map["data"].Entry(kGates) = Join(values, ",");
  map["data"].Entry(kVersion) = gates.emulated().ToString();
  map["data"].Entry(kConfiguration) = api::WriteJson(ConfigurationToTree(configuration)->root());
  if (!address.url.empty()) map["data"].Entry(kStatusUrl) = address.url;
  if (!address.ca_pem.empty()) map["data"].Entry(kStatusCa) = address.ca_pem;
  return map.Freeze();
}

Result<Settings> SettingsFromConfigMap(const api::Object& map) {
  const api::Value data = map["data"];
  const std::optional<ReleaseVersion> version = ParseReleaseVersion(data.Entry(kVersion).str());
  if (!version) {
    return InvalidArgument(StrCat("data.", kVersion, " must be a release such as 1.36, not ",
                                  Quote(data.Entry(kVersion).str())));
  }
  Settings settings;
  ASSIGN_OR_RETURN(settings.gates,
                   FeatureGates::Create({.emulated = *version,
                                         .overrides = std::string(data.Entry(kGates).str()),
                                         .turned_on = {}}));
  // All fields are allowed, because published values include fields that a gate forbids to set.
  ASSIGN_OR_RETURN(Configuration configuration,
                   ParseConfiguration(data.Entry(kConfiguration).str(), FeatureGates()));
  settings.profiles = std::move(configuration.profiles);
  return settings;
}

void PublishSettings(client::Client& client, const FeatureGates& gates,
                     const Configuration& configuration, const AnswerAddress& address) {
  const api::KindSchema* kind = api::FindKind("", "v1", "ConfigMap");
  const api::TreePtr map = SettingsToConfigMap(gates, configuration, address);
  client.Create({kind, kSettingsNamespace, "", ""}, map, {},
                [&client, kind, map](client::Reply created) {
                  if (created.ok()) return;
                  if (created.error->code != ErrorCode::kAlreadyExists) {
                    return LogFailure(*created.error);
                  }
                  // Without a resourceVersion, because the last scheduler to become active wins.
                  client.Update({kind, kSettingsNamespace, kSettingsName, ""}, map, {},
                                [](client::Reply updated) {
                                  if (!updated.ok()) LogFailure(*updated.error);
                                });
                });
}

}  // namespace drakkar::scheduler
