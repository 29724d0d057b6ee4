#include "cdi/container_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace drakkar::cdi {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class FakeProbe final : public DeviceNodeProbe {
 public:
  Result<DeviceNodeInfo> Probe(const std::string& path) override {
    ++probes;
    const auto found = nodes.find(path);
    if (found == nodes.end()) return NotFound("stat " + path + ": No such file or directory");
    return found->second;
  }
  std::map<std::string, DeviceNodeInfo> nodes;
  int probes = 0;
};

class ContainerPlanTest : public ::testing::Test {
 protected:
  void Apply(const ContainerEdits& edits) {
    const Result<void> applied = ApplyEdits(edits, probe_, &plan_);
    ASSERT_TRUE(applied.ok()) << applied.error().message;
  }
  std::vector<std::string> Destinations() const {
    std::vector<std::string> destinations;
    for (const PlannedMount& mount : plan_.mounts) destinations.push_back(mount.destination);
    return destinations;
  }

  FakeProbe probe_;
  ContainerPlan plan_;
};

TEST_F(ContainerPlanTest, ALaterVariableReplacesOneWithTheSameName) {
  plan_.env = {"PATH=/bin", "AB=1"};
  Apply({.env = {"A=2", "PATH=/sbin", "A=3"}});
  EXPECT_THAT(plan_.env, ElementsAre("PATH=/sbin", "AB=1", "A=3"));
}

TEST_F(ContainerPlanTest, MountsAreReplacedByDestinationAndSortedByDepth) {
  plan_.mounts = {{.destination = "/proc"}, {.destination = "/a/b/c"}, {.destination = "/x/y"}};
  Apply({.mounts = {{.host_path = "/h1", .container_path = "/a"},
                    {.host_path = "/h2", .container_path = "/x//y/./"},
                    {.host_path = "/h3", .container_path = "/x/y", .options = {"ro"}}}});
  EXPECT_THAT(Destinations(), ElementsAre("/proc", "/a", "/x//y/./", "/x/y", "/a/b/c"));
  EXPECT_EQ(plan_.mounts[3],
            (PlannedMount{.destination = "/x/y", .source = "/h3", .options = {"ro"}}));
}

TEST_F(ContainerPlanTest, BindMountsAreMappedInAUserNamespace) {
  plan_.has_user_namespace = true;
  Apply({.mounts = {{.host_path = "/h", .container_path = "/a", .options = {"ro", "bind"}},
                    {.host_path = "/h", .container_path = "/b", .options = {"rbind"}},
                    {.host_path = "/h", .container_path = "/c", .options = {"bind", "ridmap"}},
                    {.host_path = "tmpfs", .container_path = "/d", .type = "tmpfs"}}});
  EXPECT_THAT(plan_.mounts[0].options, ElementsAre("ro", "bind", "idmap"));
  EXPECT_THAT(plan_.mounts[1].options, ElementsAre("rbind", "ridmap"));
  EXPECT_THAT(plan_.mounts[2].options, ElementsAre("bind", "ridmap"));
  EXPECT_THAT(plan_.mounts[3].options, IsEmpty());
}

TEST_F(ContainerPlanTest, MissingDeviceFieldsAreLookedUpOnTheHost) {
  probe_.nodes["/dev/gpu"] = {.type = DeviceNodeType::kCharacter, .major = 195, .minor = 3};
  probe_.nodes["/dev/host-disk"] = {.type = DeviceNodeType::kBlock, .major = 8, .minor = 1};
  Apply({.device_nodes = {
             {.path = "/dev/gpu"},
             {.path = "/dev/disk", .host_path = "/dev/host-disk", .type = "b", .permissions = "r"},
             {.path = "/dev/fifo", .type = "p"},
             {.path = "/dev/full", .type = "c", .major = 1, .minor = 7, .permissions = "none"}}});
  EXPECT_EQ(probe_.probes, 2);
  EXPECT_THAT(plan_.devices,
              ElementsAre(PlannedDevice{.path = "/dev/gpu", .type = "c", .major = 195, .minor = 3},
                          PlannedDevice{.path = "/dev/disk", .type = "b", .major = 8, .minor = 1},
                          PlannedDevice{.path = "/dev/fifo", .type = "p"},
                          PlannedDevice{.path = "/dev/full", .type = "c", .major = 1, .minor = 7}));
  EXPECT_THAT(plan_.device_rules,
              ElementsAre(DeviceRule{.type = "c", .major = 195, .minor = 3, .access = "rwm"},
                          DeviceRule{.type = "b", .major = 8, .minor = 1, .access = "r"}));
}

TEST_F(ContainerPlanTest, ALaterDeviceReplacesOneWithTheSamePath) {
  Apply({.device_nodes = {{.path = "/dev/a", .type = "c", .major = 1, .minor = 1},
                          {.path = "/dev/b", .type = "c", .major = 1, .minor = 2},
                          {.path = "/dev/a", .type = "c", .major = 1, .minor = 2}}});
  ASSERT_EQ(plan_.devices.size(), 2u);
  EXPECT_EQ(plan_.devices[1].path, "/dev/a");
  EXPECT_EQ(plan_.devices[1].minor, 2);
  EXPECT_EQ(plan_.device_rules.size(), 2u);
}

TEST_F(ContainerPlanTest, DevicesBelongToTheContainersUserUnlessTheSpecSaysOtherwise) {
  plan_.uid = 1000;
  plan_.gid = 100;
  Apply({.device_nodes = {{.path = "/dev/a", .type = "p"},
                          {.path = "/dev/b", .type = "p", .uid = 0, .gid = 5}}});
  EXPECT_EQ(plan_.devices[0].uid, 1000u);
  EXPECT_EQ(plan_.devices[0].gid, 100u);
  EXPECT_EQ(plan_.devices[1].uid, 0u);
  EXPECT_EQ(plan_.devices[1].gid, 5u);
}

TEST_F(ContainerPlanTest, AFailureLeavesThePlanUnchanged) {
  probe_.nodes["/dev/disk"] = {.type = DeviceNodeType::kBlock, .major = 8};
  plan_.env = {"A=1"};
  const ContainerPlan before = plan_;
  EXPECT_EQ(
      ApplyEdits({.env = {"A=2"}, .device_nodes = {{.path = "/dev/none"}}}, probe_, &plan_).error(),
      NotFound("CDI device /dev/none: stat /dev/none: No such file or directory"));
  EXPECT_EQ(ApplyEdits({.env = {"A=2"}, .device_nodes = {{.path = "/dev/disk", .type = "c"}}},
                       probe_, &plan_)
                .error()
                .message,
            "CDI device /dev/disk: the spec has type c, but /dev/disk has type b");
  EXPECT_FALSE(ApplyEdits({.env = {"broken"}}, probe_, &plan_).ok());
  EXPECT_EQ(plan_, before);
}

TEST_F(ContainerPlanTest, HooksGroupsNetDevicesAndRdtAreAdded) {
  plan_.additional_gids = {7};
  Apply({.net_devices = {{.host_interface_name = "eth1", .name = "net0"}},
         .hooks = {{.hook_name = "createRuntime", .path = "/a", .timeout_seconds = 3},
                   {.hook_name = "createRuntime", .path = "/b"},
                   {.hook_name = "poststop", .path = "/c"}},
         .intel_rdt = IntelRdt{.clos_id = "x"},
         .additional_gids = {0, 8, 7, 8}});
  EXPECT_THAT(plan_.additional_gids, ElementsAre(7, 8));
  ASSERT_EQ(plan_.hooks.at("createRuntime").size(), 2u);
  EXPECT_EQ(plan_.hooks.at("createRuntime")[0], (PlannedHook{.path = "/a", .timeout_seconds = 3}));
  EXPECT_EQ(plan_.hooks.at("poststop").size(), 1u);
  EXPECT_EQ(plan_.net_devices.at("eth1"), "net0");
  EXPECT_EQ(plan_.intel_rdt->clos_id, "x");
}

}  // namespace
}  // namespace drakkar::cdi
