#include "apiserver/http/table.h"
#include "apiserver/http/table_cells.h"
#include "base/text/text.h"
#include "claims/claim.h"
#include "device/node_selector.h"

namespace drakkar::apiserver {
namespace {

using api::Value;

void WriteNameAndAge(Cells& cells) {
  cells.AddName();
  cells.AddAge();
}

void WriteClaim(Cells& cells) {
  const Value status = cells["status"];
  std::vector<std::string> devices;
  for (Value each : status["allocation"]["devices"]["results"].elements()) {
    devices.push_back(
        StrCat(each["driver"].str(), "/", each["pool"].str(), "/", each["device"].str()));
  }
  std::vector<std::string_view> pods;
  for (Value each : status["reservedFor"].elements()) {
    if (claims::IsPod(each)) pods.push_back(each["name"].str());
  }
  cells.AddName();
  cells.Add(claims::StateText(cells.object().root()));
  cells.AddAge();
  cells.AddText(Join(devices, ","), "<none>");
  cells.AddText(device::FindOnlyNode(status["allocation"]["nodeSelector"]), "<none>");
  cells.AddText(Join(pods, ","), "<none>");
}

void WriteSlice(Cells& cells) {
  const Value spec = cells["spec"];
  const auto devices = static_cast<std::int64_t>(spec["devices"].size());
  cells.AddName();
  cells.AddText(spec["nodeName"].str());
  cells.AddText(spec["driver"].str());
  cells.AddText(spec["pool"]["name"].str());
  cells.AddAge();
  cells.Add(devices);
  std::optional<std::int64_t> allocated;
  if (cells.options().allocated_devices) {
    allocated = cells.options().allocated_devices(cells.object());
  }
  cells.Add(allocated ? std::to_string(devices - *allocated) : "<unknown>");
  cells.Add(allocated ? std::to_string(*allocated) : "<unknown>");
}

void WriteTaintRule(Cells& cells) {
  const Value taint = cells["spec"]["taint"];
  cells.AddName();
  cells.AddText(taint["key"].str());
  cells.AddText(taint["value"].str());
  cells.AddText(taint["effect"].str());
  cells.Add(cells.AgeOf(taint["timeAdded"].str()));
  cells.AddAge();
}

void WritePoolStatusRequest(Cells& cells) {
  const Value status = cells["status"];
  std::int64_t total = 0;
  std::int64_t available = 0;
  std::int64_t allocated = 0;
  std::int64_t unavailable = 0;
  std::int64_t errors = 0;
  for (Value pool : status["pools"].elements()) {
    total += pool["totalDevices"].integer();
    available += pool["availableDevices"].integer();
    allocated += pool["allocatedDevices"].integer();
    unavailable += pool["unavailableDevices"].integer();
    if (!pool["validationError"].str().empty()) ++errors;
  }
  std::string_view outcome = "Pending";
  std::string_view finished;
  for (Value each : status["conditions"].elements()) {
    const std::string_view type = each["type"].str();
    if (each["status"].str() != "True" || (type != "Complete" && type != "Failed")) continue;
    outcome = type;
    finished = each["lastTransitionTime"].str();
  }
  const bool known = status.has_value();
  const auto number = [&](std::int64_t value) {
    cells.Add(known ? std::to_string(value) : std::string("<none>"));
  };
  cells.AddName();
  cells.AddText(cells["spec"]["driver"].str());
  number(total);
  number(available);
  number(allocated);
  number(unavailable);
  number(errors);
  cells.Add(status["poolCount"].integer());
  cells.Add(outcome);
  cells.Add(finished.empty() ? std::string("<none>") : cells.AgeOf(finished));
}

}  // namespace

std::vector<CellWriterEntry> ResourceCellWriters() {
  constexpr std::string_view kGroup = "resource.k8s.io";
  return {
      {kGroup, "DeviceClass", WriteNameAndAge},
      {kGroup, "ResourceClaim", WriteClaim},
      {kGroup, "ResourceClaimTemplate", WriteNameAndAge},
      {kGroup, "ResourceSlice", WriteSlice},
      {kGroup, "DeviceTaintRule", WriteTaintRule},
      {kGroup, "ResourcePoolStatusRequest", WritePoolStatusRequest},
  };
}

}  // namespace drakkar::apiserver
