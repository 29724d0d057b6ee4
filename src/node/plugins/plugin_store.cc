#include "node/plugins/plugin_store.h"

#include <algorithm>

#include "api/meta/names.h"
#include "base/text/text.h"
#include "base/text/truncate.h"
#include "telemetry/log/log.h"

namespace drakkar::node {
namespace {

constexpr Logger kLog("node.plugins");

// A driver may have sent anything.
constexpr std::size_t kMaxListBytes = 1'024;
constexpr std::size_t kMaxDriverNameBytes = 63;
constexpr std::size_t kMaxEndpointBytes = 1'024;

std::string QuotedList(const std::vector<std::string>& names) {
  std::string text = "[";
  for (const std::string& name : names) {
    if (text.size() > kMaxListBytes) break;
    text += StrCat(text.size() > 1 ? " " : "", Quote(TruncateMessage(name, kMaxListBytes)));
  }
  return text + "]";
}

// In the plugin's order of preference.
std::optional<rpc::DraVersion> ChooseVersion(const std::vector<std::string>& services) {
  for (const std::string& service : services) {
    if (auto version = rpc::FindDraVersion(service)) return version;
  }
  return std::nullopt;
}

std::vector<rpc::HealthService> ChooseHealth(const std::vector<std::string>& services) {
  std::vector<rpc::HealthService> chosen;
  for (rpc::HealthService service :
       {rpc::HealthService::kV1, rpc::HealthService::kV1alpha1, rpc::HealthService::kNodeHealth}) {
    if (std::find(services.begin(), services.end(), rpc::HealthServiceName(service)) !=
        services.end()) {
      chosen.push_back(service);
    }
  }
  if (chosen.empty()) chosen.push_back(rpc::HealthService::kNodeHealth);
  return chosen;
}

}  // namespace

PluginStore::PluginStore(rpc::Transport& transport, Callbacks callbacks)
    : transport_(transport), callbacks_(std::move(callbacks)) {}

PluginStore::~PluginStore() = default;

Result<void> PluginStore::Validate(const rpc::PluginInfo& info, const std::string& endpoint) {
  if (info.name.empty()) return InvalidArgument("DRA driver name is empty");
  // No other name can be in a claim's allocation, and this one ends up in paths, labels and logs.
  if (info.name.size() > kMaxDriverNameBytes || !api::CheckDnsSubdomain(info.name).empty()) {
    return InvalidArgument(
        StrCat("DRA driver name ", Quote(TruncateMessage(info.name, kMaxDriverNameBytes)),
               " is not a DNS subdomain of at most ", kMaxDriverNameBytes, " characters"));
  }
  if (endpoint.size() > kMaxEndpointBytes || endpoint.find('\0') != std::string::npos) {
    return InvalidArgument(StrCat("endpoint of DRA driver plugin ", info.name,
                                  " is not a path of at most ", kMaxEndpointBytes, " bytes"));
  }
  const std::string what = StrCat("invalid supported gRPC versions of DRA driver plugin ",
                                  info.name, " at endpoint ", endpoint);
  if (info.supported_versions.empty()) {
    return InvalidArgument("empty list of supported gRPC services (aka supported versions)")
        .Prefixed(what);
  }
  if (!ChooseVersion(info.supported_versions)) {
    return InvalidArgument(StrCat("none of services supported by the plugin (",
                                  QuotedList(info.supported_versions),
                                  ") are supported by the kubelet ([\"v1.DRAPlugin\" "
                                  "\"v1beta1.DRAPlugin\"])"))
        .Prefixed(what);
  }
  return Ok();
}

Result<void> PluginStore::Register(const rpc::PluginInfo& info, const std::string& endpoint) {
  RETURN_IF_ERROR(Validate(info, endpoint));
  std::size_t total = 0;
  for (const auto& [name, list] : drivers_) total += list.size();
  if (total >= kMaxInstances) {
    return Error{ErrorCode::kResourceExhausted,
                 StrCat(kMaxInstances, " plugins are registered already")};
  }
  for (const PluginInstancePtr& each : drivers_[info.name]) {
    if (each->endpoint != endpoint) continue;
    return Error{
        ErrorCode::kAlreadyExists,
        StrCat("endpoint ", endpoint, " already registered for DRA driver plugin ", info.name)};
  }
  auto instance = std::make_shared<PluginInstance>();
  instance->driver = info.name;
  instance->endpoint = endpoint;
  instance->version = *ChooseVersion(info.supported_versions);
  instance->health_services = ChooseHealth(info.supported_versions);
  instance->takes_announcements =
      std::ranges::find(info.supported_versions, rpc::kAnnouncementService) !=
      info.supported_versions.end();
  drivers_[info.name].push_back(instance);
  instance->client = rpc::DialDraPlugin(
      transport_, {.endpoint = endpoint,
                   .version = instance->version,
                   .on_connection_change = lifetime_.Guard(
                       [this, driver = info.name,
                        weak = std::weak_ptr<PluginInstance>(instance)](bool connected) {
                         const PluginInstancePtr self = weak.lock();
                         if (self == nullptr) return;
                         kLog.Info(connected ? "driver connected" : "driver connection lost",
                                   {{"driver", driver}, {"endpoint", self->endpoint}});
                         const auto found = drivers_.find(driver);
                         if (found == drivers_.end()) return;
                         if (std::find(found->second.begin(), found->second.end(), self) ==
                             found->second.end()) {
                           return;  // deregistered; a call keeps it alive
                         }
                         if (connected && callbacks_.on_connected) callbacks_.on_connected(self);
                         callbacks_.on_usable(driver, IsUsable(driver));
                       }),
                   .max_backoff = kMaxReconnectBackoff});
  kLog.Info("driver registered", {{"driver", info.name},
                                  {"endpoint", endpoint},
                                  {"service", rpc::DraServiceName(instance->version)}});
  if (callbacks_.on_added) callbacks_.on_added(instance);
  callbacks_.on_usable(info.name, IsUsable(info.name));
  return Ok();
}

void PluginStore::Deregister(const std::string& driver, const std::string& endpoint) {
  auto found = drivers_.find(driver);
  if (found == drivers_.end()) return;
  PluginInstancePtr gone;
  std::erase_if(found->second, [&](const PluginInstancePtr& each) {
    if (each->endpoint != endpoint) return false;
    gone = each;
    return true;
  });
  if (found->second.empty()) drivers_.erase(found);
  if (gone == nullptr) return;
  kLog.Info("driver deregistered", {{"driver", driver}, {"endpoint", endpoint}});
  if (callbacks_.on_removed) callbacks_.on_removed(gone);
  callbacks_.on_usable(driver, IsUsable(driver));
}

Result<PluginInstancePtr> PluginStore::GetPlugin(const std::string& driver) const {
  if (driver.empty()) return InvalidArgument("DRA driver name is empty");
  auto found = drivers_.find(driver);
  if (found == drivers_.end() || found->second.empty()) {
    return Unavailable(StrCat("DRA driver ", driver, " is not registered"));
  }
  const auto& list = found->second;
  for (auto each = list.rbegin(); each != list.rend(); ++each) {
    if ((*each)->client != nullptr && (*each)->client->IsConnected()) return *each;
  }
  return list.back();
}

bool PluginStore::IsUsable(const std::string& driver) const {
  auto found = drivers_.find(driver);
  if (found == drivers_.end()) return false;
  return std::any_of(found->second.begin(), found->second.end(), [](const PluginInstancePtr& each) {
    return each->client != nullptr && each->client->IsConnected();
  });
}

std::vector<std::string> PluginStore::Drivers() const {
  std::vector<std::string> names;
  for (const auto& [name, list] : drivers_) names.push_back(name);
  return names;
}

}  // namespace drakkar::node
