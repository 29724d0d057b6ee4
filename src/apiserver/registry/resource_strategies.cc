#include "apiserver/registry/resource_strategies.h"

#include <set>
#include <tuple>

#include "api/meta/time.h"
#include "apiserver/validation/cause.h"
#include "base/text/text.h"

namespace drakkar::apiserver {
namespace {

using api::Draft;
using api::Value;

// Exact requests and alternatives: counted by default, one device.
void DefaultRequest(Draft& request) {
  if (request["allocationMode"].str().empty()) request["allocationMode"] = "ExactCount";
  if (request["allocationMode"].str() == "ExactCount" && request["count"].integer() == 0) {
    request["count"] = 1;
  }
  if (Draft* tolerations = request.Find("tolerations");
      tolerations != nullptr && tolerations->is_array()) {
    for (Draft& toleration : tolerations->MutableElements()) {
      if (toleration["operator"].str().empty()) toleration["operator"] = "Equal";
    }
  }
}

void DefaultClaimSpec(Draft& spec) {
  Draft* devices = spec.Find("devices");
  if (devices == nullptr || !devices->is_object()) return;
  Draft* requests = devices->Find("requests");
  if (requests == nullptr || !requests->is_array()) return;
  for (Draft& request : requests->MutableElements()) {
    if (Draft* exactly = request.Find("exactly"); exactly != nullptr && exactly->is_object()) {
      DefaultRequest(*exactly);
    }
    if (Draft* alternatives = request.Find("firstAvailable");
        alternatives != nullptr && alternatives->is_array()) {
      for (Draft& alternative : alternatives->MutableElements()) DefaultRequest(alternative);
    }
  }
}

void DefaultTaint(Draft& taint, const StrategyContext& context) {
  if (!taint["timeAdded"].has_value()) taint["timeAdded"] = api::FormatTime(context.clock.Now());
}

using DeviceKey = std::tuple<std::string_view, std::string_view, std::string_view, std::string_view>;

DeviceKey KeyOf(Value device) {
  return {device["driver"].str(), device["pool"].str(), device["device"].str(),
          device["shareID"].str()};
}

std::set<DeviceKey> AllocatedDevices(Value claim) {
  std::set<DeviceKey> keys;
  for (Value result : claim["status"]["allocation"]["devices"]["results"].elements()) {
    keys.insert(KeyOf(result));
  }
  return keys;
}

}  // namespace

void ResourceClaimStrategy::Default(Draft& object, const StrategyContext&) const {
  DefaultClaimSpec(object["spec"]);
}

void ResourceClaimStrategy::PrepareForCreate(Draft& object, const StrategyContext&) const {
  object["status"] = Draft::Object();
}

void ResourceClaimStrategy::PrepareForUpdate(Draft& object, Value before,
                                             std::string_view subresource,
                                             const StrategyContext&) const {
  if (subresource != "status") return;
  // What devices reported goes with their allocation.
  const api::TreePtr frozen = object.Freeze();
  const std::set<DeviceKey> had = AllocatedDevices(before);
  const std::set<DeviceKey> has = AllocatedDevices(frozen->root());
  Draft* devices = object["status"].Find("devices");
  if (devices == nullptr || !devices->is_array()) return;
  const Value reported = frozen->root()["status"]["devices"];
  for (std::size_t i = reported.size(); i-- > 0;) {
    const DeviceKey key = KeyOf(reported.at(i));
    if (had.contains(key) && !has.contains(key)) devices->RemoveAt(i);
  }
  if (devices->size() == 0) object["status"].Remove("devices");
}

api::FieldErrors ResourceClaimStrategy::ValidateUpdate(Value object, Value before,
                                                         std::string_view subresource,
                                                         const StrategyContext&) const {
  api::FieldErrors causes;
  if (subresource != "status") {
    if (!api::Equal(object["spec"], before["spec"])) {
      causes.push_back(Invalid("spec", nullptr, "field is immutable"));
    }
    return causes;
  }
  const Value allocation = object["status"]["allocation"];
  const Value was = before["status"]["allocation"];
  if (was.has_value() && allocation.has_value() && !api::Equal(was, allocation)) {
    causes.push_back(Invalid("status.allocation", nullptr, "field cannot be modified once set"));
  }
  const Value reserved = object["status"]["reservedFor"];
  if (!reserved.empty() && !allocation.has_value()) {
    causes.push_back(
        Forbidden("status.reservedFor", "may not be specified when `allocated` is not set"));
  }
  if (reserved.size() > 256) {
    causes.push_back(TooMany("status.reservedFor", reserved.size(), 256));
  }
  std::set<std::string_view> known;
  for (Value consumer : before["status"]["reservedFor"].elements()) {
    known.insert(consumer["uid"].str());
  }
  std::set<std::string_view> seen;
  std::size_t index = 0;
  bool added = false;
  for (Value consumer : reserved.elements()) {
    const std::string path = StrCat("status.reservedFor[", index++, "]");
    for (std::string_view field : {"resource", "name", "uid"}) {
      if (consumer[field].str().empty()) causes.push_back(Required(StrCat(path, ".", field)));
    }
    if (!seen.insert(consumer["uid"].str()).second) {
      causes.push_back(Duplicate(path + ".uid", consumer["uid"].str()));
    }
    added = added || !known.contains(consumer["uid"].str());
  }
  if (added && before["metadata"]["deletionTimestamp"].has_value()) {
    causes.push_back(Forbidden("status.reservedFor",
                               "new entries may not be added while `deallocationRequested` or "
                               "`deletionTimestamp` are set"));
  }
  const std::set<DeviceKey> allocated = AllocatedDevices(object);
  std::set<DeviceKey> reported;
  index = 0;
  for (Value device : object["status"]["devices"].elements()) {
    const std::string path = StrCat("status.devices[", index++, "]");
    const DeviceKey key = KeyOf(device);
    if (!allocated.contains(key)) {
      causes.push_back(Invalid(path, device, "must be an allocated device in the claim"));
    }
    if (!reported.insert(key).second) causes.push_back(Duplicate(path, device["device"].str()));
  }
  return causes;
}

void ResourceClaimTemplateStrategy::Default(Draft& object, const StrategyContext&) const {
  if (object["spec"].is_object()) DefaultClaimSpec(object["spec"]["spec"]);
}

api::FieldErrors ResourceClaimTemplateStrategy::ValidateUpdate(Value object, Value before,
                                                                 std::string_view,
                                                                 const StrategyContext&) const {
  api::FieldErrors causes;
  if (!api::Equal(object["spec"], before["spec"])) {
    causes.push_back(Invalid("spec", nullptr, "field is immutable"));
  }
  return causes;
}

void ResourceSliceStrategy::Default(Draft& object, const StrategyContext& context) const {
  Draft* devices = object["spec"].Find("devices");
  if (devices == nullptr || !devices->is_array()) return;
  for (Draft& device : devices->MutableElements()) {
    Draft* taints = device.Find("taints");
    if (taints == nullptr || !taints->is_array()) continue;
    for (Draft& taint : taints->MutableElements()) DefaultTaint(taint, context);
  }
}

std::vector<std::string> ResourceSliceStrategy::Warnings(Value object,
                                                         const StrategyContext&) const {
  const std::string_view driver = object["spec"]["driver"].str();
  if (ToLower(driver) == driver) return {};
  return {StrCat("spec.driver: driver names should be lowercase; ", Quote(driver),
                 " contains uppercase characters")};
}

void DeviceTaintRuleStrategy::Default(Draft& object, const StrategyContext& context) const {
  Draft* taint = object["spec"].Find("taint");
  if (taint != nullptr && taint->is_object()) DefaultTaint(*taint, context);
}

void DeviceTaintRuleStrategy::PrepareForCreate(Draft& object, const StrategyContext&) const {
  object.Remove("status");
}

}  // namespace drakkar::apiserver
