#include "base/env/file_lock.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

namespace drakkar {
namespace {

std::string LockPath() {
  std::string pattern = ::testing::TempDir() + "drakkar-lock-XXXXXX";
  const int descriptor = mkstemp(pattern.data());
  close(descriptor);
  return pattern;
}

TEST(FileLock, IsHeldByOneAtATime) {
  const std::string path = LockPath();
  FileLock a(path), b(path);
  EXPECT_TRUE(*a.TryLock());
  EXPECT_FALSE(*b.TryLock());
  a.Unlock();
  EXPECT_TRUE(*b.TryLock());
  unlink(path.c_str());
}

TEST(FileLock, WaitsUpToTheLimit) {
  const std::string path = LockPath();
  FileLock a(path), b(path);
  EXPECT_TRUE(a.LockWithin(std::chrono::milliseconds(0)).ok());
  EXPECT_EQ(b.LockWithin(std::chrono::milliseconds(3)).error().code, ErrorCode::kUnavailable);
  a.Unlock();
  EXPECT_TRUE(b.LockWithin(std::chrono::milliseconds(3)).ok());
  unlink(path.c_str());
}

TEST(FileLock, IsReleasedWhenItsOwnerIsDestroyed) {
  const std::string path = LockPath();
  FileLock b(path);
  {
    FileLock a(path);
    EXPECT_TRUE(*a.TryLock());
    EXPECT_FALSE(*b.TryLock());
  }
  EXPECT_TRUE(*b.TryLock());
  unlink(path.c_str());
}

TEST(FileLock, NamesTheFileThatCannotBeOpened) {
  FileLock lock("/nonexistent-directory/lock");
  auto taken = lock.TryLock();
  ASSERT_FALSE(taken.ok());
  EXPECT_NE(taken.error().message.find("/nonexistent-directory/lock"), std::string::npos);
}

}  // namespace
}  // namespace drakkar
