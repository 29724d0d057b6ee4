#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/env/clock.h"
#include "base/result/result.h"
#include "rpc/health/health.h"

namespace drakkar::node {

struct DeviceKey {
  std::string driver;
  std::string pool;
  std::string device;
  auto operator<=>(const DeviceKey&) const = default;
};

// One moment on both clocks. Expiry uses the monotonic one; the wall clock is for people and for
// the file.
struct HealthTime {
  WallTime wall;
  MonotonicTime tick;
};
inline HealthTime HealthNow(const Clock& clock) {
  return {clock.Now(), clock.Monotonic()};
}

struct DeviceHealthView {
  rpc::DeviceHealthState health = rpc::DeviceHealthState::kUnknown;
  std::string message;
  // When it changed to this state, by our clock; nothing if it was never reported.
  std::optional<WallTime> since;
};

// What drivers report about the health of their devices (KEP-4680). Time is passed in.
//
// A device that a report omits keeps its health until its own timeout after the last report, then
// becomes Unknown. Entries belong to the plugin instance that reported them last; the end of its
// stream removes only those. The time since which such a device is Unknown is remembered until it
// is reported again or Forget is called. Bounds: kMaxDevicesPerDriver (further devices are
// ignored), kMaxNameBytes (devices with longer names are ignored), kMaxMessageBytes (longer
// messages are truncated) and kMaxRemembered (an arbitrary entry is dropped).
class HealthCache {
 public:
  static constexpr std::size_t kMaxDevicesPerDriver = 16'384;
  static constexpr std::size_t kMaxMessageBytes = 1'024;
  static constexpr std::size_t kMaxNameBytes = 253;  // of a pool or device, as in a ResourceSlice
  static constexpr std::size_t kMaxRemembered = kMaxDevicesPerDriver;
  static constexpr Duration kDefaultTimeout = std::chrono::seconds(30);
  static constexpr Duration kLongestTimeout = std::chrono::hours(24);

  struct Outcome {
    std::vector<DeviceKey> changed;
    std::size_t ignored = 0;              // devices beyond a bound
    std::optional<MonotonicTime> expiry;  // of the first of the reported devices
  };

  Outcome Update(const std::string& driver, std::uint64_t instance, const rpc::HealthReport& report,
                 HealthTime now);
  // The instance's stream ended.
  std::vector<DeviceKey> ClearInstance(const std::string& driver, std::uint64_t instance,
                                       HealthTime now);
  // Another instance now reports for the driver. The previous instance's reports stay valid until
  // their timeout, or until the new instance's stream ends.
  void HandOver(const std::string& driver, std::uint64_t from, std::uint64_t to);
  // Drops expired entries.
  std::vector<DeviceKey> Expire(HealthTime now);
  // When the next entry expires; nothing if none does.
  std::optional<MonotonicTime> NextExpiry() const;
  // Forgets since when this device is Unknown.
  void Forget(const DeviceKey& key) { lost_.erase(key); }

  DeviceHealthView Get(const DeviceKey& key, HealthTime now) const;
  // The devices that are currently reported.
  std::vector<std::pair<DeviceKey, DeviceHealthView>> List(HealthTime now) const;

  // The file `dra_health_state` in Kubernetes' format. Loaded entries belong to no instance and
  // expire by their timeout; times in the future count as now. Encoding proceeds in steps of
  // `limit` devices so that it does not block the loop; devices that appear or disappear meanwhile
  // may or may not be included.
  struct Encoding {
    std::string text;
    std::string driver;  // the position
    std::string device;
    bool done = false;
  };
  void EncodeMore(Encoding& encoding, std::size_t limit) const;
  std::string Encode() const;
  Result<void> Decode(std::string_view text, HealthTime now);

 private:
  struct Entry {
    rpc::DeviceHealthState health = rpc::DeviceHealthState::kUnknown;
    std::string message;
    WallTime last_updated{};  // for the file
    MonotonicTime heard{};    // the same moment, for the timeout
    WallTime since{};
    Duration timeout = kDefaultTimeout;
    std::uint64_t instance = 0;
    std::string pool;
    std::string device;
  };
  static DeviceHealthView View(const Entry& entry, HealthTime now);
  static bool ReadsOtherwiseThanUnknown(const Entry& entry);
  void Remember(const std::string& driver, const Entry& entry, WallTime since);

  std::map<std::string, std::map<std::string, Entry>> drivers_;  // driver -> "pool/device"
  std::map<DeviceKey, WallTime> lost_;  // no longer reported, and since when
};

}  // namespace drakkar::node
