#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/env/descriptor.h"
#include "base/env/file_system.h"

namespace drakkar {
namespace {

class RealFileSystemTest : public ::testing::Test {
 protected:
  void SetUp() override {
    char pattern[] = "/tmp/drakkar-fs-XXXXXX";
    root_ = mkdtemp(pattern);
  }
  void TearDown() override { EXPECT_TRUE(files_.RemoveTree(root_).ok()); }

  FileSystem& files_ = RealFileSystem();
  std::string root_;
};

TEST_F(RealFileSystemTest, AtomicWriteReplacesAndLeavesNoTemporaryFile) {
  const std::string path = JoinPath(root_, "state");
  ASSERT_TRUE(files_.WriteFileAtomically(path, "one", 0600).ok());
  ASSERT_TRUE(files_.WriteFileAtomically(path, "two", 0644).ok());
  EXPECT_EQ(*files_.ReadFile(path), "two");
  EXPECT_EQ(files_.Stat(path)->mode, 0644u);
  EXPECT_EQ(*files_.ListDirectory(root_), (std::vector<std::string>{"state"}));
}

TEST_F(RealFileSystemTest, EnsureFileCreatesTheDirectoryAndDoesNotTouchAnEqualFile) {
  const std::string path = root_ + "/new/directory/state";
  ASSERT_TRUE(files_.EnsureFile(path, "one", 0644).ok());
  EXPECT_EQ(*files_.ReadFile(path), "one");
  EXPECT_EQ(files_.Stat(path)->mode, 0644u);
  const auto inode = [&] {
    struct stat st;
    EXPECT_EQ(::stat(path.c_str(), &st), 0);
    return st.st_ino;
  };
  // Kept open, so that its inode number is not reused.
  const Descriptor held(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  const auto first = inode();
  ASSERT_TRUE(files_.EnsureFile(path, "one", 0644).ok());
  EXPECT_EQ(inode(), first);
  ASSERT_TRUE(files_.EnsureFile(path, "two", 0644).ok());
  EXPECT_EQ(*files_.ReadFile(path), "two");
  EXPECT_NE(inode(), first);
  EXPECT_FALSE(files_.EnsureFile(path + "/below-a-file", "x", 0644).ok());
}

TEST_F(RealFileSystemTest, MakesAndRemovesTrees) {
  ASSERT_TRUE(files_.MakeDirectories(root_ + "/a/b/c", 0755).ok());
  ASSERT_TRUE(files_.WriteFile(root_ + "/a/b/f", "x", 0600).ok());
  EXPECT_FALSE(files_.MakeDirectories(root_ + "/a/b/f/g", 0755).ok());
  ASSERT_TRUE(files_.RemoveTree(root_ + "/a").ok());
  EXPECT_FALSE(files_.Exists(root_ + "/a"));
  EXPECT_TRUE(files_.RemoveTree(root_ + "/a").ok());
}

TEST_F(RealFileSystemTest, ReadsARangeOfAFileButDoesNotFollowALink) {
  ASSERT_TRUE(files_.WriteFile(JoinPath(root_, "f"), "0123456789", 0600).ok());
  EXPECT_EQ(*files_.ReadFileRange(JoinPath(root_, "f"), 3, 4), "3456");
  ASSERT_EQ(::symlink("f", JoinPath(root_, "link").c_str()), 0);
  EXPECT_FALSE(files_.ReadFileRange(JoinPath(root_, "link"), 0, 4).ok());
  ASSERT_EQ(::mkfifo(JoinPath(root_, "fifo").c_str(), 0600), 0);
  EXPECT_FALSE(files_.ReadFileRange(JoinPath(root_, "fifo"), 0, 4).ok());
}

TEST_F(RealFileSystemTest, OverwritesInPlaceAndNeverBeyondTheEnd) {
  const std::string path = JoinPath(root_, "slots");
  EXPECT_FALSE(files_.OverwriteFile(path, 0, "x", false).ok()) << "does not create files";
  ASSERT_TRUE(files_.WriteFile(path, "0123456789", 0600).ok());
  ASSERT_TRUE(files_.OverwriteFile(path, 4, "abc", true).ok());
  EXPECT_EQ(*files_.ReadFile(path), "0123abc789");
  EXPECT_FALSE(files_.OverwriteFile(path, 8, "xyz", true).ok());
  EXPECT_EQ(*files_.ReadFile(path), "0123abc789");
}

TEST_F(RealFileSystemTest, NamesTheFileThatIsMissing) {
  auto read = files_.ReadFile(root_ + "/none");
  ASSERT_FALSE(read.ok());
  EXPECT_EQ(read.error().code, ErrorCode::kNotFound);
  EXPECT_NE(read.error().message.find("/none"), std::string::npos);
}

TEST(Paths, AreSplitAndJoined) {
  EXPECT_EQ(JoinPath("/a/", "b"), "/a/b");
  EXPECT_EQ(BaseName("/a/b"), "b");
  EXPECT_EQ(DirectoryName("/a/b"), "/a");
  EXPECT_EQ(DirectoryName("/a"), "/");
  EXPECT_EQ(DirectoryName("a"), ".");
}

}  // namespace
}  // namespace drakkar
