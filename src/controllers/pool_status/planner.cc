#include "controllers/pool_status/planner.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "api/meta/time.h"
#include "base/text/text.h"
#include "controllers/pool_status/views.h"
#include "device/from_api.h"

namespace drakkar::controllers {

namespace {

using api::Value;

constexpr std::int64_t kDefaultLimit = 100;
constexpr std::size_t kMaxError = 256;

struct Pool {
  std::int64_t generation = 0;
  std::int64_t slices = 0;
  std::int64_t expected_slices = 0;
  std::int64_t devices = 0;
  std::int64_t unavailable = 0;
  std::string node;
  bool mixed_nodes = false;
  std::vector<Value> specs;  // of its slices
};

bool KeepsAway(std::string_view effect) {
  return effect == "NoSchedule" || effect == "NoExecute";
}

bool IsUnavailable(const device::PoolId& pool, Value device,
                   const std::vector<device::TaintRule>& rules) {
  for (Value taint : device["taints"].elements()) {
    if (KeepsAway(taint["effect"].str())) return true;
  }
  const std::string name(device["name"].str());
  return std::ranges::any_of(rules, [&](const device::TaintRule& rule) {
    return KeepsAway(rule.taint.effect) && rule.MatchesPool(pool) && rule.MatchesDevice(name);
  });
}

}  // namespace

PoolStatusPlan PlanPoolStatus(const PoolStatusState& state) {
  const Value spec = state.request["spec"];
  const std::string_view driver = spec["driver"].str();
  const std::string_view only = spec["poolName"].str();
  const auto is_wanted = [&](Value slice) {
    return slice["driver"].str() == driver && (only.empty() || slice["pool"]["name"].str() == only);
  };
  std::vector<device::TaintRule> rules;
  for (const api::ObjectPtr& rule : state.rules) {
    Result<device::TaintRule> read = device::TaintRuleFromApi(rule->root());
    if (read.ok()) rules.push_back(std::move(*read));
  }
  // Only slices of the highest generation count; older ones are about to be deleted.
  std::map<std::string, Pool> pools;
  for (const api::ObjectPtr& slice : state.slices) {
    const Value each = (*slice)["spec"];
    if (!is_wanted(each)) continue;
    Pool& pool = pools[std::string(each["pool"]["name"].str())];
    pool.generation = std::max(pool.generation, each["pool"]["generation"].integer());
  }
  for (const api::ObjectPtr& slice : state.slices) {
    const Value each = (*slice)["spec"];
    if (!is_wanted(each)) continue;
    const std::string name(each["pool"]["name"].str());
    Pool& pool = pools[name];
    if (each["pool"]["generation"].integer() < pool.generation) continue;
    pool.specs.push_back(each);
    const std::string_view node = each["nodeName"].str();
    if (pool.slices++ == 0) {
      pool.node = node;
      pool.expected_slices = each["pool"]["resourceSliceCount"].integer();
    } else if (pool.node != node) {
      pool.mixed_nodes = true;
    }
    const device::PoolId id{std::string(driver), name};
    for (Value device : each["devices"].elements()) {
      ++pool.devices;
      pool.unavailable += IsUnavailable(id, device, rules);
    }
  }
  // A device that several claims share is counted once. Admin access does not use up anything.
  std::map<std::string, std::set<std::string_view>, std::less<>> in_use;
  std::map<std::string, std::map<std::string_view, api::Quantity>, std::less<>> consumed;
  for (const api::ObjectPtr& claim : state.claims) {
    for (Value result : (*claim)["status"]["allocation"]["devices"]["results"].elements()) {
      if (result["driver"].str() != driver || result["adminAccess"].boolean()) continue;
      const std::string pool(result["pool"].str());
      in_use[pool].insert(result["device"].str());
      for (const api::MemberView& each : result["consumedCapacity"].members()) {
        const Result<api::Quantity> amount = api::Quantity::Parse(each.value.str());
        if (amount.ok()) consumed[pool][each.name].Add(*amount);
      }
    }
  }
  PoolStatusPlan plan;
  plan.status = api::Draft::Object();
  plan.status["poolCount"] = static_cast<std::int64_t>(pools.size());
  plan.status["pools"] = api::Draft::Array();
  const auto limit =
      static_cast<std::size_t>(std::max<std::int64_t>(0, spec["limit"].integer(kDefaultLimit)));
  std::size_t shown = 0, incomplete = 0;
  for (const auto& [name, pool] : pools) {
    if (shown++ == limit) {
      --shown;
      break;
    }
    api::Draft& each = plan.status["pools"].Append(
        api::Draft{{"driver", driver}, {"poolName", name}, {"generation", pool.generation}});
    if (!pool.node.empty() && !pool.mixed_nodes) each["nodeName"] = pool.node;
    if (pool.slices < pool.expected_slices) {
      ++incomplete;
      each["validationError"] =
          StrCat("PoolIncomplete: pool ", driver, "/", name, " is incomplete: observed ",
                 pool.slices, "/", pool.expected_slices, " slices at generation ", pool.generation)
              .substr(0, kMaxError);
      continue;
    }
    const auto found = in_use.find(name);
    const std::int64_t used =
        found == in_use.end() ? 0 : static_cast<std::int64_t>(found->second.size());
    each["resourceSliceCount"] = pool.slices;
    each["totalDevices"] = pool.devices;
    each["allocatedDevices"] = used;
    each["availableDevices"] = std::max<std::int64_t>(0, pool.devices - used - pool.unavailable);
    each["unavailableDevices"] = pool.unavailable;
    PoolView view{.driver = driver,
                  .name = name,
                  .slices = pool.specs,
                  .in_use = {},
                  .consumed = {},
                  .default_attribute = spec["defaultPartitionTypeAttribute"].str()};
    if (found != in_use.end()) view.in_use = found->second;
    if (const auto amounts = consumed.find(name); amounts != consumed.end()) {
      view.consumed = amounts->second;
    }
    AddPoolViews(view, each);
  }
  plan.incomplete = incomplete > 0;
  plan.status["conditions"].Append(
      {{"type", "Complete"},
       {"status", "True"},
       {"reason", "CalculationComplete"},
       {"message",
        StrCat("Calculated status for ", shown, " pools",
               incomplete > 0 ? StrCat(" (", incomplete, " incomplete)") : std::string())},
       {"lastTransitionTime", api::FormatTime(state.now)}});
  return plan;
}

Duration LifetimeOf(const api::Object& request) {
  return request["status"].has_value() ? std::chrono::hours(1) : std::chrono::hours(24);
}

}  // namespace drakkar::controllers
