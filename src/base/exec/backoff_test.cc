#include "base/exec/backoff.h"

#include <gtest/gtest.h>

#include <vector>

namespace drakkar {
namespace {

using namespace std::chrono_literals;

std::vector<Duration> Waits(Backoff& backoff, int count) {
  std::vector<Duration> waits;
  for (int i = 0; i < count; ++i) waits.push_back(backoff.Next());
  return waits;
}

TEST(Backoff, DoublesFromTheInitialWaitToTheMaximum) {
  Backoff backoff({.initial = 1s, .max = 5s});
  EXPECT_EQ(Waits(backoff, 5), (std::vector<Duration>{1s, 2s, 4s, 5s, 5s}));
  EXPECT_EQ(backoff.failures(), 5);
}

TEST(Backoff, StartsOverAfterAReset) {
  Backoff backoff({.initial = 10ms, .max = 1min});
  Waits(backoff, 4);
  backoff.Reset();
  EXPECT_EQ(backoff.failures(), 0);
  EXPECT_EQ(Waits(backoff, 2), (std::vector<Duration>{10ms, 20ms}));
}

TEST(Backoff, GrowsByItsFactor) {
  Backoff backoff({.initial = 1s, .max = 100s, .factor = 1.5});
  EXPECT_EQ(Waits(backoff, 3), (std::vector<Duration>{1s, 1500ms, 2250ms}));
}

TEST(Backoff, StaysAtTheMaximumHoweverOftenItFails) {
  Backoff backoff({.initial = 1ns, .max = Duration(24h * 365 * 100), .factor = 1000});
  for (int i = 0; i < 1000; ++i) EXPECT_GT(backoff.Next(), Duration::zero());
  EXPECT_EQ(backoff.Next(), Duration(24h * 365 * 100));
}

TEST(Backoff, JitterOnlyLengthensAWaitAndOnlyByItsFraction) {
  SeededRandom random(3);
  Backoff backoff({.initial = 1s, .max = 1s, .jitter = 0.5}, &random);
  Duration shortest = 1h;
  Duration longest{};
  for (const Duration wait : Waits(backoff, 1000)) {
    shortest = std::min(shortest, wait);
    longest = std::max(longest, wait);
  }
  EXPECT_GE(shortest, 1s);
  EXPECT_LT(shortest, 1050ms);
  EXPECT_LT(longest, 1500ms);
  EXPECT_GT(longest, 1450ms);
}

TEST(Backoff, JitterDoesNotAddUpFromOneWaitToTheNext) {
  SeededRandom random(4);
  Backoff backoff({.initial = 1s, .max = 64s, .jitter = 0.1}, &random);
  EXPECT_LT(Waits(backoff, 7).back(), 64s * 1.1);
}

TEST(BackoffDeathTest, RefusesJitterWithoutARandom) {
  EXPECT_DEATH(Backoff({.initial = 1s, .max = 1s, .jitter = 0.1}), "random");
}

}  // namespace
}  // namespace drakkar
