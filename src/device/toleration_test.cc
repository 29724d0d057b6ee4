#include "device/toleration.h"

#include <gtest/gtest.h>

namespace drakkar::device {
namespace {

const Taint kTaint{"key", "value", "NoSchedule", ""};

TEST(Toleration, MatchesKeyValueAndEffect) {
  EXPECT_TRUE(Tolerates({"key", "Equal", "value", "NoSchedule", {}}, kTaint));
  EXPECT_TRUE(Tolerates({"key", "", "value", "", {}}, kTaint));
  EXPECT_FALSE(Tolerates({"key", "Equal", "other", "", {}}, kTaint));
  EXPECT_FALSE(Tolerates({"key", "", "other", "", {}}, kTaint));
  EXPECT_FALSE(Tolerates({"other", "Exists", "", "", {}}, kTaint));
  EXPECT_FALSE(Tolerates({"key", "Exists", "", "NoExecute", {}}, kTaint));
}

TEST(Toleration, WithoutAKeyMatchesEveryTaint) {
  EXPECT_TRUE(Tolerates({"", "Exists", "", "", {}}, kTaint));
}

TEST(Toleration, WithAnUnknownOperatorMatchesNothing) {
  EXPECT_FALSE(Tolerates({"key", "Like", "value", "", {}}, kTaint));
}

TEST(Taints, OnlyNoScheduleAndNoExecutePreventAllocation) {
  EXPECT_EQ(FindUntolerated({{"key", "", "None", ""}, {"key", "", "Future", ""}}, {}), nullptr);
  const std::vector<Taint> taints = {{"a", "", "NoSchedule", ""}, {"b", "", "NoExecute", ""}};
  EXPECT_EQ(FindUntolerated(taints, {{"a", "Exists", "", "", {}}}), &taints[1]);
  EXPECT_EQ(FindUntolerated(taints, {{"", "Exists", "", "", {}}}), nullptr);
  EXPECT_EQ(FindUntolerated(taints, {{"a", "Exists", "", "", {}}, {"b", "Exists", "", "", {}}}),
            nullptr);
  EXPECT_EQ(FindUntolerated(taints, {}), &taints[0]);
}

}  // namespace
}  // namespace drakkar::device
