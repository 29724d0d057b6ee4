#include "base/env/tree_walk.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <unistd.h>

#include "base/env/descriptor.h"
#include "base/env/file_system.h"

namespace drakkar {
namespace {

class TreeWalkTest : public ::testing::Test {
 protected:
  void SetUp() override {
    char pattern[] = "/tmp/drakkar-tree-XXXXXX";
    root_ = mkdtemp(pattern);
  }
  void TearDown() override { EXPECT_TRUE(files_.RemoveTree(root_).ok()); }

  // Deeper than the longest path: creates each directory in the previous one.
  void MakeDeep(const std::string& path, int levels) {
    ASSERT_TRUE(files_.MakeDirectories(path, 0755).ok());
    Descriptor at(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    for (int i = 0; i < levels; ++i) {
      ASSERT_EQ(::mkdirat(at.get(), "dddddddddd", 0755), 0);
      Descriptor next(::openat(at.get(), "dddddddddd", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
      ASSERT_TRUE(next.ok());
      at = std::move(next);
    }
    const Descriptor file(::openat(at.get(), "f", O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
    ASSERT_EQ(::write(file.get(), "x", 1), 1);
  }

  FileSystem& files_ = RealFileSystem();
  std::string root_;
};

TEST_F(TreeWalkTest, RemovesDirectoriesDeeperThanAnyPathAndAnyNumberOfDescriptors) {
  MakeDeep(root_ + "/deep", 3'000);
  EXPECT_TRUE(files_.RemoveTree(root_ + "/deep").ok());
  EXPECT_FALSE(files_.Exists(root_ + "/deep"));
}

TEST_F(TreeWalkTest, RemovesLinksButNotTheirTargets) {
  ASSERT_TRUE(files_.MakeDirectories(root_ + "/outside", 0755).ok());
  ASSERT_TRUE(files_.WriteFile(root_ + "/outside/kept", "x", 0644).ok());
  ASSERT_TRUE(files_.MakeDirectories(root_ + "/tree/below", 0755).ok());
  ASSERT_EQ(::symlink((root_ + "/outside").c_str(), (root_ + "/tree/below/link").c_str()), 0);
  ASSERT_EQ(::symlink((root_ + "/tree").c_str(), (root_ + "/tree/loop").c_str()), 0);
  EXPECT_TRUE(files_.RemoveTree(root_ + "/tree").ok());
  EXPECT_FALSE(files_.Exists(root_ + "/tree"));
  EXPECT_TRUE(files_.Exists(root_ + "/outside/kept"));
}

TEST_F(TreeWalkTest, DoesNotRemoveMountedFiles) {
  ASSERT_TRUE(files_.MakeDirectories(root_ + "/outside", 0755).ok());
  ASSERT_TRUE(files_.WriteFile(root_ + "/outside/kept", "x", 0644).ok());
  ASSERT_TRUE(files_.MakeDirectories(root_ + "/tree/mounted", 0755).ok());
  if (::mount((root_ + "/outside").c_str(), (root_ + "/tree/mounted").c_str(), nullptr, MS_BIND,
              nullptr) != 0) {
    GTEST_SKIP() << "mounting needs root";
  }
  const auto removed = files_.RemoveTree(root_ + "/tree");
  EXPECT_EQ(::umount2((root_ + "/tree/mounted").c_str(), MNT_DETACH), 0);
  ASSERT_FALSE(removed.ok());
  EXPECT_NE(removed.error().message.find("is mounted"), std::string::npos)
      << removed.error().message;
  EXPECT_TRUE(files_.Exists(root_ + "/outside/kept"));
}

TEST_F(TreeWalkTest, CountsHardLinksOnceAndSparseFilesByTheirBlocks) {
  MakeDeep(root_ + "/deep", 50);
  ASSERT_TRUE(files_.WriteFile(root_ + "/data", std::string(1 << 20, 'x'), 0644).ok());
  const std::uint64_t one = *TreeUsage(root_);
  EXPECT_GE(one, std::uint64_t{1} << 20);
  ASSERT_EQ(::link((root_ + "/data").c_str(), (root_ + "/again").c_str()), 0);
  const Descriptor sparse(
      ::open((root_ + "/sparse").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
  ASSERT_EQ(::ftruncate(sparse.get(), off_t{1} << 40), 0);
  ASSERT_EQ(::symlink("/", (root_ + "/host").c_str()), 0);
  EXPECT_LE(*TreeUsage(root_), one + (64 << 10));
}

}  // namespace
}  // namespace drakkar
