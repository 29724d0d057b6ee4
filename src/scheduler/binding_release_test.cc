// Releasing an allocation while pods that use it are being scheduled.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/scheme/scheme.h"
#include "api/tree/draft.h"
#include "scheduler/scheduler.h"
#include "scheduler/testing/cluster.h"
#include "tests/support/faulty_client.h"

namespace drakkar::scheduler {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;
using ::testing::ElementsAre;

class BindingRelease : public ::testing::Test {
 protected:
  void Start(int devices) {
    cluster_.CreateNode("n1");
    cluster_.CreateSlice("n1", devices, kConditions);
    cluster_.CreateClass();
    cluster_.CreateClaim("c");
    cluster_.scheduler_client = &client_;
  }

  ~BindingRelease() override { cluster_.KillScheduler(); }

  TestCluster cluster_;
  testing::FaultyClient client_{cluster_.loop(), cluster_.client()};
};

TEST_F(BindingRelease, APodIsNotBoundWithAClaimWhoseReleaseIsInFlight) {
  Start(1);
  cluster_.StartScheduler();
  cluster_.CreatePodWithClaims("p", {"c"});
  cluster_.Settle();
  ASSERT_EQ(cluster_.scheduler().counts().waiting_for_conditions, 1u);
  cluster_.KillScheduler();
  cluster_.loop().Advance(minutes(11));
  // The next scheduler finds the claim past its deadline, and its requests about the claim are
  // lost.
  client_.loses = [](std::string_view verb, const client::ResourceRef& ref,
                     const api::TreePtr& body) {
    if (ref.kind->kind != "ResourceClaim") return false;
    return verb == "get" || (verb == "update" && !body->root()["status"]["allocation"].has_value());
  };
  cluster_.StartScheduler();
  cluster_.loop().Advance(seconds(5));
  cluster_.SetDeviceCondition("c", kAttached, "True");
  cluster_.loop().Advance(seconds(15));
  client_.loses = nullptr;
  cluster_.loop().Advance(seconds(30));
  EXPECT_EQ(cluster_.NodeOf("p"), "n1");
  EXPECT_THAT(cluster_.DevicesOf("c"), ElementsAre("d.example.com/n1/dev-0"));
  EXPECT_THAT(cluster_.ReservedFor("c"), ElementsAre("p"));
}

TEST_F(BindingRelease, AWaiterThatGivesUpLeavesTheClaimToAPodThatIsBeingBound) {
  Start(2);
  cluster_.CreateClaim("d");
  cluster_.StartScheduler();
  cluster_.CreatePodWithClaims("p", {"c"});
  cluster_.CreatePodWithClaims("q", {"c", "d"});
  cluster_.Settle();
  ASSERT_EQ(cluster_.scheduler().counts().waiting_for_conditions, 2u);
  // It remains unknown whether p is bound.
  client_.loses = [](std::string_view verb, const client::ResourceRef& ref, const api::TreePtr&) {
    return ref.kind->kind == "Pod" && (verb == "get" || ref.subresource == "binding");
  };
  cluster_.SetDeviceCondition("c", kAttached, "True");
  cluster_.Settle();
  ASSERT_EQ(cluster_.scheduler().counts().waiting_for_conditions, 1u);
  cluster_.SetDeviceCondition("c", kFailed, "True");
  cluster_.Settle();
  EXPECT_THAT(cluster_.DevicesOf("c"), ::testing::SizeIs(1));
  EXPECT_THAT(cluster_.ReservedFor("c"), ElementsAre("p"));
}

TEST_F(BindingRelease, FailedDevicesAreRetriedRoundRobinWhenNoOtherIsLeft) {
  Start(2);
  cluster_.StartScheduler();
  cluster_.CreatePodWithClaims("p", {"c"});
  cluster_.Settle();
  std::vector<std::string> tried;
  for (int i = 0; i < 5; ++i) {
    const std::vector<std::string> devices = cluster_.DevicesOf("c");
    ASSERT_EQ(devices.size(), 1u);
    tried.push_back(devices.front().substr(devices.front().rfind('/') + 1));
    cluster_.loop().Advance(minutes(10) + seconds(30));
  }
  EXPECT_THAT(tried, ElementsAre("dev-0", "dev-1", "dev-0", "dev-1", "dev-0"));
}

}  // namespace
}  // namespace drakkar::scheduler
