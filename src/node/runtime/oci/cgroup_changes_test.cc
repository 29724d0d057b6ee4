#include "base/testing/memory_file_system.h"
#include "base/text/text.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "node/runtime/oci/cgroups.h"

namespace drakkar::node {
namespace {

using ::testing::HasSubstr;

// One cgroup "/c", in either version.
class CgroupChangesTest : public ::testing::Test {
 protected:
  Result<void> Change1(const CgroupChanges& changes) {
    std::string mounts;
    for (const char* controller : {"memory", "cpu", "cpuset", "pids", "hugetlb"}) {
      mounts += StrCat("1 1 0:1 / /sys/fs/cgroup/", controller, " rw - cgroup cgroup rw,",
                       controller, "\n");
      EXPECT_TRUE(files_.MakeDirectories(StrCat("/sys/fs/cgroup/", controller, "/c"), 0755).ok());
    }
    return Cgroups::Parse(files_, mounts).Change("/c", changes);
  }
  Result<void> Change2(const CgroupChanges& changes) {
    EXPECT_TRUE(files_.MakeDirectories("/sys/fs/cgroup/c", 0755).ok());
    return Cgroups::Parse(files_, "1 1 0:1 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n")
        .Change("/c", changes);
  }
  std::string File(const std::string& path) {
    const auto text = files_.ReadFile("/sys/fs/cgroup/" + path);
    return text.ok() ? *text : text.error().message;
  }

  MemoryFileSystem files_;
};

TEST_F(CgroupChangesTest, EverySettingHasItsFileInVersion1) {
  const auto changed = Change1({.memory_limit_bytes = 1,
                                .memory_reservation_bytes = 2,
                                .memory_swap_bytes = 3,
                                .memory_swappiness = 4,
                                .disable_oom_killer = true,
                                .cpu_shares = 5,
                                .cpu_quota_us = 6,
                                .cpu_period_us = 7,
                                .realtime_runtime_us = 8,
                                .realtime_period_us = 9,
                                .cpuset_cpus = "0-1",
                                .cpuset_mems = "0",
                                .pids_limit = -1,
                                .hugepage_limits_bytes = {{"2MB", 10}}});
  ASSERT_TRUE(changed.ok()) << changed.error().message;
  EXPECT_EQ(File("memory/c/memory.limit_in_bytes"), "1");
  EXPECT_EQ(File("memory/c/memory.soft_limit_in_bytes"), "2");
  EXPECT_EQ(File("memory/c/memory.memsw.limit_in_bytes"), "3");
  EXPECT_EQ(File("memory/c/memory.swappiness"), "4");
  EXPECT_EQ(File("memory/c/memory.oom_control"), "1");
  EXPECT_EQ(File("cpu/c/cpu.shares"), "5");
  EXPECT_EQ(File("cpu/c/cpu.cfs_quota_us"), "6");
  EXPECT_EQ(File("cpu/c/cpu.cfs_period_us"), "7");
  EXPECT_EQ(File("cpu/c/cpu.rt_runtime_us"), "8");
  EXPECT_EQ(File("cpu/c/cpu.rt_period_us"), "9");
  EXPECT_EQ(File("cpuset/c/cpuset.cpus"), "0-1");
  EXPECT_EQ(File("cpuset/c/cpuset.mems"), "0");
  EXPECT_EQ(File("pids/c/pids.max"), "max");
  EXPECT_EQ(File("hugetlb/c/hugetlb.2MB.limit_in_bytes"), "10");
}

TEST_F(CgroupChangesTest, EverySettingHasItsFileInVersion2) {
  ASSERT_TRUE(files_.MakeDirectories("/sys/fs/cgroup/c", 0755).ok());
  ASSERT_TRUE(files_.WriteFile("/sys/fs/cgroup/c/cpu.max", "max 100000\n", 0644).ok());
  const auto changed = Change2({.memory_limit_bytes = 100,
                                .memory_reservation_bytes = 2,
                                .memory_swap_bytes = 130,
                                .cpu_shares = 1024,
                                .cpu_quota_us = 6,
                                .cpuset_cpus = "1",
                                .pids_limit = 7,
                                .hugepage_limits_bytes = {{"1GB", 10}},
                                .unified = {{"memory.high", "90"}}});
  ASSERT_TRUE(changed.ok()) << changed.error().message;
  EXPECT_EQ(File("c/memory.max"), "100");
  EXPECT_EQ(File("c/memory.swap.max"), "30") << "without the memory";
  EXPECT_EQ(File("c/memory.low"), "2");
  EXPECT_EQ(File("c/cpu.weight"), "39");
  EXPECT_EQ(File("c/cpu.max"), "6 100000") << "the period stays";
  EXPECT_EQ(File("c/cpuset.cpus"), "1");
  EXPECT_EQ(File("c/pids.max"), "7");
  EXPECT_EQ(File("c/hugetlb.1GB.max"), "10");
  EXPECT_EQ(File("c/memory.high"), "90");
  ASSERT_TRUE(Change2({.memory_limit_bytes = -1, .memory_swap_bytes = -1}).ok());
  EXPECT_EQ(File("c/memory.max"), "max");
  EXPECT_EQ(File("c/memory.swap.max"), "max");
}

TEST_F(CgroupChangesTest, WhatAVersionDoesNotHaveIsRefused) {
  EXPECT_THAT(Change1({.unified = {{"memory.high", "1"}}}).error().message, HasSubstr("cgroup v2"));
  EXPECT_THAT(Change2({.disable_oom_killer = true}).error().message, HasSubstr("cgroup v1"));
  EXPECT_THAT(Change2({.memory_swappiness = 1}).error().message, HasSubstr("cgroup v1"));
  EXPECT_THAT(Change2({.realtime_period_us = 1}).error().message, HasSubstr("cgroup v1"));
  EXPECT_THAT(Change2({.memory_swap_bytes = 5}).error().message, HasSubstr("memory limit"));
  EXPECT_THAT(Cgroups::Parse(files_, "1 1 0:1 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n")
                  .Change("/c", {.cpuset_cpus = "0"})
                  .error()
                  .message,
              HasSubstr("no cgroup controller cpuset"));
}

TEST_F(CgroupChangesTest, NamesCannotLeaveTheCgroup) {
  EXPECT_THAT(Change2({.unified = {{"../x", "1"}}}).error().message,
              HasSubstr("invalid cgroup file"));
  EXPECT_THAT(Change2({.unified = {{"..", "1"}}}).error().message, HasSubstr("invalid"));
  EXPECT_THAT(Change1({.hugepage_limits_bytes = {{"../../x", 1}}}).error().message,
              HasSubstr("invalid huge page size"));
}

}  // namespace
}  // namespace drakkar::node
