#include "apiserver/validation/resource_slice.h"

#include <string>
#include <vector>

#include "api/meta/quantity.h"
#include "api/meta/semver.h"
#include "apiserver/validation/capacity_rules.h"
#include "apiserver/validation/name_rules.h"
#include "apiserver/validation/resource_rules.h"
#include "apiserver/validation/semantic_equal.h"
#include "base/text/text.h"
#include "features/gates/feature_gates.h"

namespace drakkar::apiserver {
namespace {

using api::FieldError;
using api::FieldPath;
using api::Value;

constexpr std::size_t kMaxDevices = 128;
// A device is larger in a slice whose devices have taints, counters or lists.
constexpr std::size_t kMaxAdvancedDevices = 64;
constexpr std::size_t kMaxAttributesAndCapacities = 32;
constexpr std::size_t kMaxAttributeValues = 48;
constexpr std::size_t kMaxAttributeBytes = 64;
constexpr std::size_t kMaxCounterSets = 8;
constexpr std::size_t kMaxCounters = 32;
constexpr std::size_t kMaxConsumptions = 2;
constexpr std::size_t kMaxTaints = 16;
constexpr std::size_t kMaxNameInPath = kMaxDriverBytes + 1 + kMaxIdentifierBytes;
constexpr api::FieldName kListAttributes[] = {"bools", "ints", "strings", "versions"};

// Long map keys are shortened in the middle in paths.
std::string Shortened(std::string_view key, std::size_t limit) {
  constexpr std::string_view kGap = "...";
  if (key.size() <= limit) return std::string(key);
  const std::size_t rest = limit - kGap.size();
  return StrCat(key.substr(0, (rest + 1) / 2), kGap, key.substr(key.size() - rest / 2));
}

bool AnyDevice(Value spec, bool (*test)(Value device)) {
  for (const Value device : spec["devices"].elements()) {
    if (test(device)) return true;
  }
  return false;
}
bool HasTaints(Value device) {
  return !device["taints"].empty();
}
bool ConsumesCounters(Value device) {
  return !device["consumesCounters"].empty();
}
bool HasListAttributes(Value device) {
  for (const auto& [key, name, attribute] : device["attributes"].members()) {
    for (const api::FieldName list : kListAttributes) {
      if (attribute[list].has_value()) return true;
    }
  }
  return false;
}

void CheckUnchanged(Findings& out, const FieldPath& path, Value value, Value before) {
  if (value.str() == before.str() && value.has_value() == before.has_value()) return;
  out.Add(FieldError::Invalid(path, value.has_value() ? api::BadValue(value) : nullptr,
                              "field is immutable"));
}

void CheckPool(Findings& out, const FieldPath& path, Value pool) {
  CheckPoolName(out, path.Child("name"), pool["name"].str());
  if (const std::int64_t count = pool["resourceSliceCount"].integer(); count <= 0) {
    out.Add(
        FieldError::Invalid(path.Child("resourceSliceCount"), count, "must be greater than zero"));
  }
  if (const std::int64_t generation = pool["generation"].integer(); generation < 0) {
    out.Add(FieldError::Invalid(path.Child("generation"), generation,
                                "must be greater than or equal to zero"));
  }
}

// Adds `name` to the fields that are set, or an error if it is set to false.
void NoteFlag(Findings& out, const FieldPath& path, Value owner, api::FieldName name,
              std::vector<std::string>& set) {
  const Value flag = owner[name];
  if (!flag.has_value()) return;
  if (flag.boolean()) {
    set.push_back(StrCat("`", name, "`"));
  } else {
    out.Add(FieldError::Invalid(path.Child(name), false, "must be either unset or set to true"));
  }
}

void NoteNodeName(Findings& out, const FieldPath& path, Value owner, std::string_view if_empty,
                  std::vector<std::string>& set) {
  const Value name = owner["nodeName"];
  if (!name.has_value()) return;
  if (name.str().empty()) {
    out.Add(FieldError::Invalid(path.Child("nodeName"), "", std::string(if_empty)));
    return;
  }
  set.push_back("`nodeName`");
  CheckNodeName(out, path.Child("nodeName"), name.str());
}

void CheckExactlyOneSet(Findings& out, const FieldPath& path, const std::vector<std::string>& set,
                        std::string rule, std::string_view if_several) {
  if (set.empty()) out.Add(FieldError::Required(path, rule));
  if (set.size() > 1) {
    out.Add(FieldError::Invalid(path, StrCat("{", Join(set, ", "), "}"), StrCat(rule, if_several)));
  }
}

void CheckNodeSelection(Findings& out, const FieldPath& path, Value spec) {
  std::vector<std::string> set;
  NoteNodeName(out, path, spec, "must be either unset or set to a non-empty string", set);
  if (const Value selector = spec["nodeSelector"]; selector.has_value()) {
    set.push_back("`nodeSelector`");
    const FieldPath at = path.Child("nodeSelector");
    CheckNodeSelector(out, at, selector);
    const Value terms = selector["nodeSelectorTerms"];
    if (terms.size() != 1) {
      out.Add(FieldError::Invalid(at.Child("nodeSelectorTerms"),
                                  terms.has_value() ? api::BadValue(terms) : nullptr,
                                  "must have exactly one node selector term"));
    }
  }
  NoteFlag(out, path, spec, "allNodes", set);
  NoteFlag(out, path, spec, "perDeviceNodeSelection", set);
  CheckExactlyOneSet(out, path, set,
                     "exactly one of `nodeName`, `nodeSelector`, `allNodes`, "
                     "`perDeviceNodeSelection` is required",
                     ", but multiple fields are set");
}

void CheckAttributeText(Findings& out, const FieldPath& path, std::string_view text,
                        std::string_view origin = {}, Covered covered = Covered::kNo) {
  if (text.size() > kMaxAttributeBytes) {
    out.Add(FieldError::TooLong(path, kMaxAttributeBytes), origin, covered);
  }
}

void CheckAttributeVersion(Findings& out, const FieldPath& path, std::string_view text) {
  if (!api::Semver::Parse(text).ok()) {
    out.Add(
        FieldError::Invalid(path, text, "must be a string compatible with semver.org spec 2.0.0"));
  }
  CheckAttributeText(out, path, text);
}

void CheckAttribute(Findings& out, const FieldPath& path, Value attribute) {
  int set = attribute["bool"].has_value() + attribute["int"].has_value();
  if (const Value text = attribute["string"]; text.has_value()) {
    ++set;
    CheckAttributeText(out, path.Child("string"), text.str());
  }
  if (const Value version = attribute["version"]; version.has_value()) {
    ++set;
    CheckAttributeVersion(out, path.Child("version"), version.str());
  }
  for (const api::FieldName name : kListAttributes) {
    const Value list = attribute[name];
    if (!list.has_value()) continue;
    ++set;
    const FieldPath at = path.Child(name);
    if (list.empty()) {
      out.Add(FieldError::Invalid(at, list, "must not be empty if specified"));
    }
    std::size_t index = 0;
    for (const Value item : list.elements()) {
      if (name == "strings") {
        CheckAttributeText(out, at.Index(index), item.str(), "maxBytes", Covered::kYes);
      } else if (name == "versions") {
        CheckAttributeVersion(out, at.Index(index), item.str());
      }
      ++index;
    }
  }
  if (set != 1) {
    out.Add(FieldError::Invalid(path, set == 0 ? api::BadValue("") : api::BadValue(attribute),
                                "exactly one value must be specified"),
            "union", Covered::kYes);
  }
}

void CheckAttributesAndCapacity(Findings& out, const FieldPath& path, Value device, Value before,
                                const FeatureGates& gates) {
  const Value attributes = device["attributes"];
  const Value capacity = device["capacity"];
  const std::size_t count = attributes.size() + capacity.size();
  if (count > kMaxAttributesAndCapacities) {
    out.Add(FieldError::Invalid(path, static_cast<std::int64_t>(count),
                                StrCat("the total number of attributes and capacities must not "
                                       "exceed ",
                                       kMaxAttributesAndCapacities)));
  }
  std::size_t values = 0;
  for (const auto& [key, name, attribute] : attributes.members()) {
    std::size_t items = 0;
    for (const api::FieldName list : kListAttributes) items += attribute[list].size();
    values += items == 0 ? 1 : items;
  }
  if (values > kMaxAttributeValues) {
    out.Add(FieldError::Invalid(
        path, static_cast<std::int64_t>(values),
        StrCat("the total number of attribute values must not exceed ", kMaxAttributeValues)));
  }
  const FieldPath attributes_path = path.Child("attributes");
  for (const auto& [key, name, attribute] : attributes.members()) {
    CheckQualifiedName(out, attributes_path, name);
    CheckAttribute(out, attributes_path.Key(Shortened(name, kMaxNameInPath)), attribute);
  }
  // Values stored under older rules stay valid until they are changed.
  const api::StructSchema* schema = api::FindStruct("io.k8s.api.resource.v1.Device");
  if (before.has_value() &&
      SemanticEqual(before["capacity"], capacity, schema->Find("capacity")->type)) {
    return;
  }
  const FieldPath capacity_path = path.Child("capacity");
  for (const auto& [key, name, value] : capacity.members()) {
    CheckQualifiedName(out, capacity_path, name);
    CheckCapacity(out, capacity_path.Key(Shortened(name, kMaxNameInPath)), value,
                  device["allowMultipleAllocations"].boolean(),
                  gates.Enabled(Gate::kDRAFractionalCapacityRange));
  }
}

void CheckTaints(Findings& out, const FieldPath& path, Value device, Value before) {
  const api::StructSchema* schema = api::FindStruct("io.k8s.api.resource.v1.Device");
  if (before.has_value() &&
      SemanticEqual(before["taints"], device["taints"], schema->Find("taints")->type)) {
    return;
  }
  CheckItems(out, path.Child("taints"), device["taints"], kMaxTaints, Covered::kNo,
             [&](Value taint, const FieldPath& at) { CheckTaint(out, at, taint, Value()); });
}

void CheckCounters(Findings& out, const FieldPath& path, Value counters) {
  if (counters.empty()) {
    out.Add(FieldError::Required(path, ""), {}, Covered::kYes);
    return;
  }
  if (counters.size() > kMaxCounters) {
    out.Add(FieldError::TooMany(path, counters.size(), kMaxCounters));
    return;
  }
  for (const auto& [key, name, counter] : counters.members()) {
    CheckLabelName(out, path, name, Covered::kYes);
  }
}

void CheckCounterSetName(Findings& out, const FieldPath& path, std::string_view name) {
  if (name.empty()) {
    out.Add(FieldError::Required(path, ""), {}, Covered::kYes);
  } else {
    CheckLabelName(out, path, name, Covered::kYes);
  }
}

void CheckDeviceNodes(Findings& out, const FieldPath& path, Value device, bool per_device) {
  if (!per_device) {
    if (device["nodeName"].has_value() || device["nodeSelector"].has_value() ||
        device["allNodes"].has_value()) {
      out.Add(FieldError::Invalid(path, nullptr,
                                  "`nodeName`, `nodeSelector` and `allNodes` can only be set if "
                                  "`perDeviceNodeSelection` is set to true in the ResourceSlice "
                                  "spec"));
    }
    return;
  }
  std::vector<std::string> set;
  NoteNodeName(out, path, device, "must not be empty", set);
  if (const Value selector = device["nodeSelector"]; selector.has_value()) {
    set.push_back("`nodeSelector`");
    CheckNodeSelector(out, path.Child("nodeSelector"), selector);
  }
  NoteFlag(out, path, device, "allNodes", set);
  CheckExactlyOneSet(out, path, set,
                     "exactly one of `nodeName`, `nodeSelector`, or `allNodes` is required when "
                     "`perDeviceNodeSelection` is set to true in the ResourceSlice spec",
                     "");
}

int SignOf(Value quantity) {
  const Result<api::Quantity> parsed = api::Quantity::Parse(quantity.str());
  return parsed.ok() ? parsed->Sign() : 0;
}

void CheckAllocatableMapping(Findings& out, const FieldPath& path, Value mapping, Value capacity) {
  const Value key = mapping["capacityKey"];
  const Value multiplier = mapping["capacityMultiplier"];
  if (key.has_value()) {
    const FieldPath at = path.Child("capacityKey");
    if (key.str().empty()) {
      out.Add(FieldError::Invalid(at, "", "capacityKey must not be an empty string"));
    } else if (!capacity.Entry(key.str()).exists()) {
      out.Add(FieldError::NotFound(at, key.str()));
    }
    if (!multiplier.has_value()) {
      out.Add(FieldError::Required(path.Child("capacityMultiplier"),
                                   "capacityMultiplier is required when capacityKey is set"),
              "dependentRequired", Covered::kYes);
    } else if (SignOf(multiplier) <= 0) {
      out.Add(FieldError::Invalid(path.Child("capacityMultiplier"), multiplier.str(),
                                  "must be positive"));
    }
  }
  if (const Value per_device = mapping["deviceMultiplier"];
      per_device.has_value() && SignOf(per_device) <= 0) {
    out.Add(
        FieldError::Invalid(path.Child("deviceMultiplier"), per_device.str(), "must be positive"));
  }
  if (multiplier.has_value() && !key.has_value()) {
    out.Add(FieldError::Required(path.Child("capacityKey"),
                                 "capacityKey is required when capacityMultiplier is set"),
            "dependentRequired", Covered::kYes);
  }
}

void CheckAllocatableOverhead(Findings& out, const FieldPath& path, Value overhead) {
  if (!overhead["perPod"].has_value() && !overhead["perContainer"].has_value()) {
    out.Add(FieldError::Invalid(path, "", "at least one of perPod or perContainer must be set"));
    return;
  }
  for (const api::FieldName name : api::FieldNames{"perPod", "perContainer"}) {
    const Value amount = overhead[name];
    if (amount.has_value() && SignOf(amount) < 0) {
      out.Add(FieldError::Invalid(path.Child(name), amount.str(), "must be non-negative"));
    }
  }
}

void CheckAllocatableResources(Findings& out, const FieldPath& path, Value device) {
  for (const auto& [key, name, resource] : device["nodeAllocatableResources"].members()) {
    const FieldPath at = path.Key(name);
    if (name != "cpu" && name != "memory" && !name.starts_with("hugepages-")) {
      out.Add(FieldError::Invalid(at, name, "must be a node allocatable resource name"));
    }
    const Value mapping = resource["mapping"];
    const Value overhead = resource["overhead"];
    if (!mapping.has_value() && !overhead.has_value()) {
      out.Add(FieldError::Required(at, "at least one of mapping or overhead must be set"));
    }
    if (mapping.has_value()) {
      CheckAllocatableMapping(out, at.Child("mapping"), mapping, device["capacity"]);
    }
    if (overhead.has_value()) CheckAllocatableOverhead(out, at.Child("overhead"), overhead);
  }
}

void CheckDevice(Findings& out, const FieldPath& path, Value device, Value before, Value spec,
                 const FeatureGates& gates) {
  CheckLabelName(out, path.Child("name"), device["name"].str());
  CheckAttributesAndCapacity(out, path, device, before, gates);
  CheckTaints(out, path, device, before);
  CheckUniqueItems(
      out, path.Child("consumesCounters"), device["consumesCounters"], kMaxConsumptions,
      Covered::kYes, Covered::kYes,
      [&](Value consumption, const FieldPath& at) {
        CheckCounterSetName(out, at.Child("counterSet"), consumption["counterSet"].str());
        CheckCounters(out, at.Child("counters"), consumption["counters"]);
      },
      [](Value consumption) { return std::string(consumption["counterSet"].str()); });
  CheckDeviceNodes(out, path, device, spec["perDeviceNodeSelection"].boolean());
  CheckBindingConditions(out, path, device);
  CheckAllocatableResources(out, path.Child("nodeAllocatableResources"), device);
}

void CheckPartitionType(Findings& out, const FieldPath& path, Value spec) {
  const Value attribute = spec["partitionTypeAttribute"];
  if (!attribute.has_value()) return;
  const std::string_view name = attribute.str();
  if (!AnyDevice(spec, ConsumesCounters)) {
    out.Add(FieldError::Invalid(
        path.Child("partitionTypeAttribute"), name,
        "may only be set on a slice which declares devices that consume counters"));
    return;
  }
  // A malformed name is reported elsewhere, and no device can have that attribute.
  Findings malformed;
  CheckFullyQualifiedName(malformed, path, name);
  if (!malformed.empty()) return;
  // The driver's own domain may be omitted from names.
  const std::string own = StrCat(spec["driver"].str(), "/");
  const std::string_view bare = name.starts_with(own) ? name.substr(own.size()) : name;
  std::size_t index = 0;
  for (const Value device : spec["devices"].elements()) {
    const FieldPath at = path.Child("devices").Index(index++).Child("attributes").Key(name);
    if (!ConsumesCounters(device)) continue;
    Value value = device["attributes"].Entry(name);
    if (!value.exists() && !bare.empty()) value = device["attributes"].Entry(bare);
    if (!value.exists()) {
      out.Add(FieldError::Required(at,
                                   "device consumes counters and `partitionTypeAttribute` names "
                                   "this attribute, so it must be set"));
    } else if (!value["string"].has_value()) {
      out.Add(FieldError::Invalid(
          at, value,
          "must be a string value because `partitionTypeAttribute` names this attribute"));
    }
  }
}

Value FindDevice(Value spec, std::string_view name) {
  for (const Value device : spec["devices"].elements()) {
    if (device["name"].str() == name) return device;
  }
  return Value();
}

}  // namespace

Findings CheckResourceSlice(Value slice, Value before, const FeatureGates& gates) {
  Findings out;
  const FieldPath path("spec");
  const Value spec = slice["spec"];
  const Value old = before["spec"];
  CheckDriverName(out, path.Child("driver"), spec["driver"].str());
  CheckPool(out, path.Child("pool"), spec["pool"]);
  if (before.has_value()) {
    CheckUnchanged(out, path.Child("pool").Child("name"), spec["pool"]["name"],
                   old["pool"]["name"]);
    CheckUnchanged(out, path.Child("driver"), spec["driver"], old["driver"]);
    CheckUnchanged(out, path.Child("nodeName"), spec["nodeName"], old["nodeName"]);
  }
  CheckNodeSelection(out, path, spec);
  if (spec["sharedCounters"].has_value() && spec["devices"].has_value()) {
    out.Add(FieldError::Invalid(path, "", "only one of `sharedCounters` or `devices` is allowed"));
  }
  const bool advanced = AnyDevice(spec, HasTaints) || AnyDevice(spec, ConsumesCounters) ||
                        AnyDevice(spec, HasListAttributes);
  auto by_name = [](Value item) { return std::string(item["name"].str()); };
  CheckUniqueItems(
      out, path.Child("devices"), spec["devices"], advanced ? kMaxAdvancedDevices : kMaxDevices,
      Covered::kNo, Covered::kNo,
      [&](Value device, const FieldPath& at) {
        CheckDevice(out, at, device, FindDevice(old, device["name"].str()), spec, gates);
      },
      by_name);
  CheckUniqueItems(
      out, path.Child("sharedCounters"), spec["sharedCounters"], kMaxCounterSets, Covered::kYes,
      Covered::kYes,
      [&](Value set, const FieldPath& at) {
        CheckCounterSetName(out, at.Child("name"), set["name"].str());
        CheckCounters(out, at.Child("counters"), set["counters"]);
      },
      by_name);
  CheckPartitionType(out, path, spec);
  // A stored value may stay, even if current rules would reject it.
  if (!old.exists() ||
      !SameSkippedOperations(spec["skipNodeOperations"], old["skipNodeOperations"])) {
    CheckSkippedOperations(out, path.Child("skipNodeOperations"), spec["skipNodeOperations"]);
  }
  CheckSkippedOperationsGate(out, path.Child("skipNodeOperations"), spec["skipNodeOperations"],
                             old["skipNodeOperations"], gates);
  return out;
}

}  // namespace drakkar::apiserver
