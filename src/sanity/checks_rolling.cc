#include <map>

#include "base/text/text.h"
#include "sanity/driver_under_test.h"

namespace drakkar::sanity {
namespace {

constexpr char kBeside[] = "a second instance registers beside the first, with its own sockets";

std::map<std::string, std::uint64_t> DevicesByPool(const std::vector<api::ObjectPtr>& slices) {
  std::map<std::string, std::uint64_t> devices;
  for (const api::ObjectPtr& slice : slices) {
    devices[std::string((*slice)["spec"]["pool"]["name"].str())] +=
        (*slice)["spec"]["devices"].size();
  }
  return devices;
}

// Checks the second instance beside the first.
Result<void> CheckBeside(DriverUnderTest& old, DriverUnderTest& fresh) {
  const auto info = fresh.AwaitInfo();
  if (!info.ok()) return info.error().Prefixed("second instance");
  fresh.info = *info;
  if (info->name != old.driver_name) {
    return FailedPrecondition(StrCat("the second instance is named ", Quote(info->name),
                                     ", the first ", Quote(old.driver_name)));
  }
  if (fresh.endpoint() == old.endpoint())
    return FailedPrecondition("both instances serve at " + fresh.endpoint());
  if (info->supported_versions.empty())
    return FailedPrecondition("the second instance advertises no service");
  if (auto told = fresh.Notify({.plugin_registered = true}); !told.ok()) return told.error();
  if (auto connected = fresh.Connect(); !connected.ok()) return connected.error();
  const auto still = old.GetInfo();
  if (!still.ok()) return still.error().Prefixed("the first instance no longer responds");
  return Ok();
}

}  // namespace

void CheckRollingUpdate(DriverUnderTest& driver) {
  const Options& options = driver.options();
  if (!options.start_second || !options.stop_first) {
    return driver.Skip("rolling.beside", kBeside, "the driver's command has no {pod-uid}");
  }
  if (!driver.info || driver.devices.empty()) {
    return driver.Skip("rolling.beside", kBeside, "no registration, or no device to claim");
  }
  const rpc::DraVersion version = driver.versions().front();
  auto claim = driver.MakeClaim(driver.devices.front());
  if (!claim.ok())
    return driver.Check("rolling.beside", kBeside, [&]() -> Result<void> { return claim.error(); });
  const auto before = driver.PrepareOne(*claim, version);
  const auto slices_before = driver.ListSlices();

  Options beside = options;
  const Result<std::string> socket = options.start_second();
  if (socket.ok()) beside.driver_socket = *socket;
  DriverUnderTest fresh(beside);
  fresh.driver_name = driver.driver_name;
  fresh.node_name = driver.node_name;
  bool runs = false;
  driver.Check("rolling.beside", kBeside, [&]() -> Result<void> {
    if (!before.ok()) return before.error();
    if (!socket.ok()) return socket.error();
    if (*socket == options.driver_socket)
      return FailedPrecondition("both instances register at " + *socket);
    const Result<void> result = CheckBeside(driver, fresh);
    runs = result.ok();
    return result;
  });
  if (!runs) return;
  driver.Check("rolling.prepared", "the second instance knows what the first has prepared",
               [&]() -> Result<void> {
                 const auto again = fresh.PrepareOne(*claim, version);
                 if (!again.ok()) return again.error();
                 if (!(*again == *before))
                   return FailedPrecondition("its response differs from that of the first");
                 return Ok();
               });
  driver.Check("rolling.concurrent", "concurrent calls to both instances succeed",
               [&]() -> Result<void> {
                 const std::vector<rpc::ClaimReference> calls(8, *claim);
                 return CheckAnswers(calls, driver.PrepareAtOnce(calls, &fresh));
               });
  driver.Check("rolling.handover", "the second instance continues when the first exits",
               [&]() -> Result<void> {
                 if (auto stopped = options.stop_first(); !stopped.ok()) return stopped.error();
                 const auto info = fresh.GetInfo();
                 if (!info.ok())
                   return info.error().Prefixed("it no longer responds to registration");
                 const auto again = fresh.PrepareOne(*claim, version);
                 if (!again.ok()) return again.error();
                 if (!(*again == *before)) return FailedPrecondition("its response has changed");
                 return Ok();
               });
  driver.Check("rolling.sockets", "the first instance removed its own sockets and no others",
               [&]() -> Result<void> {
                 if (options.files.Exists(options.driver_socket))
                   return FailedPrecondition(options.driver_socket + " still exists");
                 if (options.files.Exists(driver.endpoint()))
                   return FailedPrecondition(driver.endpoint() + " still exists");
                 return Ok();
               });
  driver.Check("rolling.slices", "published devices do not change", [&]() -> Result<void> {
    if (!slices_before.ok()) return slices_before.error();
    RETURN_IF_ERROR(AwaitCompletePools(fresh));
    const auto slices = fresh.ListSlices();
    if (!slices.ok()) return slices.error();
    if (!(DevicesByPool(*slices) == DevicesByPool(*slices_before)))
      return FailedPrecondition("the number of devices in the pools changed");
    return Ok();
  });
  driver.Check("rolling.unprepare", "the second instance unprepares what the first prepared",
               [&] { return fresh.UnprepareOne(*claim, version); });
}

}  // namespace drakkar::sanity
