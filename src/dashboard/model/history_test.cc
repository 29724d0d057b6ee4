#include "dashboard/model/history.h"

#include <gtest/gtest.h>

#include "answers/testing/snapshots.h"

namespace drakkar::dashboard {
namespace {

using answers::testing::FromYaml;
using answers::testing::Node;
using answers::testing::Slice;

class HistoryTest : public ::testing::Test {
 protected:
  void Observe(std::string_view yaml, std::string_view health = {},
               std::string_view now = "2026-01-01T12:00:00Z") {
    answers::Snapshot snapshot = FromYaml(yaml, now);
    if (!health.empty()) {
      snapshot.node_health["n1"][{"gpu.example.com", "n1", "gpu-0"}] = {
          .health = std::string(health), .since = "2026-01-01T11:30:00Z", .message = "too hot"};
    }
    history_.Observe(snapshot, answers::DeviceTable(snapshot));
  }
  std::vector<std::string> Health() const {
    std::vector<std::string> lines;
    for (const HealthEvent& event : history_.health()) {
      lines.push_back(
          StrCat(event.at, " ", event.device.device, " ", event.what, " ", event.message));
    }
    return lines;
  }

  SeededRandom random_{1};
  History history_{random_};
};

using Lines = std::vector<std::string>;

std::string Pod(std::string_view name, std::string_view created, std::string_view scheduled) {
  return StrCat("---\nkind: Pod\nmetadata: {name: ", name, ", creationTimestamp: '", created,
                "'}\nspec: {nodeName: n1}\nstatus: {phase: Running, conditions: [{type: "
                "PodScheduled, status: 'True', lastTransitionTime: '",
                scheduled, "'}]}\n");
}

const std::string kOne = Node("n1") + Slice("n1", "[{name: gpu-0}]");
const std::string kTainted =
    Node("n1") + Slice("n1",
                       "[{name: gpu-0, taints: [{key: hot, effect: NoSchedule, timeAdded: "
                       "'2026-01-01T11:00:00Z'}]}]");

TEST_F(HistoryTest, BeginsWithDevicesThatAreUnhealthyOrTainted) {
  Observe(kTainted, "Unhealthy");
  EXPECT_EQ(Health(), (Lines{"2026-01-01T11:00:00Z gpu-0 Tainted hot:NoSchedule",
                             "2026-01-01T11:30:00Z gpu-0 Unhealthy too hot"}));
}

TEST_F(HistoryTest, RecordsEachChangeOnce) {
  Observe(kOne, "Healthy");
  EXPECT_EQ(Health(), Lines());
  Observe(kOne, "Unhealthy");
  Observe(kOne, "Unhealthy");
  EXPECT_EQ(Health(), (Lines{"2026-01-01T11:30:00Z gpu-0 Unhealthy too hot"}));
  Observe(kOne, "Healthy");
  EXPECT_EQ(Health().size(), 2u);
  EXPECT_EQ(history_.health().back().what, "Healthy");
}

TEST_F(HistoryTest, AHealthyDeviceThatIsSeenForTheFirstTimeIsNoNews) {
  Observe(kOne);
  Observe(kOne, "Healthy");
  EXPECT_EQ(Health(), Lines());
}

TEST_F(HistoryTest, RecordsThatATaintWasRemoved) {
  Observe(kTainted);
  Observe(kOne);
  EXPECT_EQ(Health().back(), "2026-01-01T12:00:00Z gpu-0 Untainted hot:NoSchedule");
}

TEST_F(HistoryTest, KeepsTheNewestHealthEvents) {
  for (std::size_t i = 0; i < History::kMaxHealthEvents; ++i) {
    Observe(kOne, i % 2 == 0 ? "Unhealthy" : "Healthy");
  }
  ASSERT_EQ(history_.health().size(), History::kMaxHealthEvents);
  Observe(kTainted, "Healthy");
  EXPECT_EQ(history_.health().size(), History::kMaxHealthEvents);
  EXPECT_EQ(history_.health().back().what, "Tainted");
}

TEST_F(HistoryTest, CountsScheduledPodsPerTenSecondsAndTheirWaits) {
  const std::string two = Pod("a", "2026-01-01T11:59:00Z", "2026-01-01T11:59:03Z") +
                          Pod("b", "2026-01-01T11:59:00Z", "2026-01-01T11:59:09Z");
  Observe(two);
  Observe(two);
  ASSERT_EQ(history_.slots().size(), 1u);
  EXPECT_EQ(history_.slots()[0].scheduled, 2u);
  EXPECT_EQ(history_.slots()[0].wait_seconds, (std::vector<std::int64_t>{3, 9}));
  Observe(Pod("c", "2026-01-01T12:00:00Z", "2026-01-01T12:00:00Z"));
  ASSERT_EQ(history_.slots().size(), 2u) << "deleted pods stay counted";
}

TEST_F(HistoryTest, ForgetsWhatIsOlderThanAnHour) {
  Observe(Pod("old", "2026-01-01T10:00:00Z", "2026-01-01T10:00:00Z") +
          Pod("a", "2026-01-01T11:30:00Z", "2026-01-01T11:30:00Z"));
  EXPECT_EQ(history_.slots().size(), 1u);
  Observe("", "", "2026-01-01T12:31:00Z");
  EXPECT_TRUE(history_.slots().empty());
}

TEST_F(HistoryTest, SamplesTheWaitsOfABusySlot) {
  std::string pods;
  for (int i = 0; i < 500; ++i) {
    pods += Pod(StrCat("p", i), "2026-01-01T11:59:00Z", "2026-01-01T11:59:05Z");
  }
  Observe(pods);
  EXPECT_EQ(history_.slots()[0].scheduled, 500u);
  EXPECT_EQ(history_.slots()[0].wait_seconds.size(), History::kMaxWaits);
}

TEST(Percentile, IsAValueOfTheSet) {
  EXPECT_EQ(Percentile({}, 50), 0);
  EXPECT_EQ(Percentile({7}, 95), 7);
  EXPECT_EQ(Percentile({4, 1, 3, 2}, 50), 3);
  EXPECT_EQ(Percentile({4, 1, 3, 2}, 100), 4);
}

}  // namespace
}  // namespace drakkar::dashboard
