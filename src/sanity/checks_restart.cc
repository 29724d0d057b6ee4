#include "base/text/text.h"
#include "sanity/driver_under_test.h"

namespace drakkar::sanity {

void CheckRestart(DriverUnderTest& driver) {
  constexpr char kTitle[] = "a restarted driver registers again and knows what it prepared";
  if (!driver.options().restart_driver) {
    return driver.Skip("restart.prepared", kTitle, "there is no command to restart the driver");
  }
  if (driver.devices.empty()) return driver.Skip("restart.prepared", kTitle, driver.no_device);
  const rpc::DraVersion version = driver.versions().front();
  auto claim = driver.MakeClaim(driver.devices.front());
  driver.Check("restart.prepared", kTitle, [&] {
    if (!claim.ok()) return claim.error().message;
    const auto before = driver.PrepareOne(*claim, version);
    if (!before.ok()) return before.error().message;
    if (auto restarted = driver.options().restart_driver(); !restarted.ok()) {
      return "restart the driver: " + restarted.error().message;
    }
    if (driver.info) {
      Result<rpc::PluginInfo> info = driver.AwaitInfo();
      if (!info.ok()) return "it does not register again: " + info.error().message;
      driver.info = *info;
      if (auto told = driver.Notify({.plugin_registered = true}); !told.ok())
        return told.error().message;
    }
    if (auto connected = driver.Connect(); !connected.ok()) return connected.error().message;
    const auto after = driver.PrepareOne(*claim, version);
    if (!after.ok()) return "prepare again: " + after.error().message;
    return *after == *before ? std::string()
                             : std::string("the answer differs from the one before");
  });
  driver.Check("restart.unprepare", "it undoes what was prepared before the restart", [&] {
    return claim.ok() ? driver.UnprepareOne(*claim, version) : claim.error().message;
  });
  driver.Check("restart.slices", "its pools are complete after the restart",
               [&] { return AwaitCompletePools(driver); });
}

std::string AwaitCompletePools(DriverUnderTest& driver) {
  std::string problem;
  for (int attempt = 0; attempt < 50; ++attempt) {
    const auto slices = driver.ListSlices();
    if (!slices.ok()) return slices.error().message;
    problem = slices->empty() ? "no slice is left" : DescribeIncompletePools(*slices);
    if (problem.empty()) break;
    driver.options().wait_until([] { return false; }, driver.options().timeout / 50);
  }
  return problem;
}

}  // namespace drakkar::sanity
