// Which claims a pod that fits nowhere releases, and what is written, observed and remembered about
// several claims of one pod.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "base/text/text.h"
#include "scheduler/testing/device_steps.h"

namespace drakkar::scheduler {
namespace {

using device_steps::ContextWith;
using device_steps::DynamicResourcesSteps;
using device_steps::kPod;
using device_steps::LossyClient;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kConditions[] =
    R"(,"bindingConditions":["Ready"],"bindingFailureConditions":["Broken"])";

// Pods whose uid begins with "bound" are bound.
class ReleaseSteps : public DynamicResourcesSteps {
 protected:
  ReleaseSteps() {
    releasing_.Register({.name = "DynamicResources", .points = PointsOf<DynamicResources>()});
    AddNode("a", R"("zone":"1")");
  }
  static std::string Reserved(const std::vector<std::string>& uids) {
    std::vector<std::string> entries;
    for (const std::string& uid : uids) {
      entries.push_back(StrCat(R"({"resource":"pods","name":"n","uid":")", uid, "\"}"));
    }
    return StrCat(R"("reservedFor":[)", Join(entries, ","), "]");
  }
  // Allocated to devices that only nodes of this zone can use.
  void SetElsewhere(const std::string& name, const std::vector<std::string>& uids,
                    const std::string& zone = "3") {
    SetClaim(
        name,
        {.allocated = "x/" + name, .status = Reserved(uids), .selector = Pinned("zone", zone)});
  }
  // Allocated to a device whose attachment failed.
  void SetFailed(const std::string& name, const std::vector<std::string>& uids) {
    SetClaim(name, {.allocated = "x/" + name,
                    .result = kConditions,
                    .status = StrCat(Reserved(uids), R"(,"devices":[{"driver":"d.example.com",)",
                                     R"("pool":"x","device":")", name, R"(","conditions":[)",
                                     R"({"type":"Broken","status":"True"}]}])")});
  }
  // Names of the claims that the pod releases after it fitted nowhere.
  std::vector<std::string> Released(const std::vector<std::string>& claims) {
    Cycle cycle;
    cycle.pod = Pod(claims);
    EXPECT_TRUE(releasing_.PreFilter(cycle).ok());
    NodeSet nodes = world_.nodes.known();
    EXPECT_TRUE(releasing_.Filter(cycle, nodes).ok());
    EXPECT_TRUE(nodes.IsEmpty());
    const Status status = releasing_.PostFilter(cycle);
    std::vector<std::string> released;
    for (const std::string& name : claims) {
      if (!world_.claims.Find("d/" + name)->is_being_released) continue;
      released.push_back(name);
      world_.claims.SetBeingReleased("d/" + name, name, false);
    }
    EXPECT_EQ(status.ok(), released.empty());
    if (!released.empty()) {
      EXPECT_EQ(status.Message(), "deallocation of ResourceClaim completed");
    }
    return released;
  }

  const PluginContext context_{
      .loop = world_.loop,
      .random = world_.loop.random(),
      .client = world_.client,
      .events = world_.events,
      .nodes = world_.nodes,
      .placements = world_.placements,
      .namespaces = world_.namespaces,
      .pod_groups = world_.pod_groups,
      .claims = world_.claims,
      .devices = world_.devices,
      .gates = world_.gates,
      .declared_features = features::DefaultFramework(),
      .metrics = world_.metrics,
      .notify = [](const ClusterEvent&) {},
      .nominate = [](const PodInfo&, const std::string&) {},
      .on_wait_began = [] {},
      .is_bound = [](std::string_view uid) { return uid.starts_with("bound"); }};
  DynamicResources releasing_{context_, {}};
};

TEST_F(ReleaseSteps, AClaimOfOtherNodesIsReleasedUnlessAnotherPodReservedIt) {
  const std::pair<std::vector<std::string>, bool> cases[] = {
      {{}, true},          {{"p"}, true},       {{"q"}, false},
      {{"p", "q"}, false}, {{"q", "p"}, false}, {{"bound"}, false},
  };
  for (const auto& [reserved, released] : cases) {
    SetElsewhere("c", reserved);
    EXPECT_EQ(!Released({"c"}).empty(), released) << Join(reserved, " ");
  }
  EXPECT_EQ(releasing_.remembered_pods(), 0u) << "no device failed";
}

TEST_F(ReleaseSteps, AClaimWhoseDeviceFailedIsReleasedUnlessABoundPodUsesIt) {
  const std::pair<std::vector<std::string>, bool> cases[] = {
      {{}, true},         {{"p"}, true},           {{"q"}, true},
      {{"p", "q"}, true}, {{"p", "bound"}, false}, {{"bound", "p"}, false},
  };
  for (const auto& [reserved, released] : cases) {
    releasing_.ForgetPod("p");
    SetFailed("c", reserved);
    EXPECT_EQ(!Released({"c"}).empty(), released) << Join(reserved, " ");
    EXPECT_EQ(releasing_.remembered_pods(), released ? 1u : 0u) << Join(reserved, " ");
  }
}

TEST_F(ReleaseSteps, EachUnavailableClaimIsReleasedOnItsOwn) {
  AddNode("b", R"("zone":"2")");
  SetClaim("fine", {.allocated = "x/fine"});
  SetElsewhere("shared", {"p", "q"}, "1");
  SetElsewhere("own", {"p"}, "2");
  EXPECT_THAT(Released({"fine", "shared", "own"}), ElementsAre("own"))
      << "a claim that can be used is kept";
  SetFailed("failed", {"p"});
  EXPECT_THAT(Released({"failed", "fine"}), ElementsAre("failed"));
}

// Binding a pod with two claims, one of them allocated before.
class BindSteps : public DynamicResourcesSteps {
 protected:
  BindSteps() {
    binding_.Register({.name = "DynamicResources", .points = PointsOf<DynamicResources>()});
    AddNode("a");
  }
  AllocationPtr Allocation(std::string device, std::string driver = "d.example.com",
                           bool waits = true) {
    auto allocation = std::make_shared<device::AllocationResult>();
    device::DeviceResult& result = allocation->results.emplace_back();
    result.request = "r";
    result.id = {std::move(driver), "a", std::move(device)};
    if (waits) result.binding_conditions = {"Ready"};
    return allocation;
  }
  // Claims that exist, without an allocation.
  void CreateClaims(const std::vector<std::string>& names) {
    for (const std::string& name : names) {
      SetClaim(name, {.metadata = R"(,"finalizers":["resource.kubernetes.io/delete-protection"])"});
    }
  }
  void PreBind(const std::map<std::string, AllocationPtr>& chosen) {
    auto state = std::make_unique<PodDevices>();
    std::vector<std::string> names;
    for (const auto& [name, allocation] : chosen) {
      names.push_back(name);
      EXPECT_TRUE(world_.claims.SetPending("d/" + name, allocation, "p"));
      state->items.push_back({.key = "d/" + name,
                              .uid = name,
                              .to_allocate = true,
                              .consumer = kPod,
                              .chosen = allocation});
    }
    cycle_ = std::make_shared<Cycle>();
    cycle_->pod = Pod(names);
    cycle_->node_name = "a";
    cycle_->states[0] = std::move(state);
    answer_ = "none";
    binding_.PreBind(cycle_,
                     [this](Status status) { answer_ = status.ok() ? "ok" : status.Message(); });
    world_.loop.RunUntilIdle();
  }
  std::string Metrics() { return world_.registry.Text(); }

  LossyClient client_{world_.loop};
  const PluginContext context_ = ContextWith(world_, client_);
  DynamicResources binding_{context_, {}};
  std::string answer_;
};

TEST_F(BindSteps, WhatIsWrittenIsNoLongerPendingAndWaitsFromItsOwnWrite) {
  CreateClaims({"c1", "c2"});
  PreBind({{"c1", Allocation("x")}, {"c2", Allocation("y")}});
  EXPECT_EQ(answer_, "none") << "it waits";
  for (const char* key : {"d/c1", "d/c2"}) {
    const CachedClaim* claim = world_.claims.Find(key);
    EXPECT_EQ(claim->pending, nullptr) << key;
    ASSERT_NE(claim->allocation, nullptr) << key;
    EXPECT_EQ(claim->wait_began, world_.loop.clock().Monotonic()) << key;
    EXPECT_NE(claim->allocation->allocation_timestamp, "") << key;
  }
  EXPECT_EQ(binding_.waiting_pods(), 1u);
  binding_.Cancel(*cycle_);
  EXPECT_EQ(answer_, "the pod is gone");
  EXPECT_THAT(Metrics(), Not(HasSubstr("scheduler_dra_bindingconditions_allocations_total{")));
  EXPECT_THAT(Metrics(), HasSubstr("prebind_duration_seconds_count{requires_bindingconditions="
                                   "\"true\",status=\"cancelled\"} 1"));
}

TEST_F(BindSteps, EveryDriverThatThePodWaitedForIsObserved) {
  CreateClaims({"c1", "c2"});
  PreBind({{"c1", Allocation("x")}, {"c2", Allocation("y", "e.example.com", false)}});
  ASSERT_EQ(answer_, "none");
  binding_.OnNodeLost(*cycle_, "cordoned");
  world_.loop.RunUntilIdle();
  EXPECT_EQ(answer_, "cordoned");
  for (const char* driver : {"d.example.com", "e.example.com"}) {
    EXPECT_THAT(Metrics(),
                HasSubstr(StrCat("scheduler_dra_bindingconditions_wait_duration_seconds_count{",
                                 "driver=\"", driver, "\",profile=\"test\",status=\"error\"} 1")))
        << driver;
  }
  EXPECT_THAT(Metrics(),
              HasSubstr("scheduler_dra_bindingconditions_allocations_total{status=\"failure\"} 1"));
}

TEST_F(BindSteps, ClaimsWithoutConditionsAreNotCountedAsSuch) {
  CreateClaims({"c1"});
  PreBind({{"c1", Allocation("x", "d.example.com", false)}});
  EXPECT_EQ(answer_, "ok");
  EXPECT_THAT(Metrics(), Not(HasSubstr("scheduler_dra_bindingconditions_allocations_total{")));
  EXPECT_THAT(Metrics(), HasSubstr("prebind_duration_seconds_count{requires_bindingconditions="
                                   "\"false\",status=\"success\"} 1"));
}

TEST_F(BindSteps, NothingIsWrittenForAPodThatIsGone) {
  CreateClaims({"c1", "c2"});
  client_.loses = [&](api::Draft&) { binding_.Cancel(*cycle_); };
  PreBind({{"c1", Allocation("x")}, {"c2", Allocation("y")}});
  EXPECT_EQ(answer_, "the pod is gone");
  EXPECT_EQ(world_.claims.Find("d/c2")->allocation, nullptr) << "the first write was the last";
}

TEST(BindStepsWithoutConditions, WriteNoTimestamp) {
  TestContext world(FeatureGates().With(Gate::kDRADeviceBindingConditions, false));
  LossyClient client(world.loop);
  const PluginContext context = ContextWith(world, client);
  DynamicResources plugin(context, {});
  plugin.Register({.name = "DynamicResources", .points = PointsOf<DynamicResources>()});
  world.claims.Observe(device_steps::Parse(R"({"metadata":{"namespace":"d","name":"c","uid":"c",
      "resourceVersion":"1","finalizers":["resource.kubernetes.io/delete-protection"]},"spec":{
      "devices":{"requests":[{"name":"r","exactly":{"deviceClassName":"gpu","allocationMode":
      "ExactCount","count":1}}]}}})"));
  auto allocation = std::make_shared<device::AllocationResult>();
  allocation->results.emplace_back().id = {"d.example.com", "a", "x"};
  auto state = std::make_unique<PodDevices>();
  state->items.push_back(
      {.key = "d/c", .uid = "c", .to_allocate = true, .consumer = kPod, .chosen = allocation});
  auto cycle = std::make_shared<Cycle>();
  cycle->pod = MakePodInfo(device_steps::Parse(R"({"metadata":{"namespace":"d","name":"p",
      "uid":"p"},"spec":{"resourceClaims":[{"name":"e","resourceClaimName":"c"}]}})"));
  cycle->states[0] = std::move(state);
  bool bound = false;
  plugin.PreBind(cycle, [&](Status status) { bound = status.ok(); });
  world.loop.RunUntilIdle();
  EXPECT_TRUE(bound);
  EXPECT_FALSE(client.stored->root()["status"]["allocation"]["allocationTimestamp"].exists());
}

}  // namespace
}  // namespace drakkar::scheduler
