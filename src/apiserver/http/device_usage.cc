#include "apiserver/http/device_usage.h"

#include "apiserver/http/table.h"
#include "base/text/text.h"

namespace drakkar::apiserver {
namespace {

// Driver and device names have no slashes, so the key is unambiguous.
std::string KeyOf(std::string_view driver, std::string_view pool, std::string_view device) {
  return StrCat(driver, "/", pool, "/", device);
}

}  // namespace

void DeviceUsage::Update(const Objects& claims, std::int64_t revision) {
  if (revision == revision_) return;
  revision_ = revision;
  devices_.clear();
  for (const auto& [key, claim] : claims) {
    for (api::Value each : (*claim)["status"]["allocation"]["devices"]["results"].elements()) {
      if (each["adminAccess"].boolean()) continue;
      devices_.insert(KeyOf(each["driver"].str(), each["pool"].str(), each["device"].str()));
    }
  }
}

std::int64_t DeviceUsage::AllocatedIn(const api::Object& slice) const {
  const api::Value spec = slice["spec"];
  std::int64_t allocated = 0;
  for (api::Value device : spec["devices"].elements()) {
    if (devices_.contains(
            KeyOf(spec["driver"].str(), spec["pool"]["name"].str(), device["name"].str()))) {
      ++allocated;
    }
  }
  return allocated;
}

void ShowUsage(std::shared_ptr<const DeviceUsage> usage, TableOptions& options) {
  if (usage == nullptr) return;
  options.allocated_devices = [usage = std::move(usage)](const api::Object& slice) {
    return std::optional(usage->AllocatedIn(slice));
  };
}

}  // namespace drakkar::apiserver
