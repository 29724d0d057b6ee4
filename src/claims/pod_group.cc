#include "claims/pod_group.h"

#include "base/text/text.h"

namespace drakkar::claims {
namespace {

using api::Value;

bool IsGroupReference(Value owner) {
  const std::string_view version = owner["apiVersion"].str();
  return owner["kind"].str() == "PodGroup" && version.substr(0, version.find('/')) == kPodGroupApi;
}

}  // namespace

std::string_view PodGroupOf(Value pod) {
  return pod["spec"]["schedulingGroup"]["podGroupName"].str();
}

bool IsEntryOfGroup(Value group, Value entry) {
  for (Value each : group["spec"]["resourceClaims"].elements()) {
    if (each["name"].str() == entry["name"].str() &&
        each["resourceClaimName"].str() == entry["resourceClaimName"].str() &&
        each["resourceClaimTemplateName"].str() == entry["resourceClaimTemplateName"].str()) {
      return true;
    }
  }
  return false;
}

bool IsPodGroup(Value consumer) {
  return consumer["resource"].str() == "podgroups" && consumer["apiGroup"].str() == kPodGroupApi;
}

bool IsReservedForGroup(Value claim, std::string_view group_name) {
  if (group_name.empty()) return false;
  for (Value consumer : claim["status"]["reservedFor"].elements()) {
    if (IsPodGroup(consumer) && consumer["name"].str() == group_name) return true;
  }
  return false;
}

bool IsMadeForGroup(Value claim, std::string_view group_name) {
  if (group_name.empty()) return false;
  for (Value owner : claim["metadata"]["ownerReferences"].elements()) {
    if (owner["controller"].boolean()) {
      return IsGroupReference(owner) && owner["name"].str() == group_name;
    }
  }
  return false;
}

std::optional<Owner> FindOwnerGroup(Value claim) {
  const Value metadata = claim["metadata"];
  for (Value owner : metadata["ownerReferences"].elements()) {
    if (!owner["controller"].boolean() || !IsGroupReference(owner)) continue;
    return Owner{StrCat(metadata["namespace"].str(), "/", owner["name"].str()),
                 std::string(owner["uid"].str())};
  }
  return std::nullopt;
}

}  // namespace drakkar::claims
