#include "base/env/pause.h"

#include <gtest/gtest.h>

#include "base/env/file_system.h"

namespace drakkar {
namespace {

constexpr Duration kLong = std::chrono::seconds(60);

// Every change precedes the wait, which then ends immediately.
class ChangeWatchTest : public ::testing::Test {
 protected:
  ChangeWatchTest() : directory_(::testing::TempDir() + "/pause_test") {
    static_cast<void>(files_.RemoveTree(directory_));
    EXPECT_TRUE(files_.MakeDirectories(directory_, 0755).ok());
  }
  ~ChangeWatchTest() override { static_cast<void>(files_.RemoveTree(directory_)); }

  Duration WaitWith(ChangeWatch& watch, Duration limit = kLong) {
    const MonotonicTime begun = RealClock().Monotonic();
    watch.Wait(limit);
    return RealClock().Monotonic() - begun;
  }

  FileSystem& files_ = RealFileSystem();
  const std::string directory_;
};

TEST_F(ChangeWatchTest, EndsWhenAFileWasWrittenInPlace) {
  const std::string path = directory_ + "/file";
  ASSERT_TRUE(files_.WriteFile(path, "", 0644).ok());
  auto watch = RealPause().WatchChanges({path});
  if (watch == nullptr) GTEST_SKIP() << "inotify is not available";
  ASSERT_TRUE(files_.WriteFile(path, "text", 0644).ok());
  EXPECT_LT(WaitWith(*watch), kLong / 2);
}

TEST_F(ChangeWatchTest, EndsWhenAMissingDirectoryIsCreated) {
  auto watch = RealPause().WatchChanges({directory_ + "/a/b/file"});
  if (watch == nullptr) GTEST_SKIP() << "inotify is not available";
  ASSERT_TRUE(files_.MakeDirectories(directory_ + "/a", 0755).ok());
  EXPECT_LT(WaitWith(*watch), kLong / 2);
}

TEST_F(ChangeWatchTest, EndsAtTheLimitWhenNothingHappens) {
  auto watch = RealPause().WatchChanges({directory_});
  if (watch == nullptr) GTEST_SKIP() << "inotify is not available";
  EXPECT_GE(WaitWith(*watch, std::chrono::milliseconds(20)), std::chrono::milliseconds(20));
}

TEST_F(ChangeWatchTest, IsNotAvailableBeyondTheLimitOfPaths) {
  EXPECT_EQ(RealPause().WatchChanges(std::vector<std::string>(kMaxWatchedPaths + 1, directory_)),
            nullptr);
}

}  // namespace
}  // namespace drakkar
