#include "allocator/ledger/capacity_policy.h"

#include <gtest/gtest.h>

namespace drakkar::allocator {
namespace {

api::Quantity Q(std::string_view text) {
  return *api::Quantity::Parse(text);
}

device::Capacity Ranged(std::string_view value, const char* min, const char* max,
                        const char* step) {
  device::Capacity capacity{"c", Q(value), device::CapacityPolicy()};
  capacity.policy->valid_range.emplace();
  if (min != nullptr) capacity.policy->valid_range->min = Q(min);
  if (max != nullptr) capacity.policy->valid_range->max = Q(max);
  if (step != nullptr) capacity.policy->valid_range->step = Q(step);
  return capacity;
}

CapacityNeed Ask(const device::Capacity& capacity, const char* request, bool fractional = false) {
  std::vector<device::CapacityRequest> requests;
  if (request != nullptr) requests.push_back({"c", Q(request)});
  return ComputeCapacityNeed({capacity}, &requests, fractional);
}

TEST(CapacityPolicy, WithoutARequestTheDefaultOrEverythingIsTaken) {
  device::Capacity capacity{"c", Q("8"), {}};
  EXPECT_EQ(Ask(capacity, nullptr).amounts[0], Q("8"));
  capacity.policy.emplace();
  capacity.policy->default_value = Q("2");
  EXPECT_EQ(Ask(capacity, nullptr).amounts[0], Q("2"));
}

TEST(CapacityPolicy, ARangeRoundsUpToItsSteps) {
  const device::Capacity capacity = Ranged("10", "2", "8", "3");
  EXPECT_EQ(Ask(capacity, "1").amounts[0], Q("2"));
  EXPECT_EQ(Ask(capacity, "3").amounts[0], Q("5"));
  EXPECT_EQ(Ask(capacity, "5").amounts[0], Q("5"));
  EXPECT_EQ(Ask(capacity, "9").kind, CapacityNeed::Kind::kRefused);  // 11 is past the maximum
}

TEST(CapacityPolicy, TheFinestStepIsOneMilliUnit) {
  const device::Capacity capacity = Ranged("10", "2", "8", "1m");
  EXPECT_EQ(Ask(capacity, "2005m", true).amounts[0], Q("2005m"));
  EXPECT_EQ(Ask(capacity, "2005m", true).kind, CapacityNeed::Kind::kFits);
}

TEST(CapacityPolicy, AStepOfZeroIsNoStep) {
  const device::Capacity capacity = Ranged("10", "2", "8", "0");
  EXPECT_EQ(Ask(capacity, "1").amounts[0], Q("2"));
  EXPECT_EQ(Ask(capacity, "3").amounts[0], Q("3"));
  EXPECT_EQ(Ask(capacity, "3").kind, CapacityNeed::Kind::kFits);
  EXPECT_EQ(Ask(capacity, "9").kind, CapacityNeed::Kind::kRefused);
}

TEST(CapacityPolicy, ValidValuesRoundUpToTheNextAndRefuseBeyondTheLast) {
  device::Capacity capacity{"c", Q("10"), device::CapacityPolicy()};
  capacity.policy->valid_values = {Q("2"), Q("4")};
  EXPECT_EQ(Ask(capacity, "2").amounts[0], Q("2"));
  EXPECT_EQ(Ask(capacity, "3").amounts[0], Q("4"));
  EXPECT_EQ(Ask(capacity, "5").kind, CapacityNeed::Kind::kRefused);
}

TEST(CapacityPolicy, MoreThanTheDeviceHasIsTooBig) {
  EXPECT_EQ(Ask({"c", Q("4"), {}}, "5").kind, CapacityNeed::Kind::kTooBig);
  EXPECT_EQ(Ask({"other", Q("4"), {}}, "5").kind, CapacityNeed::Kind::kRefused);
}

TEST(CapacityPolicy, WhatCannotBeComputedIsFatal) {
  const device::Capacity capacity = Ranged("4", "2", "4", "2");
  EXPECT_EQ(Ask(capacity, "18446744073709551616").error,
            "capacity \"c\": capacity request cannot be represented in the device's range "
            "arithmetic: request 18446744073709551616 exceeds MaxInt64");
  EXPECT_EQ(Ask(capacity, "9223372036854775807").error,
            "capacity \"c\": capacity request cannot be represented in the device's range "
            "arithmetic: rounding request 9223372036854775807 up to the next step passes MaxInt64");
  EXPECT_EQ(Ask({"c", Q("4"), {}}, "-1").error, "capacity \"c\": capacity value is negative");
}

TEST(CapacityPolicy, ARequestForNothingIsRoundedUpToTheMinimum) {
  EXPECT_EQ(Ask(Ranged("10", "1", nullptr, "1"), "0").amounts[0], Q("1"));
}

TEST(CapacityPolicy, FractionsOfARangeNeedTheFeature) {
  const device::Capacity capacity = Ranged("2", "500m", nullptr, "500m");
  EXPECT_EQ(Ask(capacity, "600m", true).amounts[0], Q("1"));
  EXPECT_EQ(Ask(capacity, "1100m", true).amounts[0], Q("1500m"));
  EXPECT_EQ(Ask(capacity, "1n", true).amounts[0], Q("500m"));
  EXPECT_EQ(Ask(capacity, "1000000001n", true).kind, CapacityNeed::Kind::kFatal);
  EXPECT_EQ(Ask(capacity, "1100m").amounts[0], Q("2"));  // whole numbers only
  EXPECT_EQ(Ask(capacity, "500m").amounts[0], Q("1"));
}

TEST(CapacityPolicy, ARangeInMilliUnitsHasLimitsToo) {
  const device::Capacity capacity = Ranged("9223372036854775807m", "500m", "2", "500m");
  EXPECT_EQ(Ask(capacity, "2", true).amounts[0], Q("2"));
  EXPECT_EQ(Ask(capacity, "2", true).amounts[0].ToString(), "2");
  EXPECT_EQ(Ask(capacity, "2100m", true).kind, CapacityNeed::Kind::kRefused);
  EXPECT_EQ(Ask(capacity, "9223372036854775807m", true).error,
            "capacity \"c\": capacity request cannot be represented in the device's range "
            "arithmetic: rounding request 9223372036854775807m up to the next step passes the "
            "milli-value range");
  EXPECT_EQ(Ask(capacity, "1000000001n", true).error,
            "capacity \"c\": capacity request cannot be represented in the device's range "
            "arithmetic: request 1000000001n is not a representable milli value");
}

// Then the range is computed in whole numbers, as without the feature.
TEST(CapacityPolicy, ARangeThatIsFinerThanMilliUnitsIsNotFractional) {
  for (const auto& capacity :
       {Ranged("10", "1000000001n", nullptr, "1"), Ranged("10", "1", "9000000001n", "1"),
        Ranged("10", "1", nullptr, "1000000001n")}) {
    EXPECT_EQ(Ask(capacity, "2500m", true).kind, Ask(capacity, "2500m", false).kind);
    EXPECT_EQ(Ask(capacity, "2500m", true).amounts, Ask(capacity, "2500m", false).amounts);
  }
}

TEST(CapacityPolicy, ADefaultOutsideTheRangeIsAllowed) {
  device::Capacity capacity = Ranged("10", "2", "4", "1");
  capacity.policy->default_value = Q("7");
  EXPECT_EQ(Ask(capacity, "7").kind, CapacityNeed::Kind::kFits);
  EXPECT_EQ(Ask(capacity, "7").amounts[0], Q("7"));
  EXPECT_EQ(Ask(capacity, "6").kind, CapacityNeed::Kind::kRefused);
  EXPECT_EQ(Ask(capacity, "4").kind, CapacityNeed::Kind::kFits);
}

TEST(CapacityPolicy, WithoutAStepEveryAmountUpToTheMaximumIsAllowed) {
  const device::Capacity capacity = Ranged("10", "2", "4", nullptr);
  EXPECT_EQ(Ask(capacity, "3500m").amounts[0], Q("3500m"));
  EXPECT_EQ(Ask(capacity, "3500m").kind, CapacityNeed::Kind::kFits);
  EXPECT_EQ(Ask(capacity, "4").kind, CapacityNeed::Kind::kFits);
  EXPECT_EQ(Ask(capacity, "5").kind, CapacityNeed::Kind::kRefused);
}

// Without a minimum nothing is rounded, so only exact multiples of the step are allowed.
TEST(CapacityPolicy, WithoutAMinimumAnAmountBetweenStepsIsRefused) {
  EXPECT_EQ(Ask(Ranged("10", nullptr, nullptr, "2"), "4").kind, CapacityNeed::Kind::kFits);
  EXPECT_EQ(Ask(Ranged("10", nullptr, nullptr, "2"), "5").kind, CapacityNeed::Kind::kRefused);
  const device::Capacity halves = Ranged("10", nullptr, nullptr, "500m");
  EXPECT_EQ(Ask(halves, "1500m", true).kind, CapacityNeed::Kind::kFits);
  EXPECT_EQ(Ask(halves, "1200m", true).kind, CapacityNeed::Kind::kRefused);
  EXPECT_EQ(Ask(halves, "1n", true).kind, CapacityNeed::Kind::kRefused);
}

TEST(CapacityPolicy, EachCapacityIsRequestedByItsName) {
  const std::vector<device::Capacity> capacities = {{"a", Q("8"), {}}, {"b", Q("9"), {}}};
  std::vector<device::CapacityRequest> requests = {{"b", Q("2")}};
  CapacityNeed need = ComputeCapacityNeed(capacities, &requests, false);
  EXPECT_EQ(need.kind, CapacityNeed::Kind::kFits);
  EXPECT_EQ(need.amounts, (std::vector{Q("8"), Q("2")}));
  requests = {{"b", Q("10")}, {"a", Q("1")}};
  EXPECT_EQ(ComputeCapacityNeed(capacities, &requests, false).kind, CapacityNeed::Kind::kTooBig);
  requests = {{"a", Q("1")}, {"c", Q("1")}};
  EXPECT_EQ(ComputeCapacityNeed(capacities, &requests, false).kind, CapacityNeed::Kind::kRefused);
  EXPECT_EQ(ComputeCapacityNeed(capacities, nullptr, false).amounts, (std::vector{Q("8"), Q("9")}));
}

TEST(CapacityPolicy, TheWholeCapacityIsNotTooBig) {
  EXPECT_EQ(Ask({"c", Q("4"), {}}, "4").kind, CapacityNeed::Kind::kFits);
  EXPECT_EQ(Ask({"c", Q("4"), {}}, "0").kind, CapacityNeed::Kind::kFits);
}

TEST(CapacityPolicy, ARequestForTheDefaultIsNotRounded) {
  device::Capacity capacity = Ranged("4", "2", nullptr, nullptr);
  capacity.policy->default_value = Q("1");
  EXPECT_EQ(Ask(capacity, nullptr).amounts[0], Q("1"));
  EXPECT_EQ(Ask(capacity, "1").amounts[0], Q("1"));
  EXPECT_EQ(Ask(capacity, "1500m").amounts[0], Q("2"));
}

}  // namespace
}  // namespace drakkar::allocator
