#pragma once

#include <cstdint>
#include <string>

#include "base/result/result.h"

namespace drakkar {

enum class DeviceNodeType { kBlock, kCharacter, kFifo };

struct DeviceNodeInfo {
  DeviceNodeType type = DeviceNodeType::kCharacter;
  std::int64_t major = 0;  // both 0 for a FIFO
  std::int64_t minor = 0;

  bool operator==(const DeviceNodeInfo&) const = default;
};

// Inspects device nodes. Separate from FileSystem because few components need it.
class DeviceNodeProbe {
 public:
  virtual ~DeviceNodeProbe() = default;
  // Does not follow links. Fails with InvalidArgument for anything but a device or FIFO.
  virtual Result<DeviceNodeInfo> Probe(const std::string& path) = 0;
};

DeviceNodeProbe& RealDeviceNodeProbe();

}  // namespace drakkar
