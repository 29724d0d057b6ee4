#include "answers/cluster/device_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "answers/testing/snapshots.h"
#include "device/cel_expressions.h"

namespace drakkar::answers {
namespace {

using ::testing::ElementsAre;
using testing::FromYaml;
using ::testing::HasSubstr;
using testing::HeldClaim;
using ::testing::IsEmpty;
using testing::Node;
using testing::RunningPod;
using testing::Slice;

const DeviceEntry& At(const DeviceTable& table, const std::string& pool,
                      const std::string& device) {
  const DeviceEntry* entry = table.Find({"gpu.example.com", pool, device});
  CHECK(entry != nullptr);
  return *entry;
}

TEST(DeviceTable, ADeviceIsHeldByItsClaimAndThePodTheClaimIsReservedFor) {
  const Snapshot snapshot =
      FromYaml(Node("n1") + Slice("n1", "[{name: gpu-0}, {name: gpu-1}]") +
               HeldClaim("c", "n1", {"gpu-0"}, "p") +
               RunningPod("p", "n1", "default",
                          ", ownerReferences: [{kind: Job, name: train, controller: true}]"));
  const DeviceTable table(snapshot);
  const DeviceEntry& held = At(table, "n1", "gpu-0");
  EXPECT_TRUE(held.IsHeld());
  EXPECT_FALSE(held.IsFree());
  ASSERT_EQ(held.holds.size(), 1u);
  EXPECT_EQ(held.holds[0].claim->claim->name(), "c");
  EXPECT_EQ(held.holds[0].claim->since, "2026-01-01T10:00:00Z") << "when the pod started";
  ASSERT_EQ(held.holds[0].claim->consumers.size(), 1u);
  EXPECT_EQ(held.holds[0].claim->consumers[0].qualified_name(), "default/p");
  EXPECT_EQ(held.holds[0].claim->consumers[0].owner, "Job/train");
  EXPECT_TRUE(At(table, "n1", "gpu-1").IsFree());
}

TEST(DeviceTable, ADeviceThatNoSliceListsAnyMoreIsStillHeld) {
  const Snapshot snapshot = FromYaml(Node("n1") + HeldClaim("c", "n1", {"gpu-7"}, "p"));
  const DeviceTable table(snapshot);
  EXPECT_TRUE(At(table, "n1", "gpu-7").IsHeld());
  EXPECT_EQ(At(table, "n1", "gpu-7").unusable, "no ResourceSlice lists it");
}

TEST(DeviceTable, AdminAccessHoldsNothing) {
  std::string claim = HeldClaim("c", "n1", {"gpu-0"});
  claim.replace(claim.find("device: gpu-0"), 13, "device: gpu-0, adminAccess: true");
  const Snapshot snapshot = FromYaml(Node("n1") + Slice("n1", "[{name: gpu-0}]") + claim);
  const DeviceTable table(snapshot);
  EXPECT_EQ(At(table, "n1", "gpu-0").holds.size(), 1u);
  EXPECT_FALSE(At(table, "n1", "gpu-0").IsHeld());
  EXPECT_TRUE(At(table, "n1", "gpu-0").IsFree());
}

TEST(DeviceTable, OnlyTheNewestGenerationOfAPoolCountsAndItMustBeComplete) {
  const std::string old = Slice("n1", "[{name: old}]");
  const std::string half =
      "---\nkind: ResourceSlice\nmetadata: {name: half}\nspec: {driver: gpu.example.com, nodeName: "
      "n1, pool: {name: n1, generation: 2, resourceSliceCount: 2}, devices: [{name: new}]}\n";
  const Snapshot snapshot = FromYaml(Node("n1") + old + half);
  const DeviceTable table(snapshot);
  EXPECT_EQ(table.Find({"gpu.example.com", "n1", "old"}), nullptr);
  EXPECT_EQ(At(table, "n1", "new").unusable, "pool has 1 of 2 slices of generation 2");
}

TEST(DeviceTable, TaintsOfTheDeviceAndOfRulesCount) {
  const Snapshot snapshot = FromYaml(
      Node("n1") +
      Slice("n1",
            "[{name: a, taints: [{key: k, effect: NoSchedule}]}, {name: b}, {name: c, taints: "
            "[{key: k, effect: None}]}]") +
      "---\nkind: DeviceTaintRule\nmetadata: {name: r}\nspec: {deviceSelector: {driver: "
      "gpu.example.com, pool: n1, device: b}, taint: {key: x, effect: NoExecute}}\n");
  const DeviceTable table(snapshot);
  EXPECT_TRUE(At(table, "n1", "a").IsTainted());
  EXPECT_TRUE(At(table, "n1", "b").IsTainted());
  EXPECT_FALSE(At(table, "n1", "c").IsTainted()) << "the effect does not prevent allocation";
  EXPECT_TRUE(At(table, "n1", "c").IsFree());
}

TEST(DeviceTable, DevicesOfNodesThatAreGoneNotReadyOrCordonedAreUnusable) {
  const Snapshot snapshot = FromYaml(
      Node("cordoned", "{unschedulable: true}") + Node("silent") +
      "---\nkind: Lease\nmetadata: {name: silent}\nspec: {renewTime: "
      "'2026-01-01T11:00:00.000000Z', leaseDurationSeconds: 40}\n"
      "---\nkind: Node\nmetadata: {name: down}\nstatus: {conditions: [{type: Ready, status: "
      "Unknown}]}\n" +
      Slice("gone", "[{name: d}]") + Slice("cordoned", "[{name: d}]") +
      Slice("silent", "[{name: d}]") + Slice("down", "[{name: d}]"));
  const DeviceTable table(snapshot);
  EXPECT_EQ(At(table, "gone", "d").unusable, "node gone does not exist");
  EXPECT_EQ(At(table, "cordoned", "d").unusable, "node is cordoned");
  EXPECT_EQ(At(table, "silent", "d").unusable, "node does not renew its lease");
  EXPECT_EQ(At(table, "down", "d").unusable, "node is not ready");
}

TEST(DeviceTable, WithoutTheRightToListNodesNoneIsMissed) {
  Snapshot snapshot = FromYaml(Slice("n1", "[{name: d}]"));
  snapshot.has_nodes = false;
  const DeviceTable table(snapshot);
  EXPECT_TRUE(At(table, "n1", "d").IsFree());
}

TEST(DeviceTable, PartitionsWhoseCountersAreUsedUpAreUnusable) {
  const std::string slices =
      "---\nkind: ResourceSlice\nmetadata: {name: counters}\nspec: {driver: gpu.example.com, "
      "nodeName: n1, pool: {name: n1, generation: 1, resourceSliceCount: 2}, sharedCounters: "
      "[{name: gpu, counters: {memory: {value: 40Gi}}}]}\n"
      "---\nkind: ResourceSlice\nmetadata: {name: devices}\nspec:\n  driver: gpu.example.com\n"
      "  nodeName: n1\n  pool: {name: n1, generation: 1, resourceSliceCount: 2}\n  devices:\n"
      "  - {name: half-a, consumesCounters: [{counterSet: gpu, counters: {memory: {value: "
      "20Gi}}}]}\n"
      "  - {name: half-b, consumesCounters: [{counterSet: gpu, counters: {memory: {value: "
      "20Gi}}}]}\n"
      "  - {name: whole, consumesCounters: [{counterSet: gpu, counters: {memory: {value: "
      "40Gi}}}]}\n";
  const Snapshot snapshot = FromYaml(Node("n1") + slices + HeldClaim("c", "n1", {"half-a"}));
  const DeviceTable table(snapshot);
  EXPECT_TRUE(At(table, "n1", "half-b").IsFree());
  EXPECT_FALSE(At(table, "n1", "whole").IsFree());
  EXPECT_EQ(At(table, "n1", "whole").unusable,
            "counter gpu/memory has 20Gi left and it needs 40Gi");
}

TEST(DeviceTable, ASharedDeviceIsFreeUntilSomeCapacityIsUsedUp) {
  const auto with_share = [](std::string_view amount) {
    return FromYaml(
        Node("n1") +
        Slice("n1",
              "[{name: d, allowMultipleAllocations: true, capacity: {memory: {value: 40Gi}}}]") +
        StrCat("---\nkind: ResourceClaim\nmetadata: {name: c}\nspec: {}\nstatus: {allocation: "
               "{devices: {results: [{request: r, driver: gpu.example.com, pool: n1, device: d, "
               "shareID: a671734a-e8e5-11e4-8fde-42010af09327, consumedCapacity: {memory: ",
               amount, "}}]}}}\n"));
  };
  const Snapshot half = with_share("20Gi");
  const DeviceTable half_used(half);
  EXPECT_TRUE(At(half_used, "n1", "d").IsHeld());
  EXPECT_TRUE(At(half_used, "n1", "d").IsFree());
  EXPECT_EQ(At(half_used, "n1", "d").Consumed("memory").ToString(), "20Gi");
  const Snapshot all = with_share("40Gi");
  EXPECT_FALSE(At(DeviceTable(all), "n1", "d").IsFree());
}

TEST(DeviceTable, ClassesAreFoundByTheirSelectors) {
  device::CelExpressions compiler;
  const Snapshot snapshot = FromYaml(
      Node("n1") +
      Slice("n1",
            "[{name: a, attributes: {model: {string: A100}}}, {name: b, attributes: {model: "
            "{string: T4}}}, {name: c}]") +
      "---\nkind: DeviceClass\nmetadata: {name: any}\nspec: {selectors: [{cel: {expression: "
      "\"device.driver == 'gpu.example.com'\"}}]}\n"
      "---\nkind: DeviceClass\nmetadata: {name: a100}\nspec: {selectors: [{cel: {expression: "
      "\"device.attributes['gpu.example.com'].model == 'A100'\"}}]}\n"
      "---\nkind: DeviceClass\nmetadata: {name: broken}\nspec: {selectors: [{cel: {expression: "
      "\"device.nothing ==\"}}]}\n");
  const DeviceTable table(snapshot, {.compiler = &compiler});
  EXPECT_THAT(table.classes(), ElementsAre("a100", "any", "broken"));
  EXPECT_THAT(At(table, "n1", "a").classes, ElementsAre(0, 1));
  EXPECT_THAT(At(table, "n1", "b").classes, ElementsAre(1));
  EXPECT_THAT(At(table, "n1", "c").classes, ElementsAre(1)) << "a selector that fails selects not";
  EXPECT_THAT(table.notes(), ElementsAre(HasSubstr("DeviceClass broken selects nothing")));
}

TEST(DeviceTable, HealthComesFromThePodThatHoldsTheDeviceAndFromItsNode) {
  const std::string pod =
      "---\nkind: Pod\nmetadata: {name: p}\nspec: {nodeName: n1}\nstatus: {containerStatuses: "
      "[{name: c, allocatedResourcesStatus: [{name: 'claim:x', resources: [{resourceID: "
      "gpu.example.com/n1/gpu-0, health: Unhealthy, message: too hot}, {resourceID: "
      "gpu.example.com/n1/gpu-1, health: Unhealthy}]}]}]}\n";
  Snapshot snapshot =
      FromYaml(Node("n1") + Slice("n1", "[{name: gpu-0}, {name: gpu-1}, {name: gpu-2}]") +
               HeldClaim("c", "n1", {"gpu-0"}, "p") + pod);
  {
    const DeviceTable table(snapshot);
    EXPECT_TRUE(At(table, "n1", "gpu-0").IsUnhealthy());
    EXPECT_EQ(At(table, "n1", "gpu-0").health.message, "too hot");
    EXPECT_FALSE(At(table, "n1", "gpu-1").IsUnhealthy()) << "not a device of that pod";
  }
  snapshot.node_health["n1"][{"gpu.example.com", "n1", "gpu-2"}] = {"Unhealthy",
                                                                    "2026-01-01T11:00:00Z", "gone"};
  snapshot.node_health["n2"][{"gpu.example.com", "n1", "gpu-1"}] = {"Unhealthy", "", ""};
  const DeviceTable table(snapshot);
  EXPECT_TRUE(At(table, "n1", "gpu-2").IsUnhealthy());
  EXPECT_FALSE(At(table, "n1", "gpu-2").IsFree());
  EXPECT_FALSE(At(table, "n1", "gpu-1").IsUnhealthy()) << "n2 has no say about it";
  EXPECT_THAT(table.NodesToAsk(), ElementsAre("n1"));
}

TEST(DeviceTable, AClaimWaitsUntilItsBindingConditionsAreTrue) {
  std::string claim = HeldClaim("c", "n1", {"gpu-0"});
  claim.replace(claim.find("device: gpu-0"), 13, "device: gpu-0, bindingConditions: [attached]");
  const Snapshot snapshot = FromYaml(Node("n1") + Slice("n1", "[{name: gpu-0}]") + claim);
  EXPECT_TRUE(At(DeviceTable(snapshot), "n1", "gpu-0").IsWaiting());
  const Snapshot attached =
      FromYaml(Node("n1") + Slice("n1", "[{name: gpu-0}]") + claim +
               "  devices: [{driver: gpu.example.com, pool: n1, device: gpu-0, conditions: [{type: "
               "attached, status: 'True'}]}]\n");
  EXPECT_FALSE(At(DeviceTable(attached), "n1", "gpu-0").IsWaiting());
}

TEST(DeviceTable, WhatCannotBeReadIsLeftOutAndSaid) {
  const Snapshot snapshot = FromYaml(
      "---\nkind: ResourceSlice\nmetadata: {name: bad}\nspec: {driver: d, pool: {name: p, "
      "generation: 1, resourceSliceCount: 1}, devices: [{name: x, capacity: {memory: {value: "
      "lots}}}]}\n");
  const DeviceTable table(snapshot);
  EXPECT_THAT(table.devices(), IsEmpty());
  EXPECT_THAT(table.notes(), ElementsAre(HasSubstr("ResourceSlice bad cannot be read: ")));
}

TEST(OwnerOf, IsTheDeploymentForAPodOfItsReplicaSet) {
  const Snapshot snapshot = FromYaml(
      "---\nkind: Pod\nmetadata: {name: p, labels: {pod-template-hash: 5d8f}, ownerReferences: "
      "[{kind: ReplicaSet, name: web-5d8f, controller: true}]}\n"
      "---\nkind: Pod\nmetadata: {name: q, ownerReferences: [{kind: ReplicaSet, name: web-5d8f, "
      "controller: true}]}\n"
      "---\nkind: Pod\nmetadata: {name: r, ownerReferences: [{kind: Thing, name: x}]}\n");
  EXPECT_EQ(OwnerOf(*snapshot.pods[0]), "Deployment/web");
  EXPECT_EQ(OwnerOf(*snapshot.pods[1]), "ReplicaSet/web-5d8f");
  EXPECT_EQ(OwnerOf(*snapshot.pods[2]), "") << "it does not control the pod";
}

}  // namespace
}  // namespace drakkar::answers
