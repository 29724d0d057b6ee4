#include "node/health/health_cache.h"

#include <algorithm>

#include "api/json/reader.h"
#include "api/json/writer.h"
#include "api/meta/time.h"
#include "base/text/text.h"
#include "base/text/truncate.h"

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

HealthCache::Outcome HealthCache::Update(const std::string& driver, std::uint64_t instance,
                                         const rpc::HealthReport& report, HealthTime now) {
  Outcome outcome;
  auto& devices = drivers_[driver];
  for (const rpc::DeviceHealth& device : report) {
    const std::string key = EntryKey(device.pool_name, device.device_name);
    auto found = devices.find(key);
    const bool is_new = found == devices.end();
    if (device.pool_name.size() > kMaxNameBytes || device.device_name.size() > kMaxNameBytes ||
        (is_new && devices.size() >= kMaxDevicesPerDriver)) {
      ++outcome.ignored;
      continue;
    }
    Entry& entry = is_new ? devices[key] : found->second;
    const Duration timeout =
        device.health_check_timeout_seconds > 0
            ? Duration(std::chrono::seconds(std::min<std::int64_t>(
                  device.health_check_timeout_seconds, kLongestTimeout / std::chrono::seconds(1))))
            : kDefaultTimeout;
    std::string message = TruncateMessage(device.message, kMaxMessageBytes);
    const DeviceHealthView before = is_new ? DeviceHealthView{} : View(entry, now);
    if (is_new || now.tick - entry.heard > entry.timeout || entry.health != device.health ||
        entry.message != message) {
      outcome.changed.push_back({driver, device.pool_name, device.device_name});
    }
    WallTime since = !is_new && before.health == device.health ? *before.since : now.wall;
    if (is_new) {
      const auto lost = lost_.find({driver, device.pool_name, device.device_name});
      if (lost != lost_.end()) {
        if (device.health == rpc::DeviceHealthState::kUnknown) since = lost->second;
        lost_.erase(lost);
      }
    }
    if (!outcome.expiry || now.tick + timeout < *outcome.expiry)
      outcome.expiry = now.tick + timeout;
    entry = {.health = device.health,
             .message = std::move(message),
             .last_updated = now.wall,
             .heard = now.tick,
             .since = since,
             .timeout = timeout,
             .instance = instance,
             .pool = device.pool_name,
             .device = device.device_name};
  }
  return outcome;
}

// Even the message of a device reported as Unknown disappears with its report.
bool HealthCache::ReadsOtherwiseThanUnknown(const Entry& entry) {
  return entry.health != rpc::DeviceHealthState::kUnknown || !entry.message.empty();
}

void HealthCache::HandOver(const std::string& driver, std::uint64_t from, std::uint64_t to) {
  const auto found = drivers_.find(driver);
  if (found == drivers_.end()) return;
  for (auto& [key, entry] : found->second) {
    if (entry.instance == from) entry.instance = to;
  }
}

void HealthCache::Remember(const std::string& driver, const Entry& entry, WallTime since) {
  if (lost_.size() >= kMaxRemembered) lost_.erase(lost_.begin());
  lost_[{driver, entry.pool, entry.device}] = since;
}

std::vector<DeviceKey> HealthCache::ClearInstance(const std::string& driver, std::uint64_t instance,
                                                  HealthTime now) {
  std::vector<DeviceKey> changed;
  auto found = drivers_.find(driver);
  if (found == drivers_.end()) return changed;
  std::erase_if(found->second, [&](const auto& item) {
    const Entry& entry = item.second;
    if (entry.instance != instance) return false;
    const DeviceHealthView view = View(entry, now);
    if (ReadsOtherwiseThanUnknown(entry)) changed.push_back({driver, entry.pool, entry.device});
    Remember(driver, entry,
             view.health == rpc::DeviceHealthState::kUnknown ? *view.since : now.wall);
    return true;
  });
  if (found->second.empty()) drivers_.erase(found);
  return changed;
}

std::vector<DeviceKey> HealthCache::Expire(HealthTime now) {
  std::vector<DeviceKey> changed;
  for (auto& [driver, devices] : drivers_) {
    std::erase_if(devices, [&](const auto& item) {
      const Entry& entry = item.second;
      if (now.tick - entry.heard <= entry.timeout) return false;
      if (ReadsOtherwiseThanUnknown(entry)) changed.push_back({driver, entry.pool, entry.device});
      Remember(driver, entry, *View(entry, now).since);
      return true;
    });
  }
  std::erase_if(drivers_, [](const auto& item) { return item.second.empty(); });
  return changed;
}

std::optional<MonotonicTime> HealthCache::NextExpiry() const {
  std::optional<MonotonicTime> next;
  for (const auto& [driver, devices] : drivers_) {
    for (const auto& [key, entry] : devices) {
      const MonotonicTime at = entry.heard + entry.timeout;
      if (!next || at < *next) next = at;
    }
  }
  return next;
}

DeviceHealthView HealthCache::Get(const DeviceKey& key, HealthTime now) const {
  if (auto driver = drivers_.find(key.driver); driver != drivers_.end()) {
    auto found = driver->second.find(EntryKey(key.pool, key.device));
    if (found != driver->second.end()) return View(found->second, now);
  }
  DeviceHealthView unknown;
  if (auto lost = lost_.find(key); lost != lost_.end()) unknown.since = lost->second;
  return unknown;
}

DeviceHealthView HealthCache::View(const Entry& entry, HealthTime now) {
  const Duration over = now.tick - entry.heard - entry.timeout;
  if (over <= Duration::zero()) return {entry.health, entry.message, entry.since};
  // It may already have been reported as Unknown.
  if (entry.health == rpc::DeviceHealthState::kUnknown) return {entry.health, "", entry.since};
  return {rpc::DeviceHealthState::kUnknown, "", now.wall - over};
}

std::vector<std::pair<DeviceKey, DeviceHealthView>> HealthCache::List(HealthTime now) const {
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
      // Our own member; Kubernetes ignores it.
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

Result<void> HealthCache::Decode(std::string_view text, HealthTime now) {
  ASSIGN_OR_RETURN(
      const api::TreePtr tree,
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
      const std::int64_t timeout = device.value["HealthCheckTimeout"].integer();
      if (timeout > 0) entry.timeout = std::min(Duration(timeout), kLongestTimeout);
      // The clock may have been set back, or the file copied from another machine.
      entry.last_updated = std::min(entry.last_updated, now.wall);
      entry.since = std::min(since.ok() ? *since : entry.last_updated, now.wall);
      // Clamp the age to just past the timeout, so that no date overflows the clock.
      const Duration oldest = entry.timeout + std::chrono::milliseconds(1);
      const bool recent = entry.last_updated > now.wall - oldest;
      entry.heard = now.tick - (recent ? now.wall - entry.last_updated : oldest);
      devices[EntryKey(entry.pool, entry.device)] = std::move(entry);
    }
  }
  drivers_ = std::move(drivers);
  return Ok();
}

}  // namespace drakkar::node
