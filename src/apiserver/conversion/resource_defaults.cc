#include "apiserver/conversion/resource_defaults.h"

#include "api/meta/time.h"
#include "apiserver/conversion/draft_walk.h"

namespace drakkar::apiserver {
namespace {

using api::Draft;
using api::Value;

constexpr std::int64_t kDefaultPoolLimit = 100;

void DefaultTolerations(Draft& owner) {
  ForEach(owner, "tolerations", [](Draft& toleration) {
    if (toleration["operator"].str().empty()) toleration["operator"] = "Equal";
  });
}

// The defaults of a request: exact count, one device.
void DefaultMode(Draft& request) {
  if (request["allocationMode"].str().empty()) request["allocationMode"] = "ExactCount";
  if (request["allocationMode"].str() == "ExactCount" && request["count"].integer() == 0) {
    request["count"] = 1;
  }
}

// Whether there is nothing to default: most objects arrive complete, and checking them is much
// cheaper than rebuilding them.
bool HasOperators(Value owner) {
  for (const Value toleration : owner["tolerations"].elements()) {
    if (toleration["operator"].str().empty()) return false;
  }
  return true;
}

bool HasMode(Value request) {
  const std::string_view mode = request["allocationMode"].str();
  return !mode.empty() && (mode != "ExactCount" || request["count"].integer() != 0);
}

bool IsWholeRequest(Value request, bool flat) {
  if (flat) {
    const bool has_mode = request["deviceClassName"].str().empty() || HasMode(request);
    if (!has_mode || !HasOperators(request)) return false;
  } else if (const Value exactly = request["exactly"]; exactly.is_object()) {
    if (!HasMode(exactly) || !HasOperators(exactly)) return false;
  }
  for (const Value alternative : request["firstAvailable"].elements()) {
    if (!HasMode(alternative) || !HasOperators(alternative)) return false;
  }
  return true;
}

bool IsWholeSpec(Value spec, bool flat) {
  for (const Value request : spec["devices"]["requests"].elements()) {
    if (!IsWholeRequest(request, flat)) return false;
  }
  return true;
}

bool IsWholeStatus(Value status) {
  for (const Value result : status["allocation"]["devices"]["results"].elements()) {
    if (!HasOperators(result)) return false;
  }
  return true;
}

void DefaultClaimSpec(Draft& spec, bool flat) {
  if (const Value untouched = spec.borrowed(); untouched.exists() && IsWholeSpec(untouched, flat)) {
    return;
  }
  Draft* devices = FindObject(spec, "devices");
  if (devices == nullptr) return;
  ForEach(*devices, "requests", [&](Draft& request) {
    if (flat) {
      // Without a class the request has alternatives and no mode of its own.
      if (!request["deviceClassName"].str().empty()) DefaultMode(request);
      DefaultTolerations(request);
    } else if (Draft* exactly = FindObject(request, "exactly")) {
      DefaultMode(*exactly);
      DefaultTolerations(*exactly);
    }
    ForEach(request, "firstAvailable", [](Draft& alternative) {
      DefaultMode(alternative);
      DefaultTolerations(alternative);
    });
  });
}

void DefaultClaimStatus(Draft& claim) {
  Draft* status = FindObject(claim, "status");
  if (status == nullptr) return;
  if (const Value untouched = status->borrowed(); untouched.exists() && IsWholeStatus(untouched)) {
    return;
  }
  Draft* allocation = FindObject(*status, "allocation");
  Draft* devices = allocation == nullptr ? nullptr : FindObject(*allocation, "devices");
  if (devices != nullptr) ForEach(*devices, "results", DefaultTolerations);
}

void DefaultTaint(Draft& taint, WallTime now) {
  if (!taint["timeAdded"].has_value()) taint["timeAdded"] = api::FormatTime(now);
}

void DefaultSlice(Draft& spec, bool flat, WallTime now) {
  ForEach(spec, "devices", [&](Draft& device) {
    Draft* owner = flat ? FindObject(device, "basic") : &device;
    if (owner == nullptr) return;
    ForEach(*owner, "taints", [&](Draft& taint) { DefaultTaint(taint, now); });
  });
}

}  // namespace

void SetResourceDefaults(Draft& object, std::string_view version, WallTime now) {
  // In v1beta1 exact requests have one level less, and devices one more.
  const bool flat = version == "v1beta1";
  const std::string kind(object["kind"].str());
  Draft* spec = FindObject(object, "spec");
  if (kind == "ResourceClaim") {
    if (spec != nullptr) DefaultClaimSpec(*spec, flat);
    DefaultClaimStatus(object);
  }
  if (spec == nullptr && kind == "ResourcePoolStatusRequest") {
    object["spec"] = Draft::Object();
    spec = &object["spec"];
  }
  if (spec == nullptr) return;
  if (kind == "ResourceClaimTemplate") {
    if (Draft* inner = FindObject(*spec, "spec")) DefaultClaimSpec(*inner, flat);
  } else if (kind == "ResourceSlice") {
    DefaultSlice(*spec, flat, now);
  } else if (kind == "DeviceTaintRule") {
    Draft& taint = (*spec)["taint"];
    if (!taint.has_value()) taint = Draft::Object();
    if (taint.is_object()) DefaultTaint(taint, now);
  } else if (kind == "ResourcePoolStatusRequest") {
    if (!(*spec)["limit"].has_value()) (*spec)["limit"] = kDefaultPoolLimit;
  }
}

}  // namespace drakkar::apiserver
