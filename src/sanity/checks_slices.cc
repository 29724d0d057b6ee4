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

std::string CheckOwners(const std::vector<api::ObjectPtr>& slices, const std::string& node) {
  for (const api::ObjectPtr& slice : slices) {
    const std::string_view of = (*slice)["spec"]["nodeName"].str();
    if (of.empty()) continue;
    if (!node.empty() && of != node) return StrCat("slice ", slice->name(), " is for node ", of, ", not ", node);
    bool owned = false;
    for (const Value owner : (*slice)["metadata"]["ownerReferences"].elements()) {
      owned = owned || (owner["kind"].str() == "Node" && owner["name"].str() == of && owner["controller"].boolean());
    }
    if (!owned) return StrCat("slice ", slice->name(), " is not owned by node ", of, ": it would outlive it");
  }
  return "";
}

std::string CheckLimits(const std::vector<api::ObjectPtr>& slices) {
  for (const api::ObjectPtr& slice : slices) {
    const Value devices = (*slice)["spec"]["devices"];
    bool complex = false;
    for (const Value device : devices.elements()) {
      complex = complex || !device["taints"].empty() || !device["consumesCounters"].empty();
      const std::size_t facts = device["attributes"].size() + device["capacity"].size();
      if (facts > 32) {
        return StrCat("device ", device["name"].str(), " has ", facts, " attributes and capacities, 32 are allowed");
      }
    }
    const std::size_t limit = complex ? 64 : 128;
    if (devices.size() > limit) {
      return StrCat("slice ", slice->name(), " has ", devices.size(), " devices, ", limit, " are allowed");
    }
  }
  return "";
}

}  // namespace

std::string DescribeIncompletePools(const std::vector<api::ObjectPtr>& slices) {
  for (const auto& [name, pool] : Pools(slices)) {
    if (static_cast<std::int64_t>(pool.slices.size()) != pool.count) {
      return StrCat("pool ", name, " has ", pool.slices.size(), " slices of generation ", pool.generation,
                    " and announces ", pool.count);
    }
    std::set<std::string> names;
    for (const api::ObjectPtr& slice : pool.slices) {
      if ((*slice)["spec"]["pool"]["resourceSliceCount"].integer() != pool.count) {
        return StrCat("slices of pool ", name, " disagree about their number");
      }
      for (const Value device : (*slice)["spec"]["devices"].elements()) {
        if (!names.insert(std::string(device["name"].str())).second) {
          return StrCat("device ", device["name"].str(), " comes twice in pool ", name);
        }
      }
    }
  }
  return "";
}

void CheckSlices(DriverUnderTest& driver) {
  std::vector<api::ObjectPtr> slices;
  driver.Check("slices.published", "its devices are published on the API server", [&] {
    if (driver.driver_name.empty()) return std::string("the driver's name is not known");
    std::string problem = "no ResourceSlice of driver " + driver.driver_name;
    // Until the pools are complete or the time is up; the list itself waits too.
    for (int attempt = 0; attempt < 50; ++attempt) {
      auto listed = driver.ListSlices();
      if (!listed.ok()) return listed.error().message;
      slices = *std::move(listed);
      if (!slices.empty() && DescribeIncompletePools(slices).empty()) return std::string();
      driver.options().wait_until([] { return false; }, driver.options().timeout / 50);
    }
    return slices.empty() ? problem : std::string();
  });
  if (slices.empty()) return;
  driver.Check("slices.complete", "every pool is complete and names each device once",
               [&] { return DescribeIncompletePools(slices); });
  driver.Check("slices.owned", "slices of a node are its own and are owned by it",
               [&] { return CheckOwners(slices, driver.options().node_name); });
  driver.Check("slices.limits", "no slice is beyond the limits of the API", [&] { return CheckLimits(slices); });
  for (const auto& [name, pool] : Pools(slices)) {
    for (const api::ObjectPtr& slice : pool.slices) {
      // What is not called on a node cannot be prepared there.
      if (!(*slice)["spec"]["skipNodeOperations"].empty()) continue;
      for (const Value device : (*slice)["spec"]["devices"].elements()) {
        driver.devices.push_back({name, std::string(device["name"].str())});
      }
    }
  }
}

}  // namespace drakkar::sanity
