// The plugin's steps one at a time, for pods with several claims, nodes and devices.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/json/reader.h"
#include "base/text/text.h"
#include "scheduler/plugins/dynamic_resources/dynamic_resources.h"
#include "scheduler/testing/test_context.h"

namespace drakkar::scheduler {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

api::ObjectPtr Parse(std::string_view json) {
  auto tree = api::ParseJson(json);
  EXPECT_TRUE(tree.ok()) << json;
  return std::make_shared<const api::Object>(*tree);
}

struct Claim {
  std::string metadata = "";
  std::string allocated = "";  // "node/device,...", for results of d.example.com
  std::string result = "";     // members of each result
  std::string status = "";     // members of the status
  std::string requests = R"({"name":"r","exactly":{"deviceClassName":"gpu",)"
                         R"("allocationMode":"ExactCount","count":1}})";
  std::string selector = "";
};

class DynamicResourcesSteps : public ::testing::Test {
 protected:
  DynamicResourcesSteps() {
    plugin_.Register({.name = "DynamicResources", .points = PointsOf<DynamicResources>()});
    for (const char* name : {"gpu", "nic"}) {
      world_.devices.SetClass(Parse(StrCat(R"({"metadata":{"name":")", name, R"("}})")));
    }
  }

  NodeIndex AddNode(std::string name, std::string labels = "", std::string features = "") {
    return world_.AddNode(Parse(StrCat(R"({"metadata":{"name":")", name, R"(","labels":{)", labels,
                                       R"(}},"status":{"declaredFeatures":[)", features, "]}}")));
  }
  void AddSlice(std::string node, int count, std::string device_extra = "") {
    std::vector<std::string> devices;
    for (int i = 0; i < count; ++i) {
      devices.push_back(StrCat(R"({"name":"dev-)", i, "\"", device_extra, "}"));
    }
    world_.devices.SetSlice(Parse(StrCat(
        R"({"metadata":{"name":"slice-)", node, R"("},"spec":{"driver":"d.example.com",)",
        R"("nodeName":")", node, R"(","pool":{"name":")", node,
        R"(","generation":1,"resourceSliceCount":1},"devices":[)", Join(devices, ","), "]}}")));
  }
  api::ObjectPtr MakeClaim(const std::string& name, const Claim& claim) {
    std::vector<std::string> results;
    for (const std::string_view each : Split(claim.allocated, ',')) {
      if (each.empty()) continue;
      const std::size_t slash = each.find('/');
      results.push_back(StrCat(R"({"request":"r","driver":"d.example.com","pool":")",
                               each.substr(0, slash), R"(","device":")", each.substr(slash + 1),
                               "\"", claim.result, "}"));
    }
    const std::string allocation = results.empty()
                                       ? ""
                                       : StrCat(R"("allocation":{"devices":{"results":[)",
                                                Join(results, ","), "]}", claim.selector, "}");
    return Parse(StrCat(R"({"metadata":{"namespace":"d","name":")", name, R"(","uid":")", name,
                        R"(","resourceVersion":")", ++version_, "\"", claim.metadata,
                        R"(},"spec":{"devices":{"requests":[)", claim.requests, R"(]}},"status":{)",
                        allocation, allocation.empty() || claim.status.empty() ? "" : ",",
                        claim.status, "}}"));
  }
  void SetClaim(const std::string& name, const Claim& claim = {}) {
    world_.claims.Observe(MakeClaim(name, claim));
  }
  static std::string Pinned(std::string key, std::string value) {
    return StrCat(R"(,"nodeSelector":{"nodeSelectorTerms":[{"matchExpressions":[{"key":")", key,
                  R"(","operator":"In","values":[")", value, R"("]}]}]})");
  }
  // A pod that uses the claims.
  static PodInfoPtr Pod(std::vector<std::string> claims, std::string status = "") {
    std::vector<std::string> entries;
    for (const std::string& claim : claims) {
      entries.push_back(
          StrCat(R"({"name":"e-)", entries.size(), R"(","resourceClaimName":")", claim, "\"}"));
    }
    return MakePodInfo(Parse(
        StrCat(R"({"metadata":{"namespace":"d","name":"p","uid":"p"},"spec":{"resourceClaims":[)",
               Join(entries, ","), R"(]},"status":{)", status, "}}")));
  }
  // What PreFilter says: "ok", "skip" or the reason.
  std::string PreFilter(const PodInfoPtr& pod) {
    cycle_ = std::make_shared<Cycle>();
    cycle_->pod = pod;
    const Status status = plugin_.PreFilter(*cycle_);
    return status.ok() ? "ok" : status.IsSkip() ? "skip" : status.Message();
  }
  // Names of the nodes that fit, "|" and the reasons for the others.
  std::string Filter(const PodInfoPtr& pod) {
    EXPECT_EQ(PreFilter(pod), "ok");
    NodeSet left = world_.nodes.known();
    const Status status = plugin_.Filter(*cycle_, left);
    if (!status.ok()) return status.Message();
    std::vector<std::string> names;
    left.ForEach([&](NodeIndex node) { names.push_back(world_.nodes.name(node)); });
    NodeSet rejected = world_.nodes.known();
    rejected.RemoveAll(left);
    Diagnosis diagnosis;
    if (!rejected.IsEmpty()) plugin_.Explain(*cycle_, rejected, diagnosis);
    std::vector<std::string> reasons;
    for (const auto& [reason, count] : diagnosis.reasons()) {
      reasons.push_back(StrCat(count, " ", reason));
    }
    return StrCat(Join(names, " "), "|", Join(reasons, "; "));
  }

  TestContext world_{FeatureGates().With(Gate::kDRAOptionalNodePreparation, true)};
  DynamicResources plugin_{world_.context, {}};
  CyclePtr cycle_;
  int version_ = 0;
};

constexpr char kDeleted[] = R"(,"deletionTimestamp":"2026-01-01T00:00:00Z")";

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

}  // namespace
}  // namespace drakkar::scheduler
