// The plugin's steps one at a time, for pods with several claims, nodes and devices.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/text/text.h"
#include "scheduler/testing/device_steps.h"

namespace drakkar::scheduler {
namespace {

using device_steps::Claim;
using device_steps::ContextWith;
using device_steps::DynamicResourcesSteps;
using device_steps::kDeleted;
using device_steps::kPod;
using device_steps::LossyClient;
using device_steps::Parse;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST_F(DynamicResourcesSteps, EveryClaimOfThePodMustBeThereAndUsable) {
  SetClaim("a");
  SetClaim("deleted", {.metadata = kDeleted});
  SetClaim("released", {.allocated = "n/dev-0"});
  world_.claims.SetBeingReleased("d/released", "released", true);
  SetClaim("unreadable", {.requests = R"({"name":"r","exactly":{"capacity":{"requests":
      {"x":"a lot"}}}})"});
  SetClaim("classless", {.requests = R"({"name":"r","exactly":{"deviceClassName":"gpu",
      "allocationMode":"ExactCount","count":1}},{"name":"s","exactly":{"deviceClassName":"tpu",
      "allocationMode":"ExactCount","count":1}})"});
  SetClaim("half-classless", {.requests = R"({"name":"r","firstAvailable":[{"name":"x",
      "deviceClassName":"nic"},{"name":"y","deviceClassName":"tpu"}]})"});
  EXPECT_EQ(PreFilter(Pod({})), "skip");
  EXPECT_EQ(PreFilter(Pod({"a", "a"})), "ok");
  EXPECT_EQ(PreFilter(Pod({"a", "gone"})), "could not find ResourceClaim \"d/gone\"");
  EXPECT_EQ(PreFilter(Pod({"a", "deleted"})), "resourceclaim \"deleted\" is being deleted");
  EXPECT_EQ(PreFilter(Pod({"a", "released"})),
            "resource claim d/released is in the process of being deallocated");
  EXPECT_TRUE(PreFilter(Pod({"a", "unreadable"})).starts_with("claim d/unreadable: "));
  EXPECT_EQ(PreFilter(Pod({"a", "classless"})), "request s: device class tpu does not exist");
  EXPECT_EQ(PreFilter(Pod({"a", "half-classless"})), "request r: device class tpu does not exist");
  auto pending = std::make_shared<device::AllocationResult>();
  ASSERT_TRUE(world_.claims.SetPending("d/a", pending, "other pod"));
  EXPECT_EQ(PreFilter(Pod({"a"})), "resource claim d/a is in the process of being allocated");
}

TEST_F(DynamicResourcesSteps, ClaimsFromTemplatesMustBeCreatedAndOwned) {
  const auto pod = [](std::string statuses) {
    return MakePodInfo(Parse(StrCat(
        R"({"metadata":{"namespace":"d","name":"p","uid":"p"},"spec":{"resourceClaims":[{"name":)",
        R"("e","resourceClaimTemplateName":"t"}]},"status":{"resourceClaimStatuses":[)", statuses,
        "]}}")));
  };
  EXPECT_EQ(plugin_.PreEnqueue(*pod("")).Message(), "pod \"d/p\": ResourceClaim not created yet");
  EXPECT_TRUE(plugin_.PreEnqueue(*pod(R"({"name":"e"})")).ok()) << "it needs none";
  EXPECT_EQ(PreFilter(pod(R"({"name":"e"})")), "skip");
  SetClaim("mine", {.metadata = R"(,"ownerReferences":[{"apiVersion":"v1","kind":"Pod","name":"p",
      "uid":"p","controller":true}])"});
  SetClaim("yours", {.metadata = R"(,"ownerReferences":[{"apiVersion":"v1","kind":"Pod","name":"q",
      "uid":"q","controller":true}])"});
  EXPECT_TRUE(plugin_.PreEnqueue(*pod(R"({"name":"e","resourceClaimName":"mine"})")).ok());
  EXPECT_EQ(plugin_.PreEnqueue(*pod(R"({"name":"e","resourceClaimName":"yours"})")).Message(),
            "ResourceClaim d/yours was not created for Pod d/p (Pod is not owner)");
  const PodInfoPtr neither = MakePodInfo(Parse(
      R"({"metadata":{"namespace":"d","name":"p","uid":"p"},"spec":{"resourceClaims":[{"name":
      "e"}]}})"));
  EXPECT_EQ(plugin_.PreEnqueue(*neither).Message(),
            "pod \"d/p\", spec.resourceClaim \"e\": none of the supported fields are set");
}

TEST_F(DynamicResourcesSteps, AllocatedClaimsLimitTheNodesEachOfThem) {
  AddNode("a", R"("zone":"1","rack":"1")");
  AddNode("b", R"("zone":"1","rack":"2")");
  AddNode("c", R"("zone":"2","rack":"2")");
  SetClaim("zone", {.allocated = "x/1", .selector = Pinned("zone", "1")});
  SetClaim("rack", {.allocated = "x/2", .selector = Pinned("rack", "2")});
  SetClaim("anywhere", {.allocated = "x/3"});
  constexpr char kReason[] = "resourceclaim not available on the node";
  EXPECT_EQ(Filter(Pod({"anywhere"})), "a b c|");
  EXPECT_EQ(Filter(Pod({"zone"})), StrCat("a b|1 ", kReason));
  EXPECT_EQ(Filter(Pod({"zone", "anywhere", "rack"})), StrCat("b|2 ", kReason));
  SetClaim("node", {.allocated = "x/4", .selector = R"(,"nodeSelector":{"nodeSelectorTerms":[{
      "matchFields":[{"key":"metadata.name","operator":"In","values":["c"]}]}]})"});
  EXPECT_EQ(Filter(Pod({"node"})), StrCat("c|2 ", kReason));
  EXPECT_EQ(Filter(Pod({"node", "zone"})), StrCat("|3 ", kReason));
  SetClaim("lost", {.allocated = "x/5", .selector = R"(,"nodeSelector":{"nodeSelectorTerms":[{
      "matchFields":[{"key":"metadata.name","operator":"In","values":["gone"]}]}]})"});
  EXPECT_EQ(Filter(Pod({"lost"})), StrCat("|3 ", kReason));
}

TEST_F(DynamicResourcesSteps, AClaimThatSkipsPreparationNeedsANodeThatDeclaresIt) {
  AddNode("old");
  AddNode("new", "", R"("DRAOptionalNodeOperations","DraOptionalNodePreparation")");
  SetClaim("skips", {.allocated = "x/1", .result = R"(,"skipNodeOperations":true)"});
  SetClaim("does not", {.allocated = "x/2", .result = R"(,"skipNodeOperations":false)"});
  EXPECT_EQ(Filter(Pod({"skips"})), "new|1 resourceclaim not available on the node");
  EXPECT_EQ(Filter(Pod({"does not"})), "old new|");
}

TEST_F(DynamicResourcesSteps, NodesWithoutDevicesAndWithoutTheClaimAreExplainedApart) {
  AddNode("a", R"("zone":"1")");
  AddNode("b", R"("zone":"1")");
  AddNode("c", R"("zone":"2")");
  AddSlice("a", 1);
  AddSlice("c", 1);
  SetClaim("zone", {.allocated = "x/1", .selector = Pinned("zone", "1")});
  SetClaim("new");
  EXPECT_EQ(Filter(Pod({"zone", "new"})),
            "a|1 cannot allocate all claims; 1 resourceclaim not available on the node");
  EXPECT_EQ(Filter(Pod({"new"})), "a c|1 cannot allocate all claims");
}

TEST_F(DynamicResourcesSteps, TheReasonNamesTheFailedConditionOfTheClaim) {
  AddNode("a");
  AddSlice("a", 2);
  constexpr char kConditions[] =
      R"(,"bindingConditions":["Ready"],"bindingFailureConditions":["Broken"])";
  SetClaim("fine", {.allocated = "a/dev-1"});
  SetClaim("failed", {.allocated = "a/dev-0",
                      .result = kConditions,
                      .status = R"("devices":[{"driver":"d.example.com","pool":"a","device":"dev-0",
                      "conditions":[{"type":"Broken","status":"True","reason":"R","message":"M"}]}])"});
  EXPECT_EQ(Filter(Pod({"fine", "failed"})),
            "|1 resourceclaim not available on the node: device binding failed: claim=failed, "
            "device=d.example.com/a/dev-0, condition=Broken, reason=R, message=\"M\"");
}

TEST_F(DynamicResourcesSteps, DevicesAreReservedForEveryClaimAndFreedTogether) {
  AddNode("a");
  AddSlice("a", 3);
  SetClaim("c1");
  SetClaim("c2");
  EXPECT_EQ(Filter(Pod({"c1", "c2"})), "a|");
  cycle_->node_name = "a";
  ASSERT_TRUE(plugin_.Reserve(*cycle_).ok());
  std::set<std::string> devices;
  for (const char* key : {"d/c1", "d/c2"}) {
    const CachedClaim* claim = world_.claims.Find(key);
    ASSERT_NE(claim->pending, nullptr) << key;
    devices.insert(claim->pending->results.at(0).id.device);
  }
  EXPECT_EQ(devices.size(), 2u);
  world_.notified.clear();
  plugin_.Unreserve(*cycle_);
  EXPECT_EQ(world_.claims.Find("d/c1")->pending, nullptr);
  EXPECT_EQ(world_.claims.Find("d/c2")->pending, nullptr);
  EXPECT_EQ(world_.notified.size(), 1u) << "the devices may help others";
  plugin_.Unreserve(*cycle_);
  EXPECT_EQ(world_.notified.size(), 1u) << "nothing was freed";
}

TEST_F(DynamicResourcesSteps, AReservationFailsIfTheClaimOrItsDevicesAreTaken) {
  AddNode("a");
  AddSlice("a", 1);
  SetClaim("c");
  EXPECT_EQ(Filter(Pod({"c"})), "a|");
  cycle_->node_name = "a";
  SetClaim("c", {.allocated = "other/dev"});
  EXPECT_EQ(plugin_.Reserve(*cycle_).Message(),
            "claim d/c got allocated elsewhere in the meantime");
  SetClaim("c");
  SetClaim("thief", {.allocated = "a/dev-0"});
  EXPECT_EQ(plugin_.Reserve(*cycle_).Message(), "claim allocation not found for node");
  cycle_->node_name = "gone";
  EXPECT_EQ(plugin_.Reserve(*cycle_).Message(), "node \"gone\" is not known");
}

TEST_F(DynamicResourcesSteps, EventsHelpOnlyIfTheyChangeSomethingForThePod) {
  SetClaim("c");
  SetClaim("other");
  const PodInfoPtr pod = Pod({"c"});
  const auto helps = [&](EventKind kind, api::ObjectPtr before, api::ObjectPtr after) {
    return plugin_.MayHelp(*pod, {kind, std::move(before), std::move(after), {}});
  };
  const api::ObjectPtr free = MakeClaim("c", {});
  const api::ObjectPtr allocated = MakeClaim("c", {.allocated = "x/1"});
  EXPECT_TRUE(helps(EventKind::kClaimDelete, allocated, nullptr));
  EXPECT_FALSE(helps(EventKind::kClaimDelete, free, nullptr));
  EXPECT_TRUE(helps(EventKind::kClaimDelete, nullptr, nullptr));
  EXPECT_TRUE(helps(EventKind::kClaimAdd, nullptr, free));
  EXPECT_TRUE(helps(EventKind::kClaimUpdate, nullptr, nullptr));
  EXPECT_TRUE(helps(EventKind::kClaimUpdate, allocated, free)) << "devices were freed";
  EXPECT_TRUE(helps(EventKind::kClaimUpdate, free, allocated)) << "its status changed";
  EXPECT_FALSE(helps(EventKind::kClaimUpdate, free, MakeClaim("c", {.metadata = kDeleted})));
  const PodInfoPtr lacking = Pod({"c", "gone"});
  EXPECT_FALSE(plugin_.MayHelp(*lacking, {EventKind::kClaimUpdate, free, allocated, {}}))
      << "another claim is still missing";
  EXPECT_TRUE(plugin_.MayHelp(*lacking, {EventKind::kClaimUpdate, allocated, free, {}}));
  const auto node = [](const char* features) {
    return Parse(
        StrCat(R"({"metadata":{"name":"n"},"status":{"declaredFeatures":[)", features, "]}}"));
  };
  constexpr char kFeature[] = R"("DraOptionalNodePreparation")";
  EXPECT_TRUE(helps(EventKind::kNodeDeclaredFeatures, node(""), node(kFeature)));
  EXPECT_FALSE(helps(EventKind::kNodeDeclaredFeatures, node(kFeature), node(kFeature)));
  EXPECT_FALSE(helps(EventKind::kNodeDeclaredFeatures, node(kFeature), node("")));
  EXPECT_FALSE(helps(EventKind::kNodeDeclaredFeatures, node(""), node(R"("Other")")));
  const auto with = [](const char* statuses) { return Pod({"c"}, statuses)->pod; };
  EXPECT_FALSE(helps(EventKind::kTargetPodChange, with(""), with("")));
  EXPECT_TRUE(helps(EventKind::kTargetPodChange, with(""),
                    with(R"("resourceClaimStatuses":[{"name":"e-0"}])")));
  for (const EventKind kind : {EventKind::kNodeAdd, EventKind::kNodeLabel, EventKind::kSliceChange,
                               EventKind::kClassChange, EventKind::kNodeAllocatable}) {
    EXPECT_TRUE(helps(kind, nullptr, nullptr)) << static_cast<int>(kind);
    EXPECT_NE(plugin_.events() & MaskOf(kind), 0u) << static_cast<int>(kind);
  }
}

TEST_F(DynamicResourcesSteps, TheConditionsAPodWouldWaitForAreListed) {
  const NodeIndex a = AddNode("a");
  AddSlice("a", 2, R"(,"bindingConditions":["A","B"])");
  SetClaim("waiting", {.allocated = "x/1",
                       .result = R"(,"bindingConditions":["C","D"])",
                       .status = R"("devices":[{"driver":"d.example.com","pool":"x","device":"1",
                       "conditions":[{"type":"C","status":"True"}]}])"});
  SetClaim("new", {.requests = R"({"name":"r","exactly":{"deviceClassName":"gpu",
      "allocationMode":"ExactCount","count":2}})"});
  EXPECT_EQ(Filter(Pod({"waiting", "new"})), "a|");
  EXPECT_THAT(plugin_.DescribeWait(*cycle_, a),
              ElementsAre("condition D of device d.example.com/x/1",
                          "condition A of device d.example.com/a/dev-0",
                          "condition B of device d.example.com/a/dev-0",
                          "condition A of device d.example.com/a/dev-1",
                          "condition B of device d.example.com/a/dev-1"));
  EXPECT_EQ(Filter(Pod({"waiting"})), "a|");
  EXPECT_THAT(plugin_.DescribeWait(*cycle_, a),
              ElementsAre("condition D of device d.example.com/x/1"));
  EXPECT_EQ(plugin_.ExplainDevices(*cycle_, a), std::nullopt);
}

TEST_F(DynamicResourcesSteps, ReadyDevicesArePreferredUnlessAWaitIsUnderWay) {
  AddNode("ready");
  AddNode("waits");
  AddSlice("ready", 1);
  AddSlice("waits", 1, R"(,"bindingConditions":["A"])");
  SetClaim("new");
  const auto preferred = [&](const PodInfoPtr& pod) {
    Filter(pod);
    NodeSet nodes = world_.nodes.known();
    plugin_.Prefer(*cycle_, nodes);
    std::vector<std::string> names;
    nodes.ForEach([&](NodeIndex node) { names.push_back(world_.nodes.name(node)); });
    return names;
  };
  EXPECT_THAT(preferred(Pod({"new"})), ElementsAre("ready"));
  SetClaim("waiting", {.allocated = "x/1", .result = R"(,"bindingConditions":["C"])"});
  EXPECT_THAT(preferred(Pod({"new", "waiting"})), ElementsAre("ready", "waits"))
      << "its devices are being attached to the nominated node";
  SetClaim("waiting", {.allocated = "x/1"});
  EXPECT_THAT(preferred(Pod({"new", "waiting"})), ElementsAre("ready"));
  EXPECT_THAT(preferred(Pod({"waiting"})), ElementsAre("ready", "waits")) << "nothing to allocate";
}

TEST_F(DynamicResourcesSteps, TheFirstChoiceScoresHigher) {
  const NodeIndex first = AddNode("first");
  const NodeIndex second = AddNode("second");
  AddSlice("first", 1, R"(,"attributes":{"model":{"string":"a"}})");
  AddSlice("second", 1, R"(,"attributes":{"model":{"string":"b"}})");
  SetClaim("c", {.requests = R"({"name":"r","firstAvailable":[
      {"name":"x","deviceClassName":"gpu","allocationMode":"ExactCount","count":1,"selectors":[{"cel":
      {"expression":"device.attributes[\"d.example.com\"].model == \"a\""}}]},
      {"name":"y","deviceClassName":"gpu","allocationMode":"ExactCount","count":1}]})"});
  EXPECT_EQ(Filter(Pod({"c"})), "first second|");
  std::vector<NodeIndex> nodes = {first, second};
  std::vector<std::int64_t> scores(2, -1);
  ASSERT_TRUE(plugin_.Score(*cycle_, nodes, scores));
  EXPECT_THAT(scores, ElementsAre(100, 87));
  SetClaim("plain");
  EXPECT_EQ(Filter(Pod({"plain"})), "first second|");
  EXPECT_FALSE(plugin_.Score(*cycle_, nodes, scores)) << "all nodes are equal";
}

// A server with other feature gates drops fields silently.
TEST_F(DynamicResourcesSteps, AnAllocationThatWasNotStoredCompletelyIsTakenBack) {
  struct Case {
    std::string field;
    std::string gate;
  };
  const Case cases[] = {
      {"", ""},
      {"bindingConditions", "DRADeviceBindingConditions"},
      {"bindingFailureConditions", "DRADeviceBindingConditions"},
      {"skipNodeOperations", "DRAOptionalNodePreparation"},
      {"shareID", "DRAConsumableCapacity"},
      {"consumedCapacity", "DRAConsumableCapacity"},
      {"adminAccess", "DRAAdminAccess"},
  };
  LossyClient client(world_.loop);
  const PluginContext context = ContextWith(world_, client);
  AddNode("a");
  for (const Case& c : cases) {
    for (const std::size_t result : {std::size_t{0}, std::size_t{1}}) {
      DynamicResources plugin(context, {});
      plugin.Register({.name = "DynamicResources", .points = PointsOf<DynamicResources>()});
      world_.claims.Remove(MakeClaim("c", {}));
      SetClaim("c", {.metadata = R"(,"finalizers":["resource.kubernetes.io/delete-protection"])"});
      auto allocation = std::make_shared<device::AllocationResult>();
      for (const char* name : {"x", "y"}) {
        device::DeviceResult& device = allocation->results.emplace_back();
        device.request = "r";
        device.id = {"d.example.com", "a", name};
        device.share_id = "11111111-1111-1111-1111-111111111111";
        device.consumed_capacity = {{"memory", api::Quantity(1)}};
        device.admin_access = true;
        device.skip_node_operations.form = true;
        device.binding_conditions = {"Ready"};
        device.binding_failure_conditions = {"Broken"};
      }
      auto state = std::make_unique<PodDevices>();
      state->items.push_back(
          {.key = "d/c", .uid = "c", .to_allocate = true, .consumer = kPod, .chosen = allocation});
      ASSERT_TRUE(world_.claims.SetPending("d/c", allocation, "p"));
      auto cycle = std::make_shared<Cycle>();
      cycle->pod = Pod({"c"});
      cycle->node_name = "a";
      cycle->states[0] = std::move(state);
      bool loses = !c.field.empty();
      client.loses = [&](api::Draft& claim) {
        if (!std::exchange(loses, false)) return;
        claim["status"]["allocation"]["devices"]["results"].at(result).RemoveEntry(c.field);
      };
      std::string answer = "none";
      plugin.PreBind(cycle, [&](Status status) { answer = status.Message(); });
      world_.loop.RunUntilIdle();
      if (c.field.empty()) {
        EXPECT_EQ(answer, "none") << "it waits for the conditions";
        EXPECT_EQ(plugin.waiting_pods(), 1u);
        EXPECT_EQ(world_.claims.Find("d/c")->pending, nullptr) << "it is written";
        plugin.Cancel(*cycle);
        continue;
      }
      EXPECT_EQ(answer,
                StrCat("the API server did not store ", c.field, " of device d.example.com/a/",
                       result == 0 ? "x" : "y", " in claim d/c: the feature gate ", c.gate,
                       " must be the same there and in the scheduler"));
      EXPECT_FALSE(client.stored->root()["status"]["allocation"].has_value()) << "taken back";
      EXPECT_EQ(world_.claims.Find("d/c")->pending, nullptr) << "its devices are free";
    }
  }
}

TEST_F(DynamicResourcesSteps, ADeviceThatAnotherSchedulerAllocatedFirstIsGivenUp) {
  LossyClient client(world_.loop);
  const PluginContext context = ContextWith(world_, client);
  DynamicResources plugin(context, {});
  plugin.Register({.name = "DynamicResources", .points = PointsOf<DynamicResources>()});
  AddNode("a");
  constexpr char kMine[] = R"("reservedFor":[{"resource":"pods","name":"p","uid":"p"}])";
  constexpr char kOurs[] = R"("reservedFor":[{"resource":"pods","name":"p","uid":"p"},
      {"resource":"pods","name":"q","uid":"q"}])";
  SetClaim("thief", {.allocated = "a/dev-1"});
  SetClaim("one", {.allocated = "a/dev-0", .status = kMine});
  const auto bind = [&](const char* reservations) {
    SetClaim("two", {.allocated = "a/dev-1", .status = reservations});
    auto state = std::make_unique<PodDevices>();
    state->items.push_back({.key = "d/one", .uid = "one", .consumer = kPod});
    state->items.push_back({.key = "d/two", .uid = "two", .consumer = kPod});
    cycle_ = std::make_shared<Cycle>();
    cycle_->pod = Pod({"one", "two"});
    cycle_->node_name = "a";
    cycle_->states[0] = std::move(state);
    std::string answer = "none";
    plugin.PreBind(cycle_, [&](Status status) { answer = status.ok() ? "ok" : status.Message(); });
    world_.loop.RunUntilIdle();
    return answer;
  };
  EXPECT_EQ(bind(kOurs),
            "a device of claim d/two is already allocated to claim d/thief, by another scheduler");
  EXPECT_EQ(cycle_->retry.when, Retry::When::kLater) << "somebody else uses it, so nothing changed";
  EXPECT_EQ(bind(kMine),
            "a device of claim d/two is already allocated to claim d/thief, by another scheduler");
  EXPECT_EQ(cycle_->retry.when, Retry::When::kAtOnce);
  world_.claims.Remove(MakeClaim("thief", {}));
  version_ += 10'000;  // newer than what the client stored
  EXPECT_EQ(bind(kMine), "ok");
}

TEST_F(DynamicResourcesSteps, AWaitForAnAllocatedClaimIsRememberedAndEndsWithItsConditions) {
  LossyClient client(world_.loop);
  const PluginContext context = ContextWith(world_, client);
  DynamicResources plugin(context, {});
  plugin.Register({.name = "DynamicResources", .points = PointsOf<DynamicResources>()});
  AddNode("a");
  const auto claim = [&](const char* status) {
    return Claim{
        .allocated = "a/dev-0",
        .result = R"(,"bindingConditions":["Ready"])",
        .status = StrCat(R"("reservedFor":[{"resource":"pods","name":"p","uid":"p"}],"devices":[{)",
                         R"("driver":"d.example.com","pool":"a","device":"dev-0","conditions":[)",
                         R"({"type":"Ready","status":")", status, R"("}]}])")};
  };
  SetClaim("c", claim("False"));
  auto state = std::make_unique<PodDevices>();
  state->items.push_back({.key = "d/c", .uid = "c", .consumer = kPod});
  cycle_ = std::make_shared<Cycle>();
  cycle_->pod = Pod({"c"});
  cycle_->node_name = "a";
  cycle_->states[0] = std::move(state);
  std::string answer = "none";
  plugin.PreBind(cycle_, [&](Status status) { answer = status.ok() ? "ok" : status.Message(); });
  world_.loop.RunUntilIdle();
  EXPECT_EQ(answer, "none");
  EXPECT_EQ(world_.claims.Find("d/c")->wait_began, world_.loop.clock().Monotonic());
  SetClaim("c", claim("True"));
  plugin.OnClaimChanged("d/c");
  world_.loop.RunUntilIdle();
  EXPECT_EQ(answer, "ok");
}

TEST_F(DynamicResourcesSteps, AnAllocationThatIsGoneAfterTheWriteEndsTheAttempt) {
  LossyClient client(world_.loop);
  const PluginContext context = ContextWith(world_, client);
  AddNode("a");
  const auto bind = [&](std::function<void(api::Draft&)> loses) {
    DynamicResources plugin(context, {});
    plugin.Register({.name = "DynamicResources", .points = PointsOf<DynamicResources>()});
    world_.claims.Remove(MakeClaim("c", {}));
    SetClaim("c", {.metadata = R"(,"finalizers":["resource.kubernetes.io/delete-protection"])"});
    auto allocation = std::make_shared<device::AllocationResult>();
    allocation->results.emplace_back().id = {"d.example.com", "a", "x"};
    auto state = std::make_unique<PodDevices>();
    state->items.push_back(
        {.key = "d/c", .uid = "c", .to_allocate = true, .consumer = kPod, .chosen = allocation});
    auto cycle = std::make_shared<Cycle>();
    cycle->pod = Pod({"c"});
    cycle->node_name = "a";
    cycle->states[0] = std::move(state);
    client.loses = std::move(loses);
    std::string answer = "none";
    plugin.PreBind(cycle, [&](Status status) { answer = status.ok() ? "ok" : status.Message(); });
    world_.loop.RunUntilIdle();
    return answer;
  };
  EXPECT_EQ(bind([](api::Draft& claim) { claim["status"].Remove("allocation"); }),
            "claim d/c got deallocated elsewhere in the meantime");
  EXPECT_EQ(bind([&](api::Draft&) { world_.claims.Remove(MakeClaim("c", {})); }),
            "claim d/c got deleted in the meantime");
}

TEST_F(DynamicResourcesSteps, ATaintRuleCountsUntilItIsRemoved) {
  AddNode("a");
  AddSlice("a", 1);
  SetClaim("c");
  EXPECT_EQ(Filter(Pod({"c"})), "a|");
  const api::ObjectPtr rule = Parse(R"({"metadata":{"name":"rule"},"spec":{"deviceSelector":{
      "driver":"d.example.com"},"taint":{"key":"k","effect":"NoSchedule"}}})");
  world_.devices.SetTaintRule(rule);
  EXPECT_EQ(Filter(Pod({"c"})), "|1 cannot allocate all claims");
  world_.devices.RemoveTaintRule(rule);
  EXPECT_EQ(Filter(Pod({"c"})), "a|");
}

TEST_F(DynamicResourcesSteps, ANodeThatDoesNotFitIsNotReadyEither) {
  AddNode("none");
  AddNode("waits");
  AddSlice("waits", 1, R"(,"bindingConditions":["A"])");
  SetClaim("c");
  NodeVerdicts verdicts(world_.nodes, world_.devices);
  const auto search = [&] {
    const std::shared_ptr<const device::Claim> spec = world_.claims.Find("d/c")->spec;
    verdicts.Search(world_.devices.allocator().Prepare(
                        std::span(&spec, 1),
                        [&](std::string_view name) { return world_.devices.FindClass(name); }),
                    {});
    return std::pair(verdicts.AnyFits(world_.nodes.known()),
                     verdicts.AnyFitsReady(world_.nodes.known()));
  };
  EXPECT_EQ(search(), std::pair(true, false));
  AddNode("ready");
  AddSlice("ready", 1);
  EXPECT_EQ(search(), std::pair(true, true));
}

// A scheduler of a release without binding conditions uses such devices like any other.
TEST(DynamicResourcesOfAnOldRelease, IgnoresBindingConditionsOfEveryDevice) {
  TestContext world(
      FeatureGates::Create({.emulated = {1, 33}, .overrides = "", .turned_on = {}}).value());
  DynamicResources plugin(world.context, {});
  plugin.Register({.name = "DynamicResources", .points = PointsOf<DynamicResources>()});
  world.AddNode(Parse(R"({"metadata":{"name":"a"}})"));
  world.devices.SetClass(Parse(R"({"metadata":{"name":"gpu"}})"));
  world.devices.SetSlice(Parse(R"({"metadata":{"name":"s"},"spec":{"driver":"d.example.com",
      "nodeName":"a","pool":{"name":"a","generation":1,"resourceSliceCount":1},"devices":[
      {"name":"x","bindsToNode":true,"bindingConditions":["A"],"bindingFailureConditions":["F"]},
      {"name":"y","bindsToNode":true,"bindingConditions":["A"],"bindingFailureConditions":["F"]}]}})"));
  world.claims.Observe(Parse(R"({"metadata":{"namespace":"d","name":"c","uid":"c",
      "resourceVersion":"1"},"spec":{"devices":{"requests":[{"name":"r","exactly":{
      "deviceClassName":"gpu","allocationMode":"ExactCount","count":2}}]}}})"));
  Cycle cycle;
  cycle.pod = MakePodInfo(Parse(R"({"metadata":{"namespace":"d","name":"p","uid":"p"},"spec":{
      "resourceClaims":[{"name":"e","resourceClaimName":"c"}]}})"));
  ASSERT_TRUE(plugin.PreFilter(cycle).ok());
  NodeSet left = world.nodes.known();
  ASSERT_TRUE(plugin.Filter(cycle, left).ok());
  EXPECT_FALSE(left.IsEmpty());
}

}  // namespace
}  // namespace drakkar::scheduler
