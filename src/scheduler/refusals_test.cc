#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/tree/draft.h"
#include "scheduler/binding/refusal_notices.h"
#include "scheduler/testing/cluster.h"

namespace drakkar::scheduler {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

bool SaysWhy(TestCluster& cluster, const std::string& pod) {
  for (api::Value condition : cluster.Find("Pod", pod)->root()["status"]["conditions"].elements()) {
    if (condition["type"].str() == "PodScheduled") return condition["status"].str() == "False";
  }
  return false;
}

void LetFit(TestCluster& cluster) {
  cluster.Update("Node", "n1", "",
                 [](api::Draft& draft) { draft["spec"].Remove("unschedulable"); });
}

class Refusals : public ::testing::Test {
 protected:
  Refusals() {
    cluster.CreateNode("n1", "{}", R"({"unschedulable":true})");
    cluster.StartScheduler();
    cluster.CreatePod("a");
    cluster.Settle();
    EXPECT_EQ(cluster.scheduler().counts().unschedulable, 1u);
  }
  TestCluster cluster;
};

TEST_F(Refusals, AreReportedAfterAShortDelay) {
  EXPECT_FALSE(SaysWhy(cluster, "a"));
  cluster.loop().Advance(RefusalNotices::kDelay);
  EXPECT_TRUE(SaysWhy(cluster, "a"));
  EXPECT_THAT(cluster.Events("a", "FailedScheduling"),
              ElementsAre("0/1 nodes are available: 1 node(s) were unschedulable."));
}

TEST_F(Refusals, AreNotReportedForAPodThatFitsInTheMeantime) {
  LetFit(cluster);
  cluster.loop().Advance(std::chrono::seconds(1));
  EXPECT_EQ(cluster.NodeOf("a"), "n1");
  EXPECT_FALSE(SaysWhy(cluster, "a"));
  EXPECT_THAT(cluster.Events("a", "FailedScheduling"), IsEmpty());
}

TEST_F(Refusals, AreNotReportedForADeletedPod) {
  cluster.Delete("Pod", "a");
  EXPECT_THAT(cluster.Events("a", "FailedScheduling"), IsEmpty());
}

TEST_F(Refusals, AreReportedByTheNextSchedulerIfThisOneStops) {
  cluster.KillScheduler();
  cluster.LetRefusalsBeTold();
  EXPECT_FALSE(SaysWhy(cluster, "a"));
  cluster.StartScheduler();
  cluster.LetRefusalsBeTold();
  EXPECT_TRUE(SaysWhy(cluster, "a"));
}

TEST(RefusalNotices, RepeatedRejectionsAreReportedOnceAndInTimeWithTheLatestMessage) {
  SeededLoop loop(1);
  std::vector<std::string> told;
  RefusalNotices notices(loop, [&](const PodInfo& pod, const std::string& message) {
    told.push_back(pod.uid + ": " + message);
  });
  const auto pod = [](std::string uid) {
    auto info = std::make_shared<PodInfo>();
    info->uid = std::move(uid);
    return info;
  };
  const Duration step = RefusalNotices::kDelay / 3;
  notices.Put(pod("a"), "1");
  loop.Advance(step);
  notices.Put(pod("b"), "1");
  notices.Put(pod("a"), "2");
  loop.Advance(step);
  notices.Put(pod("a"), "3");
  loop.Advance(step - Duration(1));
  EXPECT_THAT(told, IsEmpty());
  loop.Advance(Duration(1));
  EXPECT_THAT(told, ElementsAre("a: 3"));
  notices.Put(pod("a"), "4");
  loop.Advance(step);
  EXPECT_THAT(told, ElementsAre("a: 3", "b: 1"));
  notices.Drop("a");
  notices.Drop("unknown");
  EXPECT_EQ(notices.size(), 0u);
  loop.Advance(10 * step);
  EXPECT_EQ(told.size(), 2u);
  notices.Put(pod("a"), "5");
  notices.Drop("a");
  notices.Put(pod("a"), "6");
  loop.Advance(RefusalNotices::kDelay - Duration(1));
  EXPECT_EQ(told.size(), 2u) << "a notice after a dropped one has its own delay";
  loop.Advance(Duration(1));
  EXPECT_EQ(told.back(), "a: 6");
}

}  // namespace
}  // namespace drakkar::scheduler
