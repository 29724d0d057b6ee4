#include "sdk/driver/health/health_hub.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/testing/seeded_loop.h"
#include "base/text/text.h"

namespace drakkar::driver {
namespace {

using State = rpc::DeviceHealthState;
using ::testing::ElementsAre;

struct Stream {
  std::vector<rpc::HealthReport> reports;
  std::vector<std::string> Names(std::size_t index) const {
    std::vector<std::string> names;
    for (const rpc::DeviceHealth& device : reports.at(index)) names.push_back(device.device_name);
    return names;
  }
};

class RecordingSink final : public rpc::HealthSink {
 public:
  explicit RecordingSink(Stream& stream) : stream_(stream) {}
  void Send(const rpc::HealthReport& report) override { stream_.reports.push_back(report); }
  void Finish(Result<void>) override {}
  bool IsCancelled() const override { return false; }
  void OnCancelled(std::function<void()>) override {}

 private:
  Stream& stream_;
};

class HealthHubTest : public ::testing::Test {
 protected:
  bool Report(const std::string& device, State state, std::int64_t timeout = 0) {
    auto changed = hub_.Report({{.pool_name = "p",
                                 .device_name = device,
                                 .health = state,
                                 .health_check_timeout_seconds = timeout}});
    EXPECT_TRUE(changed.ok());
    return changed.ok() && *changed;
  }
  void Watch() { hub_.Watch(std::make_unique<RecordingSink>(stream_)); }

  SeededLoop loop_;
  HealthHub hub_{loop_};
  Stream stream_;
};

TEST_F(HealthHubTest, EachDeviceIsRepeatedBeforeItsOwnTimeout) {
  Report("quick", State::kHealthy, 4);
  Report("slow", State::kHealthy, 40);
  Watch();
  ASSERT_EQ(stream_.reports.size(), 1u);
  loop_.Advance(std::chrono::seconds(2));
  ASSERT_EQ(stream_.reports.size(), 2u);
  EXPECT_THAT(stream_.Names(1), ElementsAre("quick"));
  loop_.Advance(std::chrono::seconds(18));
  EXPECT_THAT(stream_.Names(stream_.reports.size() - 1), ElementsAre("quick", "slow"));
  EXPECT_EQ(stream_.reports.size(), 11u);
}

TEST_F(HealthHubTest, ChangesAreSentAtOnceAndRestartTheRepeatTimer) {
  Report("a", State::kHealthy, 10);
  Watch();
  loop_.Advance(std::chrono::seconds(4));
  Report("a", State::kUnhealthy, 10);
  ASSERT_EQ(stream_.reports.size(), 2u);
  loop_.Advance(std::chrono::seconds(4));
  EXPECT_EQ(stream_.reports.size(), 2u);
  loop_.Advance(std::chrono::seconds(1));
  EXPECT_EQ(stream_.reports.size(), 3u);
}

TEST_F(HealthHubTest, AFlappingDeviceIsReportedLessOftenButNeverLate) {
  Watch();
  for (int i = 0; i < 1'000; ++i) {
    Report("a", i % 2 == 0 ? State::kUnhealthy : State::kHealthy);
    loop_.Advance(std::chrono::milliseconds(1));
  }
  // One second: the burst and the rate of one second.
  EXPECT_LE(stream_.reports.size(), 1 + 256 + 201u);
  EXPECT_GE(stream_.reports.size(), 256u + 150u);
  Report("a", State::kUnhealthy);
  loop_.Advance(std::chrono::milliseconds(60));
  EXPECT_EQ(stream_.reports.back().front().health, State::kUnhealthy);
}

TEST_F(HealthHubTest, TheLastChangeOfABurstIsSentWithoutAnother) {
  Watch();
  std::size_t sent = 0;
  State last = State::kHealthy;
  do {  // until a report is held back
    sent = stream_.reports.size();
    last = last == State::kHealthy ? State::kUnhealthy : State::kHealthy;
    Report("a", last);
    loop_.RunUntilIdle();
  } while (stream_.reports.size() > sent);
  loop_.Advance(std::chrono::milliseconds(100));
  ASSERT_EQ(stream_.reports.size(), sent + 1);
  EXPECT_EQ(stream_.reports.back().front().health, last);
}

TEST_F(HealthHubTest, AReportHasOnlyWhatChangedSinceTheLastOne) {
  Watch();
  stream_.reports.clear();
  Report("a", State::kHealthy);
  loop_.RunUntilIdle();
  Report("b", State::kHealthy);
  loop_.RunUntilIdle();
  ASSERT_EQ(stream_.reports.size(), 2u);
  EXPECT_THAT(stream_.Names(0), ElementsAre("a"));
  EXPECT_THAT(stream_.Names(1), ElementsAre("b"));
}

TEST_F(HealthHubTest, ReportsWhenADeviceBecomesUnhealthyOrRecovers) {
  EXPECT_FALSE(Report("a", State::kHealthy));
  EXPECT_TRUE(Report("a", State::kUnhealthy));
  EXPECT_FALSE(Report("a", State::kUnhealthy));
  EXPECT_TRUE(hub_.IsUnhealthy("p", "a"));
  EXPECT_TRUE(Report("a", State::kUnknown));
  EXPECT_FALSE(hub_.IsUnhealthy("p", "a"));
}

TEST_F(HealthHubTest, ForgottenDevicesAreNotRepeated) {
  Report("a", State::kHealthy, 2);
  Watch();
  hub_.Forget("p", "a");
  loop_.Advance(std::chrono::seconds(10));
  EXPECT_EQ(stream_.reports.size(), 1u);
}

TEST_F(HealthHubTest, AWholeReportIsRefusedIfOneOfItsDevicesHasNoName) {
  EXPECT_FALSE(hub_.Report({{.pool_name = "p", .device_name = "a"}, {.pool_name = "p"}}).ok());
  EXPECT_FALSE(hub_.Report({{.pool_name = "p", .device_name = "a"}, {.device_name = "b"}}).ok());
  Watch();
  EXPECT_TRUE(stream_.reports.at(0).empty()) << "nothing of it was kept";
}

TEST_F(HealthHubTest, TheNumberOfDevicesIsLimited) {
  rpc::HealthReport most;
  for (std::size_t i = 0; i < kMaxHealthDevices; ++i) {
    most.push_back({.pool_name = "p", .device_name = StrCat("d", i)});
  }
  ASSERT_TRUE(hub_.Report(most).ok());
  EXPECT_TRUE(hub_.Report({most[0], most[1]}).ok()) << "it knows them";
  EXPECT_EQ(hub_.Report({most[0], {.pool_name = "p", .device_name = "new"}}).error().code,
            ErrorCode::kResourceExhausted);
  hub_.Forget("p", "d0");
  const rpc::DeviceHealth one = {.pool_name = "p", .device_name = "new"};
  EXPECT_TRUE(hub_.Report({one, one}).ok()) << "named twice, it counts once";
}

TEST_F(HealthHubTest, AForgottenDeviceIsNotSentByAReportThatWasHeldBack) {
  Watch();
  std::size_t sent = 0;
  do {  // until a report is held back
    sent = stream_.reports.size();
    Report("a", sent % 2 == 0 ? State::kUnhealthy : State::kHealthy);
    loop_.RunUntilIdle();
  } while (stream_.reports.size() > sent);
  hub_.Forget("p", "a");
  loop_.Advance(std::chrono::milliseconds(100));
  EXPECT_EQ(stream_.reports.size(), sent) << "not even an empty report";
}

TEST_F(HealthHubTest, ManyDevicesAreRepeatedInBatchesWithChangesInBetween) {
  for (int i = 0; i < 1'000; ++i) Report(StrCat("d", i), State::kHealthy, 4);
  Watch();
  loop_.Advance(std::chrono::seconds(2) - std::chrono::milliseconds(1));
  const std::size_t before = stream_.reports.size();
  loop_.Advance(std::chrono::milliseconds(2));
  EXPECT_EQ(stream_.reports.size(), before + 1);
  EXPECT_EQ(stream_.reports.back().size(), kHealthRepeatsPerMessage);
  Report("d7", State::kUnhealthy, 4);
  EXPECT_EQ(stream_.reports.back().size(), 1u);
  loop_.Advance(std::chrono::milliseconds(20));
  std::size_t repeated = 0;
  for (std::size_t i = before; i < stream_.reports.size(); ++i)
    repeated += stream_.reports[i].size();
  EXPECT_GE(repeated, 1'000u);
  EXPECT_LE(repeated, 1'001u);
}

}  // namespace
}  // namespace drakkar::driver
