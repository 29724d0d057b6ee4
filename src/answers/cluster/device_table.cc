#include "answers/cluster/device_table.h"

#include <algorithm>
#include <set>

#include "answers/cluster/class_membership.h"
#include "api/meta/time.h"
#include "base/text/text.h"
#include "claims/claim.h"
#include "device/from_api.h"

namespace drakkar::answers {
namespace {

using api::Value;

// Limit for sentences about objects that cannot be read.
constexpr std::size_t kMaxNotes = 5;

void AddNote(std::vector<std::string>& notes, std::string note) {
  if (notes.size() < kMaxNotes) notes.push_back(std::move(note));
}

std::vector<device::TaintRule> ReadRules(const Snapshot& snapshot,
                                         std::vector<std::string>& notes) {
  std::vector<device::TaintRule> rules;
  for (const api::ObjectPtr& object : snapshot.taint_rules) {
    Result<device::TaintRule> rule = device::TaintRuleFromApi(object->root());
    if (rule.ok()) {
      rules.push_back(std::move(*rule));
    } else {
      AddNote(notes, StrCat("DeviceTaintRule ", object->name(),
                            " cannot be read: ", rule.error().message));
    }
  }
  return rules;
}

bool SelectsAnyRule(const std::vector<device::TaintRule>& rules, const device::PoolId& pool) {
  return std::any_of(rules.begin(), rules.end(),
                     [&](const device::TaintRule& rule) { return rule.MatchesPool(pool); });
}

}  // namespace

bool PreventsAllocation(const device::Taint& taint) {
  return taint.effect == "NoSchedule" || taint.effect == "NoExecute";
}

bool DeviceEntry::IsHeld() const {
  return std::any_of(holds.begin(), holds.end(),
                     [](const Hold& hold) { return !hold.result->admin_access; });
}

bool DeviceEntry::IsWaiting() const {
  return std::any_of(holds.begin(), holds.end(), [](const Hold& hold) {
    return hold.claim->waiting && !hold.result->binding_conditions.empty();
  });
}

bool DeviceEntry::IsTainted() const {
  return std::any_of(taints.begin(), taints.end(), PreventsAllocation);
}

api::Quantity DeviceEntry::Consumed(std::string_view capacity) const {
  api::Quantity total;
  for (const Hold& hold : holds) {
    for (const device::ConsumedCapacity& each : hold.result->consumed_capacity) {
      if (each.name == capacity) total.Add(each.value);
    }
  }
  return total;
}

bool DeviceEntry::IsUsedUp() const {
  if (!IsHeld()) return false;
  for (const Hold& hold : holds) {
    if (!hold.result->admin_access && hold.result->share_id.empty()) return true;
  }
  if (!IsShareable()) return true;
  return std::any_of(device->capacity.begin(), device->capacity.end(), [&](const auto& capacity) {
    return capacity.value.Sign() > 0 && Consumed(capacity.name) >= capacity.value;
  });
}

bool DeviceEntry::IsFree() const {
  return device != nullptr && !IsUsedUp() && !IsTainted() && !IsUnhealthy() && unusable.empty();
}

std::string_view DeviceEntry::State() const {
  if (IsUnhealthy()) return "Unhealthy";
  if (IsTainted()) return "Tainted";
  if (IsWaiting()) return "Waiting";
  if (IsHeld()) return "Held";
  return IsFree() ? "Free" : "Unusable";
}

std::string DescribeNodeProblem(const api::Object& node, const api::Object* lease, WallTime now) {
  for (Value condition : node["status"]["conditions"].elements()) {
    if (condition["type"].str() == "Ready" && condition["status"].str() != "True") {
      return "node is not ready";
    }
  }
  if (lease != nullptr) {
    const Value spec = (*lease)["spec"];
    const Result<WallTime> renewed = api::ParseTime(spec["renewTime"].str());
    const std::chrono::seconds duration(spec["leaseDurationSeconds"].integer());
    if (renewed.ok() && duration.count() > 0 && *renewed + duration < now) {
      return "node does not renew its lease";
    }
  }
  if (node["spec"]["unschedulable"].boolean()) return "node is cordoned";
  return {};
}

DeviceTable::DeviceTable(const Snapshot& snapshot, Options options) {
  AddSlices(snapshot);
  AddClaims(snapshot);
  std::sort(devices_.begin(), devices_.end(),
            [](const DeviceEntry& a, const DeviceEntry& b) { return a.id < b.id; });
  for (std::size_t i = 0; i < devices_.size(); ++i) index_[devices_[i].id.ToString()] = i;
  for (auto& [id, pool] : pools_) FindCounters(pool);
  FindUnusable(snapshot);
  if (options.compiler != nullptr) FindClasses(snapshot, *options.compiler);
  FindHealth(snapshot);
}

const DeviceEntry* DeviceTable::Find(const device::DeviceId& id) const {
  const auto found = index_.find(id.ToString());
  return found == index_.end() ? nullptr : &devices_[found->second];
}

void DeviceTable::AddSlices(const Snapshot& snapshot) {
  std::map<device::PoolId, std::map<std::string, std::shared_ptr<const device::Slice>>> by_pool;
  for (const api::ObjectPtr& object : snapshot.slices) {
    Result<device::Slice> slice = device::SliceFromApi(object->root());
    if (!slice.ok()) {
      AddNote(notes_,
              StrCat("ResourceSlice ", object->name(), " cannot be read: ", slice.error().message));
      continue;
    }
    auto shared = std::make_shared<const device::Slice>(std::move(*slice));
    by_pool[shared->pool_id()][shared->name] = shared;
  }
  const std::vector<device::TaintRule> rules = ReadRules(snapshot, notes_);
  for (auto& [id, slices] : by_pool) {
    PoolEntry& pool = pools_[id];
    pool.id = id;
    for (auto& [name, slice] : slices) {
      if (!pool.slices.empty() && slice->generation < pool.generation) continue;
      if (slice->generation > pool.generation) pool.slices.clear();
      pool.generation = slice->generation;
      pool.expected_slices = slice->slice_count;
      pool.slices.push_back(slice);
    }
    if (std::cmp_not_equal(pool.slices.size(), pool.expected_slices)) {
      pool.problem = StrCat("pool has ", pool.slices.size(), " of ", pool.expected_slices,
                            " slices of generation ", pool.generation);
    }
    AddPool(pool, rules);
  }
}

void DeviceTable::AddPool(PoolEntry& pool, const std::vector<device::TaintRule>& rules) {
  const bool has_rules = SelectsAnyRule(rules, pool.id);
  std::set<std::string_view> names;
  for (const auto& slice : pool.slices) {
    for (const device::Device& device : slice->devices) {
      if (!names.insert(device.name).second) {
        pool.problem = StrCat("pool lists device ", device.name, " twice");
        continue;
      }
      DeviceEntry& entry = devices_.emplace_back();
      entry.id = {pool.id.driver, pool.id.pool, device.name};
      entry.pool = &pool;
      entry.device = &device;
      entry.node = slice->target.node_name;
      if (entry.node.empty()) entry.node = device.target.node_name;
      entry.taints = device.taints;
      if (!has_rules) continue;
      for (const device::TaintRule& rule : rules) {
        if (rule.MatchesPool(pool.id) && rule.MatchesDevice(device.name)) {
          entry.taints.push_back(rule.taint);
        }
      }
    }
  }
}

DeviceEntry& DeviceTable::EntryFor(const device::DeviceId& id) {
  const auto [found, is_new] = index_.try_emplace(id.ToString(), devices_.size());
  if (is_new) {
    devices_.emplace_back().id = id;
    devices_.back().unusable = "no ResourceSlice lists it";
  }
  return devices_[found->second];
}

void DeviceTable::AddClaims(const Snapshot& snapshot) {
  const PodsByUid pods = IndexPods(snapshot.pods);
  for (std::size_t i = 0; i < devices_.size(); ++i) index_[devices_[i].id.ToString()] = i;
  std::vector<const api::ObjectPtr*> allocated;
  for (const api::ObjectPtr& claim : snapshot.claims) {
    if (claims::IsAllocated(claim->root())) allocated.push_back(&claim);
  }
  std::sort(allocated.begin(), allocated.end(),
            [](const api::ObjectPtr* a, const api::ObjectPtr* b) {
              return (*a)->qualified_name() < (*b)->qualified_name();
            });
  for (const api::ObjectPtr* claim : allocated) {
    Result<ClaimUse> use = ReadClaimUse(*claim, pods);
    if (!use.ok()) {
      AddNote(notes_, StrCat("the allocation of ResourceClaim ", (*claim)->qualified_name(),
                             " cannot be read: ", use.error().message));
      continue;
    }
    claims_.push_back(std::make_unique<ClaimUse>(std::move(*use)));
    for (const device::DeviceResult& result : claims_.back()->allocation.results) {
      EntryFor(result.id).holds.push_back({claims_.back().get(), &result});
    }
  }
}

void DeviceTable::FindCounters(PoolEntry& pool) {
  std::map<std::pair<std::string_view, std::string_view>, std::size_t> numbers;
  for (const auto& slice : pool.slices) {
    for (const device::CounterSet& set : slice->shared_counters) {
      for (const device::Counter& counter : set.counters) {
        numbers[{set.name, counter.name}] = pool.counters.size();
        pool.counters.push_back({set.name, counter.name, counter.value, {}});
      }
    }
  }
  if (numbers.empty()) return;
  const auto each_need = [&](const device::Device& device, const auto& use) {
    for (const device::CounterConsumption& consumption : device.consumes_counters) {
      for (const device::Counter& counter : consumption.counters) {
        const auto found = numbers.find({consumption.counter_set, counter.name});
        if (found != numbers.end()) use(pool.counters[found->second], counter.value);
      }
    }
  };
  std::vector<DeviceEntry*> idle;
  for (const auto& slice : pool.slices) {
    for (const device::Device& device : slice->devices) {
      DeviceEntry& entry = devices_[index_[StrCat(pool.id.ToString(), "/", device.name)]];
      if (entry.device != &device) continue;
      if (!entry.IsHeld()) {
        idle.push_back(&entry);
        continue;
      }
      each_need(device,
                [](CounterUse& counter, const api::Quantity& amount) { counter.used.Add(amount); });
    }
  }
  for (DeviceEntry* entry : idle) {
    each_need(*entry->device, [&](const CounterUse& counter, const api::Quantity& amount) {
      api::Quantity left = counter.total;
      left.Subtract(counter.used);
      if (amount > left && entry->unusable.empty()) {
        entry->unusable = StrCat("counter ", counter.set, "/", counter.name, " has ",
                                 left.ToString(), " left and it needs ", amount.ToString());
      }
    });
  }
}

void DeviceTable::FindUnusable(const Snapshot& snapshot) {
  std::unordered_map<std::string_view, const api::Object*> leases;
  for (const api::ObjectPtr& lease : snapshot.leases) leases[lease->name()] = lease.get();
  std::unordered_map<std::string_view, std::string> nodes;
  for (const api::ObjectPtr& node : snapshot.nodes) {
    const auto lease = leases.find(node->name());
    nodes[node->name()] =
        DescribeNodeProblem(*node, lease == leases.end() ? nullptr : lease->second, snapshot.now);
  }
  for (DeviceEntry& entry : devices_) {
    if (entry.pool == nullptr) continue;
    if (!entry.pool->problem.empty()) {
      entry.unusable = entry.pool->problem;
    } else if (!entry.node.empty() && snapshot.has_nodes) {
      const auto node = nodes.find(entry.node);
      if (node == nodes.end()) {
        entry.unusable = StrCat("node ", entry.node, " does not exist");
      } else if (!node->second.empty()) {
        entry.unusable = node->second;
      }
    }
  }
}

void DeviceTable::FindClasses(const Snapshot& snapshot, device::ExpressionCompiler& compiler) {
  ClassMembership membership(snapshot.classes, compiler);
  classes_ = membership.names();
  for (const std::string& note : membership.notes()) AddNote(notes_, note);
  for (DeviceEntry& entry : devices_) {
    if (entry.device != nullptr) entry.classes = membership.Find(entry.id.driver, *entry.device);
  }
}

void DeviceTable::FindHealth(const Snapshot& snapshot) {
  // Reads device health from a pod's status, only for devices that its own claims hold.
  const auto read = [this](const ClaimUse& use, Value containers) {
    for (Value container : containers.elements()) {
      for (Value resource : container["allocatedResourcesStatus"].elements()) {
        for (Value each : resource["resources"].elements()) {
          const auto found = index_.find(std::string(each["resourceID"].str()));
          if (found == index_.end()) continue;
          DeviceEntry& entry = devices_[found->second];
          const bool own = std::any_of(entry.holds.begin(), entry.holds.end(),
                                       [&](const Hold& hold) { return hold.claim == &use; });
          if (!own) continue;
          entry.health.health = each["health"].str("Unknown");
          entry.health.message = each["message"].str();
        }
      }
    }
  };
  for (const auto& use : claims_) {
    for (const Consumer& consumer : use->consumers) {
      if (consumer.pod == nullptr) continue;
      const Value status = (*consumer.pod)["status"];
      read(*use, status["initContainerStatuses"]);
      read(*use, status["containerStatuses"]);
    }
  }
  if (snapshot.node_health.empty()) return;
  const auto take = [&](const std::string& node, DeviceEntry& entry) {
    const auto answers = snapshot.node_health.find(node);
    if (answers == snapshot.node_health.end()) return;
    const auto found = answers->second.find(entry.id);
    if (found != answers->second.end()) entry.health = found->second;
  };
  for (DeviceEntry& entry : devices_) {
    for (const Hold& hold : entry.holds) {
      for (const Consumer& consumer : hold.claim->consumers) {
        if (consumer.pod != nullptr) {
          take(std::string((*consumer.pod)["spec"]["nodeName"].str()), entry);
        }
      }
    }
    if (!entry.node.empty()) take(entry.node, entry);
  }
}

std::vector<std::string> DeviceTable::NodesToAsk() const {
  std::set<std::string> nodes;
  for (const DeviceEntry& entry : devices_) {
    if (!entry.node.empty()) nodes.insert(entry.node);
    for (const Hold& hold : entry.holds) {
      for (const Consumer& consumer : hold.claim->consumers) {
        if (consumer.pod == nullptr) continue;
        const std::string_view node = (*consumer.pod)["spec"]["nodeName"].str();
        if (!node.empty()) nodes.emplace(node);
      }
    }
  }
  return {nodes.begin(), nodes.end()};
}

}  // namespace drakkar::answers
