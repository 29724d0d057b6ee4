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

TEST(CapacityPolicy, ValidValuesRoundUpToTheNextAndRefuseBeyondTheLast) {
  device::Capacity capacity{"c", Q("10"), device::CapacityPolicy()};
  capacity.policy->valid_values = {Q("2"), Q("4")};
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

TEST(CapacityPolicy, FractionsOfARangeNeedTheFeature) {
  const device::Capacity capacity = Ranged("2", "500m", nullptr, "500m");
  EXPECT_EQ(Ask(capacity, "600m", true).amounts[0], Q("1"));
  EXPECT_EQ(Ask(capacity, "1100m", true).amounts[0], Q("1500m"));
  EXPECT_EQ(Ask(capacity, "1n", true).amounts[0], Q("500m"));
  EXPECT_EQ(Ask(capacity, "1000000001n", true).kind, CapacityNeed::Kind::kFatal);
  EXPECT_EQ(Ask(capacity, "1100m").amounts[0], Q("2"));  // whole numbers only
  EXPECT_EQ(Ask(capacity, "500m").amounts[0], Q("1"));
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
