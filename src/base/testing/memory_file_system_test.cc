#include "base/testing/memory_file_system.h"

#include <gtest/gtest.h>

namespace drakkar {
namespace {

TEST(MemoryFileSystem, AtomicWriteSurvivesACrashAtEveryCall) {
  for (std::size_t call = 0; call < 5; ++call) {  // write, mode, sync, rename, sync
    MemoryFileSystem files;
    ASSERT_TRUE(files.MakeDirectories("/d", 0755).ok());
    ASSERT_TRUE(files.WriteFileAtomically("/d/f", "old", 0600).ok());
    files.FailCall(call);
    const bool written = files.WriteFileAtomically("/d/f", "new", 0600).ok();
    files.Crash();
    auto content = files.ReadFile("/d/f");
    ASSERT_TRUE(content.ok());
    EXPECT_TRUE(*content == "old" || *content == "new") << *content;
    if (written) {
      EXPECT_EQ(*content, "new");
    }
  }
}

TEST(MemoryFileSystem, UnsyncedBytesAreLostInACrash) {
  MemoryFileSystem files;
  ASSERT_TRUE(files.MakeDirectories("/d", 0755).ok());
  ASSERT_TRUE(files.WriteFile("/d/f", "a", 0600).ok());
  ASSERT_TRUE(files.SyncFile("/d/f").ok());
  ASSERT_TRUE(files.SyncDirectory("/d").ok());
  ASSERT_TRUE(files.AppendFile("/d/f", "b", 0600).ok());
  EXPECT_EQ(*files.ReadFile("/d/f"), "ab");
  files.Crash();
  EXPECT_EQ(*files.ReadFile("/d/f"), "a");
}

TEST(MemoryFileSystem, ADirectoryIsNotRenamedOverOneWithContent) {
  MemoryFileSystem files;
  ASSERT_TRUE(files.MakeDirectories("/from/a", 0755).ok());
  ASSERT_TRUE(files.MakeDirectories("/to/b", 0755).ok());
  EXPECT_FALSE(files.Rename("/from", "/to").ok());
  ASSERT_TRUE(files.Remove("/to/b").ok());
  ASSERT_TRUE(files.Rename("/from", "/to").ok());
  EXPECT_TRUE(files.Exists("/to/a"));
  EXPECT_FALSE(files.Exists("/from/a"));
}

}  // namespace
}  // namespace drakkar
