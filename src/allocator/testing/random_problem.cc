#include "allocator/testing/random_problem.h"

#include <algorithm>

#include "base/ids/uuid.h"
#include "base/text/text.h"

namespace drakkar::allocator {
namespace {

constexpr char kDrivers[][16] = {"a.example", "b.example"};

api::Quantity Units(std::uint64_t value) {
  return api::Quantity(static_cast<std::int64_t>(value));
}

class Maker {
 public:
  explicit Maker(Random& random) : random_(random) {}

  RandomProblem Make() {
    MakeFeatures();
    problem_.nodes.push_back({"node-1", {{"zone", "z1"}}, {}});
    problem_.nodes.push_back({"node-2", {{"zone", "z2"}}, {}});
    if (Chance(2)) problem_.nodes[0].declared_features = {device::kOptionalNodeOperations};
    if (Chance(2)) problem_.nodes[1].declared_features = {device::kOptionalNodePreparation};
    const std::uint64_t pools = 2 + random_.Below(2);
    for (std::uint64_t i = 0; i < pools; ++i) MakePool(static_cast<int>(i));
    MakeClasses();
    const std::uint64_t claims = 1 + random_.Below(2);
    for (std::uint64_t i = 0; i < claims; ++i) MakeClaim(static_cast<int>(i));
    MakeAllocations();
    return std::move(problem_);
  }

 private:
  bool Chance(std::uint64_t in) { return random_.Below(in) == 0; }

  void MakeFeatures() {
    Features& features = problem_.features;
    features.admin_access = true;
    features.prioritized_list = true;
    features.compatibility_groups = !Chance(4);
    features.consumable_capacity = !Chance(3);
    features.device_binding_and_status = !Chance(3);
    features.device_taints = !Chance(3);
    features.list_type_attributes = Chance(2);
    features.optional_node_operations = Chance(2);
    features.partitionable_devices = !Chance(4);
  }

  device::AttributeValue RandomValue() {
    const std::string text(1, static_cast<char>('p' + random_.Below(2)));
    switch (random_.Below(6)) {
      case 0:
        return static_cast<std::int64_t>(random_.Below(2));
      case 1:
        return std::vector<std::string>{"p", "q"};
      default:
        return text;
    }
  }

  device::NodeTarget RandomTarget() {
    device::NodeTarget target;
    switch (random_.Below(4)) {
      case 0:
        target.all_nodes = true;
        break;
      case 1:
        target.selector.emplace();
        target.selector->terms.emplace_back().match_expressions.push_back(
            {"zone", "In", {Chance(3) ? "z2" : "z1"}});
        break;
      default:
        target.node_name = Chance(4) ? "node-2" : "node-1";
    }
    return target;
  }

  void MakeDevice(device::Slice& slice, bool counters, int number) {
    device::Device& device = slice.devices.emplace_back();
    device.name = StrCat("dev-", number);
    device.attributes.push_back(
        {"kind", std::string(1, static_cast<char>('x' + random_.Below(2)))});
    if (!Chance(9)) device.attributes.push_back({"shared.example/group", RandomValue()});
    if (Chance(2)) device.capacity.push_back({"units", Units(2 + random_.Below(4)), {}});
    if (!device.capacity.empty() && Chance(3)) {
      device.capacity[0].policy.emplace();
      device.capacity[0].policy->default_value = Units(1);
      device.capacity[0].policy->valid_range.emplace();
      device.capacity[0].policy->valid_range->min = Units(1);
      if (Chance(2)) device.capacity[0].policy->valid_range->step = Units(2);
    }
    device.allow_multiple_allocations = Chance(3);
    if (Chance(8)) device.taints.push_back({"bad", "", "NoSchedule", ""});
    if (Chance(5)) device.binding_conditions = {"ready"};
    if (counters && !Chance(4)) {
      device::CounterConsumption& consumption = device.consumes_counters.emplace_back();
      consumption.counter_set = "set";
      consumption.counters.push_back({"c", Units(1 + random_.Below(2))});
      if (Chance(4)) consumption.compatibility_groups = {Chance(2) ? "g1" : "g2"};
      if (Chance(6)) consumption.compatibility_groups = {"g1", "g2"};
    }
    if (slice.per_device_node_selection) device.target = RandomTarget();
  }

  void MakePool(int number) {
    const std::string driver = kDrivers[random_.Below(2)];
    const bool counters = Chance(2);
    const int device_slices = 1 + static_cast<int>(random_.Below(2));
    int devices = 0;
    const int total = device_slices + (counters ? 1 : 0) + (Chance(16) ? 1 : 0);
    const device::NodeTarget target = RandomTarget();
    for (int i = 0; i < device_slices; ++i) {
      auto slice = std::make_shared<device::Slice>();
      slice->name = StrCat("slice-", number, "-", i);
      slice->driver = driver;
      slice->pool = StrCat("pool-", number);
      slice->generation = 1;
      slice->slice_count = total;
      slice->per_device_node_selection = Chance(6);
      if (!slice->per_device_node_selection) slice->target = Chance(5) ? RandomTarget() : target;
      if (Chance(8)) slice->skip_node_operations.form = true;
      const std::uint64_t count = 2 + random_.Below(2);
      for (std::uint64_t d = 0; d < count; ++d) MakeDevice(*slice, counters, devices++);
      problem_.slices.push_back(std::move(slice));
    }
    if (!counters) return;
    auto slice = std::make_shared<device::Slice>();
    slice->name = StrCat("slice-", number, "-counters");
    slice->driver = driver;
    slice->pool = StrCat("pool-", number);
    slice->generation = 1;
    slice->slice_count = total;
    slice->target = target;
    slice->shared_counters.push_back({"set", {{"c", Units(2 + random_.Below(6))}}});
    problem_.slices.push_back(std::move(slice));
  }

  void MakeClasses() {
    for (const char* driver : kDrivers) {
      auto device_class = std::make_shared<device::DeviceClass>();
      device_class->name = driver;
      device_class->selectors.push_back({StrCat("device.driver == \"", driver, "\"")});
      problem_.classes.push_back(std::move(device_class));
    }
    auto any = std::make_shared<device::DeviceClass>();
    any->name = "any";
    problem_.classes.push_back(std::move(any));
  }

  device::RequestSpec MakeSpec(std::string name, bool may_be_all, bool may_be_admin) {
    device::RequestSpec spec;
    spec.name = std::move(name);
    const std::uint64_t device_class = random_.Below(4);
    spec.device_class = device_class < 2 ? kDrivers[device_class] : "any";
    if (may_be_all && Chance(6)) {
      spec.allocation_mode = "All";
    } else {
      spec.allocation_mode = "ExactCount";
      spec.count = 1 + static_cast<std::int64_t>(random_.Below(5) / 2);
    }
    // The attribute is published by every device, under its driver's domain.
    if (device_class < 2 && Chance(3)) {
      spec.selectors.push_back({StrCat("device.attributes[\"", kDrivers[device_class],
                                       "\"].kind == \"", Chance(2) ? "x" : "y", "\"")});
    }
    if (may_be_admin && Chance(8)) spec.admin_access = true;
    if (Chance(3)) spec.tolerations.push_back({"bad", "Exists", "", "", {}});
    if (problem_.features.consumable_capacity && Chance(4)) {
      spec.capacity.emplace();
      spec.capacity->push_back({"units", Units(1 + random_.Below(3))});
    }
    return spec;
  }

  void MakeClaim(int number) {
    auto claim = std::make_shared<device::Claim>();
    claim->ns = "ns";
    claim->name = StrCat("claim-", number);
    const bool constrained = Chance(2);
    const std::uint64_t requests = 1 + random_.Below(2);
    for (std::uint64_t i = 0; i < requests; ++i) {
      device::Request& request = claim->requests.emplace_back();
      request.name = StrCat("req-", i);
      if (Chance(4)) {
        request.first_available.push_back(MakeSpec("sub-0", !constrained, false));
        request.first_available.push_back(MakeSpec("sub-1", !constrained, false));
      } else {
        request.exactly = MakeSpec(request.name, !constrained, true);
      }
    }
    if (constrained) {
      device::Constraint& constraint = claim->constraints.emplace_back();
      (Chance(3) ? constraint.distinct_attribute : constraint.match_attribute) =
          "shared.example/group";
      if (Chance(3)) constraint.requests = {"req-0"};
    }
    problem_.claims.push_back(std::move(claim));
  }

  void MakeAllocations() {
    for (const auto& slice : problem_.slices) {
      for (const device::Device& device : slice->devices) {
        if (!Chance(6)) continue;
        device::AllocationResult& allocation = problem_.allocated.emplace_back();
        device::DeviceResult& result = allocation.results.emplace_back();
        result.id = {slice->driver, slice->pool, device.name};
        if (!device.allow_multiple_allocations || !problem_.features.consumable_capacity) continue;
        result.share_id = NewUuid(random_);
        for (const device::Capacity& capacity : device.capacity) {
          result.consumed_capacity.push_back({capacity.name, Units(1)});
        }
      }
    }
  }

  Random& random_;
  RandomProblem problem_;
};

}  // namespace

RandomProblem MakeRandomProblem(Random& random) {
  return Maker(random).Make();
}

ClassLookup LookupIn(const RandomProblem& problem) {
  return [&problem](std::string_view name) -> Result<std::shared_ptr<const device::DeviceClass>> {
    for (const auto& device_class : problem.classes) {
      if (device_class->name == name)
        return std::shared_ptr<const device::DeviceClass>(device_class);
    }
    return NotFound(StrCat("no class ", name));
  };
}

}  // namespace drakkar::allocator
