#include "claims/claim.h"

#include <vector>

#include "base/text/text.h"

namespace drakkar::claims {

using api::Value;

bool IsAllocated(Value claim) {
  return claim["status"]["allocation"].has_value();
}

bool IsPod(Value consumer) {
  return consumer["resource"].str() == "pods" && consumer["apiGroup"].str().empty();
}

bool IsReservedFor(Value claim, std::string_view pod_uid) {
  for (Value consumer : claim["status"]["reservedFor"].elements()) {
    if (consumer["uid"].str() == pod_uid) return true;
  }
  return false;
}

bool IsReservedForNoneBut(Value claim, std::string_view pod_uid) {
  for (Value consumer : claim["status"]["reservedFor"].elements()) {
    if (consumer["uid"].str() != pod_uid) return false;
  }
  return true;
}

void AddReservation(api::Draft& claim, const Consumer& consumer) {
  api::Draft entry = api::Draft::Object();
  if (consumer.is_group) entry["apiGroup"] = "scheduling.k8s.io";
  entry["resource"] = consumer.is_group ? "podgroups" : "pods";
  entry["name"] = consumer.name;
  entry["uid"] = consumer.uid;
  claim["status"]["reservedFor"].Append(std::move(entry));
}

void RemoveReservations(api::Draft& claim,
                        const std::function<bool(std::string_view uid)>& is_over) {
  api::Draft& status = claim["status"];
  api::Draft* reserved = status.Find("reservedFor");
  if (reserved == nullptr) return;
  for (std::size_t i = reserved->size(); i-- > 0;) {
    const std::string uid(reserved->at(i)["uid"].str());
    if (is_over(uid)) reserved->RemoveAt(i);
  }
  if (reserved->size() == 0) status.Remove("reservedFor");
}

void ClearAllocation(api::Draft& claim) {
  api::Draft& status = claim["status"];
  status.Remove("allocation");
  status.Remove("devices");
}

std::optional<Owner> FindOwnerPod(Value claim) {
  const Value metadata = claim["metadata"];
  for (Value owner : metadata["ownerReferences"].elements()) {
    if (owner["controller"].boolean() && owner["kind"].str() == "Pod" &&
        owner["apiVersion"].str() == "v1") {
      return Owner{StrCat(metadata["namespace"].str(), "/", owner["name"].str()),
                   std::string(owner["uid"].str())};
    }
  }
  return std::nullopt;
}

api::Draft OwnerReference(std::string_view pod_name, std::string_view pod_uid) {
  api::Draft owner = api::Draft::Object();
  owner["apiVersion"] = "v1";
  owner["kind"] = "Pod";
  owner["name"] = pod_name;
  owner["uid"] = pod_uid;
  owner["controller"] = true;
  return owner;
}

bool IsForExtendedResources(Value claim) {
  return claim["metadata"]["annotations"].Entry(kExtendedResourceAnnotation).str() == "true";
}

bool IsMadeFor(Value claim, std::string_view pod_uid) {
  for (Value owner : claim["metadata"]["ownerReferences"].elements()) {
    if (owner["controller"].boolean()) return owner["uid"].str() == pod_uid;
  }
  return false;
}

Value FindDeviceStatus(Value claim, Value result) {
  return FindDeviceStatus(claim, result["driver"].str(), result["pool"].str(),
                          result["device"].str(), result["shareID"].str());
}

Value FindDeviceStatus(Value claim, std::string_view driver, std::string_view pool,
                       std::string_view device, std::string_view share_id) {
  for (Value entry : claim["status"]["devices"].elements()) {
    if (entry["device"].str() == device && entry["pool"].str() == pool &&
        entry["driver"].str() == driver && entry["shareID"].str() == share_id) {
      return entry;
    }
  }
  return Value();
}

std::string StateText(Value claim) {
  std::vector<std::string_view> states;
  if (claim["metadata"]["deletionTimestamp"].has_value()) states.push_back("deleted");
  if (IsAllocated(claim)) {
    states.push_back("allocated");
    if (!claim["status"]["reservedFor"].empty()) states.push_back("reserved");
  } else if (states.empty()) {
    states.push_back("pending");
  }
  return Join(states, ",");
}

}  // namespace drakkar::claims
