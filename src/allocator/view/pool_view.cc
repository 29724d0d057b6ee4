#include "allocator/view/pool_view.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/text/text.h"

namespace drakkar::allocator {
namespace {

constexpr char kNotTargeted = '0';
constexpr char kTargeted = '1';
constexpr char kPerDevice = 'd';

bool DeclaresGroups(const device::Slice& slice) {
  for (const device::Device& device : slice.devices) {
    for (const device::CounterConsumption& consumption : device.consumes_counters) {
      if (!consumption.compatibility_groups.empty()) return true;
    }
  }
  return false;
}

// Without the feature, a slice with groups is ignored.
bool IsHidden(const device::Slice& slice, const Features& features) {
  return !features.compatibility_groups && DeclaresGroups(slice);
}

bool IsIgnored(const device::Slice& slice, const Features& features) {
  if (IsHidden(slice, features)) return true;
  return !features.partitionable_devices &&
         (slice.per_device_node_selection || !slice.shared_counters.empty());
}

// Reads one slice's part of a PoolTargets key.
struct SliceTargets {
  const char* at;
  bool relevant() const { return at[0] != kNotTargeted; }
  bool device(std::size_t index) const { return at[0] == kTargeted || at[1 + index] == kTargeted; }
};

struct Gathered {
  const device::Slice* slice;
  SliceTargets targets;
};

Result<void> CheckDeviceNames(const std::vector<Gathered>& slices) {
  std::set<std::string_view> names;
  for (const Gathered& gathered : slices) {
    for (const device::Device& device : gathered.slice->devices) {
      if (!names.insert(device.name).second)
        return InvalidArgument(StrCat("duplicate device name ", device.name));
    }
  }
  return Ok();
}

// Numbers the counters of a pool and translates what devices consume into those numbers.
class CounterTable {
 public:
  Result<void> Add(const std::vector<const device::Slice*>& slices, PoolView& view) {
    for (const device::Slice* slice : slices) {
      for (const device::CounterSet& set : slice->shared_counters) {
        if (sets_.contains(set.name))
          return InvalidArgument(StrCat("duplicate counter set name ", set.name));
        Set& entry = sets_[set.name];
        entry.number = static_cast<std::uint32_t>(sets_.size() - 1);
        for (const device::Counter& counter : set.counters) {
          entry.counters[counter.name] = static_cast<std::uint32_t>(view.declared.size());
          view.declared.push_back(counter.value);
          view.counter_names.push_back(StrCat(set.name, "/", counter.name));
        }
      }
    }
    view.counter_set_count = sets_.size();
    return Ok();
  }

  Result<void> Translate(const device::Device& device, CounterNeed& need) const {
    for (const device::CounterConsumption& consumption : device.consumes_counters) {
      const auto set = sets_.find(consumption.counter_set);
      if (set == sets_.end()) {
        return InvalidArgument(StrCat("counter set ", consumption.counter_set, " not found"));
      }
      need.sets.push_back({set->second.number, &consumption.compatibility_groups});
      for (const device::Counter& counter : consumption.counters) {
        const auto found = set->second.counters.find(counter.name);
        if (found == set->second.counters.end()) {
          return InvalidArgument(
              StrCat("counter ", counter.name, " not found in counter set ", set->first));
        }
        need.amounts.push_back({found->second, &counter.value});
      }
    }
    return Ok();
  }

 private:
  struct Set {
    std::uint32_t number = 0;
    std::map<std::string_view, std::uint32_t> counters;
  };
  std::map<std::string_view, Set> sets_;
};

Result<void> AddCounters(const std::vector<Gathered>& device_slices,
                         const std::vector<const device::Slice*>& counter_slices,
                         const std::vector<const device::Slice*>& elsewhere, PoolView& view) {
  CounterTable table;
  RETURN_IF_ERROR(table.Add(counter_slices, view));
  for (const Gathered& gathered : device_slices) {
    for (const device::Device& device : gathered.slice->devices) {
      RETURN_IF_ERROR(table.Translate(device, view.counter_needs.emplace_back()));
    }
  }
  for (const device::Slice* slice : elsewhere) {
    for (const device::Device& device : slice->devices) {
      PoolView::Elsewhere entry{device.name, {}};
      RETURN_IF_ERROR(table.Translate(device, entry.need));
      if (!entry.need.sets.empty()) view.elsewhere.push_back(std::move(entry));
    }
  }
  return Ok();
}

bool IsForOneNode(const device::Pool& pool) {
  const std::string& node = pool.slices.begin()->second->target.node_name;
  for (const auto& [name, slice] : pool.slices) {
    if (slice->target.node_name.empty() || slice->target.node_name != node) return false;
  }
  return true;
}

void MarkUnusable(PoolView& view, PoolView::Status status, std::string reason) {
  view.status = status;
  view.reason = std::move(reason);
  view.devices.clear();
  view.counter_needs.clear();
  view.elsewhere.clear();
}

}  // namespace

PoolTargets FindTargets(const device::Pool& pool, const device::Node& node,
                        const Features& features) {
  PoolTargets targets;
  for (const auto& [name, slice] : pool.slices) {
    bool relevant = false;
    const std::size_t start = targets.key.size();
    targets.key += kNotTargeted;
    if (IsIgnored(*slice, features)) continue;
    if (slice->target.IsSet()) {
      Result<bool> matches = device::Matches(slice->target, node);
      if (!matches.ok()) {
        targets.broken = StrCat("failed to perform node selection for slice ", name, ": ",
                                matches.error().message);
        return targets;
      }
      relevant = *matches;
      if (relevant) targets.key[start] = kTargeted;
    } else if (slice->per_device_node_selection) {
      targets.key[start] = kPerDevice;
      for (const device::Device& device : slice->devices) {
        Result<bool> matches = device::Matches(device.target, node);
        if (!matches.ok()) {
          targets.broken = StrCat("failed to perform node selection for device ", device.name,
                                  " in slice ", name, ": ", matches.error().message);
          return targets;
        }
        targets.key += *matches ? kTargeted : kNotTargeted;
        relevant = relevant || *matches;
      }
      if (!relevant) {
        targets.key.resize(start + 1);
        targets.key[start] = kNotTargeted;
      }
    }
    targets.any = targets.any || relevant;
  }
  return targets;
}

std::shared_ptr<PoolView> BuildPoolView(const device::Pool& pool, const PoolTargets& targets,
                                        const Features& features) {
  auto view = std::make_shared<PoolView>();
  view->id = pool.id;
  view->local = IsForOneNode(pool);
  for (const auto& [name, slice] : pool.slices) view->slices.push_back(slice);
  if (targets.broken) {
    MarkUnusable(*view, PoolView::Status::kBroken, *targets.broken);
    return view;
  }

  // Only the newest generation of the slices for this node counts.
  std::vector<Gathered> relevant;
  const char* at = targets.key.data();
  for (const auto& [name, slice] : pool.slices) {
    const SliceTargets slice_targets{at};
    at += *at == kPerDevice ? 1 + slice->devices.size() : 1;
    if (!slice_targets.relevant()) continue;
    if (!relevant.empty() && slice->generation < relevant[0].slice->generation) continue;
    if (!relevant.empty() && slice->generation > relevant[0].slice->generation) relevant.clear();
    relevant.push_back({slice.get(), slice_targets});
  }
  const std::int64_t generation = relevant[0].slice->generation;
  const std::int64_t expected = relevant[0].slice->slice_count;

  // Slices that seem to be missing may be for other nodes.
  std::vector<const device::Slice*> others;
  if (static_cast<std::int64_t>(relevant.size()) != expected) {
    std::size_t count = 0;
    for (const auto& [name, slice] : pool.slices) {
      if (IsHidden(*slice, features)) continue;
      if (slice->generation > generation) return nullptr;
      if (slice->generation < generation) continue;
      ++count;
      const bool is_relevant =
          std::any_of(relevant.begin(), relevant.end(),
                      [&](const Gathered& entry) { return entry.slice == slice.get(); });
      if (!is_relevant) others.push_back(slice.get());
    }
    if (static_cast<std::int64_t>(count) != expected) {
      MarkUnusable(*view, PoolView::Status::kIncomplete,
                   StrCat("has ", count, " of ", expected, " slices of generation ", generation));
      return view;
    }
  }

  std::vector<Gathered> device_slices;
  std::vector<const device::Slice*> counter_slices;
  std::vector<const device::Slice*> elsewhere;
  for (const Gathered& gathered : relevant) {
    if (features.partitionable_devices && !gathered.slice->shared_counters.empty()) {
      counter_slices.push_back(gathered.slice);
    } else {
      device_slices.push_back(gathered);
    }
  }
  for (const device::Slice* slice : others) {
    const bool counters = features.partitionable_devices && !slice->shared_counters.empty();
    (counters ? counter_slices : elsewhere).push_back(slice);
  }

  Result<void> valid = CheckDeviceNames(device_slices);
  if (valid.ok() && features.partitionable_devices) {
    valid = AddCounters(device_slices, counter_slices, elsewhere, *view);
  }
  if (!valid.ok()) {
    MarkUnusable(*view, PoolView::Status::kInvalid, std::move(valid).error().message);
    return view;
  }
  for (const Gathered& gathered : device_slices) {
    for (std::size_t i = 0; i < gathered.slice->devices.size(); ++i) {
      const device::Device& device = gathered.slice->devices[i];
      view->devices.push_back({&device, gathered.slice, gathered.targets.device(i), 0});
      view->taints.push_back(pool.TaintsOf(device));
      view->has_binding_conditions |= !device.binding_conditions.empty();
    }
    view->skips_node_operations |= gathered.slice->skip_node_operations.SkipsAny();
  }
  if (!features.partitionable_devices) view->counter_needs.resize(view->devices.size());
  return view;
}

void RefreshShapes(PoolView& view, ShapeTable& shapes, Interner& pool_shapes) {
  KeyBuilder key;
  key.Small(static_cast<std::uint32_t>(view.status));
  for (std::size_t i = 0; i < view.devices.size(); ++i) {
    ViewDevice& device = view.devices[i];
    device.shape = shapes.Intern(view.id.driver, *device.device, view.taints[i],
                                 device.slice->skip_node_operations.SkipsAny());
    key.Small(device.shape);
    key.Flag(device.targets_node);
  }
  for (std::size_t i = 0; i < view.declared.size(); ++i) {
    key.Text(view.counter_names[i]);
    key.Text(view.declared[i].ToString());
  }
  view.shape_id = pool_shapes.Intern(key.bytes());
}

void RefreshUse(PoolView& view, const device::PoolUse* use, Interner& pool_states) {
  const std::size_t count = view.devices.size();
  view.in_use.assign(count, 0);
  view.shared_use.assign(count, nullptr);
  view.available = view.declared;
  view.overcommitted = false;
  view.groups.assign(view.counter_set_count, GroupState());

  const auto consume = [&view](const CounterNeed& need) {
    for (const CounterNeed::Amount& amount : need.amounts) {
      view.available[amount.counter].Subtract(*amount.value);
    }
    for (const CounterNeed::Membership& member : need.sets) {
      GroupState& state = view.groups[member.counter_set];
      if (JoinGroups(state, *member.groups)) continue;
      // The members are already incompatible, so nothing else can join them.
      state.grouped = true;
      state.common.clear();
    }
  };
  KeyBuilder key;
  key.Small(view.shape_id);
  if (use != nullptr) {
    for (std::size_t i = 0; i < count; ++i) {
      const auto found = use->devices.find(view.devices[i].device->name);
      if (found == use->devices.end()) continue;
      const device::DeviceUse& held = found->second;
      view.in_use[i] = held.exclusive > 0 || held.bars > 0;
      if (held.IsShared()) view.shared_use[i] = &held;
      if (held.IsUsed()) consume(view.counter_needs[i]);
      key.Small(static_cast<std::uint32_t>(i));
      key.Small((held.exclusive > 0 ? 1u : 0u) + (held.bars > 0 ? 2u : 0u));
      key.Small(static_cast<std::uint32_t>(held.consumed.size()));
      key.Flag(held.IsShared());
      for (const auto& [name, amount] : held.consumed) {
        key.Text(name);
        key.Text(amount.ToString());
      }
    }
    for (const PoolView::Elsewhere& other : view.elsewhere) {
      const auto found = use->devices.find(other.device);
      if (found != use->devices.end() && found->second.IsUsed()) consume(other.need);
    }
  }
  for (const api::Quantity& amount : view.available) {
    view.overcommitted = view.overcommitted || amount.Sign() < 0;
  }
  view.state_id = pool_states.Intern(key.bytes());
}

bool JoinGroups(GroupState& state, const std::vector<std::string>& groups) {
  if (!state.has_members) {
    state.has_members = true;
    state.grouped = !groups.empty();
    state.common = groups;
    std::sort(state.common.begin(), state.common.end());
    return true;
  }
  if (groups.empty()) return !state.grouped;
  if (!state.grouped) return false;
  std::vector<std::string> both;
  for (const std::string& group : state.common) {
    if (std::find(groups.begin(), groups.end(), group) != groups.end()) both.push_back(group);
  }
  if (both.empty()) return false;
  state.common = std::move(both);
  return true;
}

}  // namespace drakkar::allocator
