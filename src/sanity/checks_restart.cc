#include "base/text/text.h"
#include "sanity/driver_under_test.h"

namespace drakkar::sanity {

void CheckRestart(DriverUnderTest& driver) {
  constexpr char kTitle[] = "a restarted driver registers again and knows what it prepared";
  if (!driver.options().restart_driver) {
    return driver.Skip("restart.prepared", kTitle, "no --restart-command");
  }
  if (driver.devices.empty()) return driver.Skip("restart.prepared", kTitle, driver.no_device);
  const rpc::DraVersion version = driver.versions().front();
  auto claim = driver.MakeClaim(driver.devices.front());
  driver.Check("restart.prepared", kTitle, [&]() -> Result<void> {
    if (!claim.ok()) return claim.error();
    const auto before = driver.PrepareOne(*claim, version);
    if (!before.ok()) return before.error();
    if (auto restarted = driver.options().restart_driver(); !restarted.ok()) {
      return restarted.error().Prefixed("restart the driver");
    }
    if (driver.info) {
      Result<rpc::PluginInfo> info = driver.AwaitInfo();
      if (!info.ok()) return info.error().Prefixed("it did not register again");
      driver.info = *info;
      if (auto told = driver.Notify({.plugin_registered = true}); !told.ok()) return told.error();
    }
    if (auto connected = driver.Connect(); !connected.ok()) return connected.error();
    const auto after = driver.PrepareOne(*claim, version);
    if (!after.ok()) return after.error().Prefixed("prepare again");
    if (!(*after == *before))
      return FailedPrecondition("the response differs from the one before the restart");
    return Ok();
  });
  driver.Check("restart.unprepare", "it unprepares what was prepared before the restart",
               [&]() -> Result<void> {
                 if (!claim.ok()) return claim.error();
                 return driver.UnprepareOne(*claim, version);
               });
  if (claim.ok()) driver.DeleteClaim(*claim);  // later checks allocate the same device
  driver.Check("restart.slices", "its pools are complete after the restart",
               [&] { return AwaitCompletePools(driver); });
}

Result<void> AwaitCompletePools(DriverUnderTest& driver) {
  Result<void> complete = Ok();
  for (int attempt = 0; attempt < 50; ++attempt) {
    const auto slices = driver.ListSlices();
    if (!slices.ok()) return slices.error();
    complete = slices->empty() ? FailedPrecondition("no slices are left") : CheckPools(*slices);
    if (complete.ok()) break;
    driver.options().wait_until([] { return false; }, driver.options().timeout / 50);
  }
  return complete;
}

}  // namespace drakkar::sanity
