#include <set>

#include "base/text/text.h"
#include "sanity/driver_under_test.h"

namespace drakkar::sanity {
namespace {

std::string CheckReport(const DriverUnderTest& driver, const rpc::HealthReport& report) {
  std::set<std::pair<std::string, std::string>> published, seen;
  for (const PublishedDevice& device : driver.devices) published.emplace(device.pool, device.device);
  for (const rpc::DeviceHealth& device : report) {
    const std::string name = StrCat(device.pool_name, "/", device.device_name);
    if (device.pool_name.empty() || device.device_name.empty()) return "a device has no pool or no name";
    if (!seen.emplace(device.pool_name, device.device_name).second) return name + " comes twice";
    if (!published.empty() && !published.contains({device.pool_name, device.device_name})) {
      return name + " is not published";
    }
    if (device.health_check_timeout_seconds < 0) return name + " has a negative timeout";
    if (device.message.size() > 1'024) return name + " has a message of more than 1024 bytes";
  }
  return "";
}

}  // namespace

void CheckHealth(DriverUnderTest& driver) {
  bool any = false;
  for (const rpc::HealthService service :
       {rpc::HealthService::kV1, rpc::HealthService::kV1alpha1, rpc::HealthService::kNodeHealth}) {
    if (!driver.Advertises(rpc::HealthServiceName(service))) continue;
    any = true;
    const std::string id = StrCat("health.", rpc::HealthServiceName(service));
    driver.Check(id, "the stream begins with a report about published devices", [&] {
      const auto report = driver.FirstHealthReport(service);
      return report.ok() ? CheckReport(driver, *report) : report.error().message;
    });
    driver.Check(id + ".again", "a node that comes back gets a report again", [&] {
      const auto report = driver.FirstHealthReport(service);
      return report.ok() ? std::string() : report.error().message;
    });
  }
  if (!any) driver.Skip("health", "the health stream", "the driver advertises no health service");
}

}  // namespace drakkar::sanity
