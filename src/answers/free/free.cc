#include "answers/free/free.h"

#include <algorithm>
#include <map>
#include <set>

#include "answers/cluster/attributes.h"
#include "answers/cluster/natural_order.h"
#include "base/text/text.h"

namespace drakkar::answers {
namespace {

constexpr std::string_view kNone = "<none>";

struct GroupLess {
  bool operator()(const std::string& a, const std::string& b) const {
    if ((a == kNone) != (b == kNone)) return b == kNone;
    return NaturalLess(a, b);
  }
};

using AmountKey = std::pair<std::string, std::string>;  // group and name
struct AmountLess {
  bool operator()(const AmountKey& a, const AmountKey& b) const {
    if (a.first != b.first) return GroupLess()(a.first, b.first);
    return a.second < b.second;
  }
};
using Amounts = std::map<AmountKey, SharedAmount, AmountLess>;

void AddAmount(Amounts& amounts, const std::string& group, const std::string& name,
               const api::Quantity& total, const api::Quantity& used) {
  SharedAmount& amount = amounts[{group, name}];
  amount.group = group;
  amount.name = name;
  ++amount.count;
  amount.total.Add(total);
  amount.used.Add(used);
  api::Quantity left = total;
  left.Subtract(used);
  if (left.Sign() < 0) left = api::Quantity();
  amount.free.Add(left);
  if (amount.largest_free < left) amount.largest_free = left;
}

std::vector<SharedAmount> Values(Amounts amounts) {
  std::vector<SharedAmount> list;
  for (auto& [key, amount] : amounts) list.push_back(std::move(amount));
  return list;
}

}  // namespace

std::string Grouping::name() const {
  switch (kind) {
    case Kind::kClass:
      return "class";
    case Kind::kModel:
      return "model";
    case Kind::kDriver:
      return "driver";
    case Kind::kNode:
      return "node";
    case Kind::kPool:
      return "pool";
    case Kind::kAttribute:
      return attribute;
  }
  return {};
}

Result<Grouping> ParseGrouping(std::string_view text) {
  using enum Grouping::Kind;
  for (const Grouping::Kind kind : {kClass, kModel, kDriver, kNode, kPool}) {
    Grouping grouping{kind, {}};
    if (grouping.name() == text) return grouping;
  }
  const std::vector<std::string_view> parts = Split(text, '/');
  if (text.empty() || parts.size() > 2 || parts.back().empty()) {
    return InvalidArgument(
        StrCat("--by takes class, model, driver, node, pool or an attribute "
               "(ID or DOMAIN/ID), not ",
               Quote(text)));
  }
  return Grouping{kAttribute, std::string(text)};
}

std::vector<std::string> GroupsOf(const DeviceTable& table, const DeviceEntry& entry,
                                  const Grouping& by) {
  std::vector<std::string> groups;
  switch (by.kind) {
    case Grouping::Kind::kClass:
      for (const std::uint32_t each : entry.classes) groups.push_back(table.classes()[each]);
      break;
    case Grouping::Kind::kModel:
      if (entry.device != nullptr) groups.push_back(ModelOf(entry.id.driver, *entry.device));
      break;
    case Grouping::Kind::kDriver:
      groups.push_back(entry.id.driver);
      break;
    case Grouping::Kind::kNode:
      groups.push_back(entry.node);
      break;
    case Grouping::Kind::kPool:
      groups.push_back(entry.id.pool_id().ToString());
      break;
    case Grouping::Kind::kAttribute:
      if (entry.device != nullptr) {
        groups.push_back(FindAttributeText(entry.id.driver, *entry.device, by.attribute));
      }
      break;
  }
  if (groups.empty() || groups[0].empty()) groups = {std::string(kNone)};
  return groups;
}

bool DeviceFilter::Matches(const DeviceTable& table, const DeviceEntry& entry) const {
  if (!driver.empty() && entry.id.driver != driver) return false;
  if (!node.empty() && entry.node != node) return false;
  if (!pool.empty() && entry.id.pool != pool && entry.id.pool_id().ToString() != pool) return false;
  if (device_class.empty()) return true;
  return std::any_of(entry.classes.begin(), entry.classes.end(),
                     [&](std::uint32_t each) { return table.classes()[each] == device_class; });
}

void DeviceCounts::Add(const DeviceEntry& entry) {
  ++total;
  if (entry.IsFree()) ++free;
  if (entry.IsHeld()) ++held;
  if (entry.IsWaiting()) ++waiting;
  if (entry.IsTainted()) ++tainted;
  if (entry.IsUnhealthy()) ++unhealthy;
  if (!entry.unusable.empty()) ++unusable;
}

FreeAnswer CountFree(const DeviceTable& table, const Grouping& by, const DeviceFilter& filter) {
  FreeAnswer answer;
  answer.by = by.name();
  answer.notes = table.notes();
  std::map<std::string, DeviceCounts, GroupLess> groups;
  Amounts capacity, counters;
  std::map<const PoolEntry*, std::set<std::string>> groups_of_pool;
  for (const DeviceEntry& entry : table.devices()) {
    if (!filter.Matches(table, entry)) continue;
    answer.all.Add(entry);
    for (const std::string& group : GroupsOf(table, entry, by)) {
      groups[group].Add(entry);
      if (entry.pool != nullptr && !entry.pool->counters.empty()) {
        groups_of_pool[entry.pool].insert(group);
      }
      if (!entry.IsShareable()) continue;
      for (const device::Capacity& each : entry.device->capacity) {
        AddAmount(capacity, group, each.name, each.value, entry.Consumed(each.name));
      }
    }
  }
  for (const auto& [pool, names] : groups_of_pool) {
    for (const std::string& group : names) {
      for (const CounterUse& counter : pool->counters) {
        AddAmount(counters, group, counter.name, counter.total, counter.used);
      }
    }
  }
  for (auto& [name, counts] : groups) answer.groups.push_back({name, counts});
  answer.capacity = Values(std::move(capacity));
  answer.counters = Values(std::move(counters));
  return answer;
}

}  // namespace drakkar::answers
