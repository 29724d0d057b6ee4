// Equal claims share a plan with all cached answers. Claims that differ in anything an answer
// depends on must not share one.
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <set>

#include "allocator/testing/harness.h"
#include "allocator/testing/workload.h"

namespace drakkar::allocator {
namespace {

Features Everything() {
  Features features;
  features.admin_access = features.consumable_capacity = features.derived_attributes = true;
  features.device_taints = features.prioritized_list = true;
  return features;
}

struct Wish {
  device::Claim claim;
  device::DeviceClass device_class;

  device::RequestSpec& spec() { return *claim.requests[0].exactly; }
};

// A claim that sets every field.
Wish Full() {
  Wish wish;
  wish.claim = *MakeClaim({ExactRequest("req-0", 2, "device.driver == \"a\"")});
  wish.device_class = *PerfClass();
  device::RequestSpec& spec = wish.spec();
  spec.tolerations.push_back({"key", "Equal", "value", "NoSchedule", 30});
  spec.capacity.emplace();
  spec.capacity->push_back({"memory", api::Quantity::Parse("1Gi").value()});
  spec.derived_attributes.push_back({"d.example.com/derived", "1"});
  wish.claim.constraints.push_back({{"req-0"}, "d.example.com/a", std::nullopt});
  return wish;
}

class PlanKey : public ::testing::Test {
 protected:
  const void* PlanOf(const Wish& wish) {
    const std::shared_ptr<const device::Claim> claim =
        std::make_shared<const device::Claim>(wish.claim);
    const Problem problem = harness_.allocator.Prepare(
        std::span(&claim, 1),
        OneClass(std::make_shared<const device::DeviceClass>(wish.device_class)));
    EXPECT_FALSE(problem.fault) << problem.fault->error.message;
    kept_.push_back(problem.plan);
    return problem.plan.get();
  }

  Harness harness_{Everything()};
  std::vector<std::shared_ptr<Plan>> kept_;
};

TEST_F(PlanKey, EqualClaimsOfDifferentNamesShareAPlan) {
  Wish other = Full();
  other.claim.name = "other";
  other.claim.ns = "elsewhere";
  EXPECT_EQ(PlanOf(Full()), PlanOf(other));
}

TEST_F(PlanKey, ClaimsThatDifferInOneThingDoNot) {
  using Change = std::function<void(Wish&)>;
  const std::map<std::string, Change> changes = {
      {"request name", [](Wish& w) { w.claim.requests[0].name = w.spec().name = "req-1"; }},
      {"class selector", [](Wish& w) { w.device_class.selectors[0].cel = "device.driver == 'b'"; }},
      {"class selectors", [](Wish& w) { w.device_class.selectors.clear(); }},
      {"selector", [](Wish& w) { w.spec().selectors[0].cel = "device.driver == 'b'"; }},
      {"selectors", [](Wish& w) { w.spec().selectors.clear(); }},
      {"mode", [](Wish& w) { w.spec().allocation_mode = "All"; }},
      {"count", [](Wish& w) { w.spec().count = 3; }},
      {"admin access", [](Wish& w) { w.spec().admin_access = true; }},
      {"toleration key", [](Wish& w) { w.spec().tolerations[0].key = "other"; }},
      {"toleration operator", [](Wish& w) { w.spec().tolerations[0].op = "Exists"; }},
      {"toleration value", [](Wish& w) { w.spec().tolerations[0].value = "other"; }},
      {"toleration effect", [](Wish& w) { w.spec().tolerations[0].effect = "NoExecute"; }},
      {"no toleration seconds",
       [](Wish& w) { w.spec().tolerations[0].toleration_seconds.reset(); }},
      {"toleration seconds", [](Wish& w) { w.spec().tolerations[0].toleration_seconds = 60; }},
      {"toleration of zero seconds",
       [](Wish& w) { w.spec().tolerations[0].toleration_seconds = 0; }},
      {"tolerations", [](Wish& w) { w.spec().tolerations.clear(); }},
      {"capacity name", [](Wish& w) { (*w.spec().capacity)[0].name = "cores"; }},
      {"capacity value",
       [](Wish& w) { (*w.spec().capacity)[0].value = api::Quantity::Parse("2Gi").value(); }},
      {"capacities", [](Wish& w) { w.spec().capacity->clear(); }},
      {"derived name", [](Wish& w) { w.spec().derived_attributes[0].name = "d.example.com/x"; }},
      {"derived expression", [](Wish& w) { w.spec().derived_attributes[0].expression = "2"; }},
      {"derived attributes", [](Wish& w) { w.spec().derived_attributes.clear(); }},
      {"first available",
       [](Wish& w) {
         w.claim.requests[0].first_available = {w.spec()};
         w.claim.requests[0].exactly.reset();
       }},
      {"requests", [](Wish& w) { w.claim.requests.push_back(ExactRequest("req-1", 1)); }},
      {"constraint requests", [](Wish& w) { w.claim.constraints[0].requests.clear(); }},
      {"constraint attribute",
       [](Wish& w) { w.claim.constraints[0].match_attribute = "d.example.com/b"; }},
      {"constraint kind",
       [](Wish& w) {
         std::swap(w.claim.constraints[0].match_attribute,
                   w.claim.constraints[0].distinct_attribute);
       }},
      {"constraints", [](Wish& w) { w.claim.constraints.clear(); }},
  };
  std::map<const void*, std::string> plans = {{PlanOf(Full()), "unchanged"}};
  for (const auto& [what, change] : changes) {
    Wish wish = Full();
    change(wish);
    const auto [at, is_new] = plans.emplace(PlanOf(wish), what);
    EXPECT_TRUE(is_new) << what << " shares the plan of: " << at->second;
  }
}

// An explanation says whose selector rejects a device.
TEST_F(PlanKey, ASelectorOfTheClassIsNotOneOfTheRequest) {
  const auto with = [](std::size_t of_class) {
    Wish wish = Full();
    wish.device_class.selectors.clear();
    wish.spec().selectors.clear();
    for (std::size_t i = 0; i < 3; ++i) {
      (i < of_class ? wish.device_class.selectors : wish.spec().selectors)
          .push_back({StrCat("device.driver == 'x", i, "'")});
    }
    return wish;
  };
  std::set<const void*> plans;
  for (std::size_t of_class = 0; of_class <= 3; ++of_class) plans.insert(PlanOf(with(of_class)));
  EXPECT_EQ(plans.size(), 4u);
}

TEST_F(PlanKey, EveryAlternativeCounts) {
  const auto with = [](const std::function<void(device::RequestSpec&)>& change) {
    Wish wish = Full();
    device::Request& request = wish.claim.requests[0];
    request.first_available = {*request.exactly, *request.exactly};
    request.first_available[0].name = "x";
    request.first_available[1].name = "y";
    request.exactly.reset();
    change(request.first_available[1]);
    return wish;
  };
  const void* plan = PlanOf(with([](device::RequestSpec&) {}));
  EXPECT_EQ(PlanOf(with([](device::RequestSpec&) {})), plan);
  EXPECT_NE(PlanOf(with([](device::RequestSpec& second) { second.count = 9; })), plan);
  EXPECT_NE(PlanOf(with([](device::RequestSpec& second) { second.name = "z"; })), plan);
}

TEST_F(PlanKey, EverySelectorTolerationCapacityAndConstraintCounts) {
  const auto twice = [](const std::function<void(Wish&)>& change) {
    Wish wish = Full();
    device::RequestSpec& spec = wish.spec();
    wish.device_class.selectors.push_back({"device.driver == 'x'"});
    spec.selectors.push_back({"device.driver == 'x'"});
    spec.tolerations.push_back(spec.tolerations[0]);
    spec.capacity->push_back({"other", api::Quantity(1)});
    spec.derived_attributes.push_back({"d.example.com/other", "1"});
    wish.claim.constraints.push_back({{"req-0"}, std::nullopt, "d.example.com/b"});
    change(wish);
    return wish;
  };
  const void* plan = PlanOf(twice([](Wish&) {}));
  const std::map<std::string, std::function<void(Wish&)>> changes = {
      {"class selector", [](Wish& w) { w.device_class.selectors.back().cel = "true"; }},
      {"selector", [](Wish& w) { w.spec().selectors.back().cel = "true"; }},
      {"toleration", [](Wish& w) { w.spec().tolerations.back().key = "x"; }},
      {"capacity", [](Wish& w) { w.spec().capacity->back().name = "x"; }},
      {"amount", [](Wish& w) { w.spec().capacity->back().value = api::Quantity(2); }},
      {"derived", [](Wish& w) { w.spec().derived_attributes.back().expression = "2"; }},
      {"constraint", [](Wish& w) { w.claim.constraints.back().distinct_attribute = "x.com/y"; }},
      {"constraint requests", [](Wish& w) { w.claim.constraints.back().requests.clear(); }},
  };
  for (const auto& [what, change] : changes) EXPECT_NE(PlanOf(twice(change)), plan) << what;
}

// The reason for the key: a device in use is allocated only with admin access.
TEST_F(PlanKey, TheAnswerWithAdminAccessIsNotGivenWithoutIt) {
  harness_.inventory.SetSlice(PerfSlice(0));
  harness_.allocator.SetNode({NodeName(0), {}, {}});
  for (int i = 0; i < 10; ++i) {
    harness_.allocated.AddExclusive({kTestDriver, NodeName(0), StrCat("basic-device-", i)});
  }
  const auto fits = [&](bool admin) {
    auto claim = MakeClaim({ExactRequest("req-0", 1)});
    claim->requests[0].exactly->admin_access = admin;
    const std::shared_ptr<const device::Claim> wanted = claim;
    const Problem problem =
        harness_.allocator.Prepare(std::span(&wanted, 1), OneClass(PerfClass()));
    const Result<Outcome> outcome = harness_.allocator.Allocate(problem, NodeName(0), {});
    return outcome.ok() && std::holds_alternative<Allocation>(*outcome);
  };
  EXPECT_TRUE(fits(true));
  EXPECT_FALSE(fits(false));
}

// What a plan does not need in order to find devices still ends up in the result.
TEST_F(PlanKey, EachClaimGetsItsOwnTolerationsInTheResult) {
  harness_.inventory.SetSlice(PerfSlice(0));
  harness_.allocator.SetNode({NodeName(0), {}, {}});
  const auto allocated = [&](std::optional<std::int64_t> seconds) {
    auto claim = MakeClaim({ExactRequest("req-0", 1)});
    claim->requests[0].exactly->tolerations.push_back({"key", "Exists", "", "NoExecute", seconds});
    const std::shared_ptr<const device::Claim> wanted = claim;
    const Problem problem =
        harness_.allocator.Prepare(std::span(&wanted, 1), OneClass(PerfClass()));
    const Result<Outcome> outcome = harness_.allocator.Allocate(problem, NodeName(0), {});
    return std::get<Allocation>(*outcome).results[0].results[0].tolerations[0].toleration_seconds;
  };
  EXPECT_EQ(allocated(60), 60);
  EXPECT_EQ(allocated(3600), 3600);
  EXPECT_EQ(allocated(std::nullopt), std::nullopt);
}

}  // namespace
}  // namespace drakkar::allocator
