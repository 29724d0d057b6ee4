#include <gtest/gtest.h>

#include "api/json/reader.h"
#include "base/env/random.h"
#include "base/text/text.h"
#include "scheduler/cache/claim_cache.h"
#include "scheduler/cache/node_table.h"
#include "scheduler/cache/placements.h"
#include "scheduler/cache/resources.h"

namespace drakkar::scheduler {
namespace {

api::ObjectPtr Parse(std::string_view json) {
  auto tree = api::ParseJson(json);
  EXPECT_TRUE(tree.ok()) << json;
  return std::make_shared<const api::Object>(*tree);
}

TEST(PodRequests, CountContainersInitContainersSidecarsOverheadAndPodLevel) {
  struct Case {
    const char* what;
    const char* spec;
    std::int64_t milli_cpu;
    std::int64_t memory;
  };
  const Case cases[] = {
      {"nothing", R"({"containers":[{}]})", 0, 0},
      {"containers add up",
       R"({"containers":[{"resources":{"requests":{"cpu":"500m","memory":"1Ki"}}},
                         {"resources":{"requests":{"cpu":"1"}}}]})",
       1500, 1024},
      {"the largest init container counts alone",
       R"({"containers":[{"resources":{"requests":{"cpu":"1"}}}],
           "initContainers":[{"resources":{"requests":{"cpu":"3"}}},{"resources":{"requests":{"cpu":"2"}}}]})",
       3000, 0},
      {"sidecars run beside containers",
       R"({"containers":[{"resources":{"requests":{"cpu":"1"}}}],
           "initContainers":[{"restartPolicy":"Always","resources":{"requests":{"cpu":"2"}}}]})",
       3000, 0},
      {"and beside later init containers",
       R"({"containers":[{"resources":{"requests":{"cpu":"1"}}}],
           "initContainers":[{"restartPolicy":"Always","resources":{"requests":{"cpu":"2"}}},
                             {"resources":{"requests":{"cpu":"5"}}}]})",
       7000, 0},
      {"but not beside earlier ones",
       R"({"containers":[{"resources":{"requests":{"cpu":"1"}}}],
           "initContainers":[{"resources":{"requests":{"cpu":"5"}}},
                             {"restartPolicy":"Always","resources":{"requests":{"cpu":"2"}}}]})",
       5000, 0},
      {"overhead comes on top",
       R"({"containers":[{"resources":{"requests":{"cpu":"1"}}}],"overhead":{"cpu":"250m","memory":"1"}})",
       1250, 1},
      {"pod-level requests replace the sum",
       R"({"containers":[{"resources":{"requests":{"cpu":"1","memory":"10"}}}],
           "resources":{"requests":{"cpu":"4"}},"overhead":{"cpu":"1"}})",
       5000, 10},
      {"amounts past any node's neither wrap around nor vanish",
       R"({"containers":[{"resources":{"requests":{"cpu":"1e18","memory":"1e30"}}},
                         {"resources":{"requests":{"cpu":"9223372036854775807","memory":"8Ei"}}}],
           "overhead":{"cpu":"1e18","memory":"9223372036854775807"}})",
       std::int64_t{1} << 52, std::int64_t{1} << 52},
  };
  for (const Case& c : cases) {
    const ResourceAmounts amounts = PodRequests(Parse(c.spec)->root());
    EXPECT_EQ(amounts.milli_cpu, c.milli_cpu) << c.what;
    EXPECT_EQ(amounts.memory, c.memory) << c.what;
  }
}

TEST(PodRequests, OfABoundPodAreTheLargerOfDesiredAndAllocated) {
  struct Case {
    const char* what;
    const char* status;
    std::int64_t milli_cpu;
  };
  // Requests 2 cpu, and 1 for a sidecar.
  const api::ObjectPtr spec = Parse(
      R"({"containers":[{"name":"c","resources":{"requests":{"cpu":"2"}}}],"initContainers":[
          {"name":"s","restartPolicy":"Always","resources":{"requests":{"cpu":"1"}}}]})");
  const Case cases[] = {
      {"nothing is known", R"({})", 3000},
      {"shrinking", R"({"containerStatuses":[{"name":"c","allocatedResources":{"cpu":"4"},
          "resources":{"requests":{"cpu":"4"}}}]})",
       5000},
      {"granted but not in effect", R"({"containerStatuses":[{"name":"c","allocatedResources":
          {"cpu":"2"},"resources":{"requests":{"cpu":"4"}}}]})",
       5000},
      {"growing", R"({"containerStatuses":[{"name":"c","allocatedResources":{"cpu":"1"},
          "resources":{"requests":{"cpu":"1"}}}]})",
       3000},
      {"growing without success", R"({"conditions":[{"type":"PodResizePending","status":"True",
          "reason":"Infeasible"}],"containerStatuses":[{"name":"c","allocatedResources":{"cpu":"1"},
          "resources":{"requests":{"cpu":"1"}}}]})",
       2000},
      {"growing later", R"({"conditions":[{"type":"PodResizePending","status":"True",
          "reason":"Deferred"}],"containerStatuses":[{"name":"c","allocatedResources":{"cpu":"1"},
          "resources":{"requests":{"cpu":"1"}}}]})",
       3000},
      {"a sidecar", R"({"initContainerStatuses":[{"name":"s","allocatedResources":{"cpu":"3"},
          "resources":{"requests":{"cpu":"3"}}}]})",
       5000},
      {"another container", R"({"containerStatuses":[{"name":"x","allocatedResources":{"cpu":"4"},
          "resources":{"requests":{"cpu":"4"}}}]})",
       3000},
  };
  for (const Case& c : cases) {
    EXPECT_EQ(PodRequests(spec->root(), Parse(c.status)->root()).milli_cpu, c.milli_cpu) << c.what;
    EXPECT_TRUE(HaveSameResources(Parse(c.status)->root(), Parse(c.status)->root())) << c.what;
  }
  EXPECT_FALSE(HaveSameResources(Parse(cases[1].status)->root(), Parse(cases[2].status)->root()));
  EXPECT_FALSE(HaveSameResources(Parse(cases[4].status)->root(), Parse(cases[5].status)->root()));
  EXPECT_FALSE(HaveSameResources(Parse(cases[6].status)->root(), Parse("{}")->root()));
}

PodInfoPtr Pod(std::string uid, std::string node, int milli_cpu) {
  return MakePodInfo(Parse(StrCat(R"({"metadata":{"namespace":"d","name":")", uid, R"(","uid":")",
                                  uid, R"("},"spec":{"nodeName":")", node,
                                  R"(","containers":[{"resources":{"requests":{"cpu":")", milli_cpu,
                                  R"(m","example.com/x":"1"}},"ports":[{"hostPort":80}]}]}})")));
}

api::ObjectPtr Node(std::string name, int cpu) {
  return Parse(StrCat(R"({"metadata":{"name":")", name, R"("},"status":{"allocatable":{"cpu":")",
                      cpu, R"(","pods":"3","example.com/x":"2"}}})"));
}

TEST(Placements, CountPodResourcesInAnyOrderOfEvents) {
  NodeTable table;
  Placements placements(table);
  placements.Confirm(Pod("early", "n1", 500));  // before its node is known
  const NodeIndex n1 = placements.SetNode(Node("n1", 4));
  EXPECT_EQ(table.free_cpu()[n1], 3500);
  EXPECT_EQ(table.free_pods()[n1], 2);
  EXPECT_EQ(table.FreeOther(n1, "example.com/x"), 1);
  placements.Assume(Pod("mine", "", 1000), "n1");
  EXPECT_TRUE(placements.IsAssumed("mine"));
  EXPECT_EQ(table.free_cpu()[n1], 2500);
  placements.Confirm(Pod("mine", "n1", 1000));
  EXPECT_FALSE(placements.IsAssumed("mine"));
  EXPECT_EQ(table.free_cpu()[n1], 2500) << "not counted twice";
  placements.Forget("mine");
  EXPECT_EQ(table.free_cpu()[n1], 2500) << "a confirmed pod is not forgotten";
  placements.Confirm(Pod("mine", "n1", 2000));
  EXPECT_EQ(table.free_cpu()[n1], 1500) << "resized";
  placements.SetNode(Node("n1", 8));
  EXPECT_EQ(table.free_cpu()[n1], 5500) << "the node grew";
  placements.RemoveNode("n1");
  placements.Remove("early");
  const NodeIndex again = placements.SetNode(Node("n1", 4));
  EXPECT_EQ(table.free_cpu()[again], 2000) << "pods outlive their node's absence";
  placements.Remove("mine");
  EXPECT_EQ(table.free_cpu()[again], 4000);
  EXPECT_TRUE(table.ports(again).empty());
}

TEST(NodeTable, IndexesOfRemovedNodesAreReusedWithoutStaleData) {
  NodeTable table;
  const NodeIndex a = table.SetNode(Parse(
      R"({"metadata":{"name":"a"},"spec":{"unschedulable":true,"taints":[{"key":"k","effect":"NoSchedule"}]},
               "status":{"allocatable":{"cpu":"4","pods":"1"}}})"));
  table.SetNode(Node("b", 2));
  EXPECT_TRUE(table.unschedulable().Contains(a));
  EXPECT_EQ(table.taint_groups()[table.taint_group(a)].taints.size(), 1u);
  table.RemoveNode("a");
  EXPECT_EQ(table.node_count(), 1u);
  EXPECT_FALSE(table.known().Contains(a));
  const NodeIndex c = table.SetNode(Node("c", 6));
  EXPECT_EQ(c, a);
  EXPECT_FALSE(table.unschedulable().Contains(c));
  EXPECT_EQ(table.taint_group(c), 0u);
  EXPECT_EQ(table.free_cpu()[c], 6000);
}

api::ObjectPtr Claim(int version, std::string device, std::string uid = "u") {
  std::string status;
  if (!device.empty()) {
    status =
        StrCat(R"(,"status":{"allocation":{"devices":{"results":[{"request":"r","driver":"d",)",
               R"("pool":"p","device":")", device, R"("}]}}})");
  }
  return Parse(StrCat(
      R"({"metadata":{"namespace":"d","name":"c","uid":")", uid, R"(","resourceVersion":")",
      version,
      R"("},"spec":{"devices":{"requests":[{"name":"r","exactly":{"deviceClassName":"x","allocationMode":"ExactCount","count":1}}]}})",
      status, "}"));
}

AllocationPtr Allocation(std::string device) {
  auto allocation = std::make_shared<device::AllocationResult>();
  allocation->results.push_back({.request = "r", .id = {"d", "p", device}});
  return allocation;
}

bool IsHeld(const device::AllocatedState& state, std::string device) {
  return state.FindDevice({"d", "p", device}) != nullptr;
}

TEST(ClaimCache, AnOlderWatchEventDoesNotReplaceANewerResponse) {
  device::AllocatedState allocated;
  ClaimCache cache(allocated);
  int changes = 0;
  cache.SetChangeHandler([&](const auto&, const auto&, const auto&) { ++changes; });
  cache.Observe(Claim(1, ""));
  ASSERT_TRUE(cache.Assume(Claim(3, "dev")).ok());
  EXPECT_TRUE(IsHeld(allocated, "dev"));
  cache.Observe(Claim(2, ""));
  EXPECT_TRUE(IsHeld(allocated, "dev")) << "an older version from the watch";
  cache.Observe(Claim(3, "dev"));
  EXPECT_EQ(changes, 2) << "told once per version";
  EXPECT_FALSE(cache.Assume(Claim(2, "")).ok());
  cache.Observe(Claim(4, ""));
  EXPECT_FALSE(IsHeld(allocated, "dev"));
  cache.Remove(Claim(4, ""));
  EXPECT_EQ(cache.Find("d/c"), nullptr);
  EXPECT_FALSE(cache.Assume(Claim(5, "dev")).ok()) << "gone";
}

TEST(ClaimCache, APendingAllocationHoldsItsDevicesUntilTheApiDoes) {
  device::AllocatedState allocated;
  ClaimCache cache(allocated);
  EXPECT_FALSE(cache.SetPending("d/c", Allocation("dev"), "pod"));
  cache.Observe(Claim(1, ""));
  ASSERT_TRUE(cache.SetPending("d/c", Allocation("dev"), "pod"));
  EXPECT_TRUE(IsHeld(allocated, "dev"));
  EXPECT_FALSE(cache.SetPending("d/c", Allocation("other"), "another pod"));
  EXPECT_FALSE(cache.ClearPending("d/c", "another pod"));
  allocated.TakeChanges();
  cache.Observe(Claim(2, "dev"));
  EXPECT_TRUE(allocated.TakeChanges().empty()) << "the same devices: nothing changes hands";
  EXPECT_FALSE(cache.ClearPending("d/c", "pod")) << "nothing became free";
  EXPECT_TRUE(IsHeld(allocated, "dev"));
  cache.Observe(Claim(3, ""));
  EXPECT_FALSE(IsHeld(allocated, "dev"));
  ASSERT_TRUE(cache.SetPending("d/c", Allocation("dev"), "pod"));
  EXPECT_TRUE(cache.ClearPending("d/c", "pod"));
  EXPECT_FALSE(IsHeld(allocated, "dev"));
}

TEST(ClaimCache, AnUnreadableAllocationHoldsItsDevicesUntilItIsRemoved) {
  const auto claim = [](int version, std::string status) {
    return Parse(StrCat(R"({"metadata":{"namespace":"d","name":"c","uid":"u","resourceVersion":")",
                        version, R"("},"spec":{"devices":{"requests":[{"name":"r","exactly":)",
                        R"({"deviceClassName":"x","allocationMode":"ExactCount","count":1}}]}},)",
                        R"("status":{)", status, "}}"));
  };
  device::AllocatedState allocated;
  ClaimCache cache(allocated);
  cache.Observe(
      claim(1, R"("allocation":{"devices":{"results":[{"request":"r","driver":"d","pool":"p",
      "device":"dev","shareID":"s","consumedCapacity":{"units":"a lot"}}]}})"));
  EXPECT_NE(cache.Find("d/c")->problem, "");
  EXPECT_TRUE(IsHeld(allocated, "dev"));
  EXPECT_EQ(allocated.FindDevice({"d", "p", "dev"})->exclusive, 1) << "all of it, for all we know";
  cache.Observe(claim(2, ""));
  EXPECT_EQ(cache.Find("d/c")->problem, "") << "usable again";
  EXPECT_FALSE(IsHeld(allocated, "dev"));
}

TEST(ClaimCache, AClaimThatReusesANameIsADifferentClaim) {
  device::AllocatedState allocated;
  ClaimCache cache(allocated);
  cache.Observe(Claim(1, "dev"));
  cache.Observe(Claim(5, "", "other"));
  EXPECT_FALSE(IsHeld(allocated, "dev"));
  EXPECT_EQ(cache.Find("d/c")->latest->uid(), "other");
}

}  // namespace
}  // namespace drakkar::scheduler
