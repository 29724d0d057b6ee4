#include "node/health/health_cache.h"

#include <algorithm>

#include "api/json/reader.h"
#include "api/json/writer.h"
#include "api/meta/time.h"
#include "base/text/text.h"

namespace drakkar::node {
namespace {

using api::Value;

std::string EntryKey(std::string_view pool, std::string_view device) {
  return StrCat(pool, "/", device);
}

// RFC 3339 with nanoseconds, as Go writes times into files.
std::string FormatNano(WallTime time) {
  std::string text = api::FormatTime(time);
  const auto fraction = time.time_since_epoch() % std::chrono::seconds(1);
  if (fraction.count() == 0) return text;
  std::string digits = std::to_string(1'000'000'000 + fraction.count()).substr(1);
  while (digits.back() == '0') digits.pop_back();
  text.insert(text.size() - 1, "." + digits);
  return text;
}

}  // namespace

std::string TruncateMessage(std::string_view message, std::size_t limit) {
  if (message.size() <= limit) return std::string(message);
  std::size_t size = limit - 3;
  while (size > 0 && (static_cast<unsigned char>(message[size]) & 0xc0) == 0x80) --size;
  return StrCat(message.substr(0, size), "...");
}

HealthCache::Outcome HealthCache::Update(const std::string& driver, std::uint64_t instance,
                                         const rpc::HealthReport& report, WallTime now) {
  Outcome outcome;
  auto& devices = drivers_[driver];
  for (const rpc::DeviceHealth& device : report) {
    const std::string key = EntryKey(device.pool_name, device.device_name);
    auto found = devices.find(key);
    const bool is_new = found == devices.end();
    if (is_new && devices.size() >= kMaxDevicesPerDriver) {
      ++outcome.ignored;
      continue;
    }
    Entry& entry = is_new ? devices[key] : found->second;
    const Duration timeout = device.health_check_timeout_seconds > 0
                                 ? Duration(std::chrono::seconds(std::min<std::int64_t>(
                                       device.health_check_timeout_seconds, 86'400)))
                                 : kDefaultTimeout;
    std::string message = TruncateMessage(device.message, kMaxMessageBytes);
    const bool stale = !is_new && now - entry.last_updated > entry.timeout;
    if (is_new || stale || entry.health != device.health || entry.message != message) {
      outcome.changed.push_back({driver, device.pool_name, device.device_name});
    }
    const WallTime since = is_new || stale || entry.health != device.health ? now : entry.since;
    if (!outcome.expiry || now + timeout < *outcome.expiry) outcome.expiry = now + timeout;
    entry = {device.health, std::move(message), now, since, timeout, instance, device.pool_name, device.device_name};
  }
  return outcome;
}

std::vector<DeviceKey> HealthCache::ClearInstance(const std::string& driver, std::uint64_t instance) {
  std::vector<DeviceKey> changed;
  auto found = drivers_.find(driver);
  if (found == drivers_.end()) return changed;
  std::erase_if(found->second, [&](const auto& item) {
    if (item.second.instance != instance) return false;
    if (item.second.health != rpc::DeviceHealthState::kUnknown) {
      changed.push_back({driver, item.second.pool, item.second.device});
    }
    return true;
  });
  if (found->second.empty()) drivers_.erase(found);
  return changed;
}

std::vector<DeviceKey> HealthCache::Expire(WallTime now) {
  std::vector<DeviceKey> changed;
  for (auto& [driver, devices] : drivers_) {
    std::erase_if(devices, [&](const auto& item) {
      const Entry& entry = item.second;
      if (now - entry.last_updated <= entry.timeout) return false;
      if (entry.health != rpc::DeviceHealthState::kUnknown) {
        changed.push_back({driver, entry.pool, entry.device});
      }
      return true;
    });
  }
  std::erase_if(drivers_, [](const auto& item) { return item.second.empty(); });
  return changed;
}

std::optional<WallTime> HealthCache::NextExpiry() const {
  std::optional<WallTime> next;
  for (const auto& [driver, devices] : drivers_) {
    for (const auto& [key, entry] : devices) {
      const WallTime at = entry.last_updated + entry.timeout;
      if (!next || at < *next) next = at;
    }
  }
  return next;
}

DeviceHealthView HealthCache::Get(const DeviceKey& key, WallTime now) const {
  auto driver = drivers_.find(key.driver);
  if (driver == drivers_.end()) return {};
  auto found = driver->second.find(EntryKey(key.pool, key.device));
  if (found == driver->second.end()) return {};
  const Entry& entry = found->second;
  return View(entry, now);
}

DeviceHealthView HealthCache::View(const Entry& entry, WallTime now) {
  const WallTime expired = entry.last_updated + entry.timeout;
  if (now > expired) return {rpc::DeviceHealthState::kUnknown, "", expired};
  return {entry.health, entry.message, entry.since};
}

std::vector<std::pair<DeviceKey, DeviceHealthView>> HealthCache::List(WallTime now) const {
  std::vector<std::pair<DeviceKey, DeviceHealthView>> list;
  for (const auto& [driver, devices] : drivers_) {
    for (const auto& [key, entry] : devices) {
      list.push_back({{driver, entry.pool, entry.device}, View(entry, now)});
    }
  }
  return list;
}

void HealthCache::EncodeMore(Encoding& encoding, std::size_t limit) const {
  std::string& out = encoding.text;
  auto driver = out.empty() ? drivers_.begin() : drivers_.lower_bound(encoding.driver);
  if (out.empty()) out = "{";
  for (; driver != drivers_.end(); ++driver) {
    const bool resumed = driver->first == encoding.driver;
    if (!resumed) {
      if (!encoding.driver.empty()) out += "}}";
      if (out.size() > 1) out += ',';
      api::AppendJsonString(out, driver->first);
      out += ":{\"Devices\":{";
      encoding.driver = driver->first;
      encoding.device.clear();
    }
    auto device = encoding.device.empty() ? driver->second.begin()
                                          : driver->second.upper_bound(encoding.device);
    for (; device != driver->second.end(); ++device) {
      if (limit-- == 0) return;
      const auto& [key, entry] = *device;
      if (out.back() != '{') out += ',';
      encoding.device = key;
      api::AppendJsonString(out, key);
      out += ":{\"PoolName\":";
      api::AppendJsonString(out, entry.pool);
      out += ",\"DeviceName\":";
      api::AppendJsonString(out, entry.device);
      out += ",\"Health\":";
      api::AppendJsonString(out, rpc::DeviceHealthStateName(entry.health));
      out += StrCat(",\"LastUpdated\":\"", FormatNano(entry.last_updated),
                    "\",\"HealthCheckTimeout\":", entry.timeout.count(), ",\"Message\":");
      api::AppendJsonString(out, entry.message);
      // Ours alone; Kubernetes does not look at it.
      out += StrCat(",\"Since\":\"", FormatNano(entry.since), "\"}");
    }
  }
  if (!encoding.driver.empty()) out += "}}";
  out += "}";
  encoding.done = true;
}

std::string HealthCache::Encode() const {
  Encoding encoding;
  while (!encoding.done) EncodeMore(encoding, SIZE_MAX);
  return std::move(encoding.text);
}

Result<void> HealthCache::Decode(std::string_view text) {
  ASSIGN_OR_RETURN(const api::TreePtr tree,
                   api::ParseJson(text, {.max_depth = 16, .max_size_bytes = std::size_t{256} << 20}));
  if (!tree->root().is_object()) return InvalidArgument("not an object");
  std::map<std::string, std::map<std::string, Entry>> drivers;
  for (const api::MemberView driver : tree->root().members()) {
    auto& devices = drivers[std::string(driver.name)];
    for (const api::MemberView device : driver.value["Devices"].members()) {
      if (devices.size() >= kMaxDevicesPerDriver) break;
      Entry entry;
      entry.pool = std::string(device.value["PoolName"].str());
      entry.device = std::string(device.value["DeviceName"].str());
      entry.health = rpc::ParseDeviceHealthState(device.value["Health"].str());
      entry.message = TruncateMessage(device.value["Message"].str(), kMaxMessageBytes);
      ASSIGN_OR_RETURN(entry.last_updated, api::ParseTime(device.value["LastUpdated"].str()));
      auto since = api::ParseTime(device.value["Since"].str());
      entry.since = since.ok() ? *since : entry.last_updated;
      const std::int64_t timeout = device.value["HealthCheckTimeout"].integer();
      if (timeout > 0) entry.timeout = Duration(timeout);
      devices[EntryKey(entry.pool, entry.device)] = std::move(entry);
    }
  }
  drivers_ = std::move(drivers);
  return Ok();
}

}  // namespace drakkar::node
