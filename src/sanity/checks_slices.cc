#include <map>
#include <set>

#include "base/text/text.h"
#include "sanity/driver_under_test.h"

namespace drakkar::sanity {
namespace {

using api::Value;

struct PoolView {
  std::int64_t generation = 0;
  std::int64_t count = 0;
  std::vector<api::ObjectPtr> slices;  // of that generation
};

std::map<std::string, PoolView> Pools(const std::vector<api::ObjectPtr>& slices) {
  std::map<std::string, PoolView> pools;
  for (const api::ObjectPtr& slice : slices) {
    const Value pool = (*slice)["spec"]["pool"];
    PoolView& view = pools[std::string(pool["name"].str())];
    const std::int64_t generation = pool["generation"].integer();
    if (generation < view.generation) continue;
    if (generation > view.generation) view.slices.clear();
    view.generation = generation;
    view.count = pool["resourceSliceCount"].integer();
    view.slices.push_back(slice);
  }
  return pools;
}

Result<void> CheckOwners(const std::vector<api::ObjectPtr>& slices) {
  for (const api::ObjectPtr& slice : slices) {
    const std::string_view of = (*slice)["spec"]["nodeName"].str();
    if (of.empty()) continue;
    bool owned = false;
    for (const Value owner : (*slice)["metadata"]["ownerReferences"].elements()) {
      owned = owned || (owner["kind"].str() == "Node" && owner["name"].str() == of &&
                        owner["controller"].boolean());
    }
    if (!owned)
      return FailedPrecondition(StrCat("slice ", slice->name(), " is not owned by node ", of,
                                       ", so it would outlive the node"));
  }
  return Ok();
}

// Per device; list items count individually.
constexpr std::size_t kMaxAttributeValues = 48;

std::size_t AttributeValues(Value device) {
  std::size_t values = 0;
  for (const auto& [key, name, attribute] : device["attributes"].members()) {
    std::size_t items = 0;
    for (const api::FieldName list : api::FieldNames{"ints", "bools", "strings", "versions"})
      items += attribute[list].size();
    values += items == 0 ? 1 : items;
  }
  return values;
}

Result<void> CheckLimits(const std::vector<api::ObjectPtr>& slices) {
  for (const api::ObjectPtr& slice : slices) {
    const Value devices = (*slice)["spec"]["devices"];
    bool complex = false;
    for (const Value device : devices.elements()) {
      complex = complex || !device["taints"].empty() || !device["consumesCounters"].empty();
      const std::size_t facts = device["attributes"].size() + device["capacity"].size();
      if (facts > 32) {
        return FailedPrecondition(StrCat("device ", device["name"].str(), " has ", facts,
                                         " attributes and capacities; at most 32 are allowed"));
      }
      if (const std::size_t values = AttributeValues(device); values > kMaxAttributeValues) {
        return FailedPrecondition(StrCat("device ", device["name"].str(), " has ", values,
                                         " attribute values; at most ", kMaxAttributeValues,
                                         " are allowed"));
      }
    }
    const std::size_t limit = complex ? 64 : 128;
    if (devices.size() > limit) {
      return FailedPrecondition(StrCat("slice ", slice->name(), " has ", devices.size(),
                                       " devices; at most ", limit, " are allowed"));
    }
  }
  return Ok();
}

}  // namespace

Result<void> CheckPools(const std::vector<api::ObjectPtr>& slices) {
  for (const auto& [name, pool] : Pools(slices)) {
    if (static_cast<std::int64_t>(pool.slices.size()) != pool.count) {
      return FailedPrecondition(StrCat("pool ", name, " has ", pool.slices.size(),
                                       " slices of generation ", pool.generation,
                                       ", but resourceSliceCount is ", pool.count));
    }
    std::set<std::string> names;
    for (const api::ObjectPtr& slice : pool.slices) {
      if ((*slice)["spec"]["pool"]["resourceSliceCount"].integer() != pool.count) {
        return FailedPrecondition(
            StrCat("slices of pool ", name, " disagree on resourceSliceCount"));
      }
      for (const Value device : (*slice)["spec"]["devices"].elements()) {
        if (!names.insert(std::string(device["name"].str())).second) {
          return FailedPrecondition(
              StrCat("device ", device["name"].str(), " is listed twice in pool ", name));
        }
      }
    }
  }
  return Ok();
}

void CheckSlices(DriverUnderTest& driver) {
  std::vector<api::ObjectPtr> slices;
  driver.Check(
      "slices.published", "its devices are published on the API server", [&]() -> Result<void> {
        if (driver.driver_name.empty()) {
          return FailedPrecondition(
              "the driver's name is unknown, because the socket does not serve registration; "
              "use --driver-name");
        }
        // Until the pools are complete or the time is up; listing waits too.
        for (int attempt = 0; attempt < 50; ++attempt) {
          if (auto found = driver.FindNode(); !found.ok()) return found.error();
          auto listed = driver.ListSlices();
          if (!listed.ok()) return listed.error();
          slices = *std::move(listed);
          if (!slices.empty() && CheckPools(slices).ok()) return Ok();
          driver.options().wait_until([] { return false; }, driver.options().timeout / 50);
        }
        if (!slices.empty()) return Ok();
        return FailedPrecondition(
            StrCat("no ResourceSlices of driver ", driver.driver_name,
                   driver.node_name.empty() ? "" : " for node " + driver.node_name));
      });
  if (slices.empty()) return;
  driver.Check("slices.complete", "every pool is complete and lists each device once",
               [&] { return CheckPools(slices); });
  driver.Check("slices.owned", "slices of a node are owned by it",
               [&] { return CheckOwners(slices); });
  driver.Check("slices.limits", "no slice exceeds the limits of the API",
               [&] { return CheckLimits(slices); });
  for (const auto& [name, pool] : Pools(slices)) {
    for (const api::ObjectPtr& slice : pool.slices) {
      for (const Value device : (*slice)["spec"]["devices"].elements()) {
        driver.published.push_back({name, std::string(device["name"].str())});
      }
    }
  }
  const auto held = driver.HeldDevices();
  if (!held.ok()) {
    driver.no_device = "could not list claims to find free devices: " + held.error().message;
    return;
  }
  std::vector<std::string> in_use;
  for (const auto& [name, pool] : Pools(slices)) {
    for (const api::ObjectPtr& slice : pool.slices) {
      // Devices that skip node operations cannot be prepared.
      if (!(*slice)["spec"]["skipNodeOperations"].empty()) continue;
      for (const Value device : (*slice)["spec"]["devices"].elements()) {
        const std::string device_name(device["name"].str());
        if (held->contains({name, device_name})) {
          in_use.push_back(StrCat(name, "/", device_name));
        } else {
          driver.devices.push_back({name, device_name});
        }
      }
    }
  }
  if (in_use.empty()) return;
  const std::string why = StrCat(in_use.size(), " of ", in_use.size() + driver.devices.size(),
                                 " devices are allocated and left alone: ", Join(in_use, ", "));
  if (driver.devices.empty()) driver.no_device = why;
  driver.Skip("slices.in-use", "all devices are checked", why);
}

}  // namespace drakkar::sanity
