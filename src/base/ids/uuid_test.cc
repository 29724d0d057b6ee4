#include "base/ids/uuid.h"

#include <gtest/gtest.h>

#include <set>

namespace drakkar {
namespace {

TEST(Uuid, IsWellFormedVersionFour) {
  SeededRandom random(1);
  std::set<std::string> seen;
  for (int i = 0; i < 1000; ++i) {
    std::string uuid = NewUuid(random);
    EXPECT_TRUE(IsUuid(uuid)) << uuid;
    EXPECT_EQ(uuid[14], '4');
    EXPECT_NE(std::string("89ab").find(uuid[19]), std::string::npos);
    EXPECT_TRUE(seen.insert(uuid).second);
  }
  EXPECT_FALSE(IsUuid("AAAAAAAA-0000-4000-8000-000000000000"));
  EXPECT_FALSE(IsUuid(""));
}

}  // namespace
}  // namespace drakkar
