#include "node/stats/summary.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/json/reader.h"

namespace drakkar::node {
namespace {

using std::chrono::seconds;
using ::testing::HasSubstr;
using ::testing::Not;

NodeUsage Example() {
  const WallTime now(seconds(1'000));
  NodeUsage usage;
  usage.boot_time = WallTime(seconds(100));
  usage.memory_capacity_bytes = 1'000'000;
  usage.cpu_count = 2;
  usage.machine.time = usage.machine.cpu.time = usage.machine.memory.time = now;
  usage.machine.cpu.total_ns = 5'500'000'000;
  usage.machine.cpu.nano_cores = 42;
  usage.machine.memory.working_set_bytes = 400'000;
  usage.machine.memory.available_bytes = 600'000;
  usage.machine.memory.swap_bytes = 0;
  usage.machine.max_processes = 32'768;
  usage.machine.processes = 77;
  usage.machine.interfaces = {{.name = "eth0", .rx_bytes = 10, .tx_bytes = 20}};
  usage.node_fs = {.capacity_bytes = 1'000,
                   .available_bytes = 700,
                   .used_bytes = 300,
                   .inodes = 100,
                   .inodes_free = 90};
  usage.image_fs = usage.container_fs = usage.node_fs;
  usage.images.used_bytes = 55;
  PodUsage pod;
  pod.sandbox_id = "s1";
  pod.name = "p";
  pod.namespace_name = "default";
  pod.uid = "u1";
  pod.cgroup = "/drakkar/podu1";
  pod.started_at = WallTime(seconds(900));
  pod.cpu.time = pod.memory.time = now;
  pod.cpu.total_ns = 2'000'000'000;
  pod.memory.working_set_bytes = 30'000;
  pod.interfaces = {{.name = "eth0", .rx_bytes = 1, .rx_packets = 2, .tx_bytes = 3}};
  pod.processes = 4;
  ContainerUsage container;
  container.id = "c1";
  container.name = "a";
  container.image = "busybox:1";
  container.cgroup = "/drakkar/podu1/c1";
  container.started_at = WallTime(seconds(901));
  container.cpu.time = container.memory.time = now;
  container.cpu.total_ns = 1'250'000'000;
  container.cpu.nano_cores = 7;
  container.memory.working_set_bytes = 20'000;
  container.memory.page_faults = 9;
  container.memory.swap_bytes = 100;
  container.memory.swap_available_bytes = 28;
  container.root_fs = {.used_bytes = 11, .inodes_used = 2};
  container.log = {.used_bytes = 5, .inodes_used = 1};
  pod.containers.push_back(container);
  usage.pods.push_back(pod);
  usage.volumes["u1"] = {{"scratch", "kubernetes.io~empty-dir", {.used_bytes = 100}},
                         {"settings", "kubernetes.io~configmap", {.used_bytes = 1'000}}};
  return usage;
}

TEST(Summary, HasAKubeletsFields) {
  const auto tree = api::ParseJson(WriteSummary(Example(), "n1", false));
  ASSERT_TRUE(tree.ok());
  const api::Value root = (*tree)->root();
  const api::Value node = root["node"];
  EXPECT_EQ(node["nodeName"].str(), "n1");
  EXPECT_EQ(node["startTime"].str(), "1970-01-01T00:01:40Z");
  EXPECT_EQ(node["cpu"]["usageNanoCores"].integer(), 42);
  EXPECT_EQ(node["cpu"]["usageCoreNanoSeconds"].integer(), 5'500'000'000);
  EXPECT_EQ(node["cpu"]["time"].str(), "1970-01-01T00:16:40Z");
  EXPECT_EQ(node["memory"]["availableBytes"].integer(), 600'000);
  EXPECT_EQ(node["network"]["name"].str(), "eth0");
  EXPECT_EQ(node["fs"]["usedBytes"].integer(), 300);
  EXPECT_EQ(node["fs"]["inodesUsed"].integer(), 10);
  EXPECT_EQ(node["runtime"]["imageFs"]["usedBytes"].integer(), 55);
  EXPECT_EQ(node["rlimit"]["maxpid"].integer(), 32'768);
  EXPECT_EQ(node["rlimit"]["curproc"].integer(), 77);
  const api::Value pod = root["pods"].at(0);
  EXPECT_EQ(pod["podRef"]["uid"].str(), "u1");
  EXPECT_EQ(pod["process_stats"]["process_count"].integer(), 4);
  EXPECT_EQ(pod["network"]["interfaces"].size(), 1u);
  // Writable layers, logs and emptyDirs; a ConfigMap is not the pod's own storage.
  EXPECT_EQ(pod["ephemeral-storage"]["usedBytes"].integer(), 116);
  EXPECT_EQ(pod["volume"].size(), 2u);
  const api::Value container = pod["containers"].at(0);
  EXPECT_EQ(container["memory"]["workingSetBytes"].integer(), 20'000);
  EXPECT_FALSE(container["memory"]["availableBytes"].exists());
  EXPECT_EQ(container["rootfs"]["usedBytes"].integer(), 11);
  EXPECT_EQ(container["rootfs"]["capacityBytes"].integer(), 1'000);
  EXPECT_EQ(container["logs"]["usedBytes"].integer(), 5);
  EXPECT_EQ(container["swap"]["swapUsageBytes"].integer(), 100);
}

TEST(Summary, CpuAndMemoryOnlyLeavesOutTheRest) {
  const auto tree = api::ParseJson(WriteSummary(Example(), "n1", true));
  ASSERT_TRUE(tree.ok());
  const api::Value pod = (*tree)->root()["pods"].at(0);
  EXPECT_TRUE(pod["containers"].at(0)["cpu"].exists());
  EXPECT_FALSE(pod["containers"].at(0)["rootfs"].exists());
  EXPECT_FALSE(pod["network"].exists());
  EXPECT_FALSE(pod["ephemeral-storage"].exists());
  EXPECT_FALSE((*tree)->root()["node"]["fs"].exists());
}

TEST(Summary, WithoutPodsTheListIsEmptyAndNotMissing) {
  NodeUsage usage;
  EXPECT_THAT(WriteSummary(usage, "n", false), HasSubstr("\"pods\":[]"));
}

TEST(ResourceMetrics, HaveAKubeletsNamesLabelsAndTimes) {
  const std::string text = WriteResourceMetrics(Example());
  for (const char* line : {
           "\n# TYPE container_memory_working_set_bytes gauge\n",
           "\ncontainer_cpu_usage_seconds_total{container=\"a\",namespace=\"default\",pod=\"p\"} "
           "1.25 1000000\n",
           "\ncontainer_memory_working_set_bytes{container=\"a\",namespace=\"default\",pod=\"p\"} "
           "20000 1000000\n",
           "\ncontainer_start_time_seconds{container=\"a\",namespace=\"default\",pod=\"p\"} 901\n",
           "\ncontainer_swap_usage_bytes{container=\"a\",namespace=\"default\",pod=\"p\"} 100 "
           "1000000\n",
           "\ncontainer_swap_limit_bytes{container=\"a\",namespace=\"default\",pod=\"p\"} 128 "
           "1000000\n",
           "\nnode_cpu_usage_seconds_total 5.5 1000000\n",
           "\nnode_memory_working_set_bytes 400000 1000000\n",
           "\nnode_swap_usage_bytes 0 1000000\n",
           "\npod_cpu_usage_seconds_total{namespace=\"default\",pod=\"p\"} 2 1000000\n",
           "\npod_memory_working_set_bytes{namespace=\"default\",pod=\"p\"} 30000 1000000\n",
           "\nresource_scrape_error 0\n",
           "\nscrape_error 0\n",
       }) {
    EXPECT_THAT(text, HasSubstr(line));
  }
}

TEST(ResourceMetrics, LabelValuesAreEscaped) {
  NodeUsage usage = Example();
  usage.pods[0].containers[0].name = "a\"b\\c\nd";
  EXPECT_THAT(WriteResourceMetrics(usage), HasSubstr("container=\"a\\\"b\\\\c\\nd\""));
}

TEST(CadvisorMetrics, DescribeTheMachineItsPodsAndContainers) {
  const std::string text =
      WriteCadvisorMetrics(Example(), {.machine_id = "m", .system_uuid = "s", .boot_id = "b"});
  for (
      const char* line : {
          "container_cpu_usage_seconds_total{container=\"a\",id=\"/drakkar/podu1/c1\",image="
          "\"busybox:1\",name=\"c1\",namespace=\"default\",pod=\"p\",cpu=\"total\"} 1.25 1000000\n",
          "container_cpu_usage_seconds_total{container=\"\",id=\"/\",image=\"\",name=\"\","
          "namespace=\"\",pod=\"\",cpu=\"total\"} 5.5 1000000\n",
          "container_memory_working_set_bytes{container=\"a\",",
          "container_network_receive_packets_total{container=\"\",id=\"/drakkar/podu1\",image=\"\","
          "name=\"s1\",namespace=\"default\",pod=\"p\",interface=\"eth0\"} 2 1000000\n",
          "failure_type=\"pgfault\",scope=\"hierarchy\"} 9 1000000\n",
          "machine_cpu_cores{boot_id=\"b\",machine_id=\"m\",system_uuid=\"s\"} 2\n",
          "container_scrape_error 0\n",
      }) {
    EXPECT_THAT(text, HasSubstr(line));
  }
  // What nobody counts is not reported.
  EXPECT_THAT(text, Not(HasSubstr("\ncontainer_memory_rss{")));
}

}  // namespace
}  // namespace drakkar::node
