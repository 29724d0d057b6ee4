#pragma once

#include <cstdint>
#include <string>

#include "base/result/result.h"

namespace drakkar {

enum class DeviceNodeType { kBlock, kCharacter, kFifo };

struct DeviceNodeInfo {
  DeviceNodeType type = DeviceNodeType::kCharacter;
  std::int64_t major = 0;  // both 0 for a fifo
  std::int64_t minor = 0;

  bool operator==(const DeviceNodeInfo&) const = default;
};

// The door to what device nodes are, apart from FileSystem because few need it.
class DeviceNodeProbe {
 public:
  virtual ~DeviceNodeProbe() = default;
  // Does not follow links. Anything that is not a device or a fifo is InvalidArgument.
  virtual Result<DeviceNodeInfo> Probe(const std::string& path) = 0;
};

DeviceNodeProbe& RealDeviceNodeProbe();

}  // namespace drakkar
