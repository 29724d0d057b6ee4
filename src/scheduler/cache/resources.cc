#include "scheduler/cache/resources.h"

#include <algorithm>

#include "api/meta/quantity.h"
#include "api/meta/saturated.h"

namespace drakkar::scheduler {
namespace {

using api::Value;

// What scoring assumes for a container without requests.
constexpr std::int64_t kAssumedMilliCpu = 100;
constexpr std::int64_t kAssumedMemory = 200LL * 1024 * 1024;

template <typename Others>
auto LowerBound(Others& others, std::string_view name) {
  return std::lower_bound(others.begin(), others.end(), name,
                          [](const auto& entry, std::string_view n) { return entry.first < n; });
}

constexpr api::FieldName kStatusLists[] = {"containerStatuses", "initContainerStatuses"};

Value FindStatus(Value statuses, std::string_view container) {
  for (Value status : statuses.elements()) {
    if (status["name"].str() == container) return status;
  }
  return Value();
}

bool IsResizeInfeasible(Value pod_status) {
  for (Value condition : pod_status["conditions"].elements()) {
    if (condition["type"].str() != "PodResizePending") continue;
    return condition["status"].str() == "True" && condition["reason"].str() == "Infeasible";
  }
  return false;
}

// `statuses` is the list in the pod's status that has the container; absent if the pod is not
// bound.
ResourceAmounts ContainerRequests(Value container, Value statuses, bool infeasible,
                                  bool for_scoring) {
  const Value requests = container["resources"]["requests"];
  ResourceAmounts amounts = ReadResourceList(requests);
  if (!statuses.empty()) {
    const Value status = FindStatus(statuses, container["name"].str());
    if (status["resources"].has_value()) {
      if (infeasible) amounts = {};
      amounts.RaiseTo(ReadResourceList(status["resources"]["requests"]));
      amounts.RaiseTo(ReadResourceList(status["allocatedResources"]));
    }
  }
  if (for_scoring) {
    if (!requests.Entry("cpu").exists()) amounts.milli_cpu = kAssumedMilliCpu;
    if (!requests.Entry("memory").exists()) amounts.memory = kAssumedMemory;
  }
  return amounts;
}

// Larger amounts count as this one, which no node has: 4 PiB of memory, 4 trillion cores. The sums
// of all pods of a node, and a hundred times them, fit an int64.
constexpr std::int64_t kMaxAmount = std::int64_t{1} << 52;

bool IsSidecar(Value init_container) {
  return init_container["restartPolicy"].str() == "Always";
}

// Whether pod-level requests may include this resource.
bool IsPodLevelResource(std::string_view name) {
  return name == "cpu" || name == "memory" || name.starts_with("hugepages-");
}

ResourceAmounts Requests(Value spec, Value status, bool for_scoring) {
  const Value statuses = status[kStatusLists[0]];
  const Value init_statuses = status[kStatusLists[1]];
  const bool infeasible = !statuses.empty() && IsResizeInfeasible(status);
  ResourceAmounts running;
  for (Value container : spec["containers"].elements()) {
    running.Add(ContainerRequests(container, statuses, infeasible, for_scoring));
  }
  ResourceAmounts sidecars;
  ResourceAmounts peak;  // of the init phase
  for (Value container : spec["initContainers"].elements()) {
    const bool is_sidecar = IsSidecar(container);
    ResourceAmounts own =
        ContainerRequests(container, is_sidecar ? init_statuses : Value(), infeasible, for_scoring);
    if (is_sidecar) {
      running.Add(own);
      sidecars.Add(own);
      peak.RaiseTo(sidecars);
    } else {
      own.Add(sidecars);
      peak.RaiseTo(own);
    }
  }
  running.RaiseTo(peak);
  for (const auto& [k, name, quantity] : spec["resources"]["requests"].members()) {
    if (IsPodLevelResource(name)) running.Set(name, ReadAmount(name, quantity));
  }
  running.Add(ReadResourceList(spec["overhead"]));
  running.LowerTo(kMaxAmount);
  return running;
}

}  // namespace

std::int64_t ResourceAmounts::Other(std::string_view name) const {
  auto at = LowerBound(others, name);
  return at != others.end() && at->first == name ? at->second : 0;
}

std::int64_t ResourceAmounts::Get(std::string_view name) const {
  if (name == "cpu") return milli_cpu;
  if (name == "memory") return memory;
  if (name == "ephemeral-storage") return ephemeral_storage;
  return Other(name);
}

void ResourceAmounts::Set(std::string_view name, std::int64_t value) {
  if (name == "cpu") {
    milli_cpu = value;
  } else if (name == "memory") {
    memory = value;
  } else if (name == "ephemeral-storage") {
    ephemeral_storage = value;
  } else {
    auto at = LowerBound(others, name);
    const bool there = at != others.end() && at->first == name;
    if (value == 0) {
      if (there) others.erase(at);
    } else if (there) {
      at->second = value;
    } else {
      others.emplace(at, std::string(name), value);
    }
  }
}

void ResourceAmounts::Add(const ResourceAmounts& more) {
  milli_cpu = api::SaturatedAdd(milli_cpu, more.milli_cpu);
  memory = api::SaturatedAdd(memory, more.memory);
  ephemeral_storage = api::SaturatedAdd(ephemeral_storage, more.ephemeral_storage);
  for (const auto& [name, value] : more.others) {
    Set(name, api::SaturatedAdd(Other(name), value));
  }
}

void ResourceAmounts::RaiseTo(const ResourceAmounts& floor) {
  milli_cpu = std::max(milli_cpu, floor.milli_cpu);
  memory = std::max(memory, floor.memory);
  ephemeral_storage = std::max(ephemeral_storage, floor.ephemeral_storage);
  for (const auto& [name, value] : floor.others) Set(name, std::max(Other(name), value));
}

void ResourceAmounts::LowerTo(std::int64_t ceiling) {
  milli_cpu = std::min(milli_cpu, ceiling);
  memory = std::min(memory, ceiling);
  ephemeral_storage = std::min(ephemeral_storage, ceiling);
  for (auto& [name, value] : others) value = std::min(value, ceiling);
}

std::int64_t ReadAmount(std::string_view name, Value quantity) {
  const auto amount = quantity.is_string()
                          ? api::Quantity::Parse(quantity.str())
                          : Result<api::Quantity>(api::Quantity(quantity.integer()));
  if (!amount.ok()) return 0;
  const std::int64_t value =
      api::SaturatedValue(*amount, name == "cpu" ? api::Quantity::kMilli : 0);
  return std::clamp(value, -kMaxAmount, kMaxAmount);
}

ResourceAmounts ReadResourceList(Value list) {
  ResourceAmounts amounts;
  for (const auto& [k, name, quantity] : list.members()) {
    if (name != "pods") amounts.Set(name, ReadAmount(name, quantity));
  }
  return amounts;
}

ResourceAmounts PodRequests(Value pod_spec, Value pod_status) {
  return Requests(pod_spec, pod_status, false);
}

bool HaveSameResources(Value a, Value b) {
  for (const api::FieldName list : kStatusLists) {
    const Value of_a = a[list];
    const Value of_b = b[list];
    const std::size_t count = std::max(of_a.size(), of_b.size());
    for (std::size_t i = 0; i < count; ++i) {
      const Value one = i < of_a.size() ? of_a.at(i) : Value();
      const Value other = i < of_b.size() ? of_b.at(i) : Value();
      if (!api::Equal(one["allocatedResources"], other["allocatedResources"]) ||
          !api::Equal(one["resources"], other["resources"])) {
        return false;
      }
    }
  }
  return IsResizeInfeasible(a) == IsResizeInfeasible(b);
}

ResourceAmounts PodRequestsForScoring(Value pod_spec, Value pod_status) {
  ResourceAmounts amounts = Requests(pod_spec, pod_status, true);
  amounts.ephemeral_storage = 0;
  amounts.others.clear();
  return amounts;
}

}  // namespace drakkar::scheduler
