#include "sdk/driver/slices/desired_pool.h"

#include <set>
#include <utility>

#include "api/codec/object_reader.h"
#include "api/meta/names.h"
#include "api/meta/time.h"
#include "api/scheme/scheme.h"
#include "api/tree/draft.h"
#include "base/text/text.h"

namespace drakkar::driver {
namespace {

using api::Draft;

// Renders a list of plain values as a list of API values.
template <typename T, typename Render>
Draft RenderList(const std::vector<T>& values, Render render) {
  Draft list = Draft::Array();
  for (const T& value : values) list.Append(render(value));
  return list;
}

Draft RenderAttribute(const AttributeValue& value) {
  struct Renderer {
    Draft operator()(std::int64_t number) const { return {{"int", Draft(number)}}; }
    Draft operator()(bool truth) const { return {{"bool", Draft(truth)}}; }
    Draft operator()(const std::string& text) const { return {{"string", Draft(text)}}; }
    Draft operator()(const Version& version) const { return {{"version", Draft(version.text)}}; }
    Draft operator()(const std::vector<std::int64_t>& numbers) const {
      return {{"ints", RenderList(numbers, [](std::int64_t each) { return Draft(each); })}};
    }
    Draft operator()(const std::vector<bool>& truths) const {
      Draft list = Draft::Array();
      for (const bool truth : truths) list.Append(Draft(truth));
      return {{"bools", std::move(list)}};
    }
    Draft operator()(const std::vector<std::string>& texts) const {
      return {{"strings", RenderList(texts, [](const std::string& each) { return Draft(each); })}};
    }
    Draft operator()(const std::vector<Version>& versions) const {
      return {
          {"versions", RenderList(versions, [](const Version& each) { return Draft(each.text); })}};
    }
  };
  return std::visit(Renderer(), value);
}

Draft RenderQuantities(const std::map<std::string, std::string>& quantities) {
  Draft object = Draft::Object();
  for (const auto& [name, quantity] : quantities) object.Entry(name) = {{"value", Draft(quantity)}};
  return object;
}

Draft RenderTaint(const Taint& taint) {
  Draft draft = {{"key", Draft(taint.key)}};
  if (!taint.value.empty()) draft["value"] = taint.value;
  draft["effect"] = taint.effect;
  if (taint.time_added) {
    // Rounded, because the API stores whole seconds.
    draft["timeAdded"] = api::FormatTime(*taint.time_added + std::chrono::milliseconds(500));
  }
  return draft;
}

Draft RenderStrings(const std::vector<std::string>& texts) {
  return RenderList(texts, [](const std::string& each) { return Draft(each); });
}

Draft RenderDevice(const Device& device) {
  Draft draft = {{"name", Draft(device.name)}};
  for (const auto& [name, value] : device.attributes) {
    draft["attributes"].Entry(name) = RenderAttribute(value);
  }
  if (!device.capacity.empty()) draft["capacity"] = RenderQuantities(device.capacity);
  for (const CounterConsumption& consumption : device.consumes_counters) {
    draft["consumesCounters"].Append({{"counterSet", Draft(consumption.counter_set)},
                                      {"counters", RenderQuantities(consumption.counters)}});
  }
  for (const Taint& taint : device.taints) draft["taints"].Append(RenderTaint(taint));
  if (device.binds_to_node) draft["bindsToNode"] = true;
  if (!device.binding_conditions.empty()) {
    draft["bindingConditions"] = RenderStrings(device.binding_conditions);
  }
  if (!device.binding_failure_conditions.empty()) {
    draft["bindingFailureConditions"] = RenderStrings(device.binding_failure_conditions);
  }
  if (device.allow_multiple_allocations) draft["allowMultipleAllocations"] = true;
  if (device.more != nullptr) {
    draft.KeepAlive(device.more);
    for (const api::MemberView& member : device.more->root().members()) {
      draft.Entry(member.name) = Draft(member.value);
    }
  }
  return draft;
}

bool IsComplex(api::Value device) {
  if (!device["taints"].empty() || !device["consumesCounters"].empty()) return true;
  for (const api::MemberView& attribute : device["attributes"].members()) {
    for (const api::FieldName list : api::FieldNames{"ints", "bools", "strings", "versions"}) {
      if (attribute.value[list].exists()) return true;
    }
  }
  return false;
}

// Renders the slices of one pool and checks what concerns the whole pool.
class PoolRenderer {
 public:
  PoolRenderer(const Pool& pool, bool on_node) : pool_(pool), on_node_(on_node) {}

  Result<DesiredPool> Render() {
    if (on_node_ && (pool_.all_nodes || pool_.node_selector != nullptr)) {
      return InvalidArgument("a driver that runs on a node cannot select other nodes for a pool");
    }
    if (pool_.all_nodes && pool_.node_selector != nullptr) {
      return InvalidArgument("a pool cannot have both all_nodes and node_selector");
    }
    for (const Slice& slice : pool_.slices) RETURN_IF_ERROR(Add(slice));
    if (result_.specs.empty()) RETURN_IF_ERROR(Add(Slice{}));
    for (const auto& [set, counter] : consumed_) {
      const auto found = counters_.find(set);
      if (found == counters_.end()) {
        return InvalidArgument(
            StrCat("a device consumes counter set ", Quote(set), ", which the pool does not have"));
      }
      if (!found->second.contains(counter)) {
        return InvalidArgument(StrCat("a device consumes counter ", Quote(counter),
                                      ", which counter set ", Quote(set), " does not have"));
      }
    }
    result_.generation = pool_.generation;
    return std::move(result_);
  }

 private:
  Result<void> Add(const Slice& slice) {
    if (on_node_ && slice.per_device_node_selection) {
      return InvalidArgument("a driver that runs on a node cannot select other nodes for a device");
    }
    if (!on_node_ && !slice.per_device_node_selection && !pool_.all_nodes &&
        pool_.node_selector == nullptr) {
      return InvalidArgument(
          "a pool of a driver without a node needs node_selector, all_nodes or a selection per "
          "device");
    }
    std::vector<Draft> counter_sets;
    for (const CounterSet& set : slice.shared_counters) {
      if (!counters_.emplace(set.name, std::set<std::string>()).second) {
        return InvalidArgument("counter set " + Quote(set.name) + " is listed twice");
      }
      for (const auto& [name, quantity] : set.counters) counters_[set.name].insert(name);
      counter_sets.push_back(
          {{"name", Draft(set.name)}, {"counters", RenderQuantities(set.counters)}});
      if (counter_sets.size() == kMaxCounterSetsPerSlice) {
        RETURN_IF_ERROR(Emit(slice, "sharedCounters", counter_sets));
      }
    }
    if (!counter_sets.empty()) RETURN_IF_ERROR(Emit(slice, "sharedCounters", counter_sets));

    std::vector<Draft> devices;
    bool complex = pool_.may_be_tainted;
    for (const Device& device : slice.devices) {
      if (!names_.insert(device.name).second) {
        return InvalidArgument("device " + Quote(device.name) + " is listed twice");
      }
      Draft draft = RenderDevice(device);
      const api::TreePtr tree = draft.Freeze();
      RETURN_IF_ERROR(NoteConsumption(tree->root()));
      const bool complex_with_it = complex || IsComplex(tree->root());
      const std::size_t limit = complex_with_it ? kMaxComplexDevicesPerSlice : kMaxDevicesPerSlice;
      if (devices.size() + 1 > limit) {
        RETURN_IF_ERROR(Emit(slice, "devices", devices));
        complex = pool_.may_be_tainted || IsComplex(tree->root());
      } else {
        complex = complex_with_it;
      }
      devices.emplace_back(tree);
    }
    if (!devices.empty() || slice.shared_counters.empty()) {
      RETURN_IF_ERROR(Emit(slice, "devices", devices));
    }
    return Ok();
  }

  Result<void> NoteConsumption(api::Value device) {
    for (const api::Value consumption : device["consumesCounters"].elements()) {
      const std::string set(consumption["counterSet"].str());
      for (const api::MemberView& counter : consumption["counters"].members()) {
        consumed_.emplace(set, std::string(counter.name));
      }
    }
    return Ok();
  }

  // Makes one slice of `parts` and clears them.
  Result<void> Emit(const Slice& slice, api::FieldName field, std::vector<Draft>& parts) {
    if (result_.specs.size() >= kMaxSlicesPerPool) {
      return InvalidArgument(StrCat("the pool needs more than ", kMaxSlicesPerPool, " slices"));
    }
    Draft spec = Draft::Object();
    if (pool_.node_selector != nullptr) spec["nodeSelector"] = Draft(pool_.node_selector);
    if (pool_.all_nodes) spec["allNodes"] = true;
    const bool has_devices = field == "devices" && !parts.empty();
    if (!parts.empty()) spec[field] = Draft::Array(std::exchange(parts, {}));
    if (slice.per_device_node_selection) {
      // A slice has one selection: that of its devices takes precedence over the pool's.
      spec.Remove("nodeSelector");
      spec.Remove("allNodes");
      spec["perDeviceNodeSelection"] = true;
    }
    if (has_devices && !slice.partition_type_attribute.empty()) {
      spec["partitionTypeAttribute"] = slice.partition_type_attribute;
    }
    if (!slice.skip_node_operations.empty()) {
      spec["skipNodeOperations"] = RenderStrings(slice.skip_node_operations);
    }
    Draft object = {{"spec", std::move(spec)}};
    static const api::KindSchema* const kind =
        api::FindKind("resource.k8s.io", "v1", "ResourceSlice");
    ASSIGN_OR_RETURN(api::ObjectReadResult read,
                     api::ConvertObject(object.Freeze()->root(), *kind->schema));
    result_.specs.push_back(api::CopyTree(read.tree->root()["spec"]));
    return Ok();
  }

  const Pool& pool_;
  const bool on_node_;
  DesiredPool result_;
  std::set<std::string> names_;
  std::map<std::string, std::set<std::string>> counters_;
  std::set<std::pair<std::string, std::string>> consumed_;
};

// One or more DNS subdomains joined by slashes, 253 bytes.
Result<void> CheckPoolName(const std::string& name) {
  if (name.empty()) return InvalidArgument("a pool must have a name");
  if (name.size() > 253) return InvalidArgument("a pool name must not exceed 253 bytes");
  for (const std::string_view part : Split(name, '/')) {
    const api::Problems problems = api::CheckDnsSubdomain(part);
    if (!problems.empty()) return InvalidArgument(problems.front());
  }
  return Ok();
}

}  // namespace

Result<std::map<std::string, DesiredPool>> MakeDesiredPools(const DriverResources& resources,
                                                            bool on_node) {
  std::map<std::string, DesiredPool> desired;
  for (const auto& [name, pool] : resources.pools) {
    const std::string where = "pool " + Quote(name);
    if (auto valid = CheckPoolName(name); !valid.ok()) {
      return std::move(valid).error().Prefixed(where);
    }
    auto rendered = PoolRenderer(pool, on_node).Render();
    if (!rendered.ok()) return std::move(rendered).error().Prefixed(where);
    desired.emplace(name, *std::move(rendered));
  }
  return desired;
}

}  // namespace drakkar::driver
