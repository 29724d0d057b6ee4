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

// The second instance beside the first.
Result<void> CheckBeside(DriverUnderTest& old, DriverUnderTest& fresh) {
  const auto info = fresh.AwaitInfo();
  if (!info.ok()) return info.error().Prefixed("the second one");
  fresh.info = *info;
  if (info->name != old.driver_name) {
    return FailedPrecondition(StrCat("the second one calls itself ", Quote(info->name),
                                     ", the first ", Quote(old.driver_name)));
  }
  if (fresh.endpoint() == old.endpoint())
    return FailedPrecondition("both serve at " + fresh.endpoint());
  if (info->supported_versions.empty())
    return FailedPrecondition("the second one advertises no service");
  if (auto told = fresh.Notify({.plugin_registered = true}); !told.ok()) return told.error();
  if (auto connected = fresh.Connect(); !connected.ok()) return connected.error();
  const auto still = old.GetInfo();
  if (!still.ok()) return still.error().Prefixed("the first one no longer answers");
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
    if (*socket == options.driver_socket) return FailedPrecondition("both register at " + *socket);
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
                   return FailedPrecondition("its answer differs from that of the first");
                 return Ok();
               });
  driver.Check("rolling.concurrent", "calls to both instances at once all succeed",
               [&]() -> Result<void> {
                 const std::vector<rpc::ClaimReference> calls(8, *claim);
                 return CheckAnswers(calls, driver.PrepareAtOnce(calls, &fresh));
               });
  driver.Check("rolling.handover", "when the first one ends, the second goes on",
               [&]() -> Result<void> {
                 if (auto stopped = options.stop_first(); !stopped.ok()) return stopped.error();
                 const auto info = fresh.GetInfo();
                 if (!info.ok()) return info.error().Prefixed("it no longer registers");
                 const auto again = fresh.PrepareOne(*claim, version);
                 if (!again.ok()) return again.error();
                 if (!(*again == *before)) return FailedPrecondition("its answer has changed");
                 return Ok();
               });
  driver.Check("rolling.sockets", "the first one took its own sockets away and no other",
               [&]() -> Result<void> {
                 if (options.files.Exists(options.driver_socket))
                   return FailedPrecondition(options.driver_socket + " is still there");
                 if (options.files.Exists(driver.endpoint()))
                   return FailedPrecondition(driver.endpoint() + " is still there");
                 return Ok();
               });
  driver.Check("rolling.slices", "the published devices stay as they were", [&]() -> Result<void> {
    if (!slices_before.ok()) return slices_before.error();
    RETURN_IF_ERROR(AwaitCompletePools(fresh));
    const auto slices = fresh.ListSlices();
    if (!slices.ok()) return slices.error();
    if (!(DevicesByPool(*slices) == DevicesByPool(*slices_before)))
      return FailedPrecondition("pools have other numbers of devices than before");
    return Ok();
  });
  driver.Check("rolling.unprepare", "the second instance unprepares what the first prepared",
               [&] { return fresh.UnprepareOne(*claim, version); });
}

}  // namespace drakkar::sanity
