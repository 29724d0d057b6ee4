// Stopping containers for any reason: hooks, deadlines and failures.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/text/text.h"
#include "node/testing/node_harness.h"

namespace drakkar::node {
namespace {

using std::chrono::seconds;
using ::testing::HasSubstr;
using ::testing::SizeIs;

struct StoppingNode : NodeHarness {
  StoppingNode() { StartAgent(); }
  // One container "a" with these members, which exits as soon as it is asked to.
  void Create(const std::string& container_members, const std::string& pod_members = "") {
    CreatePod("p", StrCat(pod_members, R"("containers":[{"name":"a","image":"busybox:1",)",
                          container_members, "}]"));
  }
  bool IsRunning() {
    const auto containers = Containers("p", "a");
    return !containers.empty() && containers.back()->status.state == ContainerState::kRunning;
  }
};

// Fails from the first second on.
constexpr char kFailingLiveness[] =
    R"("livenessProbe":{"periodSeconds":1,"failureThreshold":1,"initialDelaySeconds":5,"exec":{"command":["false"]}})";

void FailEveryCommand(NodeHarness& node) {
  node.machine.program_of = [](const ContainerConfig&) {
    return HollowProgram{
        .exec = [](const std::vector<std::string>&) { return ExecResult{.exit_code = 1}; }};
  };
}

TEST(ContainerStop, AContainerKilledWhileBothHooksSleepIsRestarted) {
  StoppingNode node;
  FailEveryCommand(node);
  node.Create(StrCat(kFailingLiveness, R"(,"lifecycle":{"postStart":{"sleep":{"seconds":20}},)",
                     R"("preStop":{"sleep":{"seconds":10}}})"));
  node.Advance(seconds(60));
  EXPECT_GE(node.Containers("p", "a").back()->status.attempt, 1u)
      << "one hook's timer must not take the place of the other's";
}

TEST(ContainerStop, AFailedStopIsRetriedWhoeverRequestedIt) {
  StoppingNode node;
  FailEveryCommand(node);
  node.machine.FailNext("StopContainer", Internal("it broke"));
  node.Create(kFailingLiveness);
  node.Advance(seconds(6));
  ASSERT_THAT(node.Events("Killing"), SizeIs(1));
  node.Advance(seconds(2));
  EXPECT_EQ(node.Containers("p", "a").front()->status.state, ContainerState::kExited);
  EXPECT_THAT(node.Events("Killing"), SizeIs(1)) << "it is the same stop";
}

TEST(ContainerStop, AGracePeriodBeyondTheClocksRangeDoesNotOverflow) {
  StoppingNode node;
  node.machine.program_of = [](const ContainerConfig&) {
    return HollowProgram{.stops_within = seconds(5)};
  };
  node.Create(R"("command":["a"])", R"("terminationGracePeriodSeconds":9223372036854775807,)");
  ASSERT_TRUE(node.IsRunning());
  node.DeletePod("p");
  node.Advance(seconds(4));
  EXPECT_TRUE(node.IsRunning()) << "it has its time to stop";
  node.Advance(seconds(10));
  EXPECT_EQ(node.Phase("p"), "(gone)");
}

TEST(ContainerStop, AnEarlierDeadlineCutsThePreStopHookShort) {
  StoppingNode node;
  node.Create(R"("lifecycle":{"preStop":{"sleep":{"seconds":25}}})");
  node.DeletePod("p");
  node.Advance(seconds(2));
  ASSERT_TRUE(node.IsRunning()) << "the hook runs first";
  const auto reply = node.api.Delete("Pod", "default/p", {.grace_period_seconds = std::int64_t{5}});
  ASSERT_TRUE(reply.ok());
  node.Advance(seconds(4));
  EXPECT_EQ(node.Phase("p"), "(gone)");
  EXPECT_THAT(node.Events("Killing"), SizeIs(1)) << "it is the same stop";
}

TEST(ContainerStop, AHookThatUsesUpTheGracePeriodLeavesTwoMoreSeconds) {
  StoppingNode node;
  node.machine.program_of = [](const ContainerConfig&) {
    return HollowProgram{.ignores_stop_signal = true};
  };
  node.Create(R"("lifecycle":{"preStop":{"sleep":{"seconds":10}}})",
              R"("terminationGracePeriodSeconds":10,)");
  node.DeletePod("p");
  node.Advance(seconds(11));
  EXPECT_TRUE(node.IsRunning());
  node.Advance(seconds(2));
  EXPECT_EQ(node.Phase("p"), "(gone)");
}

}  // namespace
}  // namespace drakkar::node
