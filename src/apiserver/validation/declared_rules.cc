#include "apiserver/validation/declared_rules.h"

#include "apiserver/validation/declared_field.h"
#include "apiserver/validation/name_rules.h"
#include "base/result/check.h"
#include "base/text/text.h"
#include "features/gates/feature_gates.h"

namespace drakkar::apiserver {
namespace {

using api::Value;
using Match = DeclaredField::Match;
constexpr Level kBeta = Level::kBeta;
constexpr Level kStandard = Level::kStandard;
constexpr bool kIsBeta = true;
constexpr bool kIsStandard = false;

const api::StructSchema& SchemaOf(std::string_view version, std::string_view kind) {
  const api::StructSchema* schema =
      api::FindStruct(StrCat("io.k8s.api.resource.", version, ".", kind));
  CHECK(schema != nullptr);
  return *schema;
}

void Toleration(const DeclaredField& at) {
  if (const DeclaredField key = at.Field("key"); key && !key.IsEmpty()) {
    DeclareLabelKey(key.out(), key.path(), key.text(), kIsBeta);
  }
  if (const DeclaredField operation = at.Field("operator"); operation) {
    if (operation.Required(kBeta)) operation.Enum({"Equal", "Exists"}, kBeta);
  }
  if (const DeclaredField effect = at.Field("effect"); effect && !effect.IsEmpty()) {
    effect.Enum({"NoExecute", "NoSchedule", "None"}, kBeta);
  }
}

void Tolerations(const DeclaredField& at) {
  if (const DeclaredField tolerations = at.Field("tolerations"); tolerations) {
    tolerations.Each(Match::kNone, {}, Toleration);
  }
}

void Taint(const DeclaredField& at) {
  if (const DeclaredField effect = at.Field("effect"); effect) {
    if (effect.Required(kBeta)) effect.Enum({"NoExecute", "NoSchedule", "None"}, kBeta);
  }
}

void Opaque(const DeclaredField& at) {
  const DeclaredField opaque = at.Field("opaque");
  if (!opaque || !opaque.value().has_value()) return;
  const DeclaredField driver = opaque.Field("driver");
  if (!driver || !driver.Required(kBeta)) return;
  DeclareCaselessName(driver.out(), driver.path(), driver.text(), kIsBeta);
  driver.MaxLength(kMaxDriverBytes, kBeta);
}

void RequestList(const DeclaredField& at) {
  const DeclaredField requests = at.Field("requests");
  if (requests && requests.MaxItems(32, kBeta)) requests.Unique({}, kBeta);
}

// More than there are operations today. Kubernetes has no limit here.
constexpr std::size_t kMaxSkippedOperations = 8;

void SkippedOperations(const DeclaredField& at) {
  const DeclaredField operations = at.Field("skipNodeOperations");
  if (!operations || !operations.MaxItems(kMaxSkippedOperations, kStandard)) return;
  operations.Unique({}, kStandard);
  operations.Each(Match::kByText, {}, [](const DeclaredField& operation) {
    operation.Enum({"*", "NodePrepareResources", "NodeUnprepareResources"}, kStandard);
  });
}

void BindingConditions(const DeclaredField& at) {
  for (const api::FieldName name :
       api::FieldNames{"bindingConditions", "bindingFailureConditions"}) {
    if (const DeclaredField list = at.Field(name); list) list.MaxItems(4, kBeta);
  }
}

void Selectors(const DeclaredField& at) {
  if (const DeclaredField selectors = at.Field("selectors"); selectors) {
    selectors.MaxItems(32, kBeta);
  }
}

void Demand(const DeclaredField& at) {
  Selectors(at);
  if (const DeclaredField mode = at.Field("allocationMode"); mode && !mode.IsEmpty()) {
    mode.Enum({"All", "ExactCount"}, kBeta);
  }
  Tolerations(at);
  const DeclaredField derived = at.Field("derivedAttributes");
  if (!derived || !derived.MaxItems(32, kStandard)) return;
  derived.Each(Match::kNone, {}, [](const DeclaredField& attribute) {
    if (const DeclaredField name = attribute.Field("name"); name && name.Required(kStandard)) {
      DeclareFullyQualifiedName(name.out(), name.path(), name.text(), kIsStandard);
    }
    if (const DeclaredField expression = attribute.Field("expression"); expression) {
      expression.Required(kStandard);
    }
  });
}

void Request(const DeclaredField& at) {
  if (const DeclaredField exactly = at.Field("exactly"); exactly && exactly.value().has_value()) {
    Demand(exactly);
  }
  const DeclaredField alternatives = at.Field("firstAvailable");
  if (!alternatives || !alternatives.MaxItems(8, kBeta)) return;
  alternatives.Unique({"name"}, kBeta);
  alternatives.Each(Match::kByKeys, {"name"}, [](const DeclaredField& alternative) {
    if (const DeclaredField name = alternative.Field("deviceClassName");
        name && name.Required(kBeta)) {
      DeclareLongName(name.out(), name.path(), name.text(), kIsBeta);
    }
    Demand(alternative);
  });
}

void ClaimSpec(const DeclaredField& at) {
  const DeclaredField devices = at.Field("devices");
  if (!devices) return;
  if (const DeclaredField requests = devices.Field("requests");
      requests && requests.MaxItems(32, kBeta)) {
    requests.Unique({"name"}, kBeta);
    requests.Each(Match::kByKeys, {"name"}, Request);
  }
  if (const DeclaredField constraints = devices.Field("constraints");
      constraints && constraints.MaxItems(32, kBeta)) {
    constraints.Each(Match::kNone, {}, [](const DeclaredField& constraint) {
      RequestList(constraint);
      for (const api::FieldName name : api::FieldNames{"matchAttribute", "distinctAttribute"}) {
        const DeclaredField attribute = constraint.Field(name);
        if (!attribute || !attribute.value().has_value()) continue;
        DeclareFullyQualifiedName(attribute.out(), attribute.path(), attribute.text(), kIsBeta);
      }
    });
  }
  if (const DeclaredField config = devices.Field("config"); config && config.MaxItems(32, kBeta)) {
    config.Each(Match::kNone, {}, [](const DeclaredField& entry) {
      RequestList(entry);
      Opaque(entry);
    });
  }
}

void AllocationResult(const DeclaredField& at) {
  if (const DeclaredField driver = at.Field("driver"); driver && driver.Required(kBeta)) {
    DeclareCaselessName(driver.out(), driver.path(), driver.text(), kIsBeta);
    driver.MaxLength(kMaxDriverBytes, kBeta);
  }
  if (const DeclaredField pool = at.Field("pool"); pool && pool.Required(kBeta)) {
    DeclarePoolName(pool.out(), pool.path(), pool.text(), kIsBeta);
  }
  Tolerations(at);
  BindingConditions(at);
  if (const DeclaredField share = at.Field("shareID"); share && share.value().has_value()) {
    DeclareUuid(share.out(), share.path(), share.text(), kIsBeta);
  }
  SkippedOperations(at);
}

void Allocation(const DeclaredField& at) {
  const DeclaredField devices = at.Field("devices");
  if (!devices) return;
  if (const DeclaredField results = devices.Field("results");
      results && results.MaxItems(32, kBeta)) {
    results.Each(Match::kNone, {}, AllocationResult);
  }
  if (const DeclaredField config = devices.Field("config"); config && config.MaxItems(64, kBeta)) {
    config.Each(Match::kNone, {}, [](const DeclaredField& entry) {
      if (const DeclaredField source = entry.Field("source"); source && source.Required(kBeta)) {
        source.Enum({"FromClaim", "FromClass"}, kBeta);
      }
      RequestList(entry);
      Opaque(entry);
    });
  }
}

void DeviceStatus(const DeclaredField& at) {
  if (const DeclaredField share = at.Field("shareID"); share && share.value().has_value()) {
    DeclareUuid(share.out(), share.path(), share.text(), kIsBeta);
  }
  const DeclaredField data = at.Field("networkData");
  if (!data || !data.value().has_value()) return;
  if (const DeclaredField name = data.Field("interfaceName"); name) name.MaxBytes(256, kBeta);
  if (const DeclaredField ips = data.Field("ips"); ips && ips.MaxItems(16, kBeta)) {
    ips.Unique({}, kBeta);
  }
  if (const DeclaredField hardware = data.Field("hardwareAddress"); hardware) {
    hardware.MaxBytes(128, kBeta);
  }
}

void ClaimStatus(const DeclaredField& at) {
  if (const DeclaredField allocation = at.Field("allocation"); allocation) {
    if (allocation.NotModified(kBeta) && allocation.value().has_value()) Allocation(allocation);
  }
  if (const DeclaredField reserved = at.Field("reservedFor");
      reserved && reserved.MaxItems(256, kBeta)) {
    reserved.Unique({"uid"}, kBeta);
  }
  if (const DeclaredField devices = at.Field("devices"); devices) {
    devices.Unique({"driver", "device", "pool", "shareID"}, kBeta);
    devices.Each(Match::kByKeys, {"driver", "device", "pool", "shareID"}, DeviceStatus);
  }
}

void Counters(const DeclaredField& at) {
  const DeclaredField counters = at.Field("counters");
  if (!counters || !counters.Required(kBeta)) return;
  counters.EachNewKey([&](std::string_view name) {
    DeclareShortName(counters.out(), counters.path(), name, kIsBeta);
  });
}

void CounterSetName(const DeclaredField& name) {
  if (!name || !name.Required(kBeta)) return;
  DeclareShortName(name.out(), name.path(), name.text(), kIsBeta);
}

void Consumption(const DeclaredField& at) {
  CounterSetName(at.Field("counterSet"));
  Counters(at);
  const DeclaredField groups = at.Field("compatibilityGroups");
  if (!groups || !groups.MaxItems(2, kStandard)) return;
  groups.Each(Match::kByText, {}, [](const DeclaredField& group) {
    DeclareShortName(group.out(), group.path(), group.text(), kIsStandard);
  });
  groups.Unique({}, kStandard);
}

void Device(const DeclaredField& at) {
  if (const DeclaredField attributes = at.Field("attributes"); attributes) {
    attributes.EachValue([](const DeclaredField& attribute) {
      attribute.Union({"int", "bool", "string", "version", "ints", "bools", "strings", "versions"},
                      kBeta);
    });
  }
  if (const DeclaredField consumes = at.Field("consumesCounters");
      consumes && consumes.MaxItems(2, kBeta)) {
    consumes.Unique({"counterSet"}, kBeta);
    consumes.Each(Match::kByKeys, {"counterSet"}, Consumption);
  }
  if (const DeclaredField taints = at.Field("taints"); taints) {
    taints.Each(Match::kNone, {}, Taint);
  }
  BindingConditions(at);
  if (const DeclaredField resources = at.Field("nodeAllocatableResources"); resources) {
    resources.EachValue([](const DeclaredField& resource) {
      const DeclaredField mapping = resource.Field("mapping");
      if (!mapping || !mapping.value().has_value()) return;
      mapping.Union({"capacityKey", "deviceMultiplier"}, kStandard);
    });
  }
}

// The attribute that distinguishes partitions must not be set while its gate is off.
void PartitionTypeName(const DeclaredField& name, const FeatureGates& gates) {
  if (!name || !name.value().has_value()) return;
  if (!gates.Enabled(Gate::kDRAPartitionableDevicesType)) {
    name.out().AddDeclared(api::FieldError::Forbidden(name.path(), ""), {}, kIsStandard);
  } else {
    DeclareFullyQualifiedName(name.out(), name.path(), name.text(), kIsStandard);
  }
}

// A required number that must not be negative.
void RequiredCount(const DeclaredField& at, api::FieldName name) {
  if (const DeclaredField count = at.Field(name); count && count.Required(kStandard)) {
    count.Minimum(0, kStandard);
  }
}

void OptionalCount(const DeclaredField& at, api::FieldName name, std::int64_t minimum) {
  if (const DeclaredField count = at.Field(name); count && count.value().has_value()) {
    count.Minimum(minimum, kStandard);
  }
}

void ShareableSummary(const DeclaredField& at) {
  RequiredCount(at, "fullyAvailableDevices");
  RequiredCount(at, "partiallyAvailableDevices");
  const DeclaredField capacity = at.Field("capacity");
  if (!capacity || !capacity.MaxItems(32, kStandard)) return;
  capacity.Each(Match::kNone, {}, [](const DeclaredField& entry) {
    for (const api::FieldName name : api::FieldNames{"name", "total", "consumed", "available"}) {
      if (const DeclaredField field = entry.Field(name); field) field.Required(kStandard);
    }
  });
}

void PoolStatus(const DeclaredField& at) {
  if (const DeclaredField driver = at.Field("driver"); driver && driver.Required(kStandard)) {
    DeclareCaselessName(driver.out(), driver.path(), driver.text(), kIsStandard);
  }
  if (const DeclaredField pool = at.Field("poolName"); pool && pool.Required(kStandard)) {
    DeclarePoolName(pool.out(), pool.path(), pool.text(), kIsStandard);
  }
  // Kubernetes' rule takes generation 0 for an absent one.
  RequiredCount(at, "generation");
  OptionalCount(at, "resourceSliceCount", 1);
  for (const api::FieldName name : api::FieldNames{"totalDevices", "allocatedDevices",
                                                   "availableDevices", "unavailableDevices"}) {
    OptionalCount(at, name, 0);
  }
  if (const DeclaredField node = at.Field("nodeName"); node && node.value().has_value()) {
    DeclareLongName(node.out(), node.path(), node.text(), kIsStandard);
  }
  if (const DeclaredField error = at.Field("validationError"); error) {
    error.MaxBytes(256, kStandard);
  }
  if (const DeclaredField partitions = at.Field("partitionSummary");
      partitions && partitions.MaxItems(32, kStandard)) {
    partitions.Unique({"attribute", "type"}, kStandard);
    partitions.Each(Match::kByKeys, {"attribute", "type"}, [](const DeclaredField& partition) {
      for (const api::FieldName name : api::FieldNames{"attribute", "type"}) {
        if (const DeclaredField field = partition.Field(name); field) field.Required(kStandard);
      }
      RequiredCount(partition, "total");
      RequiredCount(partition, "allocatable");
    });
  }
  if (const DeclaredField summary = at.Field("shareableSummary");
      summary && summary.value().has_value()) {
    ShareableSummary(summary);
  }
}

}  // namespace

Findings DeclaredForResourceSlice(Value object, Value before, const FeatureGates& gates) {
  Findings out;
  const DeclaredField root(out, object, before, SchemaOf("v1", "ResourceSlice"));
  const DeclaredField spec = root.Field("spec");
  if (!spec) return out;
  if (const DeclaredField devices = spec.Field("devices"); devices) {
    devices.Each(Match::kNone, {}, Device);
  }
  if (const DeclaredField sets = spec.Field("sharedCounters"); sets && sets.MaxItems(8, kBeta)) {
    sets.Unique({"name"}, kBeta);
    sets.Each(Match::kByKeys, {"name"}, [](const DeclaredField& set) {
      CounterSetName(set.Field("name"));
      Counters(set);
    });
  }
  PartitionTypeName(spec.Field("partitionTypeAttribute"), gates);
  SkippedOperations(spec);
  return out;
}

Findings DeclaredForResourceClaim(Value object, Value before) {
  Findings out;
  const DeclaredField root(out, object, before, SchemaOf("v1", "ResourceClaim"));
  if (const DeclaredField spec = root.Field("spec"); spec && spec.Immutable(kBeta)) {
    ClaimSpec(spec);
  }
  if (const DeclaredField status = root.Field("status"); status) ClaimStatus(status);
  return out;
}

Findings DeclaredForClaimTemplate(Value object, Value before) {
  Findings out;
  const DeclaredField root(out, object, before, SchemaOf("v1", "ResourceClaimTemplate"));
  if (const DeclaredField spec = root.Field("spec"); spec) {
    if (const DeclaredField inner = spec.Field("spec"); inner) ClaimSpec(inner);
  }
  return out;
}

Findings DeclaredForDeviceClass(Value object, Value before) {
  Findings out;
  const DeclaredField root(out, object, before, SchemaOf("v1", "DeviceClass"));
  // The rule for metadata.name has the same wording as the hand-written one: see metadata.h.
  const DeclaredField spec = root.Field("spec");
  if (!spec) return out;
  Selectors(spec);
  if (const DeclaredField config = spec.Field("config"); config && config.MaxItems(32, kBeta)) {
    config.Each(Match::kNone, {}, Opaque);
  }
  if (const DeclaredField name = spec.Field("extendedResourceName");
      name && name.value().has_value()) {
    DeclareExtendedResourceName(out, name.path(), name.text(), kIsBeta);
  }
  return out;
}

Findings DeclaredForDeviceTaintRule(Value object, Value before) {
  Findings out;
  const DeclaredField root(out, object, before, SchemaOf("v1", "DeviceTaintRule"));
  if (const DeclaredField spec = root.Field("spec"); spec) {
    if (const DeclaredField taint = spec.Field("taint"); taint) Taint(taint);
  }
  return out;
}

Findings DeclaredForPoolStatusRequest(Value object, Value before, const FeatureGates& gates) {
  Findings out;
  const DeclaredField root(out, object, before, SchemaOf("v1alpha3", "ResourcePoolStatusRequest"));
  if (const DeclaredField spec = root.Field("spec"); spec && spec.Immutable(kStandard)) {
    if (const DeclaredField driver = spec.Field("driver"); driver && driver.Required(kStandard)) {
      DeclareCaselessName(out, driver.path(), driver.text(), kIsStandard);
    }
    if (const DeclaredField pool = spec.Field("poolName"); pool && pool.value().has_value()) {
      DeclarePoolName(out, pool.path(), pool.text(), kIsStandard);
    }
    if (const DeclaredField limit = spec.Field("limit"); limit && limit.Required(kStandard)) {
      limit.Minimum(1, kStandard);
      limit.Maximum(1000, kStandard);
    }
    PartitionTypeName(spec.Field("defaultPartitionTypeAttribute"), gates);
  }
  const DeclaredField status = root.Field("status");
  if (!status || !status.value().has_value()) return out;
  RequiredCount(status, "poolCount");
  if (const DeclaredField pools = status.Field("pools"); pools && pools.MaxItems(1000, kStandard)) {
    pools.Each(Match::kNone, {}, PoolStatus);
  }
  if (const DeclaredField conditions = status.Field("conditions"); conditions) {
    conditions.MaxItems(10, kStandard);
  }
  return out;
}

}  // namespace drakkar::apiserver
