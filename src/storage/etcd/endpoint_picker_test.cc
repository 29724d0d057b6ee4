#include "storage/etcd/endpoint_picker.h"

#include <gtest/gtest.h>

namespace drakkar::storage {
namespace {

const MonotonicTime kNow{std::chrono::seconds(100)};

TEST(EndpointPicker, CallsGoRoundAmongTheConnected) {
  EndpointPicker picker(3);
  EXPECT_FALSE(picker.IsAnyConnected());
  EXPECT_EQ(picker.Pick({}, kNow), std::nullopt);
  picker.OnConnected(0);
  picker.OnConnected(2);
  std::vector<std::size_t> picked;
  for (int i = 0; i < 4; ++i) picked.push_back(picker.Pick({}, kNow).value());
  EXPECT_EQ(picked, (std::vector<std::size_t>{0, 2, 0, 2}));
  picker.OnDisconnected(0);
  EXPECT_EQ(picker.Pick({}, kNow), 2u);
}

TEST(EndpointPicker, AMemberThatWasTriedIsNotPickedAgain) {
  EndpointPicker picker(2);
  picker.OnConnected(0);
  picker.OnConnected(1);
  EXPECT_EQ(picker.Pick({true, false}, kNow), 1u);
  EXPECT_EQ(picker.Pick({true, true}, kNow), std::nullopt);
}

TEST(EndpointPicker, AMemberThatFailedIsAvoidedForAWhileButBetterThanNone) {
  EndpointPicker picker(2);
  picker.OnConnected(0);
  picker.OnConnected(1);
  picker.OnFailure(0, kNow);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(picker.Pick({}, kNow), 1u);
  EXPECT_EQ(picker.Pick({false, true}, kNow), 0u);
  const MonotonicTime later = kNow + EndpointPicker::kAvoidFor;
  EXPECT_NE(picker.Pick({}, later), picker.Pick({}, later)) << "both again";
}

TEST(EndpointPicker, ASuccessOrANewConnectionClearsAFailure) {
  EndpointPicker picker(2);
  picker.OnConnected(0);
  picker.OnConnected(1);
  picker.OnFailure(0, kNow);
  picker.OnSuccess(0);
  EXPECT_NE(picker.Pick({}, kNow), picker.Pick({}, kNow));
  picker.OnFailure(0, kNow);
  picker.OnDisconnected(0);
  picker.OnConnected(0);
  EXPECT_NE(picker.Pick({}, kNow), picker.Pick({}, kNow));
}

TEST(EndpointPicker, CallsGoRoundAmongMembersThatAllFailed) {
  EndpointPicker picker(3);
  for (const std::size_t i : {0u, 1u, 2u}) {
    picker.OnConnected(i);
    picker.OnFailure(i, kNow);
  }
  std::vector<std::size_t> picked;
  for (int i = 0; i < 4; ++i) picked.push_back(picker.Pick({}, kNow).value());
  EXPECT_EQ(picked, (std::vector<std::size_t>{0, 1, 2, 0}));
}

}  // namespace
}  // namespace drakkar::storage
