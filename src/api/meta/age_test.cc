#include "api/meta/age.h"

#include <gtest/gtest.h>

namespace drakkar::api {
namespace {

TEST(AgeTest, AgesReadAsKubectlWritesThem) {
  using std::chrono::hours;
  using std::chrono::minutes;
  using std::chrono::seconds;
  EXPECT_EQ(FormatAge(-seconds(2)), "<invalid>");
  EXPECT_EQ(FormatAge(-seconds(1)), "0s");
  EXPECT_EQ(FormatAge(seconds(0)), "0s");
  EXPECT_EQ(FormatAge(seconds(119)), "119s");
  EXPECT_EQ(FormatAge(seconds(120)), "2m");
  EXPECT_EQ(FormatAge(seconds(121)), "2m1s");
  EXPECT_EQ(FormatAge(seconds(599)), "9m59s");
  EXPECT_EQ(FormatAge(seconds(659)), "10m");
  EXPECT_EQ(FormatAge(minutes(179)), "179m");
  EXPECT_EQ(FormatAge(minutes(192)), "3h12m");
  EXPECT_EQ(FormatAge(hours(3)), "3h");
  EXPECT_EQ(FormatAge(hours(8) + minutes(30)), "8h");
  EXPECT_EQ(FormatAge(hours(47)), "47h");
  EXPECT_EQ(FormatAge(hours(48)), "2d");
  EXPECT_EQ(FormatAge(hours(52)), "2d4h");
  EXPECT_EQ(FormatAge(hours(24 * 8)), "8d");
  EXPECT_EQ(FormatAge(hours(24 * 729)), "729d");
  EXPECT_EQ(FormatAge(hours(24 * 738)), "2y8d");
  EXPECT_EQ(FormatAge(hours(24 * 365 * 8)), "8y");
}

}  // namespace
}  // namespace drakkar::api
