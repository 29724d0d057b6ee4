#include "sdk/driver/status/claim_status.h"

#include <set>
#include <utility>

#include "api/json/writer.h"
#include "api/meta/interface_address.h"
#include "api/meta/time.h"
#include "api/scheme/scheme.h"
#include "api/tree/draft.h"
#include "base/text/text.h"

namespace drakkar::driver {
namespace {

using api::Draft;
using api::Value;

std::string NameOf(const AllocatedDeviceStatus& device) {
  return StrCat("device ", device.pool_name, "/", device.device_name,
                device.share_id ? " share " + *device.share_id : std::string());
}

bool IsSame(Value entry, const std::string& driver, const AllocatedDeviceStatus& device) {
  return entry["driver"].str() == driver && entry["pool"].str() == device.pool_name &&
         entry["device"].str() == device.device_name &&
         entry["shareID"].str() == device.share_id.value_or("");
}

// The entry of `list` for the device, or an absent value.
Value FindEntry(Value list, const std::string& driver, const AllocatedDeviceStatus& device) {
  for (const Value entry : list.elements()) {
    if (IsSame(entry, driver, device)) return entry;
  }
  return Value();
}

Value FindCondition(Value conditions, const std::string& type) {
  for (const Value condition : conditions.elements()) {
    if (condition["type"].str() == type) return condition;
  }
  return Value();
}

Result<void> Check(const AllocatedDeviceStatus& device) {
  if (device.conditions.size() > kMaxDeviceConditions) {
    return InvalidArgument(StrCat("more than ", kMaxDeviceConditions, " conditions"));
  }
  std::set<std::string> types;
  for (const DeviceCondition& condition : device.conditions) {
    if (condition.type.empty()) return InvalidArgument("a condition must have a type");
    if (!types.insert(condition.type).second) {
      return InvalidArgument(StrCat("condition ", Quote(condition.type), " is listed twice"));
    }
    if (condition.status != "True" && condition.status != "False" &&
        condition.status != "Unknown") {
      return InvalidArgument(StrCat("condition ", condition.type,
                                    ": status must be True, False or Unknown, not ",
                                    Quote(condition.status)));
    }
    if (condition.reason.empty()) {
      return InvalidArgument(StrCat("condition ", condition.type, ": reason must not be empty"));
    }
  }
  if (device.network && device.network->ips.size() > kMaxDeviceIps) {
    return InvalidArgument(StrCat("more than ", kMaxDeviceIps, " addresses"));
  }
  for (const std::string& ip : device.network ? device.network->ips : std::vector<std::string>()) {
    if (const auto checked = api::CheckInterfaceAddress(ip); !checked.ok()) {
      return InvalidArgument(StrCat("IP address ", Quote(ip), " ", checked.error().message));
    }
  }
  return Ok();
}

Draft RenderConditions(const AllocatedDeviceStatus& device, Value before, WallTime now) {
  Draft list = Draft::Array();
  for (const DeviceCondition& condition : device.conditions) {
    const Value old = FindCondition(before, condition.type);
    std::string since(old["lastTransitionTime"].str());
    if (since.empty() || old["status"].str() != condition.status) since = api::FormatTime(now);
    list.Append({{"type", Draft(condition.type)},
                 {"status", Draft(condition.status)},
                 {"lastTransitionTime", Draft(since)},
                 {"reason", Draft(condition.reason)},
                 {"message", Draft(condition.message)}});
  }
  return list;
}

Draft RenderNetwork(const DeviceNetworkData& network) {
  Draft draft = Draft::Object();
  if (!network.interface_name.empty()) draft["interfaceName"] = network.interface_name;
  for (const std::string& ip : network.ips) draft["ips"].Append(Draft(ip));
  if (!network.hardware_address.empty()) draft["hardwareAddress"] = network.hardware_address;
  return draft;
}

}  // namespace

Result<std::string> RenderClaimStatus(const api::Object& claim, const std::string& driver_name,
                                      const std::vector<AllocatedDeviceStatus>& devices,
                                      WallTime now) {
  const Value results = claim["status"]["allocation"]["devices"]["results"];
  const Value before = claim["status"]["devices"];
  Draft list = Draft::Array();
  std::set<std::string> names;
  for (const AllocatedDeviceStatus& device : devices) {
    const std::string name = NameOf(device);
    if (!names.insert(name).second) return InvalidArgument(name + " is listed twice");
    if (auto valid = Check(device); !valid.ok()) return std::move(valid).error().Prefixed(name);
    if (!FindEntry(results, driver_name, device).exists()) {
      return FailedPrecondition(StrCat(name, " was not allocated to claim ", claim.qualified_name(),
                                       " from driver ", driver_name));
    }
    Draft entry = {{"driver", Draft(driver_name)},
                   {"pool", Draft(device.pool_name)},
                   {"device", Draft(device.device_name)}};
    if (device.share_id) entry["shareID"] = *device.share_id;
    if (!device.conditions.empty()) {
      entry["conditions"] =
          RenderConditions(device, FindEntry(before, driver_name, device)["conditions"], now);
    }
    if (device.data != nullptr) {
      if (!device.data->root().is_object()) {
        return InvalidArgument(name + ": data must be an object");
      }
      std::string text = api::WriteJson(device.data->root());
      if (text.size() > kMaxDeviceDataBytes) {
        return InvalidArgument(
            StrCat(name, ": data must not exceed ", kMaxDeviceDataBytes, " bytes"));
      }
      entry["data"] = Draft::Raw(std::move(text));
    }
    if (device.network) entry["networkData"] = RenderNetwork(*device.network);
    list.Append(std::move(entry));
  }
  Draft patch = {{"apiVersion", Draft(claim.api_version())},
                 {"kind", "ResourceClaim"},
                 {"metadata",
                  {{"name", Draft(claim.name())},
                   {"namespace", Draft(claim.namespace_())},
                   {"uid", Draft(claim.uid())}}}};
  patch["status"]["devices"] = std::move(list);
  return api::WriteJson(patch.Freeze()->root());
}

void ClaimStatusWriter::Apply(rpc::ClaimReference claim, std::vector<AllocatedDeviceStatus> devices,
                              Done done) {
  fetcher_.Fetch({std::move(claim)}, [this, devices = std::move(devices), done = std::move(done)](
                                         Result<std::vector<api::ObjectPtr>> objects) {
    if (!objects.ok()) return done(objects.error());
    Send(objects->front(), devices, done);
  });
}

void ClaimStatusWriter::Send(const api::ObjectPtr& claim,
                             const std::vector<AllocatedDeviceStatus>& devices, const Done& done) {
  auto patch = RenderClaimStatus(*claim, driver_name_, devices, clock_.Now());
  if (!patch.ok()) return done(patch.error());
  const api::KindSchema* kind = api::FindKindByApiVersion(claim->api_version(), "ResourceClaim");
  if (kind == nullptr) return done(Internal("the claim has an unknown API version"));
  client_.Patch({.kind = kind,
                 .namespace_ = std::string(claim->namespace_()),
                 .name = std::string(claim->name()),
                 .subresource = "status"},
                client::PatchType::kApply, *std::move(patch),
                {.field_manager = driver_name_, .force = true},
                lifetime_.Guard([done, claim](client::Reply reply) {
                  if (reply.ok()) return done(Ok());
                  done(reply.error->Prefixed("set the status of claim " + claim->qualified_name()));
                }));
}

}  // namespace drakkar::driver
