#include "controllers/pool_status/views.h"

#include <algorithm>

#include "base/text/text.h"

namespace drakkar::controllers {
namespace {

using api::Quantity;
using api::Value;

constexpr std::size_t kMaxError = 256;

// By counter set and counter.
using Counters = std::map<std::pair<std::string_view, std::string_view>, Quantity>;

Quantity Read(Value text) {
  const Result<Quantity> read = Quantity::Parse(text.str());
  return read.ok() ? *read : Quantity();
}

struct Device {
  std::string_view name;
  std::string_view attribute;  // that groups it; empty: none
  std::optional<std::string_view> type;
  Counters cost;
  bool is_shareable = false;
  Value capacity;
};

// The text of an attribute, which may be written without the driver's domain.
std::optional<std::string_view> TextOf(Value attributes, std::string_view driver,
                                       std::string_view name) {
  Value found = attributes.Entry(name);
  if (!found.exists() && name.starts_with(StrCat(driver, "/"))) {
    found = attributes.Entry(name.substr(driver.size() + 1));
  }
  const Value text = found["string"];
  if (!text.is_string()) return std::nullopt;
  return text.str();
}

std::vector<Device> DevicesOf(const PoolView& view) {
  // A slice's own attribute takes precedence; the request's applies only if no slice has one.
  const bool declares = std::ranges::any_of(
      view.slices, [](Value slice) { return !slice["partitionTypeAttribute"].str().empty(); });
  std::vector<Device> devices;
  for (const Value slice : view.slices) {
    const std::string_view attribute =
        declares ? slice["partitionTypeAttribute"].str() : view.default_attribute;
    for (const Value each : slice["devices"].elements()) {
      Device device;
      device.name = each["name"].str();
      device.attribute = attribute;
      if (!attribute.empty()) device.type = TextOf(each["attributes"], view.driver, attribute);
      for (const Value consumed : each["consumesCounters"].elements()) {
        for (const api::MemberView& counter : consumed["counters"].members()) {
          device.cost[{consumed["counterSet"].str(), counter.name}] = Read(counter.value["value"]);
        }
      }
      device.is_shareable = each["allowMultipleAllocations"].boolean();
      device.capacity = each["capacity"];
      devices.push_back(std::move(device));
    }
  }
  return devices;
}

Counters CountersOf(const PoolView& view) {
  Counters counters;
  for (const Value slice : view.slices) {
    for (const Value set : slice["sharedCounters"].elements()) {
      for (const api::MemberView& counter : set["counters"].members()) {
        counters[{set["name"].str(), counter.name}] = Read(counter.value["value"]);
      }
    }
  }
  return counters;
}

bool Fits(const Counters& cost, const Counters& left) {
  return std::ranges::all_of(cost, [&](const auto& each) {
    const auto found = left.find(each.first);
    return found != left.end() && found->second >= each.second;
  });
}

void Take(const Counters& cost, Counters& left) {
  for (const auto& [name, amount] : cost) {
    if (const auto found = left.find(name); found != left.end()) found->second.Subtract(amount);
  }
}

struct Group {
  std::int64_t total = 0;
  const Counters* cost = nullptr;
  std::vector<const Device*> fresh;
};

// The groups of partitions, or the reason why there are none.
Result<std::vector<api::Draft>> Partitions(const PoolView& view,
                                           const std::vector<Device>& devices) {
  const std::string pool = StrCat("pool ", view.driver, "/", view.name);
  std::map<std::pair<std::string_view, std::string_view>, Group> groups;
  for (const Device& device : devices) {
    if (device.cost.empty() || device.attribute.empty()) continue;
    if (!device.type) {
      return InvalidArgument(StrCat("PartitionTypeMissing: device ", Quote(device.name), " in ",
                                    pool, " does not carry partition type attribute ",
                                    Quote(device.attribute)));
    }
    Group& group = groups[{device.attribute, *device.type}];
    if (group.cost == nullptr) {
      group.cost = &device.cost;
    } else if (*group.cost != device.cost) {
      return InvalidArgument(StrCat("PartitionCostMismatch: devices of partition type ",
                                    Quote(*device.type), " in ", pool,
                                    " consume different counters"));
    }
    ++group.total;
    if (!view.in_use.contains(device.name)) group.fresh.push_back(&device);
  }
  if (groups.size() > kMaxViewItems) {
    return InvalidArgument(StrCat("PartitionSummaryOverCap: ", pool, " has ", groups.size(),
                                  " partition types, exceeding the maximum of ", kMaxViewItems));
  }
  Counters left = CountersOf(view);
  for (const Device& device : devices) {
    if (view.in_use.contains(device.name)) Take(device.cost, left);
  }
  std::vector<api::Draft> summary;
  for (const auto& [key, group] : groups) {
    // For each type separately: how many more could be allocated.
    Counters mine = left;
    std::int64_t allocatable = 0;
    for (const Device* device : group.fresh) {
      if (!Fits(device->cost, mine)) continue;
      Take(device->cost, mine);
      ++allocatable;
    }
    summary.push_back(api::Draft({{"attribute", key.first},
                                  {"type", key.second},
                                  {"total", group.total},
                                  {"allocatable", allocatable}}));
  }
  return summary;
}

// Absent if no device can be shared.
Result<api::Draft> Shareable(const PoolView& view, const std::vector<Device>& devices) {
  std::int64_t untouched = 0;
  std::int64_t touched = 0;
  std::map<std::string_view, Quantity> total;
  for (const Device& device : devices) {
    if (!device.is_shareable) continue;
    (view.in_use.contains(device.name) ? touched : untouched) += 1;
    for (const api::MemberView& each : device.capacity.members()) {
      total[each.name].Add(Read(each.value["value"]));
    }
  }
  if (untouched + touched == 0) return api::Draft();
  if (total.size() > kMaxViewItems) {
    return InvalidArgument(
        StrCat("ShareableSummaryOverCap: pool ", view.driver, "/", view.name, " has ", total.size(),
               " shareable capacity keys, exceeding the maximum of ", kMaxViewItems));
  }
  api::Draft summary(
      {{"fullyAvailableDevices", untouched}, {"partiallyAvailableDevices", touched}});
  for (const auto& [name, amount] : total) {
    const auto found = view.consumed.find(name);
    const Quantity consumed = found == view.consumed.end() ? Quantity() : found->second;
    Quantity left = amount;
    left.Subtract(consumed);
    if (left.Sign() < 0) left = Quantity(0, amount.format());
    summary["capacity"].Append({{"name", name},
                                {"total", amount.ToString()},
                                {"consumed", consumed.ToString()},
                                {"available", left.ToString()}});
  }
  return summary;
}

}  // namespace

void AddPoolViews(const PoolView& view, api::Draft& status) {
  const std::vector<Device> devices = DevicesOf(view);
  std::string error;
  if (std::ranges::any_of(devices, [](const Device& each) { return !each.attribute.empty(); })) {
    if (CountersOf(view).empty()) {
      error = StrCat("PartitionTypeMissing: pool ", view.driver, "/", view.name,
                     " declares partitionTypeAttribute but publishes no sharedCounters");
    } else if (Result<std::vector<api::Draft>> found = Partitions(view, devices); !found.ok()) {
      error = found.error().message;
    } else if (!found->empty()) {
      status["partitionSummary"] = api::Draft::Array(*std::move(found));
    }
  }
  Result<api::Draft> shareable = Shareable(view, devices);
  if (!shareable.ok()) {
    if (error.empty()) error = shareable.error().message;
  } else if (shareable->exists()) {
    status["shareableSummary"] = *std::move(shareable);
  }
  if (error.empty()) return;
  status.Remove("partitionSummary");
  status["validationError"] = error.substr(0, kMaxError);
}

}  // namespace drakkar::controllers
