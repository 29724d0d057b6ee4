#include "dashboard/model/device_map.h"

#include <gtest/gtest.h>

#include "answers/testing/snapshots.h"

namespace drakkar::dashboard {
namespace {

using answers::testing::FromYaml;
using answers::testing::HeldClaim;
using answers::testing::Node;
using answers::testing::RunningPod;
using answers::testing::Slice;

DeviceMap Map(const answers::Snapshot& snapshot) {
  return MakeMap(snapshot, answers::DeviceTable(snapshot));
}

std::string Changes(const DeviceMap& before, const DeviceMap& after) {
  answers::JsonOut json(/*indented=*/false);
  json.BeginObject();
  const bool same_shape = ChangesToJson(json, before, after);
  json.EndObject();
  return same_shape ? json.Take() : "whole";
}

const std::string kTwo = "[{name: gpu-0}, {name: gpu-10}, {name: gpu-2}]";

TEST(DeviceMap, HasARowPerNodeInNaturalOrderAndALetterPerDevice) {
  const DeviceMap map = Map(FromYaml(Node("n10") + Node("n2") + Node("bare") +
                                     Slice("n10", "[{name: gpu-0}]") + Slice("n2", kTwo) +
                                     HeldClaim("c", "n2", {"gpu-2"}, "p") + RunningPod("p", "n2")));
  ASSERT_EQ(map.rows.size(), 2u);
  EXPECT_EQ(map.rows[0].name, "n2");
  EXPECT_EQ(map.rows[0].pools[0].devices, (std::vector<std::string>{"gpu-0", "gpu-2", "gpu-10"}));
  EXPECT_EQ(map.rows[0].states, "FHF");
  EXPECT_EQ(map.rows[1].name, "n10");
  EXPECT_EQ(map.counts, (std::map<char, std::size_t>{{'F', 3}, {'H', 1}}));
  EXPECT_EQ(map.nodes_without_devices, 1u);
}

TEST(DeviceMap, ShowsTaintedDevicesAndNodesWithProblems) {
  const DeviceMap map =
      Map(FromYaml(Node("a", "{unschedulable: true}") +
                   Slice("a", "[{name: x, taints: [{key: bad, effect: NoSchedule}]}, {name: z1}]") +
                   Slice("gone", "[{name: z}]")));
  ASSERT_EQ(map.rows.size(), 2u);
  EXPECT_EQ(map.rows[0].states, "TN");
  EXPECT_EQ(map.rows[0].problem, "node is cordoned");
  EXPECT_EQ(map.rows[1].states, "N");
  EXPECT_EQ(map.rows[1].problem, "node does not exist");
}

TEST(DeviceMap, DevicesWithoutANodeComeLastInARowPerPool) {
  const DeviceMap map = Map(FromYaml(
      Node("z") + Slice("z", "[{name: x}]") +
      "---\nkind: ResourceSlice\nmetadata: {name: s}\nspec: {driver: nic, allNodes: true, pool: "
      "{name: fabric, generation: 1, resourceSliceCount: 1}, devices: [{name: port-0}]}\n"));
  ASSERT_EQ(map.rows.size(), 2u);
  EXPECT_EQ(map.rows[1].name, "nic/fabric");
  EXPECT_FALSE(map.rows[1].is_node);
}

TEST(DeviceMap, AChangeListsOnlyTheRowsThatDiffer) {
  const std::string base = Node("a") + Node("b") + Slice("a", kTwo) + Slice("b", kTwo);
  const DeviceMap before = Map(FromYaml(base));
  const DeviceMap after =
      Map(FromYaml(base + HeldClaim("c", "b", {"gpu-0"}, "p") + RunningPod("p", "b")));
  EXPECT_EQ(Changes(before, after),
            R"({"counts":{"F":5,"H":1},"nodesWithoutDevices":0,"changed":[[1,"HFF",""]]})");
  EXPECT_EQ(Changes(before, before), R"({"counts":{"F":6},"nodesWithoutDevices":0,"changed":[]})");
}

TEST(DeviceMap, NewDevicesNeedTheWholeMap) {
  const DeviceMap before = Map(FromYaml(Node("a") + Slice("a", "[{name: x}]")));
  EXPECT_EQ(Changes(before, Map(FromYaml(Node("a") + Slice("a", "[{name: z1}]")))), "whole");
  EXPECT_EQ(Changes(before, DeviceMap()), "whole");
}

}  // namespace
}  // namespace drakkar::dashboard
