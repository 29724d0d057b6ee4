#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result/result.h"
#include "sdk/driver/slices/resources.h"

namespace drakkar::driver {

inline constexpr char kDefaultReferenceDriverName[] = "sim.drakkar.io";

// The devices of the reference driver. In a file:
//
//   driver: sim.drakkar.io          # name of the driver; --driver-name takes precedence
//   count: 4                        # devices sim-0 ... sim-3
//   namePrefix: sim-
//   attributes:                     # of every device: a string, an integer, true or false,
//     model: Longship 8             # or {version: 1.2.3}, {string: "1"}, {ints: [1, 2]} ... as in
//     generation: 2                 # the API
//   capacity:
//     memory: 16Gi
//   taints:
//     - {key: example.com/slow, value: "yes", effect: NoSchedule}
//   bindsToNode: true               # KEP-5007
//   bindingConditions: [example.com/attached]
//   bindingFailureConditions: [example.com/broken]
//   skipNodeOperations: true        # KEP-5945: the node does not call the driver; or a list
//   deferMetadata: true             # KEP-5304: prepare returns no metadata (see ReferenceDriver)
//   devices:                        # overrides for single devices
//     - name: sim-3                 # one of the above; any other name adds a device
//       attributes: {model: Longship 9}
//       capacity: {memory: 32Gi}
//       taints: []                  # replaces the taints above
//       health: Unhealthy           # Healthy (default), Unhealthy, Unknown
//       message: fan stuck
//
// All fields are optional; without a file there are four devices.
struct SimulatedDevice {
  Device device;
  std::string health = "Healthy";
  std::string health_message;
};

struct DeviceConfig {
  std::string driver_name = kDefaultReferenceDriverName;
  std::vector<SimulatedDevice> devices;
  std::vector<std::string> skip_node_operations;
  bool defer_metadata = false;
};

constexpr std::int64_t kMaxSimulatedDevices = 10'000;

// Every error ends with "at line 3, column 7".
Result<DeviceConfig> ParseDeviceConfig(std::string_view yaml);

}  // namespace drakkar::driver
