#include "answers/who/who.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "answers/render/devices.h"
#include "answers/testing/snapshots.h"

namespace drakkar::answers {
namespace {

using testing::FromYaml;
using ::testing::HasSubstr;
using testing::HeldClaim;
using testing::Node;
using testing::RunningPod;
using testing::Slice;

class WhoTest : public ::testing::Test {
 protected:
  WhoTest()
      : snapshot_(FromYaml(
            Node("n1") + Node("n2") + Slice("n1", "[{name: gpu-2}, {name: gpu-10}]") +
            Slice("n2", "[{name: gpu-0}]") + HeldClaim("big", "n1", {"gpu-10", "gpu-2"}, "train") +
            HeldClaim("small", "n2", {"gpu-0"}, "", "team") +
            RunningPod("train", "n1", "default",
                       ", labels: {app: llm}, ownerReferences: [{kind: Job, name: j, controller: "
                       "true}]"))),
        table_(snapshot_) {}

  std::string Render(const WhoFilter& filter) {
    return RenderWho(FindHolders(table_, filter), {.now = snapshot_.now});
  }
  static WhoFilter Labels(std::string_view text) {
    WhoFilter filter;
    filter.labels = api::LabelSelector::Parse(text).value();
    return filter;
  }

  Snapshot snapshot_;
  DeviceTable table_;
};

TEST_F(WhoTest, ShowsEveryDeviceWithPodClaimAgeAndHealth) {
  EXPECT_EQ(Render({}),
            "NODE  DEVICE  POD            CLAIM       SINCE  HEALTH\n"
            "n1    gpu-2   default/train  big         120m   Unknown\n"
            "n1    gpu-10  default/train  big         120m   Unknown\n"
            "n2    gpu-0   <none>         team/small  3h     Unknown\n");
}

TEST_F(WhoTest, FiltersByDeviceNodeNamespaceOwnerAndLabel) {
  const std::string train =
      "NODE  DEVICE  POD            CLAIM  SINCE  HEALTH\n"
      "n1    gpu-2   default/train  big    120m   Unknown\n"
      "n1    gpu-10  default/train  big    120m   Unknown\n";
  const std::string small =
      "NODE  DEVICE  POD     CLAIM       SINCE  HEALTH\n"
      "n2    gpu-0   <none>  team/small  3h     Unknown\n";
  EXPECT_EQ(Render({.devices = {"gpu-0"}}), small);
  EXPECT_EQ(Render({.devices = {"n2/gpu-0"}}), small);
  EXPECT_EQ(Render({.devices = {"gpu.example.com/n2/gpu-0"}}), small);
  EXPECT_EQ(Render({.devices = {"n1/gpu-0"}}), "No matching device is held.\n");
  EXPECT_EQ(Render({.node = "n2"}), small);
  EXPECT_EQ(Render({.namespace_ = "team"}), small);
  EXPECT_EQ(Render({.owner = "j"}), train);
  EXPECT_EQ(Render({.owner = "job/j"}), train);
  EXPECT_EQ(Render({.owner = "Job/other"}), "No matching device is held.\n");
  EXPECT_EQ(Render(Labels("app=llm")), train);
  EXPECT_EQ(Render(Labels("app!=llm")), "No matching device is held.\n")
      << "what has no pod has no labels";
}

TEST_F(WhoTest, ShowsDriversWhenThereAreSeveralAndEverythingWhenWide) {
  const std::string wide =
      RenderWho(FindHolders(table_, {.node = "n1"}), {.wide = true, .now = snapshot_.now});
  EXPECT_EQ(wide.substr(0, wide.find("\nn1    gpu.example.com  n1    gpu-10")),
            "NODE  DRIVER           POOL  DEVICE  POD            CLAIM        OWNER  SINCE  HEALTH "
            "  USE\n"
            "n1    gpu.example.com  n1    gpu-2   default/train  default/big  Job/j  120m   Unknown"
            "  exclusive");
}

TEST_F(WhoTest, CountsHoldersInGroups) {
  const WhoAnswer answer = FindHolders(table_, {});
  const auto render = [&](std::string_view by) {
    const HolderGrouping grouping = ParseHolderGrouping(by).value();
    return RenderHolderGroups(GroupHolders(answer, grouping), grouping, {.now = snapshot_.now});
  };
  EXPECT_EQ(render("namespace"),
            "NAMESPACE  DEVICES  CLAIMS  PODS  UNHEALTHY  OLDEST\n"
            "default          2       1     1          0  120m\n"
            "team             1       1     0          0  3h\n");
  EXPECT_EQ(render("owner"),
            "OWNER          DEVICES  CLAIMS  PODS  UNHEALTHY  OLDEST\n"
            "default/Job/j        2       1     1          0  120m\n"
            "<none>               1       1     0          0  3h\n");
  EXPECT_EQ(render("label=app"),
            "APP     DEVICES  CLAIMS  PODS  UNHEALTHY  OLDEST\n"
            "llm           2       1     1          0  120m\n"
            "<none>        1       1     0          0  3h\n");
  EXPECT_THAT(render("node"), HasSubstr("n1          2"));
  EXPECT_EQ(ParseHolderGrouping("color").error().message,
            "--by takes node, namespace, owner or label=KEY, not \"color\"");
}

TEST_F(WhoTest, SpeaksJson) {
  EXPECT_EQ(WhoToJson(FindHolders(table_, {.node = "n2"})), R"({
  "holders": [
    {
      "node": "n2",
      "driver": "gpu.example.com",
      "pool": "n2",
      "device": "gpu-0",
      "namespace": "team",
      "claim": "small",
      "request": "gpu",
      "since": "2026-01-01T09:00:00Z",
      "health": "Unknown",
      "waiting": false,
      "adminAccess": false
    }
  ],
  "notes": []
}
)");
}

}  // namespace
}  // namespace drakkar::answers
