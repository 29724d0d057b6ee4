#include "answers/serve/cluster_gauges.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scheduler/testing/cluster.h"

namespace drakkar::answers {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class ClusterGaugesTest : public ::testing::Test {
 protected:
  ClusterGaugesTest() {
    cluster_.CreateNode("n1");
    cluster_.CreateSlice("n1", 3);
    cluster_.CreateClass();
    cluster_.CreateClaim("a", 1);
    cluster_.CreatePodWithClaims("p", {"a"});
    cluster_.StartScheduler();
    gauges_ =
        std::make_unique<ClusterGauges>(ClusterGauges::Options{.loop = cluster_.loop(),
                                                               .metrics = cluster_.metrics(),
                                                               .scheduler = cluster_.scheduler(),
                                                               .run = [this](Task task) {
                                                                 ++runs_;
                                                                 task();
                                                                 return true;
                                                               }});
  }
  std::string Read() {
    int answered = 0;
    gauges_->Refresh([&] { ++answered; });
    cluster_.Settle();
    EXPECT_EQ(answered, 1);
    return cluster_.metrics().Text();
  }
  scheduler::TestCluster cluster_;
  std::unique_ptr<ClusterGauges> gauges_;
  int runs_ = 0;
};

TEST_F(ClusterGaugesTest, ShowDevicesAndClaims) {
  EXPECT_THAT(Read(), AllOf(HasSubstr("drakkar_devices{class=\"gpu\",state=\"free\"} 2"),
                            HasSubstr("drakkar_devices{class=\"gpu\",state=\"held\"} 1"),
                            HasSubstr("drakkar_resource_claims{age=\"1m\",state=\"used\"} 1"),
                            HasSubstr("drakkar_resource_claims{age=\"1m\",state=\"pending\"} 0"),
                            HasSubstr("drakkar_resource_claim_oldest_seconds{state=\"pending\"} 0"),
                            HasSubstr("drakkar_scheduler_waiting_pods 0")));
}

TEST_F(ClusterGaugesTest, CountAtMostEveryFewSecondsAndForgetClassesThatAreGone) {
  Read();
  EXPECT_EQ(runs_, 1);
  Read();
  EXPECT_EQ(runs_, 1) << "the last count is recent";
  cluster_.Delete("DeviceClass", "gpu");
  cluster_.loop().Advance(ClusterGauges::kFresh);
  EXPECT_THAT(Read(), AllOf(Not(HasSubstr("class=\"gpu\"")),
                            HasSubstr("drakkar_devices{class=\"\",state=\"free\"} 2")));
  EXPECT_EQ(runs_, 2);
}

TEST_F(ClusterGaugesTest, CountRejectedNodesByReason) {
  cluster_.CreateClaim("b", 3);
  cluster_.CreatePodWithClaims("q", {"b"});
  cluster_.Settle();
  EXPECT_THAT(cluster_.metrics().Text(),
              HasSubstr("drakkar_scheduler_refused_nodes_total{profile=\"default-scheduler\","
                        "reason=\"cannot allocate all claims\"} 1"));
}

}  // namespace
}  // namespace drakkar::answers
