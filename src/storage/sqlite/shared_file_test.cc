#include "storage/sqlite/shared_file.h"

#include <gtest/gtest.h>
#include <sqlite3.h>

namespace drakkar::storage {
namespace {

TEST(SharedFile, ManyReadAndOneWritesAlone) {
  SharedFile file;
  SharedFile::Holder a, b, c;
  EXPECT_TRUE(file.Lock(a, SQLITE_LOCK_SHARED));
  EXPECT_TRUE(file.Lock(b, SQLITE_LOCK_SHARED));
  EXPECT_TRUE(file.Lock(a, SQLITE_LOCK_RESERVED));
  EXPECT_TRUE(file.IsReserved());
  EXPECT_FALSE(file.Lock(b, SQLITE_LOCK_RESERVED));
  EXPECT_FALSE(file.Lock(a, SQLITE_LOCK_EXCLUSIVE)) << "b reads";
  EXPECT_EQ(a.level, SQLITE_LOCK_PENDING);
  EXPECT_FALSE(file.Lock(c, SQLITE_LOCK_SHARED)) << "a waits for readers to go";
  file.Unlock(b, SQLITE_LOCK_NONE);
  EXPECT_TRUE(file.Lock(a, SQLITE_LOCK_EXCLUSIVE));
  file.Unlock(a, SQLITE_LOCK_SHARED);
  EXPECT_FALSE(file.IsReserved());
  EXPECT_TRUE(file.Lock(c, SQLITE_LOCK_SHARED));
}

TEST(SharedFile, LocksOfTheIndexAreSharedOrOfOne) {
  SharedFile file;
  SharedFile::Holder a, b;
  EXPECT_TRUE(file.LockIndex(a, 3, 1, false));
  EXPECT_TRUE(file.LockIndex(b, 3, 1, false));
  EXPECT_FALSE(file.LockIndex(a, 2, 4, true)) << "b shares one of them";
  EXPECT_TRUE(file.LockIndex(b, 2, 1, true)) << "nothing was taken";
  file.UnlockIndex(b, 3, 1);
  file.UnlockIndex(b, 2, 1);
  file.UnlockIndex(a, 3, 1);
  EXPECT_TRUE(file.LockIndex(a, 2, 4, true));
  EXPECT_TRUE(file.LockIndex(a, 2, 4, true)) << "its own";
  EXPECT_FALSE(file.LockIndex(b, 5, 1, false));
  file.UnmapIndex(a);
  EXPECT_TRUE(file.LockIndex(b, 0, 8, true)) << "a has given back what it had";
}

TEST(SharedFile, TheIndexLivesAsLongAsSomebodyMapsIt) {
  SharedFile file;
  SharedFile::Holder a, b;
  EXPECT_EQ(file.MapIndex(a, 1, 64, false), nullptr);
  char* const region = file.MapIndex(a, 1, 64, true);
  ASSERT_NE(region, nullptr);
  region[63] = 'x';
  EXPECT_EQ(file.MapIndex(b, 1, 64, false), region);
  file.UnmapIndex(a);
  EXPECT_EQ(file.MapIndex(b, 1, 64, false)[63], 'x');
  file.UnmapIndex(b);
  EXPECT_EQ(file.MapIndex(a, 1, 64, true)[63], 0);
}

TEST(SharedFile, WhatIsNotHeldCannotBeGivenUp) {
  SharedFile file;
  SharedFile::Holder a, b;
  file.Unlock(a, SQLITE_LOCK_NONE);
  EXPECT_TRUE(file.Lock(a, SQLITE_LOCK_SHARED));
  file.Unlock(a, SQLITE_LOCK_SHARED);
  file.Unlock(b, SQLITE_LOCK_NONE);
  EXPECT_TRUE(file.Lock(b, SQLITE_LOCK_SHARED));
  EXPECT_FALSE(file.Lock(b, SQLITE_LOCK_EXCLUSIVE)) << "a still reads";
}

TEST(SharedFile, AWriterThatBecameAReaderWritesAgain) {
  SharedFile file;
  SharedFile::Holder a;
  EXPECT_TRUE(file.Lock(a, SQLITE_LOCK_SHARED));
  EXPECT_TRUE(file.Lock(a, SQLITE_LOCK_RESERVED));
  EXPECT_TRUE(file.Lock(a, SQLITE_LOCK_EXCLUSIVE));
  file.Unlock(a, SQLITE_LOCK_SHARED);
  EXPECT_EQ(a.level, SQLITE_LOCK_SHARED);
  EXPECT_FALSE(file.IsReserved());
  EXPECT_TRUE(file.Lock(a, SQLITE_LOCK_RESERVED));
  EXPECT_TRUE(file.IsReserved());
  file.Unlock(a, SQLITE_LOCK_NONE);
  EXPECT_EQ(a.level, SQLITE_LOCK_NONE);
}

TEST(SharedFile, ALockThatIsHeldIsTakenOnce) {
  SharedFile file;
  SharedFile::Holder a, b;
  EXPECT_TRUE(file.Lock(a, SQLITE_LOCK_SHARED));
  EXPECT_TRUE(file.Lock(a, SQLITE_LOCK_SHARED));
  EXPECT_TRUE(file.Lock(a, SQLITE_LOCK_EXCLUSIVE));
  EXPECT_TRUE(file.Lock(a, SQLITE_LOCK_RESERVED)) << "it has more than that";
  EXPECT_EQ(a.level, SQLITE_LOCK_EXCLUSIVE);
  file.Unlock(a, SQLITE_LOCK_NONE);
  EXPECT_TRUE(file.Lock(b, SQLITE_LOCK_SHARED));
  EXPECT_TRUE(file.Lock(b, SQLITE_LOCK_EXCLUSIVE)) << "nobody else is left";
}

}  // namespace
}  // namespace drakkar::storage
