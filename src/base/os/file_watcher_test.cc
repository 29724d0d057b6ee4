#include "base/os/file_watcher.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/env/file_system.h"
#include "base/exec/uv_loop.h"
#include "base/os/descriptor_watch.h"
#include "base/testing/memory_file_watcher.h"
#include "base/testing/seeded_loop.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace drakkar {
namespace {

using ::testing::ElementsAre;

class FileWatcherTest : public ::testing::Test {
 protected:
  void SetUp() override {
    char pattern[] = "/tmp/drakkar-watch-XXXXXX";
    ASSERT_NE(::mkdtemp(pattern), nullptr);
    directory_ = pattern;
  }
  void TearDown() override { EXPECT_TRUE(RealFileSystem().RemoveTree(directory_).ok()); }

  // Runs the loop until `name` is reported as `change`, and collects all events up to it.
  void RunUntil(UvLoop& loop, FileChange change, std::string name) {
    until_ = {change, std::move(name)};
    loop_ = &loop;
    loop.Run();
  }
  std::function<void(const FileEvent&)> Collect() {
    return [this](const FileEvent& event) {
      seen_.push_back(event);
      if (event == until_) loop_->Stop();
    };
  }

  std::string directory_;
  std::vector<FileEvent> seen_;
  FileEvent until_;
  UvLoop* loop_ = nullptr;
};

TEST_F(FileWatcherTest, ReportsWritesToAnOpenFileIfEnabled) {
  UvLoop loop;
  const std::string path = directory_ + "/log";
  ASSERT_TRUE(RealFileSystem().WriteFile(path, "", 0644).ok());
  auto watcher = *MakeFileWatcher(loop, {.reports_writes = true});
  auto watch = watcher->Watch(directory_, Collect());
  ASSERT_TRUE(watch.ok());
  FILE* file = ::fopen(path.c_str(), "a");
  ASSERT_NE(file, nullptr);
  loop.Post([&] {
    ::fputs("line\n", file);
    ::fflush(file);
  });
  RunUntil(loop, FileChange::kModified, "log");
  EXPECT_THAT(seen_, ElementsAre(FileEvent{FileChange::kModified, "log"}));
  ::fclose(file);
}

TEST_F(FileWatcherTest, ReportsCreatedRenamedModifiedAndRemovedNames) {
  UvLoop loop;
  auto watcher = MakeFileWatcher(loop);
  ASSERT_TRUE(watcher.ok());
  auto watch = (*watcher)->Watch(directory_, Collect());
  ASSERT_TRUE(watch.ok());
  FileSystem& files = RealFileSystem();
  ASSERT_TRUE(files.WriteFile(directory_ + "/a", "1", 0600).ok());
  ASSERT_TRUE(files.Rename(directory_ + "/a", directory_ + "/b").ok());
  ASSERT_TRUE(files.Remove(directory_ + "/b").ok());
  RunUntil(loop, FileChange::kRemoved, "b");
  EXPECT_THAT(
      seen_,
      ElementsAre(FileEvent{FileChange::kCreated, "a"}, FileEvent{FileChange::kModified, "a"},
                  FileEvent{FileChange::kRemoved, "a"}, FileEvent{FileChange::kCreated, "b"},
                  FileEvent{FileChange::kRemoved, "b"}));
}

TEST_F(FileWatcherTest, ReportsThatTheDirectoryItselfIsGone) {
  UvLoop loop;
  auto watcher = MakeFileWatcher(loop);
  ASSERT_TRUE(watcher.ok());
  const std::string inner = directory_ + "/inner";
  ASSERT_TRUE(RealFileSystem().MakeDirectories(inner, 0700).ok());
  auto watch = (*watcher)->Watch(inner, Collect());
  ASSERT_TRUE(watch.ok());
  ASSERT_TRUE(RealFileSystem().Remove(inner).ok());
  RunUntil(loop, FileChange::kDirectoryGone, "");
  EXPECT_EQ(seen_.back().change, FileChange::kDirectoryGone);
}

TEST_F(FileWatcherTest, TwoWatchesOfOneDirectoryAreIndependent) {
  UvLoop loop;
  auto watcher = MakeFileWatcher(loop);
  ASSERT_TRUE(watcher.ok());
  int others = 0;
  auto first = (*watcher)->Watch(directory_, [&](const FileEvent&) { ++others; });
  auto second = (*watcher)->Watch(directory_, Collect());
  ASSERT_TRUE(first.ok() && second.ok());
  first->reset();
  ASSERT_TRUE(RealFileSystem().WriteFile(directory_ + "/x", "", 0600).ok());
  RunUntil(loop, FileChange::kCreated, "x");
  EXPECT_EQ(others, 0);
}

TEST_F(FileWatcherTest, RejectsADirectoryThatDoesNotExist) {
  UvLoop loop;
  auto watcher = MakeFileWatcher(loop);
  ASSERT_TRUE(watcher.ok());
  auto watch = (*watcher)->Watch(directory_ + "/none", Collect());
  ASSERT_FALSE(watch.ok());
  EXPECT_EQ(watch.error().code, ErrorCode::kNotFound);
}

TEST(DescriptorWatch, ReportsDataAndTheEndOfAPipeAndMayBeDestroyedByItsCallback) {
  UvLoop loop;
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  std::string read;
  std::unique_ptr<DescriptorWatch> watch;
  watch = WatchReadable(loop, ends[0], [&] {
    char buffer[16];
    const ssize_t size = ::read(ends[0], buffer, sizeof(buffer));
    if (size > 0) {
      read.append(buffer, static_cast<std::size_t>(size));
      ::close(ends[1]);
      return;
    }
    watch.reset();
    loop.Stop();
  });
  ASSERT_NE(watch, nullptr);
  ASSERT_EQ(::write(ends[1], "hi", 2), 2);
  loop.Run();
  EXPECT_EQ(read, "hi");
  ::close(ends[0]);
}

TEST(MemoryFileWatcher, DeliversOnTheLoopAndOnlyWhileWatched) {
  SeededLoop loop;
  MemoryFileWatcher watcher(loop);
  std::vector<FileEvent> seen;
  auto watch = watcher.Watch("/plugins", [&](const FileEvent& event) { seen.push_back(event); });
  ASSERT_TRUE(watch.ok());
  EXPECT_TRUE(watcher.IsWatched("/plugins"));
  watcher.Emit("/plugins", FileChange::kCreated, "a.sock");
  watcher.Emit("/elsewhere", FileChange::kCreated, "b.sock");
  EXPECT_TRUE(seen.empty());
  loop.RunUntilIdle();
  EXPECT_THAT(seen, ElementsAre(FileEvent{FileChange::kCreated, "a.sock"}));
  watcher.Emit("/plugins", FileChange::kRemoved, "a.sock");
  watch->reset();
  loop.RunUntilIdle();
  EXPECT_EQ(seen.size(), 1u);
}

}  // namespace
}  // namespace drakkar
