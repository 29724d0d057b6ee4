#include "base/env/absolute_path.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>

#include "base/env/file_system.h"

namespace drakkar {
namespace {

TEST(AbsolutePath, StartsAtTheRootAndFollowsLinksAsFarAsItExists) {
  std::string made = ::testing::TempDir() + "absolute-path-XXXXXX";
  ASSERT_NE(::mkdtemp(made.data()), nullptr);
  const std::string root = AbsolutePath(made);
  ASSERT_TRUE(RealFileSystem().MakeDirectories(root + "/real", 0700).ok());
  ASSERT_EQ(::symlink("real", (root + "/link").c_str()), 0);
  EXPECT_EQ(AbsolutePath(root + "/link/new/./dir/"), root + "/real/new/dir");
  EXPECT_EQ(AbsolutePath(root + "/real/../link"), root + "/real");
  char here[4096];
  ASSERT_NE(::getcwd(here, sizeof(here)), nullptr);
  EXPECT_EQ(AbsolutePath("not-there"), AbsolutePath(here) + "/not-there");
  EXPECT_EQ(AbsolutePath("."), AbsolutePath(here));
  EXPECT_EQ(AbsolutePath("/"), "/");
  EXPECT_EQ(AbsolutePath(""), "");
  EXPECT_TRUE(RealFileSystem().RemoveTree(root).ok());
}

}  // namespace
}  // namespace drakkar
