#include "node/runtime/oci/cgroup_usage.h"

#include <gtest/gtest.h>

#include "base/testing/memory_file_system.h"
#include "base/text/text.h"

namespace drakkar::node {
namespace {

using std::chrono::seconds;

constexpr char kV2Mounts[] =
    "29 23 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n";
constexpr char kV1Mounts[] =
    "30 29 0:27 / /sys/fs/cgroup/cpu,cpuacct rw,nosuid - cgroup cgroup rw,cpu,cpuacct\n"
    "31 29 0:28 / /sys/fs/cgroup/memory rw,nosuid - cgroup cgroup rw,memory\n"
    "32 29 0:29 / /sys/fs/cgroup/pids rw,nosuid - cgroup cgroup rw,pids\n";
constexpr char kHybridMounts[] =
    "33 29 0:30 / /sys/fs/cgroup/unified rw,nosuid - cgroup2 cgroup2 rw\n"
    "30 29 0:27 / /sys/fs/cgroup/cpu,cpuacct rw,nosuid - cgroup cgroup rw,cpu,cpuacct\n"
    "31 29 0:28 / /sys/fs/cgroup/memory rw,nosuid - cgroup cgroup rw,memory\n"
    "32 29 0:29 / /sys/fs/cgroup/pids rw,nosuid - cgroup cgroup rw,pids\n";

constexpr char kMeminfo[] =
    "MemTotal:        8000000 kB\nMemFree:         3000000 kB\nMemAvailable:    6000000 kB\n"
    "SwapTotal:       1000000 kB\nSwapFree:         400000 kB\n";

class CgroupUsageTest : public ::testing::Test {
 protected:
  void Put(const std::string& path, std::string_view text) {
    ASSERT_TRUE(files_.MakeDirectories(DirectoryName(path), 0755).ok());
    ASSERT_TRUE(files_.WriteFile(path, text, 0644).ok());
  }
  CgroupUsage Read(const char* mounts, const std::string& path) {
    return ReadCgroupUsage(files_, Cgroups::Parse(files_, mounts), path, WallTime(seconds(7)));
  }
  // A container's cgroup as a 6.1 kernel shows it.
  void PutV2() {
    const std::string home = "/sys/fs/cgroup/drakkar/pod1/c/";
    Put(home + "cpu.stat",
        "usage_usec 2500000\nuser_usec 1500000\nsystem_usec 1000000\ncore_sched.force_idle_usec 0\n"
        "nr_periods 40\nnr_throttled 4\nthrottled_usec 300000\nnr_bursts 0\nburst_usec 0\n");
    Put(home + "cpu.max", "50000 100000\n");
    Put(home + "cpu.weight", "4\n");
    Put(home + "cpu.pressure",
        "some avg10=1.50 avg60=0.75 avg300=0.10 total=12345\n"
        "full avg10=0.00 avg60=0.00 avg300=0.00 total=99\n");
    Put(home + "memory.current", "10485760\n");
    Put(home + "memory.max", "16777216\n");
    Put(home + "memory.peak", "12582912\n");
    Put(home + "memory.swap.current", "4096\n");
    Put(home + "memory.swap.max", "8192\n");
    Put(home + "memory.stat",
        "anon 6291456\nfile 3145728\nkernel 1048576\nfile_mapped 524288\ninactive_anon 0\n"
        "active_anon 6291456\ninactive_file 2097152\nactive_file 1048576\npgfault 321\n"
        "pgmajfault 12\n");
    Put(home + "memory.events", "low 0\nhigh 0\nmax 5\noom 1\noom_kill 1\noom_group_kill 0\n");
    Put(home + "pids.current", "3\n");
    Put(home + "io.pressure",
        "some avg10=0.00 avg60=0.00 avg300=0.00 total=5\n"
        "full avg10=0.00 avg60=0.00 avg300=0.00 total=4\n");
  }
  void PutV1() {
    const std::string cpu = "/sys/fs/cgroup/cpu,cpuacct/drakkar/pod1/c/";
    Put(cpu + "cpuacct.usage", "2500000000\n");
    Put(cpu + "cpuacct.stat", "user 150\nsystem 100\n");
    Put(cpu + "cpu.stat", "nr_periods 40\nnr_throttled 4\nthrottled_time 300000000\n");
    Put(cpu + "cpu.shares", "102\n");
    Put(cpu + "cpu.cfs_quota_us", "-1\n");
    Put(cpu + "cpu.cfs_period_us", "100000\n");
    const std::string memory = "/sys/fs/cgroup/memory/drakkar/pod1/c/";
    Put(memory + "memory.usage_in_bytes", "10485760\n");
    Put(memory + "memory.max_usage_in_bytes", "12582912\n");
    Put(memory + "memory.limit_in_bytes", "16777216\n");
    Put(memory + "memory.memsw.limit_in_bytes", "20971520\n");
    Put(memory + "memory.failcnt", "5\n");
    Put(memory + "memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 1\n");
    Put(memory + "memory.stat",
        "cache 100\nrss 100\nmapped_file 1\nswap 1\npgfault 1\npgmajfault 1\ninactive_file 1\n"
        "total_cache 3145728\ntotal_rss 6291456\ntotal_mapped_file 524288\ntotal_swap 4096\n"
        "total_pgfault 321\ntotal_pgmajfault 12\ntotal_inactive_file 2097152\n");
    Put("/sys/fs/cgroup/pids/drakkar/pod1/c/pids.current", "3\n");
  }
  void ExpectCommon(const CgroupUsage& usage) {
    EXPECT_EQ(usage.cpu.total_ns, 2'500'000'000u);
    EXPECT_EQ(usage.cpu.user_ns, 1'500'000'000u);
    EXPECT_EQ(usage.cpu.system_ns, 1'000'000'000u);
    EXPECT_EQ(usage.cpu.periods, 40u);
    EXPECT_EQ(usage.cpu.throttled_periods, 4u);
    EXPECT_EQ(usage.cpu.throttled_ns, 300'000'000u);
    EXPECT_EQ(usage.cpu.period_us, 100'000u);
    EXPECT_EQ(usage.memory.usage_bytes, 10'485'760u);
    EXPECT_EQ(usage.memory.working_set_bytes, 8'388'608u);
    EXPECT_EQ(usage.memory.rss_bytes, 6'291'456u);
    EXPECT_EQ(usage.memory.cache_bytes, 3'145'728u);
    EXPECT_EQ(usage.memory.mapped_bytes, 524'288u);
    EXPECT_EQ(usage.memory.max_usage_bytes, 12'582'912u);
    EXPECT_EQ(usage.memory.limit_bytes, 16'777'216u);
    EXPECT_EQ(usage.memory.available_bytes, 8'388'608u);
    EXPECT_EQ(usage.memory.page_faults, 321u);
    EXPECT_EQ(usage.memory.major_page_faults, 12u);
    EXPECT_EQ(usage.memory.limit_hits, 5u);
    EXPECT_EQ(usage.memory.oom_kills, 1u);
    EXPECT_EQ(usage.memory.swap_bytes, 4'096u);
    EXPECT_EQ(usage.processes, 3u);
    EXPECT_EQ(usage.cpu.time, WallTime(seconds(7)));
    EXPECT_EQ(usage.memory.time, WallTime(seconds(7)));
  }

  MemoryFileSystem files_;
};

TEST_F(CgroupUsageTest, ReadsAContainerOfV2) {
  PutV2();
  const CgroupUsage usage = Read(kV2Mounts, "/drakkar/pod1/c");
  ExpectCommon(usage);
  EXPECT_EQ(usage.cpu.quota_us, 50'000u);
  EXPECT_EQ(usage.cpu.shares, 80u);
  EXPECT_EQ(usage.memory.swap_available_bytes, 4'096u);
  ASSERT_TRUE(usage.cpu.pressure);
  EXPECT_EQ(usage.cpu.pressure->some.total_us, 12'345u);
  EXPECT_DOUBLE_EQ(usage.cpu.pressure->some.avg10, 1.5);
  EXPECT_EQ(usage.cpu.pressure->full.total_us, 99u);
  ASSERT_TRUE(usage.io_pressure);
  EXPECT_FALSE(usage.memory.pressure);
}

TEST_F(CgroupUsageTest, ReadsAContainerOfV1) {
  PutV1();
  const CgroupUsage usage = Read(kV1Mounts, "/drakkar/pod1/c");
  ExpectCommon(usage);
  EXPECT_EQ(usage.cpu.shares, 102u);
  EXPECT_EQ(usage.cpu.quota_us, std::nullopt);
  EXPECT_EQ(usage.memory.swap_available_bytes, 4'190'208u);
  EXPECT_FALSE(usage.cpu.pressure);
}

TEST_F(CgroupUsageTest, ReadsTheV1HierarchiesOfAHybridHost) {
  PutV1();
  // The unified hierarchy has no controllers; what is in it does not count.
  Put("/sys/fs/cgroup/unified/drakkar/pod1/c/cpu.stat", "usage_usec 1\n");
  ExpectCommon(Read(kHybridMounts, "/drakkar/pod1/c"));
}

TEST_F(CgroupUsageTest, AnUnlimitedCgroupHasNoLimitAndNothingAvailable) {
  PutV1();
  Put("/sys/fs/cgroup/memory/drakkar/pod1/c/memory.limit_in_bytes", "9223372036854771712\n");
  EXPECT_EQ(Read(kV1Mounts, "/drakkar/pod1/c").memory.limit_bytes, std::nullopt);
  EXPECT_EQ(Read(kV1Mounts, "/drakkar/pod1/c").memory.available_bytes, std::nullopt);
  PutV2();
  Put("/sys/fs/cgroup/drakkar/pod1/c/memory.max", "max\n");
  EXPECT_EQ(Read(kV2Mounts, "/drakkar/pod1/c").memory.available_bytes, std::nullopt);
}

TEST_F(CgroupUsageTest, AMissingCgroupHasNoValues) {
  const CgroupUsage usage = Read(kV2Mounts, "/drakkar/gone");
  EXPECT_EQ(usage.cpu.total_ns, std::nullopt);
  EXPECT_EQ(usage.memory.usage_bytes, std::nullopt);
  EXPECT_EQ(usage.memory.working_set_bytes, std::nullopt);
  EXPECT_EQ(usage.processes, std::nullopt);
}

TEST_F(CgroupUsageTest, TheMachineOfV2IsCountedByProc) {
  Put("/sys/fs/cgroup/cpu.stat", "usage_usec 9000000\nuser_usec 1\nsystem_usec 2\n");
  Put("/sys/fs/cgroup/memory.stat", "anon 5\nfile 6\ninactive_file 1024000\n");
  Put("/proc/meminfo", kMeminfo);
  Put("/proc/pressure/memory", "some avg10=0.00 avg60=0.00 avg300=0.00 total=77\n");
  const CgroupUsage usage = Read(kV2Mounts, "/");
  EXPECT_EQ(usage.cpu.total_ns, 9'000'000'000u);
  EXPECT_EQ(usage.memory.usage_bytes, 5'000'000ull * 1024);
  EXPECT_EQ(usage.memory.working_set_bytes, 5'000'000ull * 1024 - 1'024'000);
  EXPECT_EQ(usage.memory.swap_bytes, 600'000ull * 1024);
  EXPECT_EQ(usage.memory.swap_available_bytes, 400'000ull * 1024);
  ASSERT_TRUE(usage.memory.pressure);
  EXPECT_EQ(usage.memory.pressure->some.total_us, 77u);
}

TEST_F(CgroupUsageTest, WorkingSetIsNeverNegative) {
  PutV2();
  Put("/sys/fs/cgroup/drakkar/pod1/c/memory.current", "100\n");
  EXPECT_EQ(Read(kV2Mounts, "/drakkar/pod1/c").memory.working_set_bytes, 0u);
}

TEST_F(CgroupUsageTest, InterfacesStartWithTheDefaultRouteAndLeaveOutLoopback) {
  Put("/proc/12/net/dev",
      "Inter-|   Receive                                                |  Transmit\n"
      " face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs "
      "drop\n"
      "    lo:     100       1    0    0    0     0          0         0      100       1    0    "
      "0    0     0       0          0\n"
      "  net1:       1       2    3    4    0     0          0         0        5       6    7    "
      "8    0     0       0          0\n"
      "  eth0:    1000      10    0    1    0     0          0         0     2000      20    2    "
      "3    0     0       0          0\n");
  Put("/proc/12/net/route",
      "Iface\tDestination\tGateway\nnet1\t0001A8C0\t00000000\neth0\t00000000\t0101A8C0\n");
  const auto interfaces = ReadInterfaces(files_, 12);
  ASSERT_EQ(interfaces.size(), 2u);
  EXPECT_EQ(interfaces[0].name, "eth0");
  EXPECT_EQ(interfaces[0].rx_bytes, 1000u);
  EXPECT_EQ(interfaces[0].rx_dropped, 1u);
  EXPECT_EQ(interfaces[0].tx_bytes, 2000u);
  EXPECT_EQ(interfaces[0].tx_errors, 2u);
  EXPECT_EQ(interfaces[1].name, "net1");
}

TEST_F(CgroupUsageTest, MalformedFilesAreNoValues) {
  EXPECT_FALSE(ParsePressure("some avg10=x\n"));
  EXPECT_FALSE(ParsePressure(""));
  EXPECT_TRUE(ParseInterfaces("eth0: 1 2 3\nnonsense\n").empty());
  EXPECT_EQ(DefaultInterface("Iface\nx"), "");
}

}  // namespace
}  // namespace drakkar::node
