#include "node/stats/usage_collector.h"

#include <gtest/gtest.h>

#include "node/testing/node_harness.h"

namespace drakkar::node {
namespace {

using std::chrono::seconds;

constexpr char kPod[] = R"("containers":[{"name":"a","image":"busybox:1"}])";

class UsageCollectorTest : public ::testing::Test {
 protected:
  UsageCollectorTest() {
    node_.machine.program_of = [](const ContainerConfig&) {
      return HollowProgram{
          .nano_cores = 250'000'000, .memory_bytes = 64u << 20, .disk_bytes = 4096};
    };
    node_.StartAgent();
    node_.CreatePod("p", kPod);
    node_.Run();
  }
  NodeUsagePtr Get() {
    NodeUsagePtr usage;
    node_.agent->usage().Get([&](Result<NodeUsagePtr> got) {
      ASSERT_TRUE(got.ok()) << got.error().message;
      usage = *got;
    });
    node_.Run();
    return usage;
  }

  NodeHarness node_;
};

TEST_F(UsageCollectorTest, CountsRunningContainersAndSumsThemUp) {
  node_.Advance(seconds(4));
  const NodeUsagePtr usage = Get();
  ASSERT_NE(usage, nullptr);
  ASSERT_EQ(usage->pods.size(), 1u);
  EXPECT_EQ(usage->pods[0].name, "p");
  ASSERT_EQ(usage->pods[0].containers.size(), 1u);
  EXPECT_EQ(usage->pods[0].containers[0].memory.working_set_bytes, 64u << 20);
  EXPECT_EQ(usage->machine.memory.working_set_bytes, 64u << 20);
}

TEST_F(UsageCollectorTest, TheRateComesFromTwoSamples) {
  EXPECT_EQ(Get()->pods[0].containers[0].cpu.nano_cores, std::nullopt);
  node_.Advance(seconds(10));
  const NodeUsagePtr usage = Get();
  EXPECT_EQ(usage->pods[0].containers[0].cpu.nano_cores, 250'000'000u);
  EXPECT_EQ(usage->pods[0].cpu.nano_cores, 250'000'000u);
  EXPECT_EQ(usage->machine.cpu.nano_cores, 250'000'000u);
}

TEST_F(UsageCollectorTest, ManyScrapesCostOneCollection) {
  int answers = 0;
  NodeUsagePtr first;
  for (int i = 0; i < 100; ++i) {
    node_.agent->usage().Get([&](Result<NodeUsagePtr> got) {
      ASSERT_TRUE(got.ok());
      if (first == nullptr) first = *got;
      EXPECT_EQ(first, *got);
      ++answers;
    });
  }
  node_.Run();
  EXPECT_EQ(answers, 100);
  node_.Advance(seconds(2));
  EXPECT_EQ(Get(), first);
  node_.Advance(seconds(2));
  EXPECT_NE(Get(), first);
}

TEST_F(UsageCollectorTest, AFailureIsReportedToAllAndNotCached) {
  node_.machine.FailNext("ReadUsage", Unavailable("the runtime is restarting"));
  int failures = 0;
  for (int i = 0; i < 2; ++i) {
    node_.agent->usage().Get([&](Result<NodeUsagePtr> got) { failures += got.ok() ? 0 : 1; });
  }
  node_.Run();
  EXPECT_EQ(failures, 2);
  EXPECT_NE(Get(), nullptr);
}

TEST_F(UsageCollectorTest, FilesAreMeasuredInTheBackground) {
  EXPECT_EQ(Get()->pods[0].containers[0].root_fs.used_bytes, std::nullopt);
  node_.Advance(seconds(5));
  EXPECT_EQ(Get()->pods[0].containers[0].root_fs.used_bytes, 4096u);
}

TEST_F(UsageCollectorTest, AContainerThatEndedIsNotCounted) {
  node_.DeletePod("p");
  node_.Advance(seconds(60));
  EXPECT_TRUE(Get()->pods.empty());
}

}  // namespace
}  // namespace drakkar::node
