#include <map>

#include "base/text/text.h"
#include "sanity/driver_under_test.h"

namespace drakkar::sanity {
namespace {

constexpr char kBeside[] = "a second instance registers beside the first, with sockets of its own";

std::map<std::string, std::uint64_t> DevicesByPool(const std::vector<api::ObjectPtr>& slices) {
  std::map<std::string, std::uint64_t> devices;
  for (const api::ObjectPtr& slice : slices) {
    devices[std::string((*slice)["spec"]["pool"]["name"].str())] +=
        (*slice)["spec"]["devices"].size();
  }
  return devices;
}

// What is wrong with the second instance beside the first, or "".
std::string CheckBeside(DriverUnderTest& old, DriverUnderTest& fresh) {
  const auto info = fresh.AwaitInfo();
  if (!info.ok()) return "the second one: " + info.error().message;
  fresh.info = *info;
  if (info->name != old.driver_name) {
    return StrCat("the second one calls itself ", Quote(info->name), ", the first ",
                  Quote(old.driver_name));
  }
  if (fresh.endpoint() == old.endpoint()) return "both serve at " + fresh.endpoint();
  if (info->supported_versions.empty()) return "the second one advertises no service";
  if (auto told = fresh.Notify({.plugin_registered = true}); !told.ok())
    return told.error().message;
  if (auto connected = fresh.Connect(); !connected.ok()) return connected.error().message;
  const auto still = old.GetInfo();
  return still.ok() ? "" : "the first one no longer answers: " + still.error().message;
}

}  // namespace

void CheckRollingUpdate(DriverUnderTest& driver) {
  const Options& options = driver.options();
  if (!options.start_second || !options.stop_first) {
    return driver.Skip("rolling.beside", kBeside, "the driver's command has no {pod-uid}");
  }
  if (!driver.info || driver.devices.empty()) {
    return driver.Skip("rolling.beside", kBeside,
                       "there is no registration, or no device to claim");
  }
  const rpc::DraVersion version = driver.versions().front();
  auto claim = driver.MakeClaim(driver.devices.front());
  if (!claim.ok())
    return driver.Check("rolling.beside", kBeside, [&] { return claim.error().message; });
  const auto before = driver.PrepareOne(*claim, version);
  const auto slices_before = driver.ListSlices();

  Options beside = options;
  const Result<std::string> socket = options.start_second();
  if (socket.ok()) beside.driver_socket = *socket;
  DriverUnderTest fresh(beside);
  fresh.driver_name = driver.driver_name;
  fresh.node_name = driver.node_name;
  bool runs = false;
  driver.Check("rolling.beside", kBeside, [&] {
    if (!before.ok()) return before.error().message;
    if (!socket.ok()) return socket.error().message;
    if (*socket == options.driver_socket) return "both register at " + *socket;
    std::string problem = CheckBeside(driver, fresh);
    runs = problem.empty();
    return problem;
  });
  if (!runs) return;
  driver.Check("rolling.prepared", "the second instance knows what the first has prepared", [&] {
    const auto again = fresh.PrepareOne(*claim, version);
    if (!again.ok()) return again.error().message;
    return *again == *before ? std::string()
                             : std::string("its answer differs from that of the first");
  });
  driver.Check("rolling.concurrent", "calls to both instances at once all succeed", [&] {
    const std::vector<rpc::ClaimReference> calls(8, *claim);
    return DescribeFailedCalls(calls, driver.PrepareAtOnce(calls, &fresh));
  });
  driver.Check("rolling.handover", "when the first one ends, the second goes on", [&] {
    if (auto stopped = options.stop_first(); !stopped.ok()) return stopped.error().message;
    const auto info = fresh.GetInfo();
    if (!info.ok()) return "it no longer registers: " + info.error().message;
    const auto again = fresh.PrepareOne(*claim, version);
    if (!again.ok()) return again.error().message;
    return *again == *before ? std::string() : std::string("its answer has changed");
  });
  driver.Check("rolling.sockets", "the first one took its own sockets away and no other", [&] {
    if (options.files.Exists(options.driver_socket))
      return options.driver_socket + " is still there";
    if (options.files.Exists(driver.endpoint())) return driver.endpoint() + " is still there";
    return std::string();
  });
  driver.Check("rolling.slices", "the published devices stay as they were", [&] {
    if (!slices_before.ok()) return slices_before.error().message;
    if (std::string problem = AwaitCompletePools(fresh); !problem.empty()) return problem;
    const auto slices = fresh.ListSlices();
    if (!slices.ok()) return slices.error().message;
    return DevicesByPool(*slices) == DevicesByPool(*slices_before)
               ? std::string()
               : std::string("pools have other numbers of devices than before");
  });
  driver.Check("rolling.unprepare", "the second one undoes what the first has prepared",
               [&] { return fresh.UnprepareOne(*claim, version); });
}

}  // namespace drakkar::sanity
