#include "base/testing/faulty_file_system.h"

#include "base/testing/memory_file_system.h"
#include "gtest/gtest.h"

namespace drakkar {
namespace {

TEST(FaultyFileSystem, FailsTheChosenCallOnceWithoutSideEffects) {
  MemoryFileSystem memory;
  FaultyFileSystem files(memory);
  files.FailCall(1);
  EXPECT_TRUE(files.WriteFile("/a", "1", 0600).ok());
  EXPECT_FALSE(files.WriteFile("/a", "2", 0600).ok());
  EXPECT_EQ(files.failed(), "write /a");
  EXPECT_EQ(*memory.ReadFile("/a"), "1");
  EXPECT_TRUE(files.WriteFile("/a", "3", 0600).ok());
  EXPECT_EQ(files.calls(), 3u);
  EXPECT_EQ(*files.ReadFile("/a"), "3");
}

TEST(FaultyFileSystem, CountsTheStepsOfAnAtomicWriteIndividually) {
  MemoryFileSystem memory;
  FaultyFileSystem files(memory);
  for (std::size_t call = 0; call < 5;
       ++call) {  // write, mode, sync, rename, sync of the directory
    files.FailCall(call);
    EXPECT_FALSE(files.WriteFileAtomically("/a", "x", 0600).ok()) << call;
    EXPECT_EQ(memory.ListDirectory("/")->size(), call < 4 ? 0u : 1u) << files.failed();
  }
  files.FailCall(5);
  EXPECT_TRUE(files.WriteFileAtomically("/a", "x", 0600).ok());
}

TEST(FaultyFileSystem, FailsTheNextMatchingCall) {
  MemoryFileSystem memory;
  FaultyFileSystem files(memory);
  ASSERT_TRUE(files.WriteFile("/a", "1", 0600).ok());
  files.FailNext("read", "/a");
  EXPECT_TRUE(files.Exists("/a"));
  EXPECT_EQ(files.failed(), "");
  EXPECT_FALSE(files.ReadFile("/a").ok());
  EXPECT_TRUE(files.ReadFile("/a").ok());
  files.FailNext("read", "/a");
  files.Stop();
  EXPECT_TRUE(files.ReadFile("/a").ok());
}

}  // namespace
}  // namespace drakkar
