#include "device/device_id.h"

#include "base/text/text.h"

namespace drakkar::device {

std::string PoolId::ToString() const {
  return StrCat(driver, "/", pool);
}

std::string DeviceId::ToString() const {
  return StrCat(driver, "/", pool, "/", device);
}

}  // namespace drakkar::device
