#include "base/env/device_node.h"

#include <gtest/gtest.h>

namespace drakkar {
namespace {

TEST(DeviceNodeProbe, RecognizesDevNull) {
  const Result<DeviceNodeInfo> info = RealDeviceNodeProbe().Probe("/dev/null");
  ASSERT_TRUE(info.ok()) << info.error().message;
  EXPECT_EQ(*info, (DeviceNodeInfo{.type = DeviceNodeType::kCharacter, .major = 1, .minor = 3}));
}

TEST(DeviceNodeProbe, RejectsWhatIsNotADevice) {
  EXPECT_EQ(RealDeviceNodeProbe().Probe("/").error(), InvalidArgument("/ is not a device node"));
  EXPECT_EQ(RealDeviceNodeProbe().Probe("/no/such").error().code, ErrorCode::kNotFound);
}

}  // namespace
}  // namespace drakkar
