#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/result/check.h"
#include "sdk/driver/reference/device_config.h"
#include "sdk/driver/slices/desired_pool.h"

// Any file yields devices that the driver can publish, or an error.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  auto config = drakkar::driver::ParseDeviceConfig(text);
  if (!config.ok()) {
    CHECK(!config.error().message.empty());
    return 0;
  }
  drakkar::driver::Slice slice;
  for (const auto& device : config->devices) slice.devices.push_back(device.device);
  slice.skip_node_operations = config->skip_node_operations;
  drakkar::driver::DriverResources resources;
  resources.pools["node"].slices.push_back(slice);
  auto desired = drakkar::driver::MakeDesiredPools(resources, /*on_node=*/true);
  CHECK(desired.ok());
  return 0;
}
