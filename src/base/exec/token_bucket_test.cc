#include "base/exec/token_bucket.h"

#include <gtest/gtest.h>

namespace drakkar {
namespace {

using namespace std::chrono_literals;

TEST(TokenBucket, AllowsABurstAndThenItsRate) {
  TokenBucket bucket(/*per_second=*/100, /*burst=*/3);
  MonotonicTime now{1h};
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(bucket.Take(now));
  EXPECT_FALSE(bucket.Take(now));
  EXPECT_EQ(bucket.Wait(), 10ms);
  now += 9ms;
  EXPECT_FALSE(bucket.Take(now));
  now += 2ms;
  EXPECT_TRUE(bucket.Take(now));
  EXPECT_FALSE(bucket.Take(now));
}

TEST(TokenBucket, NeverHoldsMoreThanItsBurst) {
  TokenBucket bucket(100, 2);
  MonotonicTime now{1h};
  EXPECT_TRUE(bucket.Take(now));
  now += 1h;
  EXPECT_TRUE(bucket.Take(now));
  EXPECT_TRUE(bucket.Take(now));
  EXPECT_FALSE(bucket.Take(now));
}

}  // namespace
}  // namespace drakkar
