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
// the end of its stream takes only those. Bounds: kMaxDevicesPerDriver (further ones are ignored)
// and kMaxMessageBytes (longer ones are cut).
class HealthCache {
 public:
  static constexpr std::size_t kMaxDevicesPerDriver = 16'384;
  static constexpr std::size_t kMaxMessageBytes = 1'024;
  static constexpr Duration kDefaultTimeout = std::chrono::seconds(30);

  struct Outcome {
    std::vector<DeviceKey> changed;
    std::size_t ignored = 0;  // devices beyond the bound
    std::optional<WallTime> expiry;  // of the first of the reported devices
  };

  Outcome Update(const std::string& driver, std::uint64_t instance, const rpc::HealthReport& report,
                 WallTime now);
  // The instance's stream has ended.
  std::vector<DeviceKey> ClearInstance(const std::string& driver, std::uint64_t instance);
  // Forgets what nobody has confirmed in time.
  std::vector<DeviceKey> Expire(WallTime now);
  // When Expire has something to do next; nothing if never.
  std::optional<WallTime> NextExpiry() const;

  DeviceHealthView Get(const DeviceKey& key, WallTime now) const;
  std::vector<std::pair<DeviceKey, DeviceHealthView>> List(WallTime now) const;

  // The file `dra_health_state` as Kubernetes writes it. What is loaded belongs to no instance and
  // goes by its timeout.
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
  Result<void> Decode(std::string_view text);

 private:
  struct Entry {
    rpc::DeviceHealthState health = rpc::DeviceHealthState::kUnknown;
    std::string message;
    WallTime last_updated{};
    WallTime since{};
    Duration timeout = kDefaultTimeout;
    std::uint64_t instance = 0;
    std::string pool;
    std::string device;
  };
  static DeviceHealthView View(const Entry& entry, WallTime now);

  std::map<std::string, std::map<std::string, Entry>> drivers_;  // driver -> "pool/device"
};

// At most `limit` bytes, cut at a character, with "..." when cut.
std::string TruncateMessage(std::string_view message, std::size_t limit);

}  // namespace drakkar::node
