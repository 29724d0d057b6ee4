// In-place resize of requests and limits (KEP-1287).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/text/text.h"
#include "node/dra/dra_manager.h"
#include "node/node_agent.h"
#include "node/pods/pod_facts.h"
#include "node/pods/pod_manager.h"
#include "node/testing/node_harness.h"

namespace drakkar::node {
namespace {

using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class PodResize : public ::testing::Test {
 protected:
  PodResize() {
    node_.StartAgent();
    node_.CreatePod(
        "p",
        R"("containers":[{"name":"a","image":"busybox:1","resources":{"requests":{"cpu":"100m"},
      "limits":{"cpu":"200m","memory":"64Mi"}}}])");
  }
  Result<void> Resize(const std::string& request, const std::string& limit) {
    api::Draft pod(node_.Pod("p")->tree());
    api::Draft& resources = pod["spec"]["containers"].at(0)["resources"];
    resources["requests"].Entry("cpu") = request;
    resources["limits"].Entry("cpu") = limit;
    auto updated = node_.api.Update("Pod", "default/p", "resize", pod.Freeze());
    node_.Run();
    return updated.ok() ? Result<void>() : Result<void>(*updated.error);
  }
  std::string Condition(const std::string& type) {
    for (api::Value each : (*node_.Pod("p"))["status"]["conditions"].elements()) {
      if (each["type"].str() == type)
        return StrCat(each["status"].str(), " ", each["reason"].str());
    }
    return "";
  }
  api::Value Status() { return (*node_.Pod("p"))["status"]["containerStatuses"].at(0); }

  NodeHarness node_;
};

TEST_F(PodResize, ChangesLimitsInPlaceAndReportsThem) {
  EXPECT_EQ(Status()["resources"]["limits"].Entry("cpu").str(), "200m");
  EXPECT_EQ(node_.Containers("p", "a").at(0)->config.resources.cpu_quota_us, 20'000);
  ASSERT_TRUE(Resize("150m", "300m").ok());
  ASSERT_EQ(node_.Containers("p", "a").size(), 1u) << "no restart";
  EXPECT_EQ(node_.Containers("p", "a").at(0)->config.resources.cpu_quota_us, 30'000);
  EXPECT_EQ(Status()["resources"]["limits"].Entry("cpu").str(), "300m");
  EXPECT_EQ(Status()["resources"]["limits"].Entry("memory").str(), "64Mi");
  EXPECT_EQ(Status()["allocatedResources"].Entry("cpu").str(), "150m");
  EXPECT_EQ(Condition("PodResizeInProgress"), "");
  EXPECT_EQ(node_.Events("ResizeCompleted").size(), 1u);
}

TEST_F(PodResize, AContainerWhoseResizePolicySaysSoRestartsAlsoUnderOnFailure) {
  node_.CreatePod("q", R"("restartPolicy":"OnFailure","containers":[{"name":"a",
      "image":"busybox:1","resizePolicy":[{"resourceName":"memory",
      "restartPolicy":"RestartContainer"}],"resources":{"requests":{"memory":"64Mi"},
      "limits":{"memory":"64Mi"}}}])");
  ASSERT_EQ(node_.Phase("q"), "Running");
  api::Draft pod(node_.Pod("q")->tree());
  for (const api::FieldName part : api::FieldNames{"requests", "limits"}) {
    pod["spec"]["containers"].at(0)["resources"][part].Entry("memory") = "128Mi";
  }
  ASSERT_TRUE(node_.api.Update("Pod", "default/q", "resize", pod.Freeze()).ok());
  node_.Advance(seconds(60));
  ASSERT_EQ(node_.Containers("q", "a").size(), 2u);
  const HollowContainer& now = *node_.Containers("q", "a").back();
  EXPECT_EQ(now.status.state, ContainerState::kRunning);
  EXPECT_EQ(now.config.resources.memory_limit_bytes, 128 << 20);
  const auto object = node_.Pod("q");
  EXPECT_EQ((*object)["status"]["phase"].str(), "Running");
  EXPECT_EQ((*object)["status"]["containerStatuses"].at(0)["restartCount"].integer(), 1);
}

TEST_F(PodResize, AContainerWhoseImageChangesStartsAgainWhateverTheRestartPolicySays) {
  node_.machine.has_every_image = true;
  node_.CreatePod("q", R"("restartPolicy":"Never","containers":[
      {"name":"a","image":"busybox:1"},{"name":"b","image":"busybox:1"}])");
  ASSERT_EQ(node_.Phase("q"), "Running");
  api::Draft pod(node_.Pod("q")->tree());
  pod["spec"]["containers"].at(0)["image"] = "busybox:2";
  ASSERT_TRUE(node_.api.Update("Pod", "default/q", "", pod.Freeze()).ok());
  node_.Advance(seconds(5));
  ASSERT_EQ(node_.Containers("q", "a").size(), 2u);
  EXPECT_EQ(node_.Containers("q", "a").back()->config.image, "busybox:2");
  EXPECT_EQ(node_.Containers("q", "b").size(), 1u);
  EXPECT_EQ(node_.Phase("q"), "Running");
  EXPECT_THAT(node_.Events("Killing"),
              ElementsAre("Container a definition changed, will be restarted"));
  // An agent that finds it later does not restart it again.
  node_.KillAgent();
  node_.StartAgent();
  node_.Advance(seconds(5));
  EXPECT_EQ(node_.Containers("q", "a").size(), 2u);
}

TEST(RestartRules, AContainerStoppedForAResizeStartsAgainWhateverItsExitCode) {
  PodFacts facts;
  facts.regular.push_back({.name = "a", .current = ContainerStatus{}});
  ContainerFacts& a = facts.regular.back();
  a.current->state = ContainerState::kExited;
  const RestartSettings settings{.policy = RestartPolicy::kOnFailure};
  EXPECT_TRUE(PlanPod(facts, settings).finished);
  a.restarts_for_change = true;
  EXPECT_FALSE(PlanPod(facts, settings).finished);
  EXPECT_EQ(PlanPod(facts, settings).start.size(), 1u);
}

TEST_F(PodResize, ReportsWhyAResizeIsNotDone) {
  ASSERT_TRUE(Resize("500000", "1000000").ok());
  EXPECT_EQ(Condition("PodResizePending"), "True Infeasible");
  EXPECT_EQ(Status()["resources"]["limits"].Entry("cpu").str(), "200m") << "as it was";
  node_.machine.FailNext("UpdateContainer", Internal("the kernel says no"));
  ASSERT_TRUE(Resize("100m", "250m").ok());
  EXPECT_EQ(Condition("PodResizePending"), "");
  EXPECT_EQ(Condition("PodResizeInProgress"), "True Error");
  node_.Advance(PodWorker::kResizeRetry);
  EXPECT_EQ(Condition("PodResizeInProgress"), "");
  EXPECT_EQ(Status()["resources"]["limits"].Entry("cpu").str(), "250m");
}

}  // namespace
}  // namespace drakkar::node
