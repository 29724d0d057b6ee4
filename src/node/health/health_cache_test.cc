#include "node/health/health_cache.h"

#include <gtest/gtest.h>

#include <limits>

#include "base/text/text.h"
#include "base/text/truncate.h"
#include "node/testing/health_node.h"

namespace drakkar::node {
namespace {

using rpc::DeviceHealthState;
using std::chrono::milliseconds;
using std::chrono::seconds;

// A moment on both clocks, which are unrelated.
HealthTime After(Duration passed = {}) {
  return {WallTime{seconds(1'800'000'000)} + passed, MonotonicTime{seconds(77)} + passed};
}

TEST(HealthCache, AnOmittedDeviceKeepsItsHealthUntilItsTimeout) {
  HealthCache cache;
  cache.Update("d", 1, Report("a", DeviceHealthState::kHealthy), After());
  EXPECT_TRUE(
      cache.Update("d", 1, Report("b", DeviceHealthState::kHealthy, "", 60), After(seconds(20)))
          .changed.size() == 1);
  EXPECT_EQ(cache.Get({"d", "pool", "a"}, After(seconds(30))).health, DeviceHealthState::kHealthy);
  EXPECT_EQ(cache.Get({"d", "pool", "a"}, After(seconds(31))).health, DeviceHealthState::kUnknown);
  EXPECT_EQ(*cache.NextExpiry(), After(seconds(30)).tick);
  const auto expired = cache.Expire(After(seconds(31)));
  ASSERT_EQ(expired.size(), 1u);
  EXPECT_EQ(expired[0].device, "a");
  EXPECT_EQ(*cache.NextExpiry(), After(seconds(80)).tick);
}

TEST(HealthCache, OnlyTheInstanceThatReportedADeviceRemovesIt) {
  HealthCache cache;
  cache.Update("d", 1, Report("a", DeviceHealthState::kHealthy), After());
  cache.Update("d", 2, Report("a", DeviceHealthState::kUnhealthy), After());
  EXPECT_TRUE(cache.ClearInstance("d", 1, After()).empty());
  EXPECT_EQ(cache.Get({"d", "pool", "a"}, After()).health, DeviceHealthState::kUnhealthy);
  EXPECT_EQ(cache.ClearInstance("d", 2, After()).size(), 1u);
}

TEST(HealthCache, ARepeatedReportIsNotAChange) {
  HealthCache cache;
  cache.Update("d", 1, Report("a", DeviceHealthState::kHealthy), After());
  EXPECT_TRUE(cache.Update("d", 1, Report("a", DeviceHealthState::kHealthy), After(seconds(5)))
                  .changed.empty());
  EXPECT_EQ(
      cache.Update("d", 1, Report("a", DeviceHealthState::kHealthy, "warm"), After(seconds(6)))
          .changed.size(),
      1u);
}

TEST(HealthCache, TheNumberOfDevicesAndTheMessageSizeAreBounded) {
  HealthCache cache;
  rpc::HealthReport report;
  for (std::size_t i = 0; i < HealthCache::kMaxDevicesPerDriver + 3; ++i) {
    report.push_back({.pool_name = "p",
                      .device_name = std::to_string(i),
                      .health = DeviceHealthState::kHealthy});
  }
  EXPECT_EQ(cache.Update("d", 1, report, After()).ignored, 3u);
  const std::string longest(HealthCache::kMaxNameBytes, 'n');
  for (const auto& [pool, device, ignored] :
       {std::tuple(longest, longest, 0u), std::tuple(longest + "n", std::string("d"), 1u),
        std::tuple(std::string("p"), longest + "n", 1u)}) {
    const rpc::HealthReport one = {
        {.pool_name = pool, .device_name = device, .health = DeviceHealthState::kHealthy}};
    EXPECT_EQ(cache.Update("other", 1, one, After()).ignored, ignored);
  }
  cache.Update("other", 1, Report("m", DeviceHealthState::kHealthy, std::string(5'000, 'm')),
               After());
  EXPECT_EQ(cache.Get({"other", "pool", "m"}, After()).message.size(),
            HealthCache::kMaxMessageBytes);
  const std::string cut =
      TruncateMessage(std::string(1020, 'x') + "\xc3\xa9\xc3\xa9\xc3\xa9", 1024);
  EXPECT_EQ(cut, std::string(1020, 'x') + "...");
  EXPECT_TRUE(IsValidUtf8(cut));
}

TEST(HealthCache, SurvivesARoundTripThroughItsFile) {
  HealthCache cache;
  cache.Update("d", 1, Report("a", DeviceHealthState::kUnhealthy, "<hot>"),
               After(milliseconds(1500)));
  EXPECT_EQ(cache.Encode(),
            "{\"d\":{\"Devices\":{\"pool/"
            "a\":{\"PoolName\":\"pool\",\"DeviceName\":\"a\",\"Health\":\"Unhealthy\","
            "\"LastUpdated\":\"2027-01-15T08:00:01.5Z\",\"HealthCheckTimeout\":30000000000,"
            "\"Message\":\"\\u003chot\\u003e\",\"Since\":\"2027-01-15T08:00:01.5Z\"}}}}");
  HealthCache again;
  ASSERT_TRUE(again.Decode(cache.Encode(), After(seconds(2))).ok());
  EXPECT_EQ(again.Encode(), cache.Encode());
  EXPECT_FALSE(again.Decode("{", After()).ok());
}

TEST(HealthCache, EncodingInStepsGivesTheSameResult) {
  HealthCache cache;
  for (int i = 0; i < 7; ++i) {
    cache.Update("a", 1, Report("d" + std::to_string(i), DeviceHealthState::kHealthy), After());
    cache.Update("b", 2, Report("d" + std::to_string(i), DeviceHealthState::kUnhealthy), After());
  }
  for (std::size_t limit = 1; limit < 9; ++limit) {
    HealthCache::Encoding encoding;
    int pieces = 0;
    while (!encoding.done) {
      cache.EncodeMore(encoding, limit);
      ASSERT_LT(++pieces, 20);
    }
    EXPECT_EQ(encoding.text, cache.Encode());
  }
  HealthCache empty;
  EXPECT_EQ(empty.Encode(), "{}");
  // A device removed between two steps still leaves a readable file.
  HealthCache::Encoding encoding;
  cache.EncodeMore(encoding, 3);
  cache.ClearInstance("a", 1, After());
  while (!encoding.done) cache.EncodeMore(encoding, 3);
  EXPECT_TRUE(empty.Decode(encoding.text, After()).ok()) << encoding.text;
}

TEST(HealthCache, RemembersWhenTheHealthLastChanged) {
  HealthCache cache;
  EXPECT_FALSE(cache.Get({"d", "pool", "a"}, After()).since.has_value());
  cache.Update("d", 1, Report("a", DeviceHealthState::kHealthy), After());
  cache.Update("d", 1, Report("a", DeviceHealthState::kHealthy, "warm"), After(seconds(5)));
  EXPECT_EQ(*cache.Get({"d", "pool", "a"}, After(seconds(5))).since, After().wall);
  cache.Update("d", 1, Report("a", DeviceHealthState::kUnhealthy), After(seconds(7)));
  EXPECT_EQ(*cache.Get({"d", "pool", "a"}, After(seconds(8))).since, After(seconds(7)).wall);
  EXPECT_EQ(*cache.Get({"d", "pool", "a"}, After(seconds(60))).since, After(seconds(37)).wall)
      << "unknown since its timeout";
}

TEST(HealthCache, ReadsAFileWrittenByKubernetes) {
  HealthCache cache;
  ASSERT_TRUE(
      cache
          .Decode(R"({"d":{"Devices":{"p/a":{"PoolName":"p","DeviceName":"a","Health":"Healthy",
    "LastUpdated":"2027-01-15T08:00:00.123456789Z","HealthCheckTimeout":60000000000,"Message":"","Later":1}}}})",
                  After(seconds(1)))
          .ok());
  EXPECT_EQ(cache.Get({"d", "p", "a"}, After(seconds(59))).health, DeviceHealthState::kHealthy);
  EXPECT_EQ(cache.Get({"d", "p", "a"}, After(seconds(61))).health, DeviceHealthState::kUnknown);
}

TEST(HealthCache, TimesInTheFutureCountAsNow) {
  HealthCache cache;
  cache.Update("d", 1, Report("a", DeviceHealthState::kHealthy), After(seconds(3'600)));
  HealthCache again;
  ASSERT_TRUE(again.Decode(cache.Encode(), After()).ok());
  EXPECT_EQ(again.Get({"d", "pool", "a"}, After(seconds(30))).health, DeviceHealthState::kHealthy);
  EXPECT_EQ(*again.Get({"d", "pool", "a"}, After()).since, After().wall);
  EXPECT_EQ(again.Get({"d", "pool", "a"}, After(seconds(31))).health, DeviceHealthState::kUnknown);
  ASSERT_TRUE(
      again
          .Decode(R"({"d":{"Devices":{"p/a":{"PoolName":"p","DeviceName":"a","Health":"Healthy",
    "LastUpdated":"1971-01-01T00:00:00Z","HealthCheckTimeout":9223372036854775807}}}})",
                  After())
          .ok());
  EXPECT_EQ(again.Get({"d", "p", "a"}, After()).health, DeviceHealthState::kUnknown)
      << "of long ago";
}

TEST(HealthCache, ExpiryUsesTheMonotonicClock) {
  HealthCache cache;
  cache.Update("d", 1, Report("a", DeviceHealthState::kHealthy), After());
  HealthTime now = After(seconds(30));
  now.wall += std::chrono::hours(1);
  EXPECT_TRUE(cache.Expire(now).empty());
  EXPECT_EQ(cache.Get({"d", "pool", "a"}, now).health, DeviceHealthState::kHealthy);
  now = After(seconds(31));
  now.wall -= std::chrono::hours(1);
  EXPECT_EQ(cache.Get({"d", "pool", "a"}, now).health, DeviceHealthState::kUnknown);
  EXPECT_EQ(cache.Expire(now).size(), 1u);
}

TEST(HealthCache, RemembersSinceWhenADeviceIsUnknown) {
  HealthCache cache;
  cache.Update("d", 1, Report("expires", DeviceHealthState::kHealthy), After());
  cache.Expire(After(seconds(40)));
  EXPECT_EQ(*cache.Get({"d", "pool", "expires"}, After(seconds(50))).since,
            After(seconds(30)).wall);
  cache.Update("d", 1, Report("cleared", DeviceHealthState::kHealthy), After(seconds(50)));
  cache.ClearInstance("d", 1, After(seconds(55)));
  EXPECT_EQ(*cache.Get({"d", "pool", "cleared"}, After(seconds(60))).since,
            After(seconds(55)).wall);
  EXPECT_TRUE(cache.List(After(seconds(60))).empty()) << "nobody reports them";
  cache.Update("d", 2, Report("cleared", DeviceHealthState::kUnknown), After(seconds(61)));
  EXPECT_EQ(*cache.Get({"d", "pool", "cleared"}, After(seconds(62))).since, After(seconds(55)).wall)
      << "as before";
  cache.Update("d", 2, Report("expires", DeviceHealthState::kHealthy), After(seconds(63)));
  EXPECT_EQ(*cache.Get({"d", "pool", "expires"}, After(seconds(64))).since,
            After(seconds(63)).wall);
  cache.Forget({"d", "pool", "expires"});
  EXPECT_EQ(cache.Get({"d", "pool", "expires"}, After(seconds(64))).health,
            DeviceHealthState::kHealthy);
}

TEST(HealthCache, TheNumberOfRememberedDevicesIsBounded) {
  HealthCache cache;
  for (const char* driver : {"d", "e"}) {
    rpc::HealthReport report;
    for (std::size_t i = 0; i < HealthCache::kMaxRemembered; ++i) {
      report.push_back({.pool_name = "p",
                        .device_name = std::to_string(i),
                        .health = DeviceHealthState::kHealthy});
    }
    cache.Update(driver, 1, report, After());
    cache.ClearInstance(driver, 1, After());
  }
  EXPECT_FALSE(cache.Get({"d", "p", "7"}, After()).since.has_value());
  EXPECT_TRUE(cache.Get({"e", "p", "7"}, After()).since.has_value());
}

TEST(HealthCache, EveryDriverIsListedExpiredAndKeptInTheFile) {
  HealthCache cache;
  for (const char* driver : {"a", "b", "c"}) {
    // The first device of the next driver sorts before the last of this one.
    for (const char* device : {"1", "2"}) {
      cache.Update(driver, 1, Report(device, DeviceHealthState::kHealthy), After());
    }
  }
  EXPECT_EQ(cache.List(After()).size(), 6u);
  HealthCache again;
  ASSERT_TRUE(again.Decode(cache.Encode(), After()).ok());
  EXPECT_EQ(again.List(After()).size(), 6u);
  EXPECT_EQ(cache.Expire(After(seconds(31))).size(), 6u);
  EXPECT_EQ(cache.Encode(), "{}");
}

TEST(HealthCache, ADriverWithoutDevicesIsNotInTheFile) {
  HealthCache cache;
  cache.Update("d", 1, Report("a", DeviceHealthState::kHealthy), After());
  cache.ClearInstance("d", 1, After());
  EXPECT_EQ(cache.Encode(), "{}");
}

TEST(HealthCache, ADeviceFirstReportedAsUnknownIsUnknownSinceThen) {
  HealthCache cache;
  cache.Update("d", 1, Report("a", DeviceHealthState::kUnknown), After(seconds(3)));
  EXPECT_EQ(cache.Get({"d", "pool", "a"}, After(seconds(9))).since, After(seconds(3)).wall);
}

TEST(HealthCache, AKnownDeviceIsUpdatedEvenIfTheDriverIsAtItsLimit) {
  HealthCache cache;
  rpc::HealthReport report;
  for (std::size_t i = 0; i < HealthCache::kMaxDevicesPerDriver; ++i) {
    report.push_back({.pool_name = "p",
                      .device_name = std::to_string(i),
                      .health = DeviceHealthState::kHealthy});
  }
  EXPECT_EQ(cache.Update("d", 1, report, After()).ignored, 0u);
  report[7].health = DeviceHealthState::kUnhealthy;
  EXPECT_EQ(cache.Update("d", 1, report, After()).changed.size(), 1u);
  EXPECT_EQ(cache.Get({"d", "p", "7"}, After()).health, DeviceHealthState::kUnhealthy);
  HealthCache again;
  ASSERT_TRUE(again.Decode(cache.Encode(), After()).ok());
  EXPECT_EQ(again.List(After()).size(), HealthCache::kMaxDevicesPerDriver);
}

TEST(HealthCache, AFileWithTooManyDevicesIsReadUpToTheLimit) {
  std::string text = R"({"d":{"Devices":{)";
  for (std::size_t i = 0; i <= HealthCache::kMaxDevicesPerDriver; ++i) {
    text += StrCat(i > 0 ? "," : "", "\"p/", i, R"(":{"PoolName":"p","DeviceName":")", i,
                   R"(","Health":"Healthy","LastUpdated":"2027-01-15T08:00:00Z"})");
  }
  HealthCache cache;
  ASSERT_TRUE(cache.Decode(text + "}}}", After()).ok());
  EXPECT_EQ(cache.List(After()).size(), HealthCache::kMaxDevicesPerDriver);
}

TEST(HealthCache, TheTimeoutOfAReportHasADefaultAndALimit) {
  const std::pair<std::int64_t, Duration> cases[] = {
      {0, HealthCache::kDefaultTimeout},
      {-5, HealthCache::kDefaultTimeout},
      {1, seconds(1)},
      {90, seconds(90)},
      {std::numeric_limits<std::int64_t>::max(), HealthCache::kLongestTimeout},
  };
  for (const auto& [reported, timeout] : cases) {
    HealthCache cache;
    const auto outcome =
        cache.Update("d", 1, Report("a", DeviceHealthState::kHealthy, "", reported), After());
    EXPECT_EQ(outcome.expiry, After(timeout).tick) << reported;
    EXPECT_EQ(cache.NextExpiry(), After(timeout).tick) << reported;
    EXPECT_TRUE(cache.Expire(After(timeout)).empty()) << "a report counts for its whole timeout";
    EXPECT_EQ(cache.Get({"d", "pool", "a"}, After(timeout)).health, DeviceHealthState::kHealthy);
    EXPECT_EQ(cache.Expire(After(timeout + milliseconds(1))).size(), 1u) << reported;
  }
}

TEST(HealthCache, TheFirstOfTheReportedDevicesThatExpiresIsTold) {
  HealthCache cache;
  rpc::HealthReport report;
  for (const int timeout : {60, 10, 30}) {
    report.push_back(
        Report(std::to_string(99 - timeout), DeviceHealthState::kHealthy, "", timeout)[0]);
  }
  const auto outcome = cache.Update("d", 1, report, After());
  EXPECT_EQ(outcome.changed.size(), 3u);
  EXPECT_EQ(outcome.expiry, After(seconds(10)).tick);
  EXPECT_EQ(cache.NextExpiry(), After(seconds(10)).tick);
  EXPECT_FALSE(cache.Update("d", 1, {}, After()).expiry.has_value());
  cache.Update("e", 1, Report("a", DeviceHealthState::kHealthy, "", 5), After());
  EXPECT_EQ(cache.NextExpiry(), After(seconds(5)).tick) << "of all drivers";
  cache.Update("f", 1, Report("a", DeviceHealthState::kHealthy, "", 7), After());
  EXPECT_EQ(cache.NextExpiry(), After(seconds(5)).tick);
}

TEST(HealthCache, ADeviceThatIsReportedAgainAfterItsTimeoutHasChanged) {
  HealthCache cache;
  cache.Update("d", 1, Report("a", DeviceHealthState::kHealthy), After());
  EXPECT_EQ(cache.Update("d", 1, Report("a", DeviceHealthState::kHealthy), After(seconds(31)))
                .changed.size(),
            1u)
      << "it was Unknown in between";
  EXPECT_EQ(cache.Get({"d", "pool", "a"}, After(seconds(40))).since, After(seconds(31)).wall);
}

TEST(HealthCache, ASuccessorTakesOverOnlyTheReportsOfItsPredecessor) {
  HealthCache cache;
  cache.Update("d", 1, Report("old", DeviceHealthState::kHealthy), After());
  cache.Update("d", 1, Report("older", DeviceHealthState::kHealthy), After());
  cache.Update("d", 2, Report("own", DeviceHealthState::kHealthy), After());
  cache.Update("d", 3, Report("other", DeviceHealthState::kHealthy), After());
  cache.HandOver("d", 1, 2);
  cache.HandOver("unknown", 1, 2);
  EXPECT_TRUE(cache.ClearInstance("d", 1, After()).empty());
  EXPECT_EQ(cache.ClearInstance("d", 2, After()).size(), 3u);
  EXPECT_EQ(cache.List(After()).size(), 1u);
  EXPECT_TRUE(cache.ClearInstance("unknown", 3, After()).empty());
}

TEST(HealthCache, OnlyWhatReadOtherwiseThanUnknownChangesWhenItIsLost) {
  for (const bool expires : {false, true}) {
    HealthCache cache;
    cache.Update("d", 1, Report("healthy", DeviceHealthState::kHealthy), After());
    cache.Update("d", 1, Report("unknown", DeviceHealthState::kUnknown), After());
    cache.Update("d", 1, Report("unknown-why", DeviceHealthState::kUnknown, "no probe"), After());
    std::vector<std::string> changed;
    for (const DeviceKey& key : expires ? cache.Expire(After(seconds(31)))
                                        : cache.ClearInstance("d", 1, After(seconds(1)))) {
      changed.push_back(key.device);
    }
    EXPECT_EQ(changed, (std::vector<std::string>{"healthy", "unknown-why"})) << expires;
  }
}

TEST(HealthCache, AFileThatCannotBeReadChangesNothing) {
  HealthCache cache;
  cache.Update("d", 1, Report("a", DeviceHealthState::kHealthy), After());
  for (const char* text :
       {"[]", "\"text\"", R"({"d":{"Devices":{"p/a":{"LastUpdated":"yesterday"}}}})"}) {
    EXPECT_FALSE(cache.Decode(text, After()).ok()) << text;
  }
  EXPECT_EQ(cache.List(After()).size(), 1u);
}

TEST(HealthCache, AFileWithoutTimeoutOrSinceHasDefaults) {
  HealthCache cache;
  ASSERT_TRUE(cache
                  .Decode(StrCat(R"({"d":{"Devices":{"p/a":{"PoolName":"p","DeviceName":"a",)",
                                 R"("Health":"Healthy","LastUpdated":"2027-01-15T08:00:00Z",)",
                                 R"("HealthCheckTimeout":0,"Message":")", std::string(5'000, 'm'),
                                 R"("}}}})"),
                          After(seconds(5)))
                  .ok());
  const DeviceHealthView view = cache.Get({"d", "p", "a"}, After(seconds(30)));
  EXPECT_EQ(view.health, DeviceHealthState::kHealthy);
  EXPECT_EQ(view.since, After().wall) << "the last report";
  EXPECT_EQ(view.message.size(), HealthCache::kMaxMessageBytes);
  EXPECT_EQ(cache.Get({"d", "p", "a"}, After(seconds(31))).health, DeviceHealthState::kUnknown);
}

}  // namespace
}  // namespace drakkar::node
