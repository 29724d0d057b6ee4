#include "api/meta/saturated.h"

#include <gtest/gtest.h>

namespace drakkar::api {
namespace {

constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t kMin = std::numeric_limits<std::int64_t>::min();

std::int64_t Milli(std::string_view text) {
  return SaturatedValue(*Quantity::Parse(text), Quantity::kMilli);
}

std::int64_t Whole(std::string_view text) {
  return SaturatedValue(*Quantity::Parse(text));
}

TEST(Saturated, ValuesThatFitAreExact) {
  EXPECT_EQ(Milli("1500m"), 1500);
  EXPECT_EQ(Milli("0.0001"), 1);
  EXPECT_EQ(Milli("-2"), -2000);
  EXPECT_EQ(Milli("9e15"), 9'000'000'000'000'000'000);
  EXPECT_EQ(Whole("4Ei"), std::int64_t{1} << 62);
  EXPECT_EQ(Whole("1500m"), 2);
}

TEST(Saturated, OthersStayTheLargestOrSmallest) {
  for (const std::string_view text : {"1e18", "1e30", "8Ei", "9223372036854775807", "1e1000"}) {
    EXPECT_EQ(Milli(text), kMax) << text;
  }
  EXPECT_EQ(Milli("-1e18"), kMin);
  EXPECT_EQ(Whole("1e30"), kMax);
}

TEST(Saturated, SumsAndProductsDoNotWrapAround) {
  EXPECT_EQ(SaturatedAdd(kMax, 1), kMax);
  EXPECT_EQ(SaturatedAdd(kMin, -1), kMin);
  EXPECT_EQ(SaturatedAdd(kMax, -1), kMax - 1);
  EXPECT_EQ(SaturatedMultiply(kMax, 1024), kMax);
  EXPECT_EQ(SaturatedMultiply(kMax, -2), kMin);
  EXPECT_EQ(SaturatedMultiply(-3, -4), 12);
}

}  // namespace
}  // namespace drakkar::api
