#include <algorithm>
#include <set>

#include "base/text/text.h"
#include "sanity/driver_under_test.h"

namespace drakkar::sanity {
namespace {

Result<void> CheckReport(const DriverUnderTest& driver, const rpc::HealthReport& report) {
  std::set<std::pair<std::string, std::string>> published, seen;
  for (const PublishedDevice& device : driver.published)
    published.emplace(device.pool, device.device);
  for (const rpc::DeviceHealth& device : report) {
    const std::string name = StrCat(device.pool_name, "/", device.device_name);
    if (device.pool_name.empty() || device.device_name.empty())
      return FailedPrecondition("a device has no pool or no name");
    if (!seen.emplace(device.pool_name, device.device_name).second)
      return FailedPrecondition(name + " is listed twice");
    if (!published.empty() && !published.contains({device.pool_name, device.device_name})) {
      return FailedPrecondition(name + " is not published");
    }
    if (device.health_check_timeout_seconds < 0)
      return FailedPrecondition(name + " has a negative timeout");
    if (device.message.size() > 1'024)
      return FailedPrecondition(name + " has a message longer than 1024 bytes");
  }
  return Ok();
}

}  // namespace

void CheckHealth(DriverUnderTest& driver) {
  bool any = false;
  for (const rpc::HealthService service :
       {rpc::HealthService::kV1, rpc::HealthService::kV1alpha1, rpc::HealthService::kNodeHealth}) {
    if (!driver.Advertises(rpc::HealthServiceName(service))) continue;
    any = true;
    const std::string id = StrCat("health.", rpc::HealthServiceName(service));
    // 30 s is a node's default for devices without a timeout.
    Duration shortest = std::chrono::seconds(30);
    driver.Check(id, "the stream starts with a report about published devices",
                 [&]() -> Result<void> {
                   const auto report = driver.FirstHealthReport(service);
                   if (!report.ok()) return report.error();
                   for (const rpc::DeviceHealth& device : *report) {
                     if (device.health_check_timeout_seconds <= 0) continue;
                     shortest = std::min<Duration>(
                         shortest, std::chrono::seconds(device.health_check_timeout_seconds));
                   }
                   return CheckReport(driver, *report);
                 });
    driver.Check(id + ".again", "a node that reconnects gets a report again",
                 [&]() -> Result<void> {
                   const auto report = driver.FirstHealthReport(service);
                   if (!report.ok()) return report.error();
                   return Ok();
                 });
    constexpr char kRepeated[] = "health is repeated before it expires on the node";
    if (driver.options().slow) {
      driver.Check(id + ".repeated", kRepeated, [&]() -> Result<void> {
        return driver.AwaitSecondHealthReport(service, shortest);
      });
    } else {
      driver.Skip(id + ".repeated", kRepeated, "takes up to half a minute; use --slow");
    }
  }
  if (!any) driver.Skip("health", "the health stream", "the driver advertises no health service");
}

}  // namespace drakkar::sanity
