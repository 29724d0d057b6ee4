#include "base/env/device_node.h"

#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <cerrno>

namespace drakkar {
namespace {

class RealProbe final : public DeviceNodeProbe {
 public:
  Result<DeviceNodeInfo> Probe(const std::string& path) override {
    struct stat st;
    if (lstat(path.c_str(), &st) != 0) return ErrnoError(errno, "stat " + path);
    if (S_ISFIFO(st.st_mode)) return DeviceNodeInfo{.type = DeviceNodeType::kFifo};
    if (!S_ISBLK(st.st_mode) && !S_ISCHR(st.st_mode)) {
      return InvalidArgument(path + " is not a device node");
    }
    return DeviceNodeInfo{
        .type = S_ISBLK(st.st_mode) ? DeviceNodeType::kBlock : DeviceNodeType::kCharacter,
        .major = major(st.st_rdev),
        .minor = minor(st.st_rdev)};
  }
};

}  // namespace

DeviceNodeProbe& RealDeviceNodeProbe() {
  static RealProbe probe;
  return probe;
}

}  // namespace drakkar
