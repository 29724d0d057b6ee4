#include "apiserver/validation/resource_claim.h"

#include <map>
#include <set>
#include <string>
#include <vector>

#include "api/meta/request_name.h"
#include "apiserver/validation/name_rules.h"
#include "apiserver/validation/semantic_equal.h"
#include "base/text/text.h"
#include "device/device_cel.h"
#include "features/gates/feature_gates.h"

namespace drakkar::apiserver {
namespace {

using api::FieldError;
using api::FieldPath;
using api::Value;

constexpr std::size_t kMaxConstraints = 32;
constexpr std::size_t kMaxAlternatives = 8;
constexpr std::string_view kNoSuchRequest =
    "must be the name of a request in the claim or the name of a request and a subrequest "
    "separated by '/'";

std::string NameKey(Value item) {
  return std::string(item["name"].str());
}

// The attributes that constraints compare, by request ("" is every request).
class ConstrainedAttributes {
 public:
  explicit ConstrainedAttributes(Value constraints) {
    for (const Value constraint : constraints.elements()) {
      Value attribute = constraint["matchAttribute"];
      if (!attribute.has_value()) attribute = constraint["distinctAttribute"];
      if (!attribute.has_value()) continue;
      if (constraint["requests"].empty()) used_.insert({"", attribute.str()});
      for (const Value request : constraint["requests"].elements()) {
        used_.insert({request.str(), attribute.str()});
      }
    }
  }
  // `request` is "request" or "request/subrequest"; the constraints of the parent cover it too.
  bool Uses(std::string_view attribute, std::string_view request) const {
    const std::string_view parent = api::BaseRequest(request);
    return used_.contains({"", attribute}) || used_.contains({request, attribute}) ||
           used_.contains({parent, attribute});
  }

 private:
  std::set<std::pair<std::string_view, std::string_view>> used_;
};

// The names by which the requests of a claim can be referred to.
class RequestNames {
 public:
  explicit RequestNames(Value devices) {
    for (const Value request : devices["requests"].elements()) {
      std::set<std::string_view>& alternatives = names_[request["name"].str()];
      alternatives.clear();
      for (const Value alternative : request["firstAvailable"].elements()) {
        alternatives.insert(alternative["name"].str());
      }
    }
  }
  bool Has(const std::vector<std::string_view>& segments) const {
    auto found = names_.find(segments[0]);
    if (found == names_.end()) return false;
    return segments.size() == 1 || found->second.contains(segments[1]);
  }

 private:
  std::map<std::string_view, std::set<std::string_view>> names_;
};

void CheckRequestReference(Findings& out, const FieldPath& path, std::string_view name,
                           const RequestNames& names) {
  std::vector<std::string_view> segments = Split(name, '/');
  if (segments.empty()) segments.push_back(name);
  if (segments.size() <= 2) {
    for (const std::string_view segment : segments) CheckLabelName(out, path, segment);
    if (names.Has(segments)) return;
  }
  out.Add(FieldError::Invalid(path, name, std::string(kNoSuchRequest)));
}

void CheckRequestReferences(Findings& out, const FieldPath& path, Value references,
                            const RequestNames& names) {
  CheckUniqueItems(
      out, path, references, kMaxRequests, Covered::kYes, Covered::kYes,
      [&](Value name, const FieldPath& at) { CheckRequestReference(out, at, name.str(), names); },
      TextKey);
}

void CheckAllocationMode(Findings& out, const FieldPath& path, Value request) {
  const std::string_view mode = request["allocationMode"].str();
  const std::int64_t count = request["count"].integer();
  if (mode == "All") {
    if (count != 0) {
      out.Add(FieldError::Invalid(path.Child("count"), count,
                                  "must not be specified when allocationMode is 'All'"));
    }
  } else if (mode == "ExactCount") {
    if (count <= 0) {
      out.Add(FieldError::Invalid(path.Child("count"), count, "must be greater than zero"));
    }
  } else {
    out.Add(FieldError::NotSupported(path.Child("allocationMode"), mode, {"All", "ExactCount"}), {},
            Covered::kYes);
  }
}

struct SpecRules {
  const FeatureGates& gates;
  const ConstrainedAttributes& constrained;
  ExpressionCost cost;
};

void CheckDerivedAttributes(Findings& out, const FieldPath& path, Value attributes,
                            std::string_view request, SpecRules& rules) {
  CheckUniqueItems(
      out, path, attributes, std::nullopt, Covered::kNo, Covered::kNo,
      [&](Value attribute, const FieldPath& at) {
        const std::string_view name = attribute["name"].str();
        if (!name.empty() && !rules.constrained.Uses(name, request)) {
          out.Add(FieldError::Invalid(at.Child("name"), name,
                                      "must be referenced by at least one matchAttribute or "
                                      "distinctAttribute constraint targeting this request"));
        }
        // The declared rules report empty ones.
        if (const std::string_view text = attribute["expression"].str(); !text.empty()) {
          CheckExpression(out, at.Child("expression"), text, rules.gates, &rules.cost);
        }
      },
      NameKey);
}

// Shared by exact requests and alternatives.
void CheckDeviceDemand(Findings& out, const FieldPath& path, Value request, std::string_view name,
                       Covered class_covered, SpecRules& rules) {
  const FieldPath class_path = path.Child("deviceClassName");
  if (const std::string_view class_name = request["deviceClassName"].str(); class_name.empty()) {
    out.Add(FieldError::Required(class_path, ""), {}, class_covered);
  } else {
    CheckSubdomainName(out, class_path, class_name, class_covered);
  }
  CheckSelectors(out, path.Child("selectors"), request["selectors"], rules.gates, Stored::kNo);
  CheckDerivedAttributes(out, path.Child("derivedAttributes"), request["derivedAttributes"], name,
                         rules);
  CheckAllocationMode(out, path, request);
  CheckItems(out, path.Child("tolerations"), request["tolerations"], std::nullopt, Covered::kNo,
             [&](Value toleration, const FieldPath& at) { CheckToleration(out, at, toleration); });
}

void CheckRequest(Findings& out, const FieldPath& path, Value request, SpecRules& rules) {
  const std::string_view name = request["name"].str();
  CheckLabelName(out, path.Child("name"), name);
  const Value exactly = request["exactly"];
  const Value alternatives = request["firstAvailable"];
  constexpr std::string_view kRule = "exactly one of `exactly` or `firstAvailable` is required";
  if (!exactly.has_value() && alternatives.empty()) {
    out.Add(FieldError::Required(path, std::string(kRule)));
  } else if (exactly.has_value() && !alternatives.empty()) {
    out.Add(FieldError::Invalid(path, nullptr, StrCat(kRule, ", but multiple fields are set")));
  } else if (exactly.has_value()) {
    CheckDeviceDemand(out, path.Child("exactly"), exactly, name, Covered::kNo, rules);
  } else {
    CheckUniqueItems(
        out, path.Child("firstAvailable"), alternatives, kMaxAlternatives, Covered::kYes,
        Covered::kYes,
        [&](Value alternative, const FieldPath& at) {
          CheckLabelName(out, at.Child("name"), alternative["name"].str());
          CheckDeviceDemand(out, at, alternative, StrCat(name, "/", alternative["name"].str()),
                            Covered::kYes, rules);
        },
        NameKey);
  }
}

void CheckConstraint(Findings& out, const FieldPath& path, Value constraint,
                     const RequestNames& names, const FeatureGates& gates) {
  CheckRequestReferences(out, path.Child("requests"), constraint["requests"], names);
  const Value match = constraint["matchAttribute"];
  const Value distinct = constraint["distinctAttribute"];
  if (match.has_value()) {
    CheckFullyQualifiedName(out, path.Child("matchAttribute"), match.str(), Covered::kYes);
  } else if (distinct.has_value()) {
    CheckFullyQualifiedName(out, path.Child("distinctAttribute"), distinct.str(), Covered::kYes);
  } else if (gates.Enabled(Gate::kDRAConsumableCapacity)) {
    out.Add(FieldError::Required(path,
                                 "exactly one of \"matchAttribute\" or \"distinctAttribute\" is "
                                 "required, but multiple fields are set"));
  } else {
    out.Add(FieldError::Required(path.Child("matchAttribute"), ""));
  }
}

void CheckConsumer(Findings& out, const FieldPath& path, Value consumer) {
  for (const api::FieldName field : api::FieldNames{"resource", "name", "uid"}) {
    if (consumer[field].str().empty()) out.Add(FieldError::Required(path.Child(field), ""));
  }
}

void CheckNetworkData(Findings& out, const FieldPath& path, Value data) {
  constexpr std::size_t kMaxAddresses = 16;
  constexpr std::size_t kMaxInterfaceBytes = 256;
  constexpr std::size_t kMaxHardwareBytes = 128;
  auto check_size = [&](api::FieldName name, std::size_t limit) {
    if (data[name].str().size() <= limit) return;
    out.Add(FieldError::TooLong(path.Child(name), limit), "maxBytes", Covered::kYes);
  };
  check_size("interfaceName", kMaxInterfaceBytes);
  check_size("hardwareAddress", kMaxHardwareBytes);
  CheckUniqueItems(
      out, path.Child("ips"), data["ips"], kMaxAddresses, Covered::kYes, Covered::kYes,
      [&](Value address, const FieldPath& at) { CheckInterfaceAddress(out, at, address.str()); },
      TextKey);
}

api::BadValue ShownKey(Value device) {
  const auto [driver, pool, name, share] = DeviceKeyOf(device);
  return api::BadValue::Literal(StrCat("{\"Driver\":", Quote(driver), ",\"Pool\":", Quote(pool),
                                       ",\"Device\":", Quote(name), ",\"ShareID\":", Quote(share),
                                       "}"));
}

void CheckDeviceStatus(Findings& out, const FieldPath& path, Value device,
                       const std::set<DeviceKey>& allocated) {
  constexpr std::size_t kMaxConditions = 8;
  CheckDriverName(out, path.Child("driver"), device["driver"].str());
  CheckPoolName(out, path.Child("pool"), device["pool"].str());
  CheckLabelName(out, path.Child("device"), device["device"].str());
  if (const Value share = device["shareID"]; share.has_value()) {
    CheckShareId(out, path.Child("shareID"), share.str(), Covered::kYes);
  }
  if (!allocated.contains(DeviceKeyOf(device))) {
    out.Add(
        FieldError::Invalid(path, ShownKey(device), "must be an allocated device in the claim"));
  }
  const Value conditions = device["conditions"];
  if (conditions.size() > kMaxConditions) {
    out.Add(FieldError::TooMany(path.Child("conditions"), conditions.size(), kMaxConditions));
  }
  CheckConditions(out, path.Child("conditions"), conditions);
  if (const Value data = device["data"]; !data.str().empty()) {
    CheckRawObject(out, path.Child("data"), data, kMaxOpaqueBytes, Stored::kNo);
  }
  if (const Value data = device["networkData"]; data.has_value()) {
    CheckNetworkData(out, path.Child("networkData"), data);
  }
}

void CheckAllocationEntry(Findings& out, const FieldPath& path, Value result,
                          const RequestNames& names) {
  CheckRequestReference(out, path.Child("request"), result["request"].str(), names);
  CheckDriverName(out, path.Child("driver"), result["driver"].str(), Covered::kYes);
  CheckPoolName(out, path.Child("pool"), result["pool"].str(), Covered::kYes);
  CheckLabelName(out, path.Child("device"), result["device"].str());
  CheckBindingConditions(out, path, result);
  CheckItems(out, path.Child("tolerations"), result["tolerations"], std::nullopt, Covered::kNo,
             [&](Value toleration, const FieldPath& at) { CheckToleration(out, at, toleration); });
  if (const Value share = result["shareID"]; share.has_value()) {
    CheckShareId(out, path.Child("shareID"), share.str(), Covered::kYes);
  }
  CheckSkippedOperations(out, path.Child("skipNodeOperations"), result["skipNodeOperations"]);
}

void CheckConfigSource(Findings& out, const FieldPath& path, std::string_view source) {
  if (source.empty()) {
    out.Add(FieldError::Required(path, ""), {}, Covered::kYes);
  } else if (source != "FromClass" && source != "FromClaim") {
    out.Add(FieldError::NotSupported(path, source, {"FromClaim", "FromClass"}), {}, Covered::kYes);
  }
}

void CheckAllocation(Findings& out, const FieldPath& path, Value allocation,
                     const RequestNames& names) {
  constexpr std::size_t kMaxResults = 32;
  const FieldPath devices = path.Child("devices");
  CheckItems(
      out, devices.Child("results"), allocation["devices"]["results"], kMaxResults, Covered::kYes,
      [&](Value result, const FieldPath& at) { CheckAllocationEntry(out, at, result, names); });
  // Parameters from the classes and from the claim.
  CheckItems(out, devices.Child("config"), allocation["devices"]["config"], 2 * kMaxConfigs,
             Covered::kYes, [&](Value config, const FieldPath& at) {
               CheckConfigSource(out, at.Child("source"), config["source"].str());
               CheckRequestReferences(out, at.Child("requests"), config["requests"], names);
               CheckConfiguration(out, at, config, Stored::kNo);
             });
  if (const Value selector = allocation["nodeSelector"]; selector.has_value()) {
    CheckNodeSelector(out, path.Child("nodeSelector"), selector);
  }
}

// The gate of skipped operations, per result: a claim keeps what it was allocated with.
void CheckAllocationGate(Findings& out, const FieldPath& path, Value allocation, Value before,
                         const FeatureGates& gates) {
  const Value old = before["devices"]["results"];
  std::size_t index = 0;
  for (const Value result : allocation["devices"]["results"].elements()) {
    Value same;
    for (const Value candidate : old.elements()) {
      if (DeviceKeyOf(candidate) == DeviceKeyOf(result) &&
          candidate["request"].str() == result["request"].str()) {
        same = candidate;
      }
    }
    CheckSkippedOperationsGate(
        out, path.Child("devices").Child("results").Index(index++).Child("skipNodeOperations"),
        result["skipNodeOperations"], same["skipNodeOperations"], gates);
  }
}

bool HasNewConsumer(Value reserved, Value before) {
  for (const Value consumer : reserved.elements()) {
    bool known = false;
    for (const Value old : before.elements()) {
      known = known || SemanticEqual(consumer, old, "ResourceClaimConsumerReference");
    }
    if (!known) return true;
  }
  return false;
}

}  // namespace

DeviceKey DeviceKeyOf(Value device) {
  return {device["driver"].str(), device["pool"].str(), device["device"].str(),
          device["shareID"].str()};
}

void CheckClaimSpec(Findings& out, const FieldPath& path, Value spec, const FeatureGates& gates) {
  const Value devices = spec["devices"];
  const FieldPath at = path.Child("devices");
  const RequestNames names(devices);
  const ConstrainedAttributes constrained(devices["constraints"]);
  SpecRules rules{gates, constrained, {}};
  CheckUniqueItems(
      out, at.Child("requests"), devices["requests"], kMaxRequests, Covered::kYes, Covered::kYes,
      [&](Value request, const FieldPath& item) { CheckRequest(out, item, request, rules); },
      NameKey);
  CheckItems(out, at.Child("constraints"), devices["constraints"], kMaxConstraints, Covered::kYes,
             [&](Value constraint, const FieldPath& item) {
               CheckConstraint(out, item, constraint, names, gates);
             });
  CheckItems(out, at.Child("config"), devices["config"], kMaxConfigs, Covered::kYes,
             [&](Value config, const FieldPath& item) {
               CheckRequestReferences(out, item.Child("requests"), config["requests"], names);
               CheckConfiguration(out, item, config, Stored::kNo);
             });
  if (rules.cost.derived > device::kMaxSelectorCost) {
    out.Add(FieldError::Forbidden(at,
                                  "too complex, total cost of derived attribute CEL expressions in "
                                  "the claim exceeds cost limit"));
  }
}

Findings CheckResourceClaim(Value claim, const FeatureGates& gates) {
  Findings out;
  CheckClaimSpec(out, FieldPath("spec"), claim["spec"], gates);
  return out;
}

Findings CheckResourceClaimUpdate(Value claim, Value before) {
  Findings out;
  if (!SemanticEqual(claim["spec"], before["spec"], "ResourceClaimSpec")) {
    out.Add(FieldError::Invalid(FieldPath("spec"), claim["spec"], "field is immutable"),
            "immutable", Covered::kYes);
  }
  return out;
}

Findings CheckResourceClaimStatus(Value claim, Value before, const FeatureGates& gates) {
  constexpr std::size_t kMaxConsumers = 256;
  Findings out;
  const FieldPath path("status");
  const Value status = claim["status"];
  const Value old = before["status"];
  const RequestNames names(claim["spec"]["devices"]);
  const FieldPath reserved_path = path.Child("reservedFor");
  const Value reserved = status["reservedFor"];
  CheckUniqueItems(
      out, reserved_path, reserved, kMaxConsumers, Covered::kYes, Covered::kYes,
      [&](Value consumer, const FieldPath& at) { CheckConsumer(out, at, consumer); },
      [](Value consumer) { return std::string(consumer["uid"].str()); });

  const Value allocation = status["allocation"];
  std::set<DeviceKey> allocated;
  for (const Value result : allocation["devices"]["results"].elements()) {
    allocated.insert(DeviceKeyOf(result));
  }
  const FieldPath devices_path = path.Child("devices");
  CheckItems(
      out, devices_path, status["devices"], std::nullopt, Covered::kNo,
      [&](Value device, const FieldPath& at) { CheckDeviceStatus(out, at, device, allocated); });
  std::set<DeviceKey> reported;
  std::size_t index = 0;
  for (const Value device : status["devices"].elements()) {
    if (!reported.insert(DeviceKeyOf(device)).second) {
      out.Add(FieldError::Duplicate(devices_path.Index(index), ShownKey(device)), {},
              Covered::kYes);
    }
    ++index;
  }

  if (!reserved.empty()) {
    if (!allocation.has_value()) {
      out.Add(
          FieldError::Forbidden(reserved_path, "may not be specified when `allocated` is not set"));
    } else if (claim["metadata"]["deletionTimestamp"].has_value() &&
               HasNewConsumer(reserved, old["reservedFor"])) {
      out.Add(FieldError::Forbidden(reserved_path,
                                    "new entries may not be added while `deallocationRequested` or "
                                    "`deletionTimestamp` are set"));
    }
  }

  const FieldPath allocation_path = path.Child("allocation");
  const Value was = old["allocation"];
  if (was.has_value() && allocation.has_value()) {
    // Stored values may predate stricter rules: only changes are checked.
    if (!SemanticEqual(allocation, was, "AllocationResult")) {
      out.Add(FieldError::Invalid(allocation_path, allocation, "field is immutable"), "update",
              Covered::kYes);
    }
  } else if (allocation.has_value()) {
    CheckAllocation(out, allocation_path, allocation, names);
  }
  CheckAllocationGate(out, allocation_path, allocation, was, gates);
  return out;
}

}  // namespace drakkar::apiserver
