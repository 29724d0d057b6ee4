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

// One moment on both clocks. What expires goes by the one that nobody sets; the other is for people
// and for the file.
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
  // When it became so, by our clock; nothing if nobody has said anything.
  std::optional<WallTime> since;
};

// What drivers say about the health of their devices (KEP-4680). Time comes in as an argument.
//
// A device that is not mentioned in a report keeps its health until its own timeout after the last
// mention, then it reads Unknown. Entries belong to the plugin instance that reported them last:
// the end of its stream takes only those. Since when such a device is Unknown is remembered until
// it is mentioned again or Forget is called. Bounds: kMaxDevicesPerDriver (further ones are
// ignored), kMaxMessageBytes (longer ones are cut) and kMaxRemembered (one of the others goes).
class HealthCache {
 public:
  static constexpr std::size_t kMaxDevicesPerDriver = 16'384;
  static constexpr std::size_t kMaxMessageBytes = 1'024;
  static constexpr std::size_t kMaxRemembered = kMaxDevicesPerDriver;
  static constexpr Duration kDefaultTimeout = std::chrono::seconds(30);
  static constexpr Duration kLongestTimeout = std::chrono::hours(24);

  struct Outcome {
    std::vector<DeviceKey> changed;
    std::size_t ignored = 0;              // devices beyond the bound
    std::optional<MonotonicTime> expiry;  // of the first of the reported devices
  };

  Outcome Update(const std::string& driver, std::uint64_t instance, const rpc::HealthReport& report,
                 HealthTime now);
  // The instance's stream has ended.
  std::vector<DeviceKey> ClearInstance(const std::string& driver, std::uint64_t instance,
                                       HealthTime now);
  // Another instance now speaks for the driver: what the one before it reported stands until its
  // timeout, or until the stream of the new one ends.
  void HandOver(const std::string& driver, std::uint64_t from, std::uint64_t to);
  // Drops what nobody has confirmed in time.
  std::vector<DeviceKey> Expire(HealthTime now);
  // When Expire has something to do next; nothing if never.
  std::optional<MonotonicTime> NextExpiry() const;
  // Nobody asks since when this device is Unknown.
  void Forget(const DeviceKey& key) { lost_.erase(key); }

  DeviceHealthView Get(const DeviceKey& key, HealthTime now) const;
  // Those that are reported.
  std::vector<std::pair<DeviceKey, DeviceHealthView>> List(HealthTime now) const;

  // The file `dra_health_state` as Kubernetes writes it. What is loaded belongs to no instance and
  // goes by its timeout; what is from the future counts as of now.
  // In pieces of `limit` devices, since a loop has other things to do; devices that come or go
  // meanwhile are in it or not.
  struct Encoding {
    std::string text;
    std::string driver;  // where it is
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
    MonotonicTime heard{};    // the same, for the timeout
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
  std::map<DeviceKey, WallTime> lost_;  // not reported any more, and since when
};

// At most `limit` bytes, cut at a character, with "..." when cut.
std::string TruncateMessage(std::string_view message, std::size_t limit);

}  // namespace drakkar::node
