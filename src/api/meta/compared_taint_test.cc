#include "api/meta/compared_taint.h"

#include <gtest/gtest.h>

namespace drakkar::api {
namespace {

TEST(ComparedTaint, TheTaintIsGreaterOrLessThanTheToleration) {
  EXPECT_TRUE(ComparesTaint("Gt", "900", "901"));
  EXPECT_FALSE(ComparesTaint("Gt", "900", "900"));
  EXPECT_FALSE(ComparesTaint("Gt", "900", "1"));
  EXPECT_TRUE(ComparesTaint("Lt", "5", "-9223372036854775808"));
  EXPECT_FALSE(ComparesTaint("Lt", "5", "5"));
  EXPECT_FALSE(ComparesTaint("Equal", "5", "5"));
  EXPECT_FALSE(ComparesTaint("", "5", "5"));
}

TEST(ComparedTaint, OnlyCanonicalIntegersAreCompared) {
  for (const char* bad : {"", "x", "-", "05", "+5", "-0", "1.0", "0x1", "9223372036854775808"}) {
    EXPECT_FALSE(ComparesTaint("Gt", "0", bad)) << bad;
    EXPECT_FALSE(ComparesTaint("Gt", bad, "7")) << bad;
    EXPECT_FALSE(CheckComparedValue(bad).empty()) << bad;
  }
  EXPECT_TRUE(CheckComparedValue("0").empty());
  EXPECT_TRUE(CheckComparedValue("-12").empty());
}

TEST(ComparedTaint, ProblemsAreInTheWordsOfKubernetes) {
  EXPECT_EQ(CheckComparedValue("007"),
            Problems{"must be a valid decimal integer in canonical form"});
  EXPECT_EQ(CheckComparedValue("9223372036854775808"),
            Problems{"strconv.ParseInt: parsing \"9223372036854775808\": value out of range"});
  EXPECT_EQ(CheckComparedValue(""),
            (Problems{"must be non-empty", "strconv.ParseInt: parsing \"\": invalid syntax"}));
  EXPECT_EQ(CheckComparedValue("a"), (Problems{"must be a valid decimal integer in canonical form",
                                               "strconv.ParseInt: parsing \"a\": invalid syntax"}));
}

}  // namespace
}  // namespace drakkar::api
