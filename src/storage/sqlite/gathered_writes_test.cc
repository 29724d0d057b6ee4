#include "storage/sqlite/gathered_writes.h"

#include <gtest/gtest.h>

#include <string>

namespace drakkar::storage {
namespace {

TEST(GatheredWrites, WritesThatFollowEachOtherBecomeOne) {
  GatheredWrites gathered;
  EXPECT_TRUE(gathered.empty());
  gathered.Add(100, "head");
  ASSERT_TRUE(gathered.CanTake(104, 4));
  gathered.Add(104, "page");
  EXPECT_EQ(gathered.offset(), 100);
  EXPECT_EQ(gathered.bytes(), "headpage");
}

TEST(GatheredWrites, AWriteElsewhereDoesNotJoin) {
  GatheredWrites gathered;
  gathered.Add(100, "head");
  EXPECT_FALSE(gathered.CanTake(100, 4)) << "it would replace what is gathered";
  EXPECT_FALSE(gathered.CanTake(103, 1));
  EXPECT_FALSE(gathered.CanTake(105, 4)) << "there would be a hole";
  gathered.Clear();
  EXPECT_TRUE(gathered.CanTake(105, 4));
  gathered.Add(105, "page");
  EXPECT_EQ(gathered.offset(), 105);
  EXPECT_EQ(gathered.bytes(), "page");
}

TEST(GatheredWrites, NoMoreThanTheBoundIsKept) {
  GatheredWrites gathered;
  EXPECT_FALSE(gathered.CanTake(0, GatheredWrites::kMaxBytes + 1));
  gathered.Add(0, std::string(GatheredWrites::kMaxBytes - 1, 'x'));
  EXPECT_TRUE(gathered.CanTake(GatheredWrites::kMaxBytes - 1, 1));
  EXPECT_FALSE(gathered.CanTake(GatheredWrites::kMaxBytes - 1, 2));
}

}  // namespace
}  // namespace drakkar::storage
