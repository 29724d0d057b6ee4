#include "answers/free/free.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "answers/cluster/natural_order.h"
#include "answers/render/devices.h"
#include "answers/testing/snapshots.h"
#include "device/cel_expressions.h"

namespace drakkar::answers {
namespace {

using testing::FromYaml;
using testing::HeldClaim;
using testing::Node;
using testing::RunningPod;
using testing::Slice;

// Two nodes with two models, of which one is held, one tainted and one on a cordoned node.
class FreeTest : public ::testing::Test {
 protected:
  FreeTest()
      : snapshot_(FromYaml(
            Node("n2") + Node("n10", "{unschedulable: true}") +
            Slice("n2",
                  "[{name: gpu-0, attributes: {model: {string: A100}}}, {name: gpu-1, attributes: "
                  "{model: {string: A100}}}, {name: gpu-2, attributes: {model: {string: T4}}, "
                  "taints: [{key: broken, effect: NoSchedule}]}]") +
            Slice("n10", "[{name: gpu-0}]") + HeldClaim("c", "n2", {"gpu-0"}, "p") +
            RunningPod("p", "n2") +
            "---\nkind: DeviceClass\nmetadata: {name: gpu}\nspec: {selectors: [{cel: {expression: "
            "\"device.driver == 'gpu.example.com'\"}}]}\n"
            "---\nkind: DeviceClass\nmetadata: {name: a100}\nspec: {selectors: [{cel: {expression: "
            "\"device.attributes['gpu.example.com'].model == 'A100'\"}}]}\n")),
        table_(snapshot_, {.compiler = &compiler_}) {}

  std::string Render(std::string_view by, DeviceFilter filter = {}) {
    return RenderFree(CountFree(table_, ParseGrouping(by).value(), filter), {});
  }

  device::CelExpressions compiler_;
  Snapshot snapshot_;
  DeviceTable table_;
};

TEST_F(FreeTest, CountsByClassAndEveryDeviceOnceInTheSum) {
  EXPECT_EQ(Render("class"),
            "CLASS  TOTAL  FREE  HELD  TAINTED  UNHEALTHY  UNUSABLE\n"
            "a100       2     1     1        0          0         0\n"
            "gpu        4     1     1        1          0         1\n"
            "(all)      4     1     1        1          0         1\n");
}

TEST_F(FreeTest, CountsByModelNodePoolDriverAndAttribute) {
  EXPECT_EQ(Render("model"),
            "MODEL   TOTAL  FREE  HELD  TAINTED  UNHEALTHY  UNUSABLE\n"
            "A100        2     1     1        0          0         0\n"
            "T4          1     0     0        1          0         0\n"
            "<none>      1     0     0        0          0         1\n"
            "(all)       4     1     1        1          0         1\n");
  const std::string by_attribute = Render("gpu.example.com/model");
  EXPECT_EQ(by_attribute.substr(0, by_attribute.find('\n', 80)),
            "gpu.example.com/model  TOTAL  FREE  HELD  TAINTED  UNHEALTHY  UNUSABLE\n"
            "A100                       2     1     1        0          0         0");
  EXPECT_EQ(Render("node"),
            "NODE   TOTAL  FREE  HELD  TAINTED  UNHEALTHY  UNUSABLE\n"
            "n2         3     1     1        1          0         0\n"
            "n10        1     0     0        0          0         1\n"
            "(all)      4     1     1        1          0         1\n");
  EXPECT_EQ(Render("pool").substr(0, 4), "POOL");
  EXPECT_EQ(Render("driver"),
            "DRIVER           TOTAL  FREE  HELD  TAINTED  UNHEALTHY  UNUSABLE\n"
            "gpu.example.com      4     1     1        1          0         1\n");
}

TEST_F(FreeTest, FiltersBeforeItCounts) {
  EXPECT_EQ(Render("node", {.device_class = "a100"}),
            "NODE  TOTAL  FREE  HELD  TAINTED  UNHEALTHY  UNUSABLE\n"
            "n2        2     1     1        0          0         0\n");
  EXPECT_EQ(Render("class", {.node = "nowhere"}), "No devices found.\n");
}

TEST_F(FreeTest, SaysTheSameInJson) {
  const std::string json = FreeToJson(CountFree(table_, Grouping(), {.device_class = "a100"}));
  EXPECT_EQ(json.substr(0, json.find("\"sharedCapacity\"")),
            R"({
  "by": "class",
  "all": {
    "total": 2,
    "free": 1,
    "held": 1,
    "waiting": 0,
    "tainted": 0,
    "unhealthy": 0,
    "unusable": 0
  },
  "groups": [
    {
      "name": "a100",
      "total": 2,
      "free": 1,
      "held": 1,
      "waiting": 0,
      "tainted": 0,
      "unhealthy": 0,
      "unusable": 0
    },
    {
      "name": "gpu",
      "total": 2,
      "free": 1,
      "held": 1,
      "waiting": 0,
      "tainted": 0,
      "unhealthy": 0,
      "unusable": 0
    }
  ],
  )");
}

TEST(Free, AddsUpSharedCapacityAndCountersAndSaysWhatIsLeftInOnePiece) {
  const Snapshot snapshot = FromYaml(
      Node("n1") +
      Slice("n1",
            "[{name: a, allowMultipleAllocations: true, capacity: {memory: {value: 40Gi}}}, {name: "
            "b, allowMultipleAllocations: true, capacity: {memory: {value: 40Gi}}}]") +
      "---\nkind: ResourceClaim\nmetadata: {name: c}\nspec: {}\nstatus: {allocation: {devices: "
      "{results: [{request: r, driver: gpu.example.com, pool: n1, device: a, shareID: "
      "a671734a-e8e5-11e4-8fde-42010af09327, consumedCapacity: {memory: 30Gi}}]}}}\n"
      "---\nkind: ResourceSlice\nmetadata: {name: counters}\nspec: {driver: mig.example.com, "
      "nodeName: n1, pool: {name: n1, generation: 1, resourceSliceCount: 2}, sharedCounters: "
      "[{name: gpu-0, counters: {slices: {value: '7'}}}, {name: gpu-1, counters: {slices: {value: "
      "'7'}}}]}\n"
      "---\nkind: ResourceSlice\nmetadata: {name: partitions}\nspec: {driver: mig.example.com, "
      "nodeName: n1, pool: {name: n1, generation: 1, resourceSliceCount: 2}, devices: [{name: x, "
      "consumesCounters: [{counterSet: gpu-0, counters: {slices: {value: '4'}}}]}]}\n"
      "---\nkind: ResourceClaim\nmetadata: {name: d}\nspec: {}\nstatus: {allocation: {devices: "
      "{results: [{request: r, driver: mig.example.com, pool: n1, device: x}]}}}\n");
  const DeviceTable table(snapshot);
  const std::string text = RenderFree(CountFree(table, ParseGrouping("driver").value(), {}), {});
  EXPECT_EQ(text,
            "DRIVER           TOTAL  FREE  HELD  TAINTED  UNHEALTHY  UNUSABLE\n"
            "gpu.example.com      2     2     1        0          0         0\n"
            "mig.example.com      1     0     1        0          0         0\n"
            "(all)                3     2     2        0          0         0\n"
            "\n"
            "DRIVER           SHARED CAPACITY  DEVICES  TOTAL  USED  FREE  LARGEST\n"
            "gpu.example.com  memory                 2   80Gi  30Gi  50Gi     40Gi\n"
            "\n"
            "DRIVER           COUNTER  SETS  TOTAL  USED  FREE  LARGEST\n"
            "mig.example.com  slices      2     14     4    10        7\n");
}

TEST(Free, RefusesAGroupingThatIsNone) {
  EXPECT_EQ(ParseGrouping("a/b/c").error().message,
            "--by takes class, model, driver, node, pool or an attribute (ID or DOMAIN/ID), not "
            "\"a/b/c\"");
  EXPECT_FALSE(ParseGrouping("").ok());
  EXPECT_EQ(ParseGrouping("dra.example.com/speed")->attribute, "dra.example.com/speed");
}

TEST(NaturalLess, CountsAsPeopleDo) {
  EXPECT_TRUE(NaturalLess("gpu-2", "gpu-10"));
  EXPECT_FALSE(NaturalLess("gpu-10", "gpu-2"));
  EXPECT_TRUE(NaturalLess("a", "b"));
  EXPECT_TRUE(NaturalLess("n1", "n1a"));
  EXPECT_FALSE(NaturalLess("n1", "n1"));
  EXPECT_TRUE(NaturalLess("n01", "n1") != NaturalLess("n1", "n01")) << "a total order";
}

}  // namespace
}  // namespace drakkar::answers
