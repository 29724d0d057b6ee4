#include "base/exec/wakefulness.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <fstream>

#include "base/testing/seeded_loop.h"

namespace drakkar {
namespace {

// Uses a regular file instead of the device.
class WakefulnessTest : public ::testing::Test {
 protected:
  WakefulnessTest() : path_(::testing::TempDir() + "wakefulness-" + std::to_string(::getpid())) {
    std::ofstream(path_, std::ios::binary).write("none", 4);
  }
  ~WakefulnessTest() override { ::unlink(path_.c_str()); }

  std::int32_t Asked() const {
    std::int32_t asked = -1;
    std::ifstream(path_, std::ios::binary).read(reinterpret_cast<char*>(&asked), sizeof asked);
    return asked;
  }

  static constexpr std::int32_t kAnyTime = 2'000'000'000;
  const std::string path_;
  SeededLoop loop_;
};

TEST_F(WakefulnessTest, LastsUntilTheLastHoldEnds) {
  Wakefulness wakefulness(loop_, path_);
  auto first = wakefulness.Begin();
  EXPECT_EQ(Asked(), 0);
  auto second = wakefulness.Begin();
  first.reset();
  EXPECT_EQ(Asked(), 0);
  second.reset();
  EXPECT_EQ(Asked(), kAnyTime);
}

TEST_F(WakefulnessTest, AHoldExpires) {
  Wakefulness wakefulness(loop_, path_);
  auto slow = wakefulness.Begin();
  loop_.Advance(Wakefulness::kLimit / 2);
  auto later = wakefulness.Begin();
  loop_.Advance(Wakefulness::kLimit / 2);
  EXPECT_EQ(Asked(), 0) << "the later hold is active";
  loop_.Advance(Wakefulness::kLimit / 2);
  EXPECT_EQ(Asked(), kAnyTime);
  slow.reset();
  later.reset();
  auto next = wakefulness.Begin();
  EXPECT_EQ(Asked(), 0) << "an expired hold is not counted twice";
  next.reset();
  EXPECT_EQ(Asked(), kAnyTime);
}

TEST_F(WakefulnessTest, LingersAfterTheLastTouch) {
  Wakefulness wakefulness(loop_, path_);
  wakefulness.Touch();
  for (int i = 0; i < 20; ++i) {
    loop_.Advance(Wakefulness::kLinger * 3 / 4);
    EXPECT_EQ(Asked(), 0);
    wakefulness.Touch();
  }
  loop_.Advance(Wakefulness::kLinger * 3 / 4);
  EXPECT_EQ(Asked(), 0);
  loop_.Advance(Wakefulness::kLinger);
  EXPECT_EQ(Asked(), kAnyTime);
  wakefulness.Touch();
  EXPECT_EQ(Asked(), 0);
}

TEST_F(WakefulnessTest, EndsWithItsOwner) {
  {
    Wakefulness wakefulness(loop_, path_);
    wakefulness.Touch();
    EXPECT_EQ(Asked(), 0);
  }
  EXPECT_EQ(Asked(), kAnyTime);
  loop_.Advance(Wakefulness::kLinger);
}

TEST_F(WakefulnessTest, DoesNothingWithoutTheDevice) {
  Wakefulness wakefulness(loop_, path_ + "-absent");
  auto hold = wakefulness.Begin();
  loop_.Advance(Wakefulness::kLimit);
  hold.reset();
}

}  // namespace
}  // namespace drakkar
