#include "node/health/health_monitor.h"

#include <algorithm>
#include <utility>

#include "api/meta/request_name.h"
#include "api/meta/time.h"
#include "base/text/text.h"
#include "features/gates/feature_gates.h"
#include "node/dra/pod_claims.h"
#include "node/dra/skip_operations.h"
#include "telemetry/log/log.h"
#include "telemetry/metrics/metrics.h"

namespace drakkar::node {
namespace {

using api::Draft;
using api::Value;

constexpr Logger kLog("node.health");
constexpr char kFileName[] = "dra_health_state";

}  // namespace

HealthMonitor::HealthMonitor(Options options) : options_(std::move(options)) {}
HealthMonitor::~HealthMonitor() = default;

void HealthMonitor::Load() {
  if (!options_.gates.Enabled(Gate::kResourceHealthStatus)) return;
  const std::string path = JoinPath(options_.directory, kFileName);
  auto content = options_.files.ReadFile(path);
  if (!content.ok()) {
    if (content.error().code != ErrorCode::kNotFound) {
      kLog.Error("could not read the health cache; started with an empty one",
                 {{"err", content.error().message}});
    }
    return;
  }
  if (auto read = cache_.Decode(*content, Now()); !read.ok()) {
    kLog.Error("health cache is corrupt; started with an empty one",
               {{"path", path}, {"err", read.error().message}});
  }
  ArmExpiry(cache_.NextExpiry());
}

void HealthMonitor::Add(const PluginInstancePtr& plugin) {
  if (!options_.gates.Enabled(Gate::kResourceHealthStatus)) return;
  const std::uint64_t id = next_id_++;
  streams_[id].plugin = plugin;
  Select(plugin->driver);
}

void HealthMonitor::Remove(const PluginInstancePtr& plugin) {
  for (auto stream = streams_.begin(); stream != streams_.end(); ++stream) {
    if (stream->second.plugin != plugin) continue;
    const std::uint64_t id = stream->first;
    if (stream->second.open) {
      kLog.Info("health stream cancelled: the driver was deregistered",
                {{"driver", plugin->driver}, {"endpoint", plugin->endpoint}});
    }
    streams_.erase(stream);
    Publish(cache_.ClearInstance(plugin->driver, id, Now()));
    Select(plugin->driver);
    return;
  }
}

void HealthMonitor::Connected(const PluginInstancePtr& plugin) {
  for (auto& [id, stream] : streams_) {
    if (stream.plugin == plugin && stream.service >= plugin->health_services.size()) {
      stream.service = 0;
    }
  }
  Select(plugin->driver);
}

void HealthMonitor::DriverUsable(const std::string& driver) {
  for (auto& [id, stream] : streams_) {
    if (stream.plugin->driver != driver) continue;
    stream.backoff.Reset();
    stream.retry.reset();
  }
  Select(driver);
}

void HealthMonitor::Select(const std::string& driver) {
  // In order of registration, as in PluginStore.
  std::uint64_t newest = 0;
  std::uint64_t newest_connected = 0;
  for (const auto& [id, stream] : streams_) {
    if (stream.plugin->driver != driver) continue;
    newest = id;
    if (stream.plugin->client->IsConnected()) newest_connected = id;
  }
  const std::uint64_t chosen = newest_connected != 0 ? newest_connected : newest;
  for (auto& [id, stream] : streams_) {
    if (stream.plugin->driver != driver) continue;
    if (id != chosen) {
      if (stream.open) {
        kLog.Info("health stream cancelled: another instance of the driver took over",
                  {{"driver", driver}, {"endpoint", stream.plugin->endpoint}});
      }
      stream.open = false;
      stream.opening = false;
      stream.stream.reset();
      stream.retry.reset();
      stream.service = 0;
      cache_.HandOver(driver, id, chosen);
    } else if (!stream.open && !stream.retry &&
               stream.service < stream.plugin->health_services.size()) {
      // Posted, because this may run inside a connection's callback.
      stream.opening = true;
      options_.loop.Post(lifetime_.Guard([this, id = id] {
        const auto found = streams_.find(id);
        if (found != streams_.end() && found->second.opening) Open(id);
      }));
    }
  }
}

void HealthMonitor::Open(std::uint64_t id) {
  Stream& stream = streams_[id];
  stream.retry.reset();
  stream.opening = false;
  stream.open = true;
  stream.stream = stream.plugin->client->WatchHealth(
      stream.plugin->health_services[stream.service],
      {.on_report = [this, id](rpc::HealthReport report) { OnReport(id, report); },
       .on_end = [this, id](Result<void> result) { OnEnd(id, std::move(result)); },
       .on_malformed = [this, id](const Error& error) { OnMalformed(id, error); }});
}

void HealthMonitor::OnReport(std::uint64_t id, const rpc::HealthReport& report) {
  auto found = streams_.find(id);
  if (found == streams_.end() || !found->second.open) return;
  found->second.backoff.Reset();
  found->second.failure_logged = false;
  const std::string& driver = found->second.plugin->driver;
  HealthCache::Outcome outcome = cache_.Update(driver, id, report, Now());
  if (outcome.ignored > 0 && !found->second.excess_logged) {
    found->second.excess_logged = true;
    kLog.Error("driver reported too many devices, or too long names; ignored these",
               {{"driver", driver}, {"ignored", outcome.ignored}});
  }
  ArmExpiry(outcome.expiry);
  if (!report.empty()) WriteSoon();
  Publish(outcome.changed);
}

// Logged once per registration: a driver may send any number of them.
void HealthMonitor::OnMalformed(std::uint64_t id, const Error& error) {
  const auto found = streams_.find(id);
  if (found == streams_.end() || std::exchange(found->second.malformed_logged, true)) return;
  kLog.Warning("malformed health report",
               {{"driver", found->second.plugin->driver}, {"err", error.message}});
}

void HealthMonitor::OnEnd(std::uint64_t id, Result<void> result) {
  auto found = streams_.find(id);
  if (found == streams_.end() || !found->second.open) return;
  Stream& stream = found->second;
  stream.open = false;
  Publish(cache_.ClearInstance(stream.plugin->driver, id, Now()));
  if (!result.ok() && result.error().code == ErrorCode::kUnimplemented) {
    // After the last service the stream stays closed until the plugin registers or reconnects.
    if (++stream.service >= stream.plugin->health_services.size()) return LogEnd(stream, result);
    stream.retry = options_.loop.RunAfter(Duration::zero(), [this, id] { Open(id); });
    return;
  }
  LogEnd(stream, result);
  stream.service = 0;  // the next process behind the socket may be newer
  stream.retry = options_.loop.RunAfter(stream.backoff.Next(), [this, id] { Open(id); });
}

void HealthMonitor::LogEnd(Stream& stream, const Result<void>& result) {
  const std::string& driver = stream.plugin->driver;
  if (result.ok()) {
    kLog.Info("health stream ended", {{"driver", driver}, {"endpoint", stream.plugin->endpoint}});
  } else if (result.error().code == ErrorCode::kUnimplemented) {
    kLog.Info("driver does not support device health",
              {{"driver", driver}, {"endpoint", stream.plugin->endpoint}});
  } else if (!stream.failure_logged) {
    stream.failure_logged = true;
    kLog.Warning("health stream failed", {{"driver", driver},
                                          {"endpoint", stream.plugin->endpoint},
                                          {"err", result.error().message}});
  }
}

// A report only postpones expiries, so a timer that is armed earlier stays and rechecks. This keeps
// the cost of a report proportional to its own devices.
void HealthMonitor::ArmExpiry(std::optional<MonotonicTime> at) {
  if (!at || (expiry_ && expiry_at_ <= *at)) return;
  expiry_at_ = *at;
  const Duration left =
      std::max<Duration>(*at - options_.loop.clock().Monotonic(), Duration::zero());
  // One tick later: an entry is stale after its timeout, not at it.
  expiry_ = options_.loop.RunAfter(left + std::chrono::milliseconds(1), [this] {
    expiry_.reset();
    const auto expired = cache_.Expire(Now());
    ArmExpiry(cache_.NextExpiry());
    Publish(expired);
  });
}

// Collects the changes of this turn and reports them together.
void HealthMonitor::Publish(const std::vector<DeviceKey>& changed) {
  if (changed.empty()) return;
  WriteSoon();
  pending_.insert(changed.begin(), changed.end());
  if (publishing_) return;
  publishing_ = true;
  options_.loop.Post(lifetime_.Guard([this] { TellChanges(); }));
}

void HealthMonitor::TellChanges() {
  publishing_ = false;
  std::map<DeviceKey, std::set<std::string>> holders;
  for (const auto& [key, info] : options_.claims.claims()) {
    for (const auto& [driver, state] : info.drivers) {
      for (const rpc::PreparedDevice& device : state.devices) {
        const DeviceKey each{driver, device.pool_name, device.device_name};
        if (pending_.contains(each))
          holders[each].insert(info.pod_uids.begin(), info.pod_uids.end());
      }
    }
  }
  std::vector<Change> changes;
  for (const DeviceKey& key : pending_) {
    const DeviceHealthView view = View(key);
    if (options_.metrics != nullptr) {
      options_.metrics
          ->GetCounter("drakkar_node_device_health_changes_total",
                       "Device health changes seen by the node",
                       {{"driver_name", key.driver},
                        {"health", std::string(rpc::DeviceHealthStateName(view.health))}})
          .Add();
    }
    if (!holders.contains(key)) cache_.Forget(key);
    changes.push_back({key, view, holders[key]});
  }
  pending_.clear();
  options_.on_changed(changes);
}

DeviceHealthView HealthMonitor::View(const DeviceKey& key) const {
  DeviceHealthView view = cache_.Get(key, Now());
  if (!options_.gates.Enabled(Gate::kResourceHealthStatusMessage)) view.message.clear();
  return view;
}

void HealthMonitor::WriteSoon() {
  if (write_) return;
  write_ = options_.loop.RunAfter(kWriteEvery, [this] {
    write_.reset();
    if (encoding_ || writing_) return WriteSoon();  // later changes go into the next write
    encoding_.emplace();
    WritePiece();
  });
}

void HealthMonitor::WritePiece() {
  cache_.EncodeMore(*encoding_, kEncodePerTurn);
  if (!encoding_->done) {
    options_.loop.Post(lifetime_.Guard([this] { WritePiece(); }));
    return;
  }
  writing_ = true;
  options_.work.Run(
      [&files = options_.files, path = JoinPath(options_.directory, kFileName),
       text = std::move(encoding_->text)] {
        return files.WriteFileAtomically(path, text, 0600, /*sync=*/false);
      },
      lifetime_.Guard([this](Result<void> result) {
        writing_ = false;
        if (!result.ok())
          kLog.Error("could not write the health cache", {{"err", result.error().message}});
      }));
  encoding_.reset();
}

// All devices that are reported or held.
std::map<DeviceKey, DeviceHealthView> HealthMonitor::Views() const {
  std::map<DeviceKey, DeviceHealthView> views;
  for (auto& [key, view] : cache_.List(Now())) views[key] = std::move(view);
  for (const auto& [key, info] : options_.claims.claims()) {
    for (const auto& [driver, state] : info.drivers) {
      for (const rpc::PreparedDevice& device : state.devices) {
        const auto [entry, added] =
            views.try_emplace(DeviceKey{driver, device.pool_name, device.device_name});
        if (added) entry->second = cache_.Get(entry->first, Now());
      }
    }
  }
  return views;
}

void HealthMonitor::CountDevices() const {
  if (options_.metrics == nullptr || !options_.gates.Enabled(Gate::kResourceHealthStatus)) return;
  constexpr rpc::DeviceHealthState kStates[] = {rpc::DeviceHealthState::kHealthy,
                                                rpc::DeviceHealthState::kUnhealthy,
                                                rpc::DeviceHealthState::kUnknown};
  std::map<std::string, std::map<rpc::DeviceHealthState, int>> counts;
  for (const auto& [key, view] : Views()) ++counts[key.driver][view.health];
  auto labels = [](const std::string& driver, rpc::DeviceHealthState state) {
    return MetricLabels{{"driver_name", driver},
                        {"health", std::string(rpc::DeviceHealthStateName(state))}};
  };
  constexpr char kName[] = "drakkar_node_devices";
  for (const std::string& driver : counted_) {
    if (counts.contains(driver)) continue;
    for (const auto state : kStates) options_.metrics->RemoveGauge(kName, labels(driver, state));
  }
  std::set<std::string> counted;
  for (auto& [driver, count] : counts) {
    counted.insert(driver);
    for (const auto state : kStates) {
      options_.metrics
          ->GetGauge(kName, "Devices reported by a driver or held by a pod, by current health",
                     labels(driver, state))
          .Set(count[state]);
    }
  }
  counted_ = std::move(counted);
}

Draft HealthMonitor::ListDevices() const {
  const bool with_message = options_.gates.Enabled(Gate::kResourceHealthStatusMessage);
  const std::map<DeviceKey, DeviceHealthView> views = Views();
  std::map<DeviceKey, std::vector<const ClaimInfo*>> holders;
  for (const auto& [key, info] : options_.claims.claims()) {
    for (const auto& [driver, state] : info.drivers) {
      for (const rpc::PreparedDevice& device : state.devices) {
        const DeviceKey each{driver, device.pool_name, device.device_name};
        std::vector<const ClaimInfo*>& list = holders[each];
        if (list.empty() || list.back() != &info) list.push_back(&info);
      }
    }
  }
  Draft items = Draft::Array();
  for (const auto& [key, view] : views) {
    Draft item = {{"driver", Draft(key.driver)},
                  {"pool", Draft(key.pool)},
                  {"device", Draft(key.device)},
                  {"health", Draft(rpc::DeviceHealthStateName(view.health))}};
    if (with_message && !view.message.empty()) item["message"] = view.message;
    if (view.since) item["since"] = api::FormatTime(*view.since);
    for (const ClaimInfo* info : holders[key]) {
      Draft claim = {{"namespace", Draft(info->namespace_name)}, {"name", Draft(info->name)}};
      for (const std::string& uid : info->pod_uids) claim["podUIDs"].Append(Draft(uid));
      item["claims"].Append(std::move(claim));
    }
    items.Append(std::move(item));
  }
  return items;
}

Draft HealthMonitor::ResourceStatus(Value pod, Value container) const {
  if (!options_.gates.Enabled(Gate::kResourceHealthStatus)) return Draft();
  const std::string home(pod["metadata"]["namespace"].str());
  const std::string uid(pod["metadata"]["uid"].str());
  std::map<std::string, std::map<std::string, DeviceHealthView>> rows;
  for (const ContainerClaim& use : ListContainerClaims(pod, container)) {
    if (use.pod_claim_name.empty()) continue;
    const ClaimInfo* info = options_.claims.Find(ClaimCache::Key(home, use.claim_name));
    if (info == nullptr || !info->pod_uids.contains(uid)) continue;
    std::string row = StrCat("claim:", use.pod_claim_name);
    if (!use.request.empty()) row += "/" + use.request;
    for (const auto& [driver, state] : info->drivers) {
      for (const rpc::PreparedDevice& device : state.devices) {
        bool matches = use.request.empty() || device.request_names.empty();
        for (const std::string& request : device.request_names) {
          matches = matches || api::BaseRequest(request) == api::BaseRequest(use.request);
        }
        if (!matches) continue;
        DeviceHealthView view = View({driver, device.pool_name, device.device_name});
        // A device that skips preparation need not be reported.
        if (!view.since && Skips(state.skip_node_operations, kSkipPrepare)) continue;
        const std::string id = !device.cdi_device_ids.empty()
                                   ? device.cdi_device_ids.front()
                                   : StrCat(driver, "/", device.pool_name, "/", device.device_name);
        rows[row][id] = std::move(view);
      }
    }
  }
  if (rows.empty()) return Draft();
  Draft list = Draft::Array();
  for (const auto& [name, resources] : rows) {
    Draft entry = Draft::Object();
    entry["name"] = name;
    for (const auto& [id, view] : resources) {
      Draft resource = Draft::Object();
      resource["resourceID"] = id;
      resource["health"] = rpc::DeviceHealthStateName(view.health);
      if (!view.message.empty()) resource["message"] = view.message;
      entry["resources"].Append(std::move(resource));
    }
    list.Append(std::move(entry));
  }
  return list;
}

}  // namespace drakkar::node
