#include "device/from_api.h"

#include <algorithm>
#include <initializer_list>

#include "api/json/writer.h"
#include "base/text/text.h"

namespace drakkar::device {
namespace {

using api::FieldName;
using api::MemberView;
using api::Quantity;
using api::Value;
using api::ValueKind;

// Reads one object and knows its path, which is composed only on demand. A reader must not outlive
// its parent.
class Reader {
 public:
  // Unknown fields are appended to `unknown`, unless it is null.
  Reader(Value value, std::string_view name, std::vector<std::string>* unknown)
      : value_(value), name_(name), unknown_(unknown) {}

  std::string path() const {
    std::string path = parent_ == nullptr ? std::string(name_) : parent_->At(name_);
    if (!entry_.empty()) return StrCat(path, "[", entry_, "]");
    if (index_ != kNoIndex) return StrCat(path, "[", index_, "]");
    return path;
  }
  Value value() const { return value_; }
  std::string At(std::string_view name) const {
    const std::string here = path();
    return here.empty() ? std::string(name) : StrCat(here, ".", name);
  }

  // Reports every member that is not in `known`.
  void Known(std::initializer_list<FieldName> known) const {
    if (unknown_ == nullptr) return;
    for (const MemberView member : value_.members()) {
      if (std::none_of(known.begin(), known.end(),
                       [&](FieldName name) { return &name.key() == member.key; })) {
        unknown_->push_back(At(member.name));
      }
    }
  }

  std::string Text(FieldName name) const { return std::string(value_[name].str()); }
  std::optional<std::string> OptionalText(FieldName name) const {
    const Value member = value_[name];
    if (!member.has_value()) return std::nullopt;
    return std::string(member.str());
  }
  std::vector<std::string> Texts(FieldName name) const {
    std::vector<std::string> texts;
    for (const Value element : value_[name].elements()) texts.emplace_back(element.str());
    return texts;
  }
  Reader Object(FieldName name) const { return {value_[name], *this, name}; }
  std::vector<Reader> List(FieldName name) const {
    std::vector<Reader> readers;
    const Value list = value_[name];
    readers.reserve(list.size());
    for (const Value element : list.elements()) {
      readers.push_back(Reader(element, *this, name));
      readers.back().index_ = readers.size() - 1;
    }
    return readers;
  }
  // The members of a map, sorted by name.
  std::vector<std::pair<std::string, Reader>> Map(FieldName name) const {
    std::vector<std::pair<std::string, Reader>> entries;
    for (const MemberView member : value_[name].members()) {
      entries.emplace_back(std::string(member.name), Reader(member.value, *this, name));
      entries.back().second.entry_ = member.name;
    }
    std::sort(entries.begin(), entries.end(),
              [](const auto& a, const auto& b) { return a.first < b.first; });
    return entries;
  }

 private:
  static constexpr std::size_t kNoIndex = static_cast<std::size_t>(-1);
  Reader(Value value, const Reader& parent, std::string_view name)
      : value_(value), parent_(&parent), name_(name), unknown_(parent.unknown_) {}

  Value value_;
  const Reader* parent_ = nullptr;
  std::string_view name_;         // name in the parent
  std::size_t index_ = kNoIndex;  // index, if it is a list element
  std::string_view entry_;        // key, if it is a map entry
  std::vector<std::string>* unknown_;
};

Result<Quantity> ReadQuantity(Value value, const std::string& path) {
  Result<Quantity> quantity = InvalidArgument("must be a quantity");
  if (value.is_string()) {
    quantity = Quantity::Parse(value.str());
  } else if (value.kind() == ValueKind::kInt) {
    quantity = Quantity(value.integer());
  } else if (value.kind() == ValueKind::kDouble) {
    quantity = Quantity::Parse(api::WriteJson(value));
  }
  if (!quantity.ok()) return quantity.error().Prefixed(path);
  return quantity;
}

Result<std::optional<Quantity>> ReadOptionalQuantity(const Reader& reader, FieldName name) {
  const Value value = reader.value()[name];
  if (!value.has_value()) return std::optional<Quantity>();
  ASSIGN_OR_RETURN(Quantity quantity, ReadQuantity(value, reader.At(name)));
  return std::optional(std::move(quantity));
}

std::vector<NodeSelectorRequirement> ReadRequirements(const Reader& reader, FieldName name) {
  std::vector<NodeSelectorRequirement> requirements;
  for (const Reader& entry : reader.List(name)) {
    entry.Known({"key", "operator", "values"});
    requirements.push_back({entry.Text("key"), entry.Text("operator"), entry.Texts("values")});
  }
  return requirements;
}

NodeSelectorTerm ReadNodeSelectorTerm(const Reader& reader) {
  reader.Known({"matchExpressions", "matchFields"});
  return {ReadRequirements(reader, "matchExpressions"), ReadRequirements(reader, "matchFields")};
}

NodeSelector ReadNodeSelector(const Reader& reader) {
  reader.Known({"nodeSelectorTerms"});
  NodeSelector selector;
  for (const Reader& term : reader.List("nodeSelectorTerms")) {
    selector.terms.push_back(ReadNodeSelectorTerm(term));
  }
  return selector;
}

NodeTarget ReadTarget(const Reader& reader) {
  NodeTarget target;
  target.node_name = reader.Text("nodeName");
  target.all_nodes = reader.value()["allNodes"].boolean();
  if (reader.value()["nodeSelector"].has_value()) {
    target.selector = ReadNodeSelector(reader.Object("nodeSelector"));
  }
  return target;
}

template <typename T, typename Read>
std::vector<T> ReadList(Value list, const Read& read) {
  std::vector<T> values;
  for (const Value element : list.elements()) values.push_back(read(element));
  return values;
}

AttributeValue ReadAttribute(const Reader& reader) {
  reader.Known({"int", "bool", "string", "version", "ints", "bools", "strings", "versions"});
  const Value value = reader.value();
  const auto text = [](Value element) { return std::string(element.str()); };
  const auto version = [](Value element) { return VersionText{std::string(element.str())}; };
  if (const Value set = value["int"]; set.has_value()) return set.integer();
  if (const Value set = value["bool"]; set.has_value()) return set.boolean();
  if (const Value set = value["string"]; set.has_value()) return text(set);
  if (const Value set = value["version"]; set.has_value()) return version(set);
  if (const Value set = value["ints"]; set.has_value()) {
    return ReadList<std::int64_t>(set, [](Value element) { return element.integer(); });
  }
  if (const Value set = value["bools"]; set.has_value()) {
    return ReadList<bool>(set, [](Value element) { return element.boolean(); });
  }
  if (const Value set = value["strings"]; set.has_value()) {
    return ReadList<std::string>(set, text);
  }
  if (const Value set = value["versions"]; set.has_value()) {
    return ReadList<VersionText>(set, version);
  }
  return std::monostate();
}

Result<CapacityPolicy> ReadPolicy(const Reader& reader) {
  reader.Known({"default", "validValues", "validRange"});
  CapacityPolicy policy;
  ASSIGN_OR_RETURN(policy.default_value, ReadOptionalQuantity(reader, "default"));
  for (const Reader& value : reader.List("validValues")) {
    ASSIGN_OR_RETURN(Quantity quantity, ReadQuantity(value.value(), value.path()));
    policy.valid_values.push_back(std::move(quantity));
  }
  if (reader.value()["validRange"].has_value()) {
    const Reader range = reader.Object("validRange");
    range.Known({"min", "max", "step"});
    policy.valid_range.emplace();
    ASSIGN_OR_RETURN(policy.valid_range->min, ReadOptionalQuantity(range, "min"));
    ASSIGN_OR_RETURN(policy.valid_range->max, ReadOptionalQuantity(range, "max"));
    ASSIGN_OR_RETURN(policy.valid_range->step, ReadOptionalQuantity(range, "step"));
  }
  return policy;
}

Result<std::vector<Capacity>> ReadCapacities(const Reader& reader) {
  std::vector<Capacity> capacities;
  for (const auto& [name, entry] : reader.Map("capacity")) {
    entry.Known({"value", "requestPolicy"});
    Capacity& capacity = capacities.emplace_back();
    capacity.name = name;
    ASSIGN_OR_RETURN(capacity.value, ReadQuantity(entry.value()["value"], entry.At("value")));
    if (entry.value()["requestPolicy"].has_value()) {
      ASSIGN_OR_RETURN(capacity.policy, ReadPolicy(entry.Object("requestPolicy")));
    }
  }
  return capacities;
}

Result<std::vector<Counter>> ReadCounters(const Reader& reader) {
  std::vector<Counter> counters;
  for (const auto& [name, entry] : reader.Map("counters")) {
    entry.Known({"value"});
    Counter& counter = counters.emplace_back();
    counter.name = name;
    ASSIGN_OR_RETURN(counter.value, ReadQuantity(entry.value()["value"], entry.At("value")));
  }
  return counters;
}

Taint ReadTaint(const Reader& reader) {
  reader.Known({"key", "value", "effect", "timeAdded"});
  return {reader.Text("key"), reader.Text("value"), reader.Text("effect"),
          reader.Text("timeAdded")};
}

Result<Device> ReadDevice(const Reader& reader) {
  reader.Known({"name", "attributes", "capacity", "consumesCounters", "nodeName", "nodeSelector",
                "allNodes", "taints", "bindsToNode", "bindingConditions",
                "bindingFailureConditions", "allowMultipleAllocations"});
  Device device;
  device.name = reader.Text("name");
  for (const auto& [name, entry] : reader.Map("attributes")) {
    device.attributes.push_back({name, ReadAttribute(entry)});
  }
  ASSIGN_OR_RETURN(device.capacity, ReadCapacities(reader));
  for (const Reader& entry : reader.List("consumesCounters")) {
    entry.Known({"counterSet", "counters", "compatibilityGroups"});
    CounterConsumption& consumption = device.consumes_counters.emplace_back();
    consumption.counter_set = entry.Text("counterSet");
    consumption.compatibility_groups = entry.Texts("compatibilityGroups");
    ASSIGN_OR_RETURN(consumption.counters, ReadCounters(entry));
  }
  device.target = ReadTarget(reader);
  for (const Reader& entry : reader.List("taints")) device.taints.push_back(ReadTaint(entry));
  device.binds_to_node = reader.value()["bindsToNode"].boolean();
  device.binding_conditions = reader.Texts("bindingConditions");
  device.binding_failure_conditions = reader.Texts("bindingFailureConditions");
  device.allow_multiple_allocations = reader.value()["allowMultipleAllocations"].boolean();
  return device;
}

Result<SkipNodeOperations> ReadSkip(const Reader& reader) {
  const Value value = reader.value()["skipNodeOperations"];
  SkipNodeOperations skip;
  if (!value.has_value()) return skip;
  if (value.kind() == ValueKind::kBool) {
    skip.form = value.boolean();
  } else if (value.is_array()) {
    skip.form = reader.Texts("skipNodeOperations");
  } else {
    return InvalidArgument(
        StrCat(reader.At("skipNodeOperations"), ": must be a boolean or a list of operations"));
  }
  return skip;
}

std::vector<Selector> ReadSelectors(const Reader& reader) {
  std::vector<Selector> selectors;
  for (const Reader& entry : reader.List("selectors")) {
    entry.Known({"cel"});
    Selector& selector = selectors.emplace_back();
    const Reader cel = entry.Object("cel");
    if (!cel.value().has_value()) continue;
    cel.Known({"expression"});
    selector.cel = cel.Text("expression");
  }
  return selectors;
}

std::vector<Toleration> ReadTolerations(const Reader& reader) {
  std::vector<Toleration> tolerations;
  for (const Reader& entry : reader.List("tolerations")) {
    entry.Known({"key", "operator", "value", "effect", "tolerationSeconds"});
    tolerations.push_back({entry.Text("key"), entry.Text("operator"), entry.Text("value"),
                           entry.Text("effect"),
                           entry.value()["tolerationSeconds"].optional_integer()});
  }
  return tolerations;
}

std::optional<OpaqueConfig> ReadOpaque(const Reader& reader) {
  const Reader opaque = reader.Object("opaque");
  if (!opaque.value().has_value()) return std::nullopt;
  opaque.Known({"driver", "parameters"});
  const Value parameters = opaque.value()["parameters"];
  return OpaqueConfig{opaque.Text("driver"), parameters.kind() == ValueKind::kRaw
                                                 ? std::string(parameters.str())
                                                 : api::WriteJson(parameters)};
}

// The fields that `exactly` and subrequests have in common.
Result<RequestSpec> ReadSpec(const Reader& reader, std::string name) {
  RequestSpec spec;
  spec.name = std::move(name);
  spec.device_class = reader.Text("deviceClassName");
  spec.selectors = ReadSelectors(reader);
  spec.allocation_mode = reader.Text("allocationMode");
  spec.count = reader.value()["count"].integer();
  spec.admin_access = reader.value()["adminAccess"].optional_boolean();
  spec.tolerations = ReadTolerations(reader);
  if (reader.value()["capacity"].has_value()) {
    const Reader capacity = reader.Object("capacity");
    capacity.Known({"requests"});
    spec.capacity.emplace();
    for (const auto& [key, entry] : capacity.Map("requests")) {
      ASSIGN_OR_RETURN(Quantity quantity, ReadQuantity(entry.value(), entry.path()));
      spec.capacity->push_back({key, std::move(quantity)});
    }
  }
  for (const Reader& entry : reader.List("derivedAttributes")) {
    entry.Known({"name", "expression"});
    spec.derived_attributes.push_back({entry.Text("name"), entry.Text("expression")});
  }
  return spec;
}

Result<Request> ReadRequest(const Reader& reader) {
  reader.Known({"name", "exactly", "firstAvailable"});
  Request request;
  request.name = reader.Text("name");
  if (reader.value()["exactly"].has_value()) {
    const Reader exactly = reader.Object("exactly");
    exactly.Known({"deviceClassName", "selectors", "allocationMode", "count", "adminAccess",
                   "tolerations", "capacity", "derivedAttributes"});
    ASSIGN_OR_RETURN(request.exactly, ReadSpec(exactly, request.name));
  }
  for (const Reader& entry : reader.List("firstAvailable")) {
    entry.Known({"name", "deviceClassName", "selectors", "allocationMode", "count", "tolerations",
                 "capacity", "derivedAttributes"});
    ASSIGN_OR_RETURN(RequestSpec spec, ReadSpec(entry, entry.Text("name")));
    spec.admin_access.reset();
    request.first_available.push_back(std::move(spec));
  }
  return request;
}

Result<DeviceResult> ReadDeviceResult(const Reader& reader) {
  DeviceResult result;
  result.request = reader.Text("request");
  result.id = {reader.Text("driver"), reader.Text("pool"), reader.Text("device")};
  result.admin_access = reader.value()["adminAccess"].boolean();
  result.tolerations = ReadTolerations(reader);
  result.binding_conditions = reader.Texts("bindingConditions");
  result.binding_failure_conditions = reader.Texts("bindingFailureConditions");
  result.share_id = reader.Text("shareID");
  for (const auto& [name, entry] : reader.Map("consumedCapacity")) {
    ASSIGN_OR_RETURN(Quantity quantity, ReadQuantity(entry.value(), entry.path()));
    result.consumed_capacity.push_back({name, std::move(quantity)});
  }
  ASSIGN_OR_RETURN(result.skip_node_operations, ReadSkip(reader));
  return result;
}

}  // namespace

Result<Slice> SliceFromApi(Value value) {
  Slice slice;
  const Reader root(value, "", &slice.unknown_fields);
  slice.name = root.Object("metadata").Text("name");
  const Reader spec = root.Object("spec");
  spec.Known({"driver", "pool", "nodeName", "nodeSelector", "allNodes", "devices",
              "perDeviceNodeSelection", "sharedCounters", "partitionTypeAttribute",
              "skipNodeOperations"});
  slice.driver = spec.Text("driver");
  const Reader pool = spec.Object("pool");
  pool.Known({"name", "generation", "resourceSliceCount"});
  slice.pool = pool.Text("name");
  slice.generation = pool.value()["generation"].integer();
  slice.slice_count = pool.value()["resourceSliceCount"].integer();
  slice.target = ReadTarget(spec);
  slice.per_device_node_selection = spec.value()["perDeviceNodeSelection"].boolean();
  for (const Reader& entry : spec.List("devices")) {
    ASSIGN_OR_RETURN(Device device, ReadDevice(entry));
    slice.devices.push_back(std::move(device));
  }
  for (const Reader& entry : spec.List("sharedCounters")) {
    entry.Known({"name", "counters"});
    CounterSet& set = slice.shared_counters.emplace_back();
    set.name = entry.Text("name");
    ASSIGN_OR_RETURN(set.counters, ReadCounters(entry));
  }
  ASSIGN_OR_RETURN(slice.skip_node_operations, ReadSkip(spec));
  return slice;
}

Result<Claim> ClaimFromApi(Value value) {
  Claim claim;
  const Reader root(value, "", &claim.unknown_fields);
  const Reader metadata = root.Object("metadata");
  claim.ns = metadata.Text("namespace");
  claim.name = metadata.Text("name");
  claim.uid = metadata.Text("uid");
  const Reader spec = root.Object("spec");
  spec.Known({"devices"});
  const Reader devices = spec.Object("devices");
  devices.Known({"requests", "constraints", "config"});
  for (const Reader& entry : devices.List("requests")) {
    ASSIGN_OR_RETURN(Request request, ReadRequest(entry));
    claim.requests.push_back(std::move(request));
  }
  for (const Reader& entry : devices.List("constraints")) {
    entry.Known({"requests", "matchAttribute", "distinctAttribute"});
    claim.constraints.push_back({entry.Texts("requests"), entry.OptionalText("matchAttribute"),
                                 entry.OptionalText("distinctAttribute")});
  }
  for (const Reader& entry : devices.List("config")) {
    entry.Known({"requests", "opaque"});
    claim.config.push_back({entry.Texts("requests"), ReadOpaque(entry)});
  }
  return claim;
}

Result<DeviceClass> DeviceClassFromApi(Value value) {
  DeviceClass device_class;
  const Reader root(value, "", &device_class.unknown_fields);
  device_class.name = root.Object("metadata").Text("name");
  const Reader spec = root.Object("spec");
  spec.Known({"selectors", "config", "extendedResourceName"});
  device_class.selectors = ReadSelectors(spec);
  for (const Reader& entry : spec.List("config")) {
    entry.Known({"opaque"});
    device_class.config.push_back(ReadOpaque(entry));
  }
  device_class.extended_resource_name = spec.OptionalText("extendedResourceName");
  return device_class;
}

Result<TaintRule> TaintRuleFromApi(Value value) {
  TaintRule rule;
  const Reader root(value, "", &rule.unknown_fields);
  rule.name = root.Object("metadata").Text("name");
  const Reader spec = root.Object("spec");
  spec.Known({"deviceSelector", "taint"});
  const Reader selector = spec.Object("deviceSelector");
  if (selector.value().has_value()) {
    selector.Known({"driver", "pool", "device"});
    rule.selector =
        TaintRule::DeviceSelector{selector.OptionalText("driver"), selector.OptionalText("pool"),
                                  selector.OptionalText("device")};
  }
  rule.taint = ReadTaint(spec.Object("taint"));
  return rule;
}

Result<AllocationResult> AllocationFromApi(Value value) {
  AllocationResult allocation;
  const Reader root(value, "allocation", nullptr);
  const Reader devices = root.Object("devices");
  for (const Reader& entry : devices.List("results")) {
    ASSIGN_OR_RETURN(DeviceResult result, ReadDeviceResult(entry));
    allocation.results.push_back(std::move(result));
  }
  for (const Reader& entry : devices.List("config")) {
    allocation.config.push_back({entry.Text("source") == "FromClaim"
                                     ? AllocatedConfig::Source::kClaim
                                     : AllocatedConfig::Source::kClass,
                                 entry.Texts("requests"), ReadOpaque(entry)});
  }
  if (value["nodeSelector"].has_value()) {
    allocation.node_selector = ReadNodeSelector(root.Object("nodeSelector"));
  }
  allocation.allocation_timestamp = root.Text("allocationTimestamp");
  return allocation;
}

Node NodeFromApi(Value value) {
  Node node;
  node.name = value["metadata"]["name"].str();
  for (const MemberView label : value["metadata"]["labels"].members()) {
    node.labels.emplace(label.name, label.value.str());
  }
  for (const Value feature : value["status"]["declaredFeatures"].elements()) {
    node.declared_features.emplace_back(feature.str());
  }
  return node;
}

Result<NodeSelector> NodeSelectorFromApi(Value value) {
  if (!value.is_object()) return InvalidArgument("node selector: must be an object");
  return ReadNodeSelector(Reader(value, "nodeSelector", nullptr));
}

NodeSelectorTerm NodeSelectorTermFromApi(Value value) {
  return ReadNodeSelectorTerm(Reader(value, "nodeSelectorTerm", nullptr));
}

}  // namespace drakkar::device
