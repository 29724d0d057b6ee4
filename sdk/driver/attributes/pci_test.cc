#include "sdk/driver/attributes/pci.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/text/text.h"

namespace drakkar::driver {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A machine with two sockets of two NUMA nodes each, and a device on node 1.
class PciTest : public ::testing::Test {
 protected:
  PciTest() {
    char pattern[] = "/tmp/drakkar-sysfs-XXXXXX";
    root_ = ::mkdtemp(pattern);
    Write("devices/pci0000:80/0000:80:01.0/0000:81:00.1/numa_node", "1\n");
    Write("devices/pci0000:00/0000:00:02.0/numa_node", "-1\n");
    Write("bus/pci/devices/placeholder", "");
    Link("bus/pci/devices/0000:81:00.1", "../../../devices/pci0000:80/0000:80:01.0/0000:81:00.1");
    Link("bus/pci/devices/0000:00:02.0", "./../../../devices/./pci0000:00/0000:00:02.0");
    Link("bus/pci/devices/0000:05:00.0", "../../../devices/virtual/0000:05:00.0");
    const char* distances[] = {"10 12 20 20", "12 10 20 20", "20 20 10 12", "20 20 12 10"};
    for (int node = 0; node < 4; ++node) {
      Write(StrCat("devices/system/node/node", node, "/distance"),
            std::string(distances[node]) + "\n");
      Write(StrCat("devices/system/node/node", node, "/cpulist"),
            StrCat(node * 4, "-", node * 4 + 3, "\n"));
      for (int cpu = node * 4; cpu < node * 4 + 4; ++cpu) {
        Write(StrCat("devices/system/cpu/cpu", cpu, "/topology/physical_package_id"),
              StrCat(node / 2, "\n"));
        Write(StrCat("devices/system/cpu/cpu", cpu, "/node", node, "/placeholder"), "");
      }
    }
  }
  ~PciTest() override { static_cast<void>(RealFileSystem().RemoveTree(root_)); }

  void Write(const std::string& path, const std::string& content) {
    const std::string full = JoinPath(root_, path);
    ASSERT_TRUE(RealFileSystem().MakeDirectories(DirectoryName(full), 0755).ok());
    ASSERT_TRUE(RealFileSystem().WriteFile(full, content, 0644).ok());
  }
  void Link(const std::string& path, const std::string& target) {
    ASSERT_EQ(::symlink(target.c_str(), JoinPath(root_, path).c_str()), 0);
  }
  Sysfs sysfs() { return {.files = RealFileSystem(), .root = root_}; }

  std::string root_;
};

TEST_F(PciTest, ABusIdHasOneForm) {
  EXPECT_TRUE(CheckPciBusId("0000:81:00.1").ok());
  EXPECT_TRUE(CheckPciBusId("09af:09:af.7").ok());
  EXPECT_TRUE(CheckPciBusId("09af:09:af.0").ok());
  EXPECT_EQ(CheckPciBusId("").error().message, "PCI Bus ID cannot be empty");
  for (const char* bad :
       {"81:00.1", "0000:81:00.10", "0000:8G:00.1", "0000:81:00.A", "0000-81:00.1", "000g:81:00.1",
        "0000:8g:00.1", "0000:81:0g.1", "0000:81-00.1", "0000:81:00:1", "0000:8/:00.1",
        "0000:8::00.1", "0000:8`:00.1"}) {
    EXPECT_EQ(CheckPciBusId(bad).error().message, StrCat("invalid PCI Bus ID format: ", bad));
  }
}

TEST_F(PciTest, TheRootIsTheFirstDirectoryOfTheDevicesPath) {
  EXPECT_EQ(*PcieRoot(sysfs(), "0000:81:00.1"), "pci0000:80");
  EXPECT_EQ(*PcieRoot(sysfs(), "0000:00:02.0"), "pci0000:00");
  EXPECT_THAT(PcieRoot(sysfs(), "0000:05:00.0").error().message,
              HasSubstr("which is not a PCI device"));
  EXPECT_FALSE(PcieRoot(sysfs(), "0000:99:00.0").ok());
}

TEST_F(PciTest, TheNumaNodeIsOmittedIfItIsUnknown) {
  EXPECT_EQ(*NumaNodeOfPciDevice(sysfs(), "0000:81:00.1"), 1);
  EXPECT_THAT(NumaNodeOfPciDevice(sysfs(), "0000:00:02.0").error().message,
              HasSubstr("is unknown"));
  EXPECT_EQ(*NumaNodeOfCpu(sysfs(), 9), 2);
  EXPECT_EQ(*NumaNodeOfCpu(sysfs(), 0), 0);
}

TEST_F(PciTest, NearNodesHaveTheLeastDistanceOnTheSameSocket) {
  EXPECT_THAT(*NumaNodesNear(sysfs(), 1), ElementsAre(1, 0));
  EXPECT_THAT(*NumaNodesNear(sysfs(), 2), ElementsAre(2, 3));
  EXPECT_FALSE(NumaNodesNear(sysfs(), 2'000).ok());
  EXPECT_FALSE(NumaNodesNear(sysfs(), -1).ok());
  EXPECT_THAT(*NumaNodesNear(sysfs(), 0), ElementsAre(0, 1));
  // Equally distant, but on another socket.
  Write("devices/system/node/node0/distance", "10 20 20 20\n");
  EXPECT_THAT(*NumaNodesNear(sysfs(), 0), ElementsAre(0, 1));
  for (const char* unusable : {"nonsense\n", "10 x 20 20\n", "10 12 20\n", "10 12 20 20 20\n"}) {
    Write("devices/system/node/node0/distance", unusable);
    EXPECT_THAT(*NumaNodesNear(sysfs(), 0), ElementsAre(0)) << unusable;
  }
}

TEST_F(PciTest, ADeviceGetsTheAttributesThatAreKnown) {
  Device device;
  ASSERT_TRUE(AddPciAttributes(sysfs(), "0000:81:00.1", device).ok());
  EXPECT_EQ(std::get<std::string>(device.attributes.at("resource.kubernetes.io/pciBusID")),
            "0000:81:00.1");
  EXPECT_EQ(std::get<std::string>(device.attributes.at("resource.kubernetes.io/pcieRoot")),
            "pci0000:80");
  EXPECT_EQ(std::get<std::int64_t>(device.attributes.at("resource.kubernetes.io/numaNode")), 1);
  Device other;
  ASSERT_TRUE(AddPciAttributes(sysfs(), "0000:00:02.0", other).ok());
  EXPECT_FALSE(other.attributes.contains(kNumaNodeAttribute));
  EXPECT_FALSE(AddPciAttributes(sysfs(), "0000:99:00.0", other).ok());
}

}  // namespace
}  // namespace drakkar::driver
